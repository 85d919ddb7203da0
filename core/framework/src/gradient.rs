//! Gradients of ops: what an op's own function sees of a node, and how it extends the graph.
//!
//! An op's gradient is written against `GradientContext` of `tenon-author` and registered with `register_gradient!`, or
//! given as a link in C. On the host's side it runs over anything that implements [`GradientEdit`]; the walk over the
//! graph that asks for gradients is `tenon-gradient`.

mod table;

pub use crate::op::GradientFn;
pub use table::run_gradient;

use crate::{
    KernelError, Tensor,
    attr_view::AttrTable,
    pass::{Edge, NodeSpec},
};
use tenon_abi::DType;

/// The gradient of a value, over tensors `V` of a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gradient<V> {
    /// A tensor of the shape of the value.
    Dense(V),
    /// Slices of such a tensor along its first axis. Slices with the same index add up, and all others are zero.
    Slices {
        /// The slices, one after the other.
        values: V,
        /// The index of each, a vector.
        indices: V,
        /// The shape of the whole, a vector.
        dense_shape: Option<V>,
    },
}

/// A node whose gradient is made, and the graph that the gradient extends.
pub trait GradientEdit {
    /// Name of the node.
    fn name(&self) -> &str;
    /// Op of the node.
    fn op(&self) -> &str;
    /// Name of this differentiation, which no other one of the graph has.
    fn scope(&self) -> &str;
    /// Attributes of the node.
    fn attrs(&self) -> &AttrTable;
    /// Number of data inputs.
    fn input_count(&self) -> usize;
    /// Number of outputs.
    fn output_count(&self) -> usize;
    /// An input of the node.
    fn input(&self, index: usize) -> Option<Edge>;
    /// An output of the node.
    fn output(&self, index: usize) -> Option<Edge>;
    /// Whether the gradient of an input is wanted.
    fn is_wanted(&self, input: usize) -> bool;
    /// Gradient of an output.
    fn gradient(&self, output: usize) -> Option<Gradient<Edge>>;
    /// Gradient of an output as a tensor: zeros where there is none, and the sum of slices.
    ///
    /// # Errors
    /// There is no such output, or a node is refused.
    fn dense_gradient(&mut self, output: usize) -> Result<Edge, KernelError>;
    /// Element type of a tensor; `INVALID` if there is no such tensor.
    fn dtype(&self, tensor: Edge) -> DType;
    /// Dimensions of a tensor, -1 where unknown; `None` if the rank is unknown.
    fn dims(&self, tensor: Edge) -> Option<Vec<i64>>;
    /// The value of a tensor that is the same in every step.
    fn constant(&self, tensor: Edge) -> Option<&Tensor>;
    /// Whether two tensors are known to have the same shape in every step.
    fn same_shape(&self, a: Edge, b: Edge) -> bool;
    /// Adds a node whose name ends with `name`; returns its number and how many outputs it has.
    ///
    /// # Errors
    /// The reason for the refusal.
    fn add(&mut self, name: &str, new: NodeSpec) -> Result<(u32, usize), KernelError>;
    /// Sets the gradient of an input.
    ///
    /// # Errors
    /// There is no such input, or the types do not fit.
    fn set(&mut self, input: usize, gradient: Option<Gradient<Edge>>) -> Result<(), KernelError>;
}
