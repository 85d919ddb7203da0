//! Errors of functions and of the nodes that call them.

use super::GraphError;
use tenon_framework::{Code, text::cut};
use thiserror::Error;

/// An error of a function, or of a node that calls one.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum FunctionError {
    /// A function that the graph's library does not have.
    #[error(
        "node '{node}' (op '{op}') calls function '{name}', which the graph's library does not have{near}: add it to the \
         graph, or correct the name",
        node = cut(.node), op = cut(.op), name = cut(.name)
    )]
    Unknown {
        /// The node.
        node: String,
        /// Its op.
        op: String,
        /// The name of the function.
        name: String,
        /// Similar names, as text for the message; may be empty.
        near: String,
    },
    /// A call without a value for an attribute of the function.
    #[error(
        "function '{function}' has an attribute '{attr}' without a default: the call has to give it a value",
        function = cut(.function), attr = cut(.attr)
    )]
    NoAttr {
        /// The function.
        function: String,
        /// The attribute.
        attr: String,
    },
    /// A definition that is not a function.
    #[error("function '{function}': {what}", function = cut(.function))]
    Definition {
        /// The function.
        function: String,
        /// What was expected, and what was found.
        what: String,
    },
    /// An error of the nodes of a function's body.
    #[error("in function '{function}': {source}", function = cut(.function))]
    Body {
        /// The function.
        function: String,
        /// The error.
        source: Box<GraphError>,
    },
    /// A function whose arguments or results do not fit the node that calls it.
    #[error(
        "node '{node}' (op '{op}'): function '{function}' has {what} {found}, expected {expected}",
        node = cut(.node), op = cut(.op), function = cut(.function)
    )]
    Signature {
        /// The node.
        node: String,
        /// Its op.
        op: String,
        /// The function.
        function: String,
        /// `arguments` or `results`.
        what: &'static str,
        /// The types that the node needs.
        expected: String,
        /// The types of the function.
        found: String,
    },
    /// A symbolic gradient in a function.
    #[error(
        "node '{node}' (op 'SymbolicGradient'): expected it in the graph of the session, found it in a function: take the \
         gradient of the call of the function",
        node = cut(.node)
    )]
    Symbolic {
        /// The node.
        node: String,
    },
    /// A call whose device is known only at run time.
    #[error(
        "node '{node}' (op '{op}'): expected a constant as the name of the device, found a value that a step computes",
        node = cut(.node), op = cut(.op)
    )]
    Target {
        /// The node.
        node: String,
        /// Its op.
        op: String,
    },
}

impl FunctionError {
    /// The canonical code.
    pub fn code(&self) -> Code {
        match self {
            FunctionError::Unknown { .. } => Code::NOT_FOUND,
            FunctionError::Body { source, .. } => source.code(),
            FunctionError::Symbolic { .. } | FunctionError::Target { .. } => Code::UNIMPLEMENTED,
            _ => Code::INVALID_ARGUMENT,
        }
    }
}
