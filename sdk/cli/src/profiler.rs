//! Ranges on the timeline of a profiler that the command runs under.

use crate::output::complain;
use std::sync::{Arc, OnceLock};
use tenon_benchkit::sampler::Watch;
use tenon_ranges::Ranges;
use tenon_runtime::host::call::TraceSink;

/// The profiler, where there is one. What cannot be used is told, the first time.
pub fn attached() -> Option<Arc<Ranges>> {
    static ATTACHED: OnceLock<Option<Arc<Ranges>>> = OnceLock::new();
    let attach = || {
        let ranges = Ranges::attached();
        Ranges::refusals().iter().for_each(|refusal| complain(&format!("warning: {refusal}")));
        ranges
    };
    ATTACHED.get_or_init(attach).clone()
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

/// Shows the profiler the samples of a benchmark.
#[derive(Debug)]
struct Samples;

impl Watch for Samples {
    fn begins(&self, subject: &str) {
        if let Some(ranges) = attached() {
            ranges.enters(subject);
        }
    }

    fn ends(&self, subject: &str) {
        if let Some(ranges) = attached() {
            ranges.leaves(subject);
        }
    }
}

/// What is told of the samples of a benchmark, under a profiler.
pub fn watch() -> Option<&'static dyn Watch> {
    attached().map(|_| &Samples as &dyn Watch)
}
