//! Descriptions of new nodes.

use tenon_framework::{
    Tensor,
    attr::{AttrMap, AttrValue},
};
use tenon_graph::{NodeId, Output, each_once, required_ops};

/// The description of a new node: everything except name and device.
#[derive(Debug, Clone, Default)]
pub struct NewNode {
    /// The op.
    pub op: String,
    /// The attributes. Types and numbers that the inputs determine, and attributes with defaults,
    /// may be left out.
    pub attrs: AttrMap,
    /// The sources of the data inputs, in flat order.
    pub inputs: Vec<Output>,
    /// The nodes that must run before this one.
    pub control: Vec<NodeId>,
}

impl NewNode {
    /// Starts the description of a node of this op.
    pub fn new(op: &str) -> NewNode {
        NewNode { op: op.to_owned(), ..NewNode::default() }
    }

    /// Describes a `Const` that outputs this tensor.
    pub fn constant(value: Tensor) -> NewNode {
        NewNode::new(required_ops::CONST).attr("dtype", value.dtype()).attr("value", value)
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

    /// Adds control inputs, without duplicates.
    #[must_use]
    pub fn after(mut self, control: impl IntoIterator<Item = NodeId>) -> NewNode {
        self.control.extend(control);
        self.control = each_once(self.control);
        self
    }
}
