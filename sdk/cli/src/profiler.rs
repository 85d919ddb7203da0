//! Ranges on the timeline of a profiler that the command runs under.

use crate::output::complain;
use std::sync::{Arc, OnceLock};
use tenon_ranges::Ranges;
use tenon_runtime::host::call::TraceSink;

/// The profiler, where there is one. The first call warns of one that cannot be used.
pub fn attached() -> Option<&'static Arc<Ranges>> {
    static ATTACHED: OnceLock<Option<Arc<Ranges>>> = OnceLock::new();
    let attach = || {
        let ranges = Ranges::attached();
        Ranges::refusals().iter().for_each(|refusal| complain(&format!("warning: {refusal}")));
        ranges
    };
    ATTACHED.get_or_init(attach).as_ref()
}

/// The trace of a step: the profiler, and the step's own trace beside it.
pub fn trace(
    ranges: Option<&Arc<Ranges>>,
    own: Option<Arc<dyn TraceSink>>,
) -> Option<Arc<dyn TraceSink>> {
    let Some(ranges) = ranges.map(Arc::clone) else { return own };
    Some(match own {
        Some(own) => ranges.beside(own),
        None => ranges,
    })
}

/// Runs a step, in a range of its number under a profiler.
pub fn in_step<R>(ranges: Option<&Arc<Ranges>>, step: usize, run: impl FnOnce() -> R) -> R {
    match ranges {
        Some(ranges) => ranges.range(&format!("step {step}"), run),
        None => run(),
    }
}

/// The trace that gets the samples of a benchmark: the profiler's.
pub fn samples() -> Option<&'static dyn TraceSink> {
    attached().map(|ranges| &**ranges as &dyn TraceSink)
}
