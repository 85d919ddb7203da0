//! Automatic differentiation: nodes that compute gradients, added to a graph.
//!
//! What it is: [`gradients`] walks a graph back from `ys` to `xs`. For each node between them it runs the gradient of the
//! node's op ([`OpDef::gradient`](tenon_framework::op::OpDef::gradient)), and it sums what several readers of a tensor
//! contribute. The nodes that it adds are ordinary ones, so gradients have gradients.
//!
//! What it is not: formulas of particular ops. These are beside the ops, in `tenon-ops` and in plugins.
//!
//! # Invariants
//! - A graph with an error keeps the nodes that were added before the error. They have no effect on others.
//! - Gradients of slices stay slices until a node needs a tensor.
//! - The gradient of a real value with respect to a complex one is the conjugate of the derivative, as in TensorFlow:
//!   a step against it makes the value smaller.
//! - Nothing in this crate recurses over a graph, except over frames and functions that contain each other.
//!
//! ```
//! use tenon_framework::{DType, PartialShape, registry::*};
//! use tenon_gradient::{Gradient, Options, gradients};
//! use tenon_graph::GraphBuilder;
//!
//! # tenon_ops::link();
//! # tenon_framework::testing::install_host();
//! # let mut plugin = Transaction::new(PluginInfo::linked(PluginId(0), "ops", "0", 0));
//! # tenon_author::testing::registered_ops().into_values().for_each(|op| plugin.add_op(op));
//! # let (registry, _) = commit_all(&Registry::new(), vec![plugin]).unwrap();
//! let mut b = GraphBuilder::new(&registry);
//! let x = b.placeholder("x", DType::FLOAT, PartialShape::new(&[2])?)?;
//! let y = b.op("Square").name("y").input(x).build()?;
//! let made = gradients(&mut b, &[y.into()], &[x], &Options::default())?;
//! let Some(Gradient::Dense(gradient)) = made[0] else { panic!("a tensor") };
//! assert_eq!(b.graph().node(gradient.node).name, "gradients/y_grad/Mul_1");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod body;
mod branches;
mod calls;
mod dense;
mod edit;
mod engine;
mod error;
mod frames;
mod known;
mod loops;
mod options;
mod region;
mod reuse;
mod sum;
mod symbolic;

pub use dense::dense;
pub use error::GradientError;
pub use options::{Gradient, Options, Unconnected};
pub use symbolic::lower;

use engine::Engine;
use tenon_graph::{GraphBuilder, Output};

/// Adds nodes that compute the gradients of the sum of `ys` with respect to each of `xs`.
///
/// The result has an element for each of `xs`: `None` if no path leads from it to `ys`, unless
/// [`Options::unconnected`] asks for zeros.
///
/// # Errors
/// - An output does not exist, or `grad_ys` does not fit `ys`.
/// - An op between has no gradient; the message has the path from `y` to `x`.
/// - The gradient of an op refuses its node.
///
/// # Panics
/// When no host is installed; a runtime installs one.
pub fn gradients(
    builder: &mut GraphBuilder<'_>,
    ys: &[Output],
    xs: &[Output],
    options: &Options,
) -> Result<Vec<Option<Gradient>>, GradientError> {
    Engine::new(builder, options).gradients(ys, xs)
}
