//! What a caller may choose.

use tenon_graph::Output;

/// The gradient of a tensor.
pub type Gradient = tenon_framework::gradient::Gradient<Output>;

/// What the gradient of an `x` is to which no path leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unconnected {
    /// `None`.
    #[default]
    None,
    /// Zeros of its type and shape. An `x` that is a resource has `None` nevertheless: the shape of a variable is not that
    /// of its handle.
    Zero,
}

/// What a caller of [`gradients`](crate::gradients) may choose.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Whether each node that an op's gradient adds runs on the device of the node whose gradient it is. Sums, zeros and
    /// what calls, conditionals and loops add are placed as other nodes are.
    pub colocate: bool,
    /// Whether all gradients of a node's inputs are complete before any of them is used.
    pub gate: bool,
    /// Tensors through which no gradient flows.
    pub stop_gradients: Vec<Output>,
    /// The gradient of each of `ys`; `None` in the place of ones. Empty for ones everywhere.
    pub grad_ys: Vec<Option<Gradient>>,
    /// What an unconnected `x` has.
    pub unconnected: Unconnected,
    /// What the names of all nodes begin with, with a number behind it if the graph has such names. `gradients` if it is
    /// empty.
    pub prefix: String,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            colocate: false,
            gate: false,
            stop_gradients: Vec::new(),
            grad_ys: Vec::new(),
            unconnected: Unconnected::None,
            prefix: "gradients/".to_owned(),
        }
    }
}
