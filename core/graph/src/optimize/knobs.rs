//! The knobs of passes: one each, named as the pass, and a few for all.

use super::Limits;
use std::time::Duration;
use tenon_framework::{knob::Knobs, pass::PassDef, register_knob};

register_knob!("optimize": BOOL = "true", "Whether graphs are optimised before they run, by any pass.");
register_knob!(
    "rounds": INT = "4",
    "How often the passes over a graph are repeated at most, while they still change something."
);
register_knob!(
    "folding_limit": INT = "10485760",
    "Bytes of the largest constant that folding makes, unless it is made of larger ones."
);
register_knob!(
    "folding_bytes": INT = "536870912",
    "Bytes of all constants that folding makes in one compile, beside twice those of the graph's own constants."
);
register_knob!(
    "folding_ms": INT = "10000",
    "Milliseconds that folding takes in one compile; after that nodes stay as they are."
);
register_knob!(
    "work_limit": INT = "1000",
    "Work of all passes over a graph, for each of its nodes and edges; after that the rest stays as it is."
);
register_knob!("dead_branches": BOOL = "true", "Takes away what hangs on a branch that no step takes.");
register_knob!("constant_folding": BOOL = "true", "Computes what is the same in every step once.");
register_knob!("identity": BOOL = "true", "Passes by nodes that give what they are given.");
register_knob!("arithmetic": BOOL = "true", "Simplifies arithmetic, shapes and casts where that is exact.");
register_knob!("common_subexpressions": BOOL = "true", "Lets one node compute what several would.");
register_knob!("control_edges": BOOL = "true", "Takes away control edges that order nothing.");
register_knob!("layout": BOOL = "true", "Computes images in the format that their device computes in.");
register_knob!("remapping": BOOL = "true", "Makes one fused op of several, where a device has a kernel for it.");
register_knob!("elementwise_fusion": BOOL = "true", "Makes one pass over memory of a chain of elementwise ops.");

register_knob!(
    "host_image_format": STRING = "NHWC",
    "Format in which devices that compute in host memory compute images: NHWC, NCHW, or empty for both."
);

/// The scope of the knobs here.
pub const SCOPE: &str = "graph";

/// Whether any pass runs.
pub fn is_on(knobs: &Knobs) -> bool {
    knobs.bool(SCOPE, "optimize").unwrap_or(true)
}

/// Why a pass does not run: its knob says so.
pub fn skipped(knobs: &Knobs, pass: &str) -> Option<String> {
    let off = knobs.bool(SCOPE, pass) == Some(false);
    off.then(|| format!("knob {SCOPE}.{pass} is false"))
}

/// As [`skipped`], of a pass that a library brings.
pub fn skipped_of(knobs: &Knobs, pass: &PassDef) -> Option<String> {
    let (scope, name) = (&pass.scope, pass.knob());
    let off = knobs.bool(scope, &name) == Some(false);
    off.then(|| format!("knob {scope}.{name} is false"))
}

/// See [`Options::rounds`](super::Options::rounds).
pub fn rounds(knobs: &Knobs) -> usize {
    number(knobs, "rounds", 4)
}

/// See [`Options::folding_limit`](super::Options::folding_limit).
pub fn folding_limit(knobs: &Knobs) -> usize {
    number(knobs, "folding_limit", 10 << 20)
}

/// See [`Options::limits`](super::Options::limits).
pub fn limits<'a>(knobs: &Knobs, stop: &'a dyn Fn() -> bool) -> Limits<'a> {
    let otherwise = Limits::default();
    let ms = number(knobs, "folding_ms", otherwise.folding_time.as_millis() as usize);
    Limits {
        work: number(knobs, "work_limit", otherwise.work as usize) as u64,
        folding_bytes: number(knobs, "folding_bytes", otherwise.folding_bytes),
        folding_time: Duration::from_millis(ms as u64),
        stop,
    }
}

fn number(knobs: &Knobs, name: &str, otherwise: usize) -> usize {
    let value = knobs.int(SCOPE, name).map(|value| usize::try_from(value.max(0)));
    value.and_then(Result::ok).unwrap_or(otherwise)
}
