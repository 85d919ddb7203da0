//! Operations: nodes of a graph, as C refers to them.

use crate::{
    fail::{Failure, Fallback},
    graph::Shared,
    status::c_text,
};
use std::{
    ffi::{CString, c_int},
    hash::{Hash, Hasher},
    ops::Deref,
    ptr::{self, NonNull},
    sync::{Arc, Weak},
};
use tenon_graph::{Node, NodeId, Output};

/// An operation of a graph.
pub struct TF_Operation {
    pub(crate) graph: Weak<Shared>,
    pub(crate) id: NodeId,
    /// The node when it was added. A loop may have other inputs since.
    pub(crate) node: Arc<Node>,
    pub(crate) name: CString,
    pub(crate) op: CString,
    pub(crate) device: CString,
}

impl TF_Operation {
    pub(crate) fn new(graph: Weak<Shared>, id: NodeId, node: Arc<Node>) -> TF_Operation {
        let requested = node.device.to_string();
        let origin = node.origin.as_ref().map(|origin| origin.device.as_str());
        TF_Operation {
            name: c_text(&node.name),
            op: c_text(&node.op.name),
            device: c_text(origin.unwrap_or(&requested)),
            graph,
            id,
            node,
        }
    }

    /// The graph.
    pub(crate) fn graph(&self) -> Result<Arc<Shared>, Failure> {
        let gone = || Failure::invalid(format!("the graph of '{}' was deleted", self.node.name));
        self.graph.upgrade().ok_or_else(gone)
    }

    /// Whether the operation is one of this graph.
    pub(crate) fn is_of(&self, graph: &Shared) -> bool {
        ptr::eq(self.graph.as_ptr(), graph)
    }
}

/// A pointer to an operation, which its graph keeps in place.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct OpRef(NonNull<TF_Operation>);

// SAFETY: an operation does not change, and what it refers to may be shared among threads.
unsafe impl Send for OpRef {}
// SAFETY: as above.
unsafe impl Sync for OpRef {}

impl OpRef {
    /// Puts an operation in place, until [`OpRef::free`].
    pub(crate) fn new(operation: TF_Operation) -> OpRef {
        OpRef(NonNull::from(Box::leak(Box::new(operation))))
    }

    /// Frees the operation.
    ///
    /// # Safety
    /// No copy of the pointer is used afterwards.
    pub(crate) unsafe fn free(self) {
        // SAFETY: `new` made it of a box, and the caller is the last user.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

impl Deref for OpRef {
    type Target = TF_Operation;

    fn deref(&self) -> &TF_Operation {
        // SAFETY: the graph keeps the operation as long as it lives, and the caller in C refers to operations of live graphs alone.
        unsafe { self.0.as_ref() }
    }
}

/// An output of an operation.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TF_Output {
    /// The operation; null for none.
    pub oper: Option<OpRef>,
    /// The number of the output.
    pub index: c_int,
}

impl Hash for TF_Output {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.oper, self.index).hash(state);
    }
}

/// An input of an operation.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TF_Input {
    /// The operation; null for none.
    pub oper: Option<OpRef>,
    /// The number of the input.
    pub index: c_int,
}

impl Fallback for TF_Output {
    fn fallback() -> TF_Output {
        TF_Output::NONE
    }
}

impl TF_Output {
    /// No output.
    pub(crate) const NONE: TF_Output = TF_Output { oper: None, index: -1 };

    pub(crate) fn new(oper: OpRef, output: u32) -> TF_Output {
        TF_Output { oper: Some(oper), index: c_int::try_from(output).unwrap_or(c_int::MAX) }
    }

    /// Whether the operation does not have an output of this number.
    pub(crate) fn is_beyond(&self) -> bool {
        let has = |oper: OpRef| {
            usize::try_from(self.index).is_ok_and(|index| index < oper.node.outputs().len())
        };
        self.oper.is_some_and(|oper| !has(oper))
    }

    /// The output of the graph that this is, which `what` names in errors.
    ///
    /// # Errors
    /// No operation, one of another graph, or an output that it does not have.
    pub(crate) fn of(&self, graph: &Shared, what: &str) -> Result<Output, Failure> {
        let oper = self.oper.ok_or_else(|| Failure::null(&format!("the operation of {what}")))?;
        if !oper.is_of(graph) {
            return Err(Failure::invalid(format!(
                "{what}: expected an operation of this graph, found '{}' of another one",
                oper.node.name
            )));
        }
        let count = oper.node.outputs().len();
        match u32::try_from(self.index) {
            Ok(output) if (output as usize) < count => Ok(Output::new(oper.id, output)),
            _ => Err(Failure::invalid(format!(
                "{what}: '{}' has {count} outputs, found number {}",
                oper.node.name, self.index
            ))),
        }
    }
}

/// The node of an operation of this graph, which `what` names in errors.
///
/// # Errors
/// No operation, or one of another graph.
pub(crate) fn node_of(oper: Option<OpRef>, graph: &Shared, what: &str) -> Result<NodeId, Failure> {
    let oper = oper.ok_or_else(|| Failure::null(what))?;
    if oper.is_of(graph) {
        return Ok(oper.id);
    }
    Err(Failure::invalid(format!(
        "{what}: expected an operation of this graph, found '{}' of another one",
        oper.node.name
    )))
}
