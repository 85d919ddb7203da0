//! Which calls are measured.

use super::{partition::PartitionState, propagate::Propagate};
use std::{ops::RangeInclusive, sync::atomic::Ordering};
use tenon_host::call::CallFrame;

/// One call in so many is measured, as a power of two.
const SAMPLE_EVERY_LOG2: u32 = 6;
/// The runs of a state in which every call is: the second to the fourth, since the first finds cold memory.
const MEASURED_RUNS: RangeInclusive<u32> = 2..=4;

impl<P: Propagate> PartitionState<P> {
    /// Where counting the nodes begins, and a mask: a node whose number, masked, is 0 takes the way round, on which its
    /// call is measured. That is one in so many, and every one where each is to be seen: under a trace or a deadline.
    ///
    /// Each run begins elsewhere, or it would be the same nodes every time, and none of a small plan; the steps of the
    /// golden ratio come past every place equally often (Knuth, The Art of Computer Programming, volume 3, 6.4).
    pub(super) fn sampling(&self) -> (u32, u32) {
        let runs = self.runs.load(Ordering::Relaxed);
        let env = self.frames.first().map(CallFrame::env);
        let seen = env.is_some_and(|env| env.trace.is_some() || env.step.deadline_ns != 0);
        let begin = runs.wrapping_mul(0x9E37_79B1) >> (u32::BITS - SAMPLE_EVERY_LOG2);
        let all = seen || MEASURED_RUNS.contains(&runs);
        (begin, if all { 0 } else { (1 << SAMPLE_EVERY_LOG2) - 1 })
    }
}
