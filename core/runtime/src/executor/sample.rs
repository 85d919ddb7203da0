//! Chooses the calls that are measured.

use super::{partition::PartitionState, propagate::Propagate};
use crate::sampling::{spread, wants};
use std::{ops::RangeInclusive, sync::atomic::Ordering};
use tenon_host::call::CallFrame;

/// One call in this number is measured, as a power of two.
const SAMPLE_EVERY_LOG2: u32 = 6;
/// The runs of a state in which every call is measured: the second to the fourth, since the first
/// one finds cold caches.
const MEASURED_RUNS: RangeInclusive<u32> = 2..=4;

impl<P: Propagate> PartitionState<P> {
    /// Whether the asynchronous call of a node that starts now is measured.
    pub(super) fn is_async_measured(&self, index: u32) -> bool {
        let runs = self.runs.load(Ordering::Relaxed);
        runs <= *MEASURED_RUNS.end()
            || wants(u64::from(runs.wrapping_add(index)), SAMPLE_EVERY_LOG2)
    }

    /// The start of the node counter, and a mask. A node takes the slow path, where its call is
    /// measured, if its masked count is 0. That is one node in 2^`SAMPLE_EVERY_LOG2`, or every node
    /// under a trace or a deadline.
    ///
    /// Each run starts at another count; otherwise the same nodes would be measured every time, and
    /// none in a small plan.
    pub(super) fn sampling(&self) -> (u32, u32) {
        let runs = self.runs.load(Ordering::Relaxed);
        let env = self.frames.first().map(CallFrame::env);
        let seen = env.is_some_and(|env| env.trace.is_some() || env.step.deadline_ns != 0);
        let begin = spread(runs, SAMPLE_EVERY_LOG2) as u32;
        let all = seen || MEASURED_RUNS.contains(&runs);
        (begin, if all { 0 } else { (1 << SAMPLE_EVERY_LOG2) - 1 })
    }
}
