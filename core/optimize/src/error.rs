//! Errors of edits and passes.

use tenon_framework::text::{cut, cut_text};
use tenon_framework::{DType, KernelError, PartialShape, op::OpError};
use tenon_graph::GraphError;
use thiserror::Error;

/// The reason why an edit of a draft is refused, or a pass fails.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum PassError {
    /// A number that is not a node of the draft.
    #[error("expected a node of the step's graph, found {found}", found = cut_text(.found))]
    NoNode {
        /// The number as given.
        found: String,
    },
    /// An unregistered op.
    #[error("node '{node}': op '{op}' is not registered", node = cut(.node), op = cut(.op))]
    UnknownOp {
        /// The node that was to have the op.
        node: String,
        /// The op.
        op: String,
    },
    /// Attributes or inputs that do not fit the op.
    #[error("node '{node}': {source}", node = cut(.node))]
    Op {
        /// The node.
        node: String,
        /// The mismatch.
        source: Box<OpError>,
    },
    /// The shape function refused the inputs.
    #[error("node '{node}' (op '{op}'): {source}", node = cut(.node), op = cut(.op))]
    Shape {
        /// The node.
        node: String,
        /// The op.
        op: String,
        /// The error of the shape function.
        source: KernelError,
    },
    /// The device has no kernel for the new op of a node.
    #[error(
        "node '{node}': {device} has no kernel for '{op}': {reason}",
        node = cut(.node), device = cut(.device), op = cut(.op), reason = cut_text(.reason)
    )]
    NoKernel {
        /// The node.
        node: String,
        /// The new op.
        op: String,
        /// The device.
        device: String,
        /// The reason.
        reason: String,
    },
    /// A value would change its type.
    #[error("'{tensor}': expected type {expected}, found {found}", tensor = cut(.tensor))]
    Type {
        /// The tensor.
        tensor: String,
        /// The type that its readers expect.
        expected: DType,
        /// The new type.
        found: DType,
    },
    /// A value would change its shape.
    #[error("'{tensor}': expected shape {expected}, found {found}", tensor = cut(.tensor))]
    OtherShape {
        /// The tensor.
        tensor: String,
        /// The known shape.
        expected: PartialShape,
        /// The new shape.
        found: PartialShape,
    },
    /// A node that passes may not change.
    #[error("node '{node}' (op '{op}') stays as it is: {reason}", node = cut(.node), op = cut(.op))]
    Protected {
        /// The node.
        node: String,
        /// The op.
        op: String,
        /// The reason.
        reason: &'static str,
    },
    /// The edges form a cycle.
    #[error("expected a graph without cycles, found one through node '{node}'", node = cut(.node))]
    Cycle {
        /// A node of the cycle.
        node: String,
    },
    /// The result is not a valid graph.
    #[error("the result is not valid: {0}")]
    Graph(Box<GraphError>),
    /// The error of a pass.
    #[error("{text}", text = cut_text(.0))]
    Failed(String),
}

impl From<GraphError> for PassError {
    fn from(error: GraphError) -> PassError {
        PassError::Graph(Box::new(error))
    }
}
