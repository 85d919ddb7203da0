//! Quantisation of a frozen float graph: products, convolutions, and the nodes between them, are
//! computed on 8 bits.
//!
//! [`quantize`] converts a float graph to an 8-bit graph and reports the loss of each layer. It
//! runs both graphs in sessions of the caller's [`Runtime`](tenon_runtime::Runtime). It starts from
//! the graph that passes have simplified, before fusion
//! ([`Session::simplified`](tenon_runtime::Session::simplified)), in three stages:
//! 1. [`Plan::new`] finds the layers (a product with constant weights and the batch norm, bias and
//!    activation after it) and the nodes between them that can be computed on 8 bits, and derives
//!    from the fetches in which form each tensor is needed.
//! 2. Calibration runs [`Plan::float_graph`] and passes the value of each tensor in
//!    [`Plan::observed`] to an [`Observer`]. A dynamic plan observes nothing: ranges are computed
//!    at run time.
//! 3. [`Plan::rewrite`] writes the quantised graph and maps its tensors to those of the float
//!    graph, so that [`Noise`] can compare them.
//!
//! The arithmetic of the 8-bit ops is in plugins/int8/docs/quantization.md. Quantisation is not a
//! pass that runs when a step is compiled; core/docs/decisions/quantisation-by-forms.md has the
//! reasons.
//!
//! # Invariants
//! - The quantised graph has the inputs and fetches of the float one, with the same names, as
//!   floats.
//! - Ops have no device, unless they had one before.
//! - The same graph, data and options always give the same quantised graph.
//!
//! An observer of a tensor:
//!
//! ```
//! use tenon_framework::Tensor;
//! use tenon_quantize::{Method, Observer};
//!
//! let mut observer = Observer::new("x:0".to_owned(), Method::MinMax);
//! observer.take(0, &Tensor::from_slice(&[3], &[-2.0f32, 0.5, 3.0])?, 0)?;
//! let range = observer.range()?;
//! assert_eq!((range.min, range.max), (-2.0, 3.0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A complete graph, which requires plugins with kernels for floats and for 8 bits:
//!
//! ```no_run
//! use tenon_quantize::{QuantizeOptions, Sample, quantize};
//! use tenon_runtime::{
//!     Runtime, RuntimeOptions,
//!     framework::{DType, PartialShape, Tensor},
//!     graph::GraphBuilder,
//! };
//!
//! let plugins = ["lib/tenon/plugins/libtenon_cpu.so", "lib/tenon/plugins/libtenon_int8.so"];
//! let (runtime, report) = Runtime::new(RuntimeOptions::with_plugins(plugins))?;
//! report.into_result()?;
//!
//! let registry = runtime.registry();
//! let mut builder = GraphBuilder::new(&registry);
//! let x = builder.placeholder("x", DType::FLOAT, PartialShape::new(&[-1, 2])?)?;
//! let weights = builder.constant("w", Tensor::from_slice(&[2, 1], &[0.5f32, -1.0])?)?;
//! builder.op("MatMul").name("y").input(x).input(weights).build()?;
//! let graph = builder.finish().to_graph_def()?;
//!
//! let sample: Sample = vec![("x".to_owned(), Tensor::from_slice(&[1, 2], &[1f32, 3.0])?)];
//! let quantized = quantize(&runtime, &graph, &[sample], &QuantizeOptions::default())?;
//! assert_eq!(quantized.nodes[0].0.name, "y");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod between;
mod driver;
mod entropy;
mod error;
mod fold;
mod histogram;
mod layers;
mod observe;
mod plan;
mod rewrite;
mod scales;
mod step;
mod weights;

pub use driver::{Input, Loss, QuantizeOptions, Quantized, Sample, inputs, quantize};
pub use error::QuantizeError;
pub use layers::LayerKind;
pub use observe::{Method, Noise, Observer};
pub use plan::{Plan, PlanOptions};
pub use rewrite::{QuantizedNode, Rewritten};
pub use scales::Range;
pub use step::Step;

#[cfg(test)]
mod tests;
