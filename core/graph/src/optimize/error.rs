//! Why an edit or a pass fails.

use crate::GraphError;
use tenon_framework::text::{cut, cut_text};
use tenon_framework::{DType, KernelError, PartialShape, op::OpError};
use thiserror::Error;

/// Why an edit of a draft is refused, or a pass gives up.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum PassError {
    /// A number that is no node of the draft.
    #[error("expected a node of the step's graph, found {found}", found = cut_text(.found))]
    NoNode {
        /// What was given.
        found: String,
    },
    /// An op that nobody registered.
    #[error("node '{node}': op '{op}' is not registered", node = cut(.node), op = cut(.op))]
    UnknownOp {
        /// The node that it was wanted for.
        node: String,
        /// The op.
        op: String,
    },
    /// Attributes or inputs that the op does not take.
    #[error("node '{node}': {source}", node = cut(.node))]
    Op {
        /// The node.
        node: String,
        /// What is wrong.
        source: Box<OpError>,
    },
    /// The shape function refuses the inputs.
    #[error("node '{node}' (op '{op}'): {source}", node = cut(.node), op = cut(.op))]
    Shape {
        /// The node.
        node: String,
        /// The op.
        op: String,
        /// What it says.
        source: KernelError,
    },
    /// The device has no kernel for what a node would become.
    #[error(
        "node '{node}': {device} has no kernel for '{op}': {reason}",
        node = cut(.node), device = cut(.device), op = cut(.op), reason = cut_text(.reason)
    )]
    NoKernel {
        /// The node.
        node: String,
        /// The op that it would be.
        op: String,
        /// The device.
        device: String,
        /// Why not.
        reason: String,
    },
    /// A value would have another type.
    #[error("'{tensor}': expected type {expected}, found {found}", tensor = cut(.tensor))]
    Type {
        /// The tensor.
        tensor: String,
        /// What users of it take.
        expected: DType,
        /// What they would get.
        found: DType,
    },
    /// A value would have another shape.
    #[error("'{tensor}': expected shape {expected}, found {found}", tensor = cut(.tensor))]
    OtherShape {
        /// The tensor.
        tensor: String,
        /// What is known of it.
        expected: PartialShape,
        /// What it would have.
        found: PartialShape,
    },
    /// A node that no pass may change.
    #[error("node '{node}' (op '{op}') stays as it is: {reason}", node = cut(.node), op = cut(.op))]
    Protected {
        /// The node.
        node: String,
        /// The op.
        op: String,
        /// Why.
        reason: &'static str,
    },
    /// The edges lead in a circle.
    #[error("expected a graph without cycles, found one through node '{node}'", node = cut(.node))]
    Cycle {
        /// A node in it.
        node: String,
    },
    /// What is left is no valid graph.
    #[error("the result is not valid: {0}")]
    Graph(Box<GraphError>),
    /// A pass says so itself.
    #[error("{text}", text = cut_text(.0))]
    Failed(String),
}

impl From<GraphError> for PassError {
    fn from(error: GraphError) -> PassError {
        PassError::Graph(Box::new(error))
    }
}
