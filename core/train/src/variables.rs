//! Variables of a graph.

use crate::{Initial, TrainError};
use std::{
    collections::HashMap,
    hash::{Hash, Hasher},
    sync::Arc,
};
use tenon_framework::{DType, PartialShape, Shape};
use tenon_graph::{GraphBuilder, NodeId, Output};
use tenon_proto::{SaveSliceInfoDef, VariableDef};

/// A resource variable, and the nodes that serve it.
#[derive(Debug, Clone)]
pub struct Variable {
    /// The name, under which checkpoints have it.
    pub name: String,
    /// The element type.
    pub dtype: DType,
    /// The shape.
    pub shape: Shape,
    /// The handle (`VarHandleOp`).
    pub handle: Output,
    /// The value at the time of the read (`ReadVariableOp`).
    pub value: Output,
    /// The initial value.
    pub initial_value: Output,
    /// The node that assigns the initial value.
    pub initializer: NodeId,
    /// Whether the variable has a value (`VarIsInitializedOp`).
    pub is_initialized: Output,
    /// Whether optimisers change it.
    pub is_trainable: bool,
    /// The device that was asked for; empty for any.
    pub device: String,
    /// Which part of a larger variable it is.
    pub slice: Option<SaveSliceInfoDef>,
}

impl Variable {
    /// The message that TensorFlow's collections of variables have for it.
    pub fn to_def(&self, b: &GraphBuilder<'_>) -> VariableDef {
        let graph = b.graph();
        VariableDef {
            variable_name: graph.output_name(self.handle),
            initializer_name: graph.node(self.initializer).name.clone(),
            snapshot_name: graph.output_name(self.value),
            save_slice_info_def: self.slice.clone(),
            is_resource: true,
            initial_value_name: graph.output_name(self.initial_value),
            trainable: self.is_trainable,
            ..VariableDef::default()
        }
    }
}

/// What a caller may choose for a variable.
#[derive(Debug, Clone)]
pub struct VariableOptions {
    /// Whether optimisers change it. `true` by default.
    pub is_trainable: bool,
    /// The device; empty for any.
    pub device: String,
    /// Which part of a larger variable it is.
    pub slice: Option<SaveSliceInfoDef>,
}

impl Default for VariableOptions {
    fn default() -> VariableOptions {
        VariableOptions { is_trainable: true, device: String::new(), slice: None }
    }
}

/// Which optimiser it is: the owner of its slots. Clones are the same one; a new one is another.
#[derive(Debug, Clone, Default)]
pub struct Identity(Arc<u8>);

impl PartialEq for Identity {
    fn eq(&self, other: &Identity) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Identity {}

impl Hash for Identity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).hash(state);
    }
}

/// A slot of an optimiser: the owner, the name of the variable, and the number of the slot.
pub(crate) type SlotKey = (Identity, String, usize);

/// The variables of a graph, in the order in which they were added.
#[derive(Debug, Clone, Default)]
pub struct Variables {
    all: Vec<Variable>,
    /// The positions of slots.
    slots: HashMap<SlotKey, usize>,
}

impl Variables {
    /// No variables.
    pub fn new() -> Variables {
        Variables::default()
    }

    /// Adds a variable that optimisers change, on any device.
    ///
    /// # Errors
    /// As [`Variables::add_with`].
    pub fn add(
        &mut self,
        b: &mut GraphBuilder<'_>,
        name: &str,
        dtype: DType,
        dims: &[i64],
        initial: &Initial,
    ) -> Result<Variable, TrainError> {
        self.add_with(b, name, dtype, dims, initial, VariableOptions::default())
    }

    /// Adds a variable. Its nodes have the names that TensorFlow gives them: `w`, `w/Assign`, `w/Read/ReadVariableOp`,
    /// `w/IsInitialized/VarIsInitializedOp`, and those of the initial value below `w/Initializer`. They are outside all name
    /// scopes, so that the variable has the same name in checkpoints wherever it is added.
    ///
    /// # Errors
    /// The graph has a node of this name, a dimension is negative, or the initial value does not fit.
    pub fn add_with(
        &mut self,
        b: &mut GraphBuilder<'_>,
        name: &str,
        dtype: DType,
        dims: &[i64],
        initial: &Initial,
        options: VariableOptions,
    ) -> Result<Variable, TrainError> {
        let variable = b.with_name_scope("", |b| build(b, name, dtype, dims, initial, options))?;
        self.all.push(variable.clone());
        Ok(variable)
    }

    /// All variables.
    pub fn all(&self) -> &[Variable] {
        &self.all
    }

    /// The variables that optimisers change.
    pub fn trainable(&self) -> impl Iterator<Item = &Variable> {
        self.all.iter().filter(|variable| variable.is_trainable)
    }

    /// The variable of this name.
    pub fn find(&self, name: &str) -> Option<&Variable> {
        self.all.iter().find(|variable| variable.name == name)
    }

    /// The slot of an optimiser.
    pub(crate) fn owned(&self, key: &SlotKey) -> Option<&Variable> {
        self.all.get(*self.slots.get(key)?)
    }

    /// Remembers that a variable is a slot of an optimiser.
    pub(crate) fn own(&mut self, key: SlotKey, slot: &Variable) {
        if let Some(at) = self.all.iter().position(|variable| variable.name == slot.name) {
            self.slots.insert(key, at);
        }
    }

    /// Adds a `NoOp` that runs every initialiser.
    ///
    /// # Errors
    /// The graph has a node of this name.
    pub fn initializer(&self, b: &mut GraphBuilder<'_>, name: &str) -> Result<NodeId, TrainError> {
        let group = b.op("NoOp").name(name);
        let group =
            self.all.iter().fold(group, |group, variable| group.control(variable.initializer));
        Ok(group.build()?)
    }
}

/// Adds the nodes of a variable.
fn build(
    b: &mut GraphBuilder<'_>,
    name: &str,
    dtype: DType,
    dims: &[i64],
    initial: &Initial,
    options: VariableOptions,
) -> Result<Variable, TrainError> {
    let VariableOptions { is_trainable, device, slice } = options;
    let shape = Shape::new(dims)?;
    let handle = b.op("VarHandleOp").name(name).attr("dtype", dtype).attr("shared_name", name);
    let handle = handle.attr("shape", PartialShape::new(dims)?).device(&device).build()?;
    let initial_value = initial.build(b, &format!("{name}/Initializer"), dtype, &shape)?;
    let is_initialized = b.op("VarIsInitializedOp").device(&device).input(handle);
    let is_initialized = is_initialized.name(&format!("{name}/IsInitialized/VarIsInitializedOp"));
    let is_initialized = is_initialized.build()?.into();
    let assign = b.op("AssignVariableOp").name(&format!("{name}/Assign")).device(&device);
    let initializer = assign.input(handle).input(initial_value).build()?;
    let value = b.op("ReadVariableOp").name(&format!("{name}/Read/ReadVariableOp"));
    let value = value.device(&device).input(handle).attr("dtype", dtype).build()?.into();
    let node = b.graph().node(handle);
    let device = node.device.to_string();
    Ok(Variable {
        name: name.to_owned(),
        dtype,
        shape,
        handle: handle.into(),
        value,
        initial_value,
        initializer,
        is_initialized,
        is_trainable,
        device,
        slice,
    })
}
