//! Quantisation of a frozen float graph: products, convolutions and the nodes between them on 8 bits.
//!
//! What it is: [`quantize`] makes an 8-bit graph from a float graph, and reports what each layer loses. It runs both
//! graphs in sessions of the caller's [`Runtime`](tenon_runtime::Runtime). The graph that it starts from is simplified,
//! and has no fused ops yet ([`Session::simplified`](tenon_runtime::Session::simplified)). Three steps follow:
//! 1. [`Plan::new`] finds the layers (a product with constant weights, and the batch norm, bias and activation that
//!    follow it) and the nodes between them that can be computed on 8 bits. From the fetches it finds in which form each
//!    tensor is needed.
//! 2. Calibration runs [`Plan::float_graph`] and shows each of [`Plan::observed`] to an [`Observer`]. A dynamic plan
//!    observes nothing: ranges are found as the graph runs.
//! 3. [`Plan::rewrite`] writes the quantised graph, and lists which of its tensors corresponds to which of the float
//!    graph, so that [`Noise`] can compare them.
//!
//! What it is not: the arithmetic of 8-bit ops, which plugins/int8/docs/quantization.md specifies, or a pass that runs
//! while a step is compiled. The reasons are in core/docs/decisions/quantisation-by-forms.md.
//!
//! # Invariants
//! - The quantised graph has the inputs and the fetches of the float one, under the same names and in floats.
//! - An op has a device only if it had one in the float graph.
//! - The same graph, data and options give the same quantised graph.
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
