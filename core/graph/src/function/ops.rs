//! Which functions a node calls, and how.

use crate::{FunctionError, Graph, GraphError, Node, required_ops::SYMBOLIC_GRADIENT};
use tenon_framework::{
    attr::{AttrList, AttrValue, FuncValue},
    op::OpRole,
};

/// Calls a function; one that a definition needs more than once is called by such nodes.
pub(super) const CALL: &str = "PartitionedCall";
/// Calls a function with state.
pub(super) const STATEFUL_CALL: &str = "StatefulPartitionedCall";

/// How a node calls functions.
pub(super) enum Calls<'n> {
    /// Calls a function with all inputs.
    Function(&'n FuncValue),
    /// Calls the function that the node's op is named after.
    Named,
    /// Calls a function on the device that the first input names, with the other inputs.
    Remote(&'n FuncValue),
    /// Calls one of two functions, which the first input selects, with the other inputs.
    If { then_branch: &'n FuncValue, else_branch: &'n FuncValue },
    /// Calls the function that the first input numbers, with the other inputs.
    Case(&'n [FuncValue]),
    /// Calls `body` with its own results as long as `cond` holds.
    While { cond: &'n FuncValue, body: &'n FuncValue },
}

impl<'n> Calls<'n> {
    /// How a node calls functions; `None` for a node that calls none.
    ///
    /// # Errors
    /// An attribute that names a function is missing.
    pub fn of(node: &'n Node) -> Result<Option<Calls<'n>>, GraphError> {
        if node.op.facts().role != OpRole::Call {
            return Ok(None);
        }
        let function = |name: &'static str| match node.attrs.attrs().get(name) {
            Some(AttrValue::Func(function)) => Ok(function),
            _ => Err(no_function(node, name)),
        };
        Ok(Some(match node.op.name.as_str() {
            CALL | STATEFUL_CALL => Calls::Function(function("f")?),
            "RemoteCall" => Calls::Remote(function("f")?),
            // A step replaces those of the session's graph.
            SYMBOLIC_GRADIENT => return Err(symbolic(node)),
            "If" | "StatelessIf" => Calls::If {
                then_branch: function("then_branch")?,
                else_branch: function("else_branch")?,
            },
            "Case" | "StatelessCase" => match node.attrs.attrs().get("branches") {
                Some(AttrValue::List(AttrList::Func(branches))) => Calls::Case(branches),
                _ => return Err(no_function(node, "branches")),
            },
            "While" | "StatelessWhile" => {
                Calls::While { cond: function("cond")?, body: function("body")? }
            }
            _ => Calls::Named,
        }))
    }
}

fn symbolic(node: &Node) -> GraphError {
    FunctionError::Symbolic { node: node.name.clone() }.into()
}

fn no_function(node: &Node, attr: &str) -> GraphError {
    let what = format!("expected the name of a function in attribute '{attr}', found none");
    FunctionError::Definition { function: node.op.name.clone(), what }.into()
}

/// The functions that a node's attributes name and the graph's library defines: those that a node of
/// an expanded graph, or its kernel, calls.
pub fn called<'n>(graph: &Graph, node: &'n Node) -> Vec<&'n FuncValue> {
    let named = node.attrs.attrs().values().flat_map(|value| match value {
        AttrValue::Func(function) => std::slice::from_ref(function),
        AttrValue::List(AttrList::Func(list)) => list.as_slice(),
        _ => &[],
    });
    named.filter(|function| graph.defines(&function.name)).collect()
}
