//! How many elements a dataset has, as far as that is known without making them.
//!
//! The rules are those of TensorFlow's datasets. What only a walk over the elements would tell, as of the parts of a
//! `FlatMapDataset`, is unknown here, also where `cardinality_options` would let TensorFlow walk.

use super::dataset_in;
use tenon_sdk::prelude::*;

/// How many elements a dataset has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cardinality {
    /// Only a walk over the elements tells.
    Unknown,
    /// They do not end.
    Infinite,
    /// This many.
    Finite(u64),
}

use Cardinality::{Finite, Infinite, Unknown};

impl Cardinality {
    /// A finite number that `of` makes of this one; what is not finite stays as it is.
    pub fn finite(self, of: impl FnOnce(u64) -> u64) -> Cardinality {
        match self {
            Finite(count) => Finite(of(count)),
            other => other,
        }
    }

    /// The elements of this dataset `count` times; `None` for ever.
    pub fn repeated(self, count: Option<u64>) -> Cardinality {
        match (self, count) {
            (_, Some(0)) | (Finite(0), _) => Finite(0),
            (_, None) | (Infinite, _) => Infinite,
            (own, Some(count)) => own.finite(|own| own.saturating_mul(count)),
        }
    }

    /// The first elements; `None` for all.
    pub fn first(self, count: Option<u64>) -> Cardinality {
        match (self, count) {
            (Infinite, Some(count)) => Finite(count),
            (own, Some(count)) => own.finite(|own| own.min(count)),
            (own, None) => own,
        }
    }

    /// All but the first elements; `None` for no elements.
    pub fn after(self, count: Option<u64>) -> Cardinality {
        self.finite(|own| count.map_or(0, |count| own.saturating_sub(count)))
    }

    /// These elements, then those of another dataset.
    pub fn then(self, other: Cardinality) -> Cardinality {
        match (self, other) {
            (Infinite, _) | (_, Infinite) => Infinite,
            (Unknown, _) | (_, Unknown) => Unknown,
            (Finite(first), Finite(second)) => Finite(first.saturating_add(second)),
        }
    }

    /// Elements that need one of this dataset and one of another.
    pub fn beside(self, other: Cardinality) -> Cardinality {
        match (self, other) {
            (Unknown, _) | (_, Unknown) => Unknown,
            (Infinite, known) | (known, Infinite) => known,
            (Finite(first), Finite(second)) => Finite(first.min(second)),
        }
    }

    /// As TensorFlow counts: -1 for infinitely many elements, -2 for an unknown number.
    fn number(self) -> i64 {
        match self {
            Unknown => -2,
            Infinite => -1,
            Finite(count) => i64::try_from(count).unwrap_or(i64::MAX),
        }
    }
}

fn count(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let found = dataset_in(c, 0)?.dataset.cardinality().number();
    c.output(0, &[])?.data.copy_from_slice(&[found]);
    Ok(())
}

register_kernel!("DatasetCardinality" on "CPU": fn count);

/// `ComputeBatchSize`: -1 for elements that are not batches, and for batches whose size only a function knows.
fn batch_size(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let found = dataset_in(c, 0)?.dataset.batch_size();
    let found = found.map_or(-1, |size| i64::try_from(size).unwrap_or(i64::MAX));
    c.output(0, &[])?.data.copy_from_slice(&[found]);
    Ok(())
}

register_kernel!("ComputeBatchSize" on "CPU": fn batch_size);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unknown_stays_so_unless_the_other_part_decides() {
        assert_eq!(Unknown.repeated(None), Infinite);
        assert_eq!(Unknown.repeated(Some(0)), Finite(0));
        assert_eq!(Finite(0).repeated(None), Finite(0));
        assert_eq!(Unknown.then(Infinite), Infinite);
        assert_eq!(Unknown.beside(Finite(0)), Unknown);
        assert_eq!(Unknown.first(Some(3)), Unknown);
    }

    #[test]
    fn numbers_beyond_the_range_are_the_largest() {
        assert_eq!(Finite(1 << 63).repeated(Some(4)).number(), i64::MAX);
        assert_eq!(Finite(u64::MAX).then(Finite(1)).number(), i64::MAX);
    }
}
