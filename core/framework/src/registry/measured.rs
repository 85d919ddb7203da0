//! Policy `measured`: among the kernels that may run, the fastest of those that were timed.
//!
//! It begins where policy `priority` ends, and changes its choice only for a kernel that is faster by more than noise
//! and promises no less.

use super::{contract::Contract, kernel_def::KernelDef, removal::Removal, select::Explanation};
use std::sync::Arc;

/// A kernel takes the place of the one that `priority` chooses when its time is below this share of the other's.
pub const FASTER: f64 = 0.97;

/// What is known of a kernel's time.
#[derive(Debug, Clone, PartialEq)]
pub enum Timed {
    /// Nanoseconds of a call.
    Ns(f64),
    /// It failed while it was timed.
    Failed(String),
}

impl Explanation {
    /// The kernels among which policy has chosen, beginning with its choice. Kernels that promise less than
    /// `contract` requires, or take other arguments in host memory, are left out. There are fewer than two if there
    /// was nothing to choose.
    pub fn rivals(&mut self, contract: &Contract) -> Vec<Arc<KernelDef>> {
        let Some(first) = self.per_shape.first().or(self.winner.as_ref()).cloned() else {
            return Vec::new();
        };
        let mut rivals = vec![Arc::clone(&first)];
        for candidate in &mut self.candidates {
            let ranked = matches!(
                candidate.removed,
                None | Some(
                    Removal::LowerPriority { .. }
                        | Removal::LessSpecific { .. }
                        | Removal::DeclaredLater { .. }
                )
            );
            let kernel = &candidate.kernel;
            if !ranked || Arc::ptr_eq(kernel, &first) || kernel.host_memory != first.host_memory {
                continue;
            }
            if let Some(than) = contract.missed(kernel, &first) {
                if candidate.removed.is_some() {
                    candidate.removed = Some(Removal::WeakerContract { than });
                }
                continue;
            }
            rivals.push(Arc::clone(kernel));
        }
        rivals
    }

    /// Chooses the fastest of the rivals if it is faster by more than noise. `times` are those of the rivals, in
    /// their order; a kernel that failed does not run while another one may.
    pub fn prefer(&mut self, rivals: &[Arc<KernelDef>], times: &[Timed]) {
        let Some(at) = fastest(times) else { return };
        let (Some(winner), Timed::Ns(best)) = (rivals.get(at).cloned(), &times[at]) else { return };
        for (kernel, time) in rivals.iter().zip(times) {
            let mut all = self.candidates.iter_mut();
            let Some(candidate) = all.find(|c| Arc::ptr_eq(&c.kernel, kernel)) else { continue };
            candidate.removed = match time {
                _ if Arc::ptr_eq(kernel, &winner) => None,
                Timed::Failed(reason) => {
                    let reason = format!("it failed while it was measured: {reason}");
                    Some(Removal::Supports { reason })
                }
                Timed::Ns(own_ns) => {
                    let than = winner.to_string();
                    Some(Removal::Measured { own_ns: *own_ns, other_ns: *best, than })
                }
            };
            candidate.measured_ns = match time {
                Timed::Ns(ns) => Some(*ns),
                Timed::Failed(_) => None,
            };
        }
        self.winner = Some(winner);
    }
}

/// Which of the timed kernels runs: the first, unless another is faster by more than noise. `None` if all failed.
pub fn fastest(times: &[Timed]) -> Option<usize> {
    let ns = |time: &Timed| match time {
        Timed::Ns(ns) => Some(*ns),
        Timed::Failed(_) => None,
    };
    let known = times.iter().enumerate().filter_map(|(at, time)| Some((at, ns(time)?)));
    let (at, best) = known.min_by(|a, b| a.1.total_cmp(&b.1))?;
    match times.first().and_then(ns) {
        Some(first) if best >= first * FASTER => Some(0),
        _ => Some(at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_stays_unless_another_is_faster_by_more_than_noise() {
        let ns = Timed::Ns;
        let failed = || Timed::Failed("no".to_owned());
        assert_eq!(fastest(&[ns(100.0), ns(98.0)]), Some(0));
        assert_eq!(fastest(&[ns(100.0), ns(96.0), ns(90.0)]), Some(2));
        assert_eq!(fastest(&[failed(), ns(500.0)]), Some(1));
        assert_eq!(fastest(&[ns(1.0), failed()]), Some(0));
        assert_eq!(fastest(&[failed(), failed()]), None);
        assert_eq!(fastest(&[]), None);
    }
}
