//! How much of each kernel a sampled check looks at, so that a plugin with many of them takes minutes.
//!
//! The rule, which a full check does not follow:
//! - Up to [`MANY`] subjects (kernels with element types) each has the cases that were asked for; of more, each
//!   has its share of as many cases in all, [`FEWEST`] at least.
//! - The element types of one kernel share the time over which calls are repeated (concurrent, leak): that of
//!   [`SHARED`] subjects. Beyond [`MANY`] subjects it shrinks as the cases do.

use crate::check::{Effort, protocol::Sampling};

/// This many subjects take no time from the others.
const MANY: usize = 1200;
/// Cases that each subject has.
const FEWEST: usize = 4;
/// Subjects of one kernel that have all the time.
const SHARED: f64 = 4.0;
/// The least share of the usual time.
const LEAST: f64 = 0.04;

/// Cases of each of this many subjects.
pub(super) fn cases(sampling: Sampling, subjects: usize) -> usize {
    let fewest = FEWEST.min(sampling.cases);
    match sampling.full || subjects <= MANY {
        true => sampling.cases,
        false => (sampling.cases * MANY / subjects).max(fewest),
    }
}

/// Time of one of this many subjects, of which `types` are one kernel's.
pub(super) fn effort(sampling: Sampling, subjects: usize, types: usize) -> Effort {
    if sampling.full {
        return Effort::USUAL;
    }
    let of_kernel = (SHARED / types.max(1) as f64).min(1.0);
    let of_all = (MANY as f64 / subjects.max(1) as f64).min(1.0);
    Effort::times((of_kernel * of_all).max(LEAST))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: Sampling = Sampling { seed: 1, cases: 12, full: false };
    const FULL: Sampling = Sampling { full: true, ..SAMPLE };

    #[test]
    fn a_few_kernels_are_looked_at_as_was_asked_for() {
        assert_eq!((cases(SAMPLE, 1), cases(SAMPLE, MANY)), (12, 12));
        assert_eq!(effort(SAMPLE, MANY, 4), Effort::USUAL);
    }

    #[test]
    fn many_kernels_share_and_none_is_left_out() {
        assert_eq!((cases(SAMPLE, 2 * MANY), cases(SAMPLE, 100 * MANY)), (6, FEWEST));
        assert_eq!(effort(SAMPLE, 10, 8), Effort::times(0.5));
        assert_eq!(effort(SAMPLE, 2 * MANY, 8), Effort::times(0.25));
        assert_eq!(effort(SAMPLE, 100 * MANY, 50), Effort::times(LEAST));
        // Who asks for one case gets one.
        assert_eq!(cases(Sampling { cases: 1, ..SAMPLE }, 100 * MANY), 1);
    }

    #[test]
    fn a_full_check_shares_nothing() {
        assert_eq!(cases(FULL, 100 * MANY), 12);
        assert_eq!(effort(FULL, 100 * MANY, 50), Effort::USUAL);
    }
}
