//! Nodes to be.

use crate::{NodeId, Output, graph::each_once};
use tenon_framework::attr::{AttrMap, AttrValue};

/// What a node is to be: everything but name and device.
#[derive(Debug, Clone, Default)]
pub struct NewNode {
    /// The op.
    pub op: String,
    /// Attributes. Types and numbers that the inputs determine need not be set, nor what has a default.
    pub attrs: AttrMap,
    /// Sources of the data inputs, in flat order.
    pub inputs: Vec<Output>,
    /// Nodes that must have run before.
    pub control: Vec<NodeId>,
}

impl NewNode {
    /// A node of this op.
    pub fn new(op: &str) -> NewNode {
        NewNode { op: op.to_owned(), ..NewNode::default() }
    }

    /// Adds a data input.
    #[must_use]
    pub fn input(mut self, input: impl Into<Output>) -> NewNode {
        self.inputs.push(input.into());
        self
    }

    /// Adds data inputs.
    #[must_use]
    pub fn inputs(mut self, inputs: impl IntoIterator<Item = Output>) -> NewNode {
        self.inputs.extend(inputs);
        self
    }

    /// Sets an attribute.
    #[must_use]
    pub fn attr(mut self, name: &str, value: impl Into<AttrValue>) -> NewNode {
        self.attrs.insert(name.to_owned(), value.into());
        self
    }

    /// Adds control inputs, each once.
    #[must_use]
    pub fn after(mut self, control: impl IntoIterator<Item = NodeId>) -> NewNode {
        self.control.extend(control);
        self.control = each_once(self.control);
        self
    }
}
