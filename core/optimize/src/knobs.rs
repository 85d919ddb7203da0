//! The knobs of passes: one per pass, with its name, and a few for all passes.

use crate::Limits;
use std::time::Duration;
use tenon_framework::{knob::Knobs, pass::PassDef, register_knob};

// The knobs have the scope `graph`: they are settings of graphs, whichever crate reads them.
register_knob!("optimize" of "tenon-graph": BOOL = "true", "Whether graphs are optimised before they run, by any pass.");
register_knob!(
    "rounds" of "tenon-graph": INT = "4",
    "Maximum number of rounds of passes over a graph; a round that changes nothing is the last one."
);
register_knob!(
    "folding_limit" of "tenon-graph": INT = "10485760",
    "Bytes of the largest constant that folding creates, unless its inputs are larger."
);
register_knob!(
    "folding_bytes" of "tenon-graph": INT = "536870912",
    "Bytes of all constants that folding creates in one compile, in addition to twice those of the graph's constants."
);
register_knob!(
    "folding_ms" of "tenon-graph": INT = "10000",
    "Milliseconds of folding in one compile; after that, nodes stay unchanged."
);
register_knob!(
    "work_limit" of "tenon-graph": INT = "1000",
    "Work of all passes over a graph, per node and edge; after that, the rest stays unchanged."
);
register_knob!("dead_branches" of "tenon-graph": BOOL = "true", "Removes nodes on a branch that no step takes.");
register_knob!("constant_folding" of "tenon-graph": BOOL = "true", "Computes values that are the same in every step once.");
register_knob!("identity" of "tenon-graph": BOOL = "true", "Bypasses nodes that output their input.");
register_knob!("arithmetic" of "tenon-graph": BOOL = "true", "Simplifies arithmetic, shapes and casts where that is exact.");
register_knob!("common_subexpressions" of "tenon-graph": BOOL = "true", "Merges nodes that compute the same value.");
register_knob!("control_edges" of "tenon-graph": BOOL = "true", "Removes redundant control edges.");
register_knob!("layout" of "tenon-graph": BOOL = "true", "Computes images in the format that their device uses.");
register_knob!("remapping" of "tenon-graph": BOOL = "true", "Replaces several ops by one fused op that the device has a kernel for.");
register_knob!("elementwise_fusion" of "tenon-graph": BOOL = "true", "Fuses chains of elementwise ops into one pass over memory.");

register_knob!("recompute" of "tenon-graph": BOOL = "false", "Computes cheap values again for gradients, so that they take less memory.");

register_knob!(
    "host_image_format" of "tenon-graph": STRING = "NHWC",
    "Format in which devices that compute in host memory compute images: NHWC, NCHW, or empty for both."
);

/// The scope of these knobs.
pub const SCOPE: &str = "graph";

/// Whether passes run at all.
pub fn is_on(knobs: &Knobs) -> bool {
    knobs.bool(SCOPE, "optimize").unwrap_or(true)
}

/// The reason why a pass is skipped, if its knob turns it off.
pub fn skipped(knobs: &Knobs, pass: &str) -> Option<String> {
    let off = knobs.bool(SCOPE, pass) == Some(false);
    off.then(|| format!("knob {SCOPE}.{pass} is false"))
}

/// Like [`skipped`], for a pass of a plugin.
pub fn skipped_of(knobs: &Knobs, pass: &PassDef) -> Option<String> {
    let (scope, name) = (&pass.scope, pass.knob());
    let off = knobs.bool(scope, &name) == Some(false);
    off.then(|| format!("knob {scope}.{name} is false"))
}

/// See [`Options::rounds`](crate::Options::rounds).
pub fn rounds(knobs: &Knobs) -> usize {
    number(knobs, "rounds", 4)
}

/// See [`Options::folding_limit`](crate::Options::folding_limit).
pub fn folding_limit(knobs: &Knobs) -> usize {
    number(knobs, "folding_limit", 10 << 20)
}

/// See [`Options::limits`](crate::Options::limits).
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
