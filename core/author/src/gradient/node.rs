//! A node that a gradient adds.

use super::{GradientContext, checked, entry};
use tenon_abi::{GradientNode, GraphValue, PassAttr, Str, Strs};
use tenon_framework::{
    KernelError,
    attr::{AttrMap, AttrValue},
    attr_view::AttrTable,
};

/// A node under construction.
#[must_use = "done() adds the node"]
pub struct NodeMaker<'c, 'a> {
    context: &'c GradientContext<'a>,
    op: String,
    name: String,
    inputs: Vec<GraphValue>,
    control: Vec<GraphValue>,
    attrs: AttrMap,
    copied: Vec<String>,
}

fn text(text: &str) -> Str {
    Str { ptr: text.as_ptr(), len: text.len() }
}

impl<'c, 'a> NodeMaker<'c, 'a> {
    pub(super) fn new(context: &'c GradientContext<'a>, op: &str) -> NodeMaker<'c, 'a> {
        NodeMaker {
            context,
            op: op.to_owned(),
            name: String::new(),
            inputs: Vec::new(),
            control: Vec::new(),
            attrs: AttrMap::new(),
            copied: Vec::new(),
        }
    }

    /// What the name of the node ends with; without it the name of the op.
    pub fn name(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// Adds a data input.
    pub fn input(mut self, value: GraphValue) -> Self {
        self.inputs.push(value);
        self
    }

    /// Adds data inputs.
    pub fn inputs(mut self, values: impl IntoIterator<Item = GraphValue>) -> Self {
        self.inputs.extend(values);
        self
    }

    /// Adds a value whose node runs before this one.
    pub fn after(mut self, value: GraphValue) -> Self {
        self.control.push(value);
        self
    }

    /// Sets an attribute. Types and numbers that the inputs determine, and defaults, may be left out.
    pub fn attr(mut self, name: &str, value: impl Into<AttrValue>) -> Self {
        self.attrs.insert(name.to_owned(), value.into());
        self
    }

    /// Sets an attribute to the element type of a value.
    pub fn copy_type(self, name: &str, of: GraphValue) -> Self {
        let dtype = self.context.dtype(of);
        self.attr(name, dtype)
    }

    /// Copies attributes of these names from the node whose gradient is made.
    pub fn copy(mut self, names: &[&str]) -> Self {
        self.copied.extend(names.iter().map(|&name| name.to_owned()));
        self
    }

    /// Adds the node; returns its first output.
    ///
    /// # Errors
    /// The host refuses the node: its op is not registered, or inputs and attributes do not fit.
    pub fn done(self) -> Result<GraphValue, KernelError> {
        let (op, outputs) = (self.op.clone(), self.outputs()?);
        outputs.first().copied().ok_or_else(|| {
            KernelError::internal(format!("a node of op '{op}' has no outputs: expected one"))
        })
    }

    /// Adds the node; returns all of its outputs.
    ///
    /// # Errors
    /// As [`NodeMaker::done`].
    pub fn outputs(self) -> Result<Vec<GraphValue>, KernelError> {
        let table = AttrTable::new(self.attrs);
        let attrs: Vec<PassAttr> = (table.attrs().keys())
            .filter_map(|name| Some(PassAttr { name: text(name), value: table.view(name)? }))
            .collect();
        let copied: Vec<Str> = self.copied.iter().map(|name| text(name)).collect();
        let node = GradientNode {
            struct_size: size_of::<GradientNode>() as u32,
            reserved: 0,
            op: text(&self.op),
            name: text(&self.name),
            inputs: self.inputs.as_ptr(),
            input_count: self.inputs.len(),
            control: self.control.as_ptr(),
            control_count: self.control.len(),
            attrs: attrs.as_ptr(),
            attr_count: attrs.len(),
            copied: Strs::new(&copied),
        };
        let mut outputs = vec![GraphValue::NONE; 16];
        let (mut count, room) = (0, outputs.len());
        let context = self.context;
        checked(entry!(context, add, &raw const node, outputs.as_mut_ptr(), room, &raw mut count))?;
        // Outputs of one node follow each other, so those beyond the room follow from the first one.
        let first = outputs[0].0;
        outputs.extend((room..count.max(room)).map(|at| GraphValue(first + at as u64)));
        outputs.truncate(count);
        Ok(outputs)
    }
}
