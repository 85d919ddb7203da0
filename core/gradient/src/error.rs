//! Errors of differentiation.

use tenon_framework::{Code, KernelError, text::cut};
use tenon_graph::GraphError;
use thiserror::Error;

/// An error of differentiation.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum GradientError {
    /// An op between `y` and `x` without a gradient.
    #[error(
        "op '{op}' of node '{node}' has no gradient, but is on the path {path}: register a gradient for the op, or stop \
         the gradient before it",
        op = cut(.op), node = cut(.node), path = path_text(.path)
    )]
    NoGradient {
        /// The op.
        op: String,
        /// The node.
        node: String,
        /// Names of the nodes from `y` to `x`.
        path: Vec<String>,
    },
    /// A tensor that the graph does not have.
    #[error("{what} {index} is output {output} of node {node}, which the graph does not have")]
    NoTensor {
        /// `y`, `x`, `grad_y` or `stop_gradient`.
        what: &'static str,
        /// Its position.
        index: usize,
        /// The node's number.
        node: u32,
        /// The output's number.
        output: u32,
    },
    /// A list of given gradients of another length than `ys`.
    #[error("expected a gradient for each of {expected} ys, or none at all, found {found}")]
    GradYCount {
        /// Number of `ys`.
        expected: usize,
        /// Number of given gradients.
        found: usize,
    },
    /// A given gradient that does not fit its `y`.
    #[error("gradient {index} of y '{y}' has {what} {found}, expected {expected}", y = cut(.y))]
    GradY {
        /// Its position.
        index: usize,
        /// The `y`.
        y: String,
        /// `type` or `shape`.
        what: &'static str,
        /// What the `y` has.
        expected: String,
        /// What was given.
        found: String,
    },
    /// A complex `y` without a given gradient.
    #[error(
        "y '{y}' is of type {dtype}, for which there is no gradient to begin with: give one in grad_ys",
        y = cut(.y)
    )]
    ComplexY {
        /// The `y`.
        y: String,
        /// Its type.
        dtype: String,
    },
    /// An error of an op's gradient.
    #[error("gradient of node '{node}' (op '{op}'): {source}", node = cut(.node), op = cut(.op))]
    Entry {
        /// The node.
        node: String,
        /// Its op.
        op: String,
        /// The error.
        source: KernelError,
    },
    /// An error of the gradient of a function's body.
    #[error("in function '{function}': {source}", function = cut(.function))]
    Body {
        /// The function.
        function: String,
        /// The error.
        source: Box<GradientError>,
    },
    /// A function inside too many others, or one of too many.
    #[error("the gradient of function '{function}' is not made: {what}", function = cut(.function))]
    Limit {
        /// The function.
        function: String,
        /// What was expected, and what was found.
        what: String,
    },
    /// A form of control flow that has no gradient.
    #[error("gradient of node '{node}' (op '{op}'): {what}", node = cut(.node), op = cut(.op))]
    Unsupported {
        /// The node.
        node: String,
        /// Its op.
        op: String,
        /// What was expected, and what was found.
        what: String,
    },
    /// A node that could not be added.
    #[error(transparent)]
    Node(#[from] KernelError),
    /// An error of the graph.
    #[error(transparent)]
    Graph(#[from] GraphError),
}

/// The nodes of a path, the middle of a long one left out.
fn path_text(path: &[String]) -> String {
    const ENDS: usize = 8;
    let named = |names: &[String]| {
        let names: Vec<String> = names.iter().map(|name| format!("'{}'", cut(name))).collect();
        names.join(" <- ")
    };
    if path.len() <= 2 * ENDS + 1 {
        return named(path);
    }
    let left_out = path.len() - 2 * ENDS;
    let (first, last) = (&path[..ENDS], &path[path.len() - ENDS..]);
    format!("{} <- ({left_out} nodes) <- {}", named(first), named(last))
}

impl GradientError {
    /// The canonical code.
    pub fn code(&self) -> Code {
        match self {
            GradientError::NoGradient { .. } => Code::NOT_FOUND,
            GradientError::NoTensor { .. }
            | GradientError::GradYCount { .. }
            | GradientError::GradY { .. }
            | GradientError::ComplexY { .. } => Code::INVALID_ARGUMENT,
            GradientError::Body { source, .. } => source.code(),
            GradientError::Limit { .. } | GradientError::Unsupported { .. } => Code::UNIMPLEMENTED,
            GradientError::Entry { source, .. } | GradientError::Node(source) => source.code,
            GradientError::Graph(error) => error.code(),
        }
    }
}
