//! Quantisation of a frozen float graph: products and convolutions on 8 bits, and what stands between them.
//!
//! The way of a graph, after passes have simplified it and before any makes fused ops:
//! 1. [`Plan::new`] finds the layers (a product with constant weights, the batch norm, bias and activation that follow
//!    it) and the nodes between them that can be computed on 8 bits, and from what is fetched in which form each tensor
//!    is needed.
//! 2. Calibration runs [`Plan::float_graph`] and shows each of [`Plan::observed`] to an [`Observer`]. A plan that is
//!    dynamic observes nothing: ranges are found as the graph runs.
//! 3. [`Plan::rewrite`] writes the quantised graph, and says which tensor of it stands for which of the float graph, so
//!    that [`Noise`] can compare them.
//!
//! Running graphs is the caller's: `tenon_runtime::quantize` does it. Ops carry no device, unless they did before. The
//! arithmetic of the ops is that of plugins/int8/docs/quantization.md; why it is done so,
//! core/docs/decisions/quantisation-by-forms.md says.

mod between;
mod entropy;
mod error;
mod fold;
mod layers;
mod observe;
mod plan;
mod rewrite;
mod scales;
mod step;
mod weights;

pub use error::QuantizeError;
pub use layers::LayerKind;
pub use observe::{Method, Noise, Observer};
pub use plan::{Plan, PlanOptions};
pub use rewrite::{QuantizedNode, Rewritten};
pub use scales::Range;
pub use step::Step;

#[cfg(test)]
mod tests;
