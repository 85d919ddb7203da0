//! Descriptions of operations to be added.
//!
//! A setter has no status: what is wrong with its arguments is an error of [`TF_FinishOperation`], the first one where there are
//! several.

use crate::{
    fail::Failure,
    graph::{Shared, TF_Graph, shared},
    operation::{OpRef, TF_Output, node_of},
    raw::{Array, Text},
    status::TF_Status,
};
use std::{
    collections::{BTreeSet, HashSet},
    ffi::c_int,
    ptr,
    sync::{Arc, LazyLock},
};
use tenon_framework::{
    DType,
    attr::{AttrList, AttrMap, AttrValue},
    op::{ArgType, OpDef},
    sync::Mutex,
};
use tenon_graph::{GraphBuilder, Node, NodeId, Output};
use tenon_proto::{FunctionDef, convert::function_op_from_proto};

/// The attribute that lists whom a node is colocated with.
const CLASS: &str = "_class";

/// The addresses of the descriptions that are not finished. A second finish, which frees the description again in TensorFlow, is
/// found by them.
static OPEN: LazyLock<Mutex<HashSet<usize>>> = LazyLock::new(|| Mutex::new(HashSet::new()));

/// The tensors of one call: one, or a list.
enum Given {
    One(TF_Output),
    List(Vec<TF_Output>),
}

/// An operation to be added.
pub struct TF_OperationDescription {
    graph: Arc<Shared>,
    op: String,
    name: String,
    device: String,
    inputs: Vec<Given>,
    control: Vec<Option<OpRef>>,
    colocated: BTreeSet<Vec<u8>>,
    attrs: AttrMap,
    /// The first thing that was wrong.
    failure: Option<Failure>,
}

impl TF_OperationDescription {
    /// A description of an operation without inputs and attributes.
    pub(crate) fn new(graph: Arc<Shared>, op: &str, name: &str) -> TF_OperationDescription {
        TF_OperationDescription {
            graph,
            op: op.to_owned(),
            name: name.to_owned(),
            device: String::new(),
            inputs: Vec::new(),
            control: Vec::new(),
            colocated: BTreeSet::new(),
            attrs: AttrMap::new(),
            failure: None,
        }
    }

    /// Requests a device.
    pub(crate) fn set_device(&mut self, device: &str) {
        device.clone_into(&mut self.device);
    }

    /// Adds the tensor of the next input, which is not a list.
    pub(crate) fn add_input(&mut self, input: TF_Output) {
        self.inputs.push(Given::One(input));
    }

    /// Adds the tensors of the next input, a list.
    pub(crate) fn add_list(&mut self, inputs: Vec<TF_Output>) {
        self.inputs.push(Given::List(inputs));
    }

    /// Makes the operation wait for another one.
    pub(crate) fn add_control(&mut self, input: Option<OpRef>) {
        self.control.push(input);
    }

    /// Requests the device of another operation of the graph.
    pub(crate) fn colocate(&mut self, other: OpRef) {
        self.colocated.insert(format!("loc:@{}", other.node.name).into_bytes());
    }

    /// Notes what is wrong with a setter's arguments.
    pub(crate) fn note(&mut self, result: Result<(), Failure>) {
        if let (Err(failure), None) = (result, &self.failure) {
            self.failure = Some(failure);
        }
    }

    /// Forgets whom the operation is colocated with, if that is what the attribute says.
    pub(crate) fn clear(&mut self, name: &str) {
        if name == CLASS {
            self.colocated.clear();
        }
    }

    /// Sets an attribute. A list of those that the operation is colocated with takes the place of what was said before.
    pub(crate) fn set(&mut self, name: &str, value: AttrValue) {
        if name == CLASS
            && let AttrValue::List(AttrList::String(groups)) = value
        {
            self.colocated = groups.into_iter().collect();
            return;
        }
        self.attrs.insert(name.to_owned(), value);
    }

    /// The op of a node: a registered one, or that of a function of the graph.
    pub(crate) fn op(&self) -> Result<Arc<OpDef>, Failure> {
        let registry = self.graph.runtime()?.registry();
        if let Some(op) = registry.op(&self.op) {
            return Ok(Arc::clone(op));
        }
        let state = self.graph.lock();
        match state.graph.function(&self.op) {
            Some(function) => op_of(function),
            None => Err(self.unregistered()),
        }
    }

    fn unregistered(&self) -> Failure {
        Failure::invalid(format!(
            "node '{}': op '{}' is not registered: load the plugin that has it, or copy the function of this name into the graph",
            self.name, self.op
        ))
    }

    /// The flat inputs. The lengths of lists become attributes.
    fn flat_inputs(&mut self, op: &OpDef) -> Result<Vec<Output>, Failure> {
        if self.inputs.len() != op.inputs.len() {
            return Err(Failure::invalid(format!(
                "node '{}': op {} has {} inputs, found {}",
                self.name,
                op.name,
                op.inputs.len(),
                self.inputs.len()
            )));
        }
        let mut flat = Vec::new();
        for (given, arg) in self.inputs.iter().zip(&op.inputs) {
            let what = format!("input '{}' of node '{}'", arg.name, self.name);
            let is_list = arg.number_attr.is_some() || matches!(arg.ty, ArgType::ListAttr(_));
            let outputs = match given {
                Given::One(output) if !is_list => std::slice::from_ref(output),
                Given::List(outputs) if is_list => outputs,
                Given::One(_) => {
                    return Err(Failure::invalid(format!(
                        "{what}: expected a list, found one tensor"
                    )));
                }
                Given::List(_) => {
                    return Err(Failure::invalid(format!(
                        "{what}: expected one tensor, found a list"
                    )));
                }
            };
            let read = |output: &TF_Output| output.of(&self.graph, &what);
            let outputs = outputs.iter().map(read).collect::<Result<Vec<_>, _>>()?;
            if let Some(number) = &arg.number_attr {
                let count = AttrValue::Int(outputs.len() as i64);
                self.attrs.entry(number.clone()).or_insert(count);
            } else if let (ArgType::ListAttr(types), Given::List(given)) = (&arg.ty, given) {
                let list = AttrList::Type(given.iter().filter_map(dtype).collect());
                self.attrs.entry(types.clone()).or_insert(AttrValue::List(list));
            }
            flat.extend(outputs);
        }
        Ok(flat)
    }

    /// Drops the attributes that the op does not declare, as TensorFlow does. Names that begin with `_` are of no op.
    fn forget_undeclared(&mut self, op: &OpDef) {
        let (name, undeclared) =
            (&self.name, |attr: &str| !attr.starts_with('_') && op.attr(attr).is_none());
        self.attrs.retain(|attr, _| {
            if undeclared(attr) {
                tracing::warn!(
                    "node '{name}': op {} has no attribute '{attr}': it is ignored",
                    op.name
                );
            }
            !undeclared(attr)
        });
    }

    /// Adds the operation to its graph.
    pub(crate) fn finish(mut self) -> Result<OpRef, Failure> {
        let op = self.op()?;
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        self.forget_undeclared(&op);
        let inputs = self.flat_inputs(&op)?;
        let what = format!("a control input of node '{}'", self.name);
        let control = self.control.iter().map(|&oper| node_of(oper, &self.graph, &what));
        let control = control.collect::<Result<Vec<_>, _>>()?;
        if !self.colocated.is_empty() {
            let groups = std::mem::take(&mut self.colocated).into_iter().collect();
            self.attrs.insert(CLASS.to_owned(), AttrValue::List(AttrList::String(groups)));
        }
        let graph = Arc::clone(&self.graph);
        let is_function = graph.runtime()?.registry().op(&self.op).is_none();
        if is_function {
            return self.finish_call(&inputs, &control);
        }
        graph.append(|builder| self.node(builder, &inputs, &control))
    }

    fn node(
        self,
        builder: &mut GraphBuilder<'_>,
        inputs: &[Output],
        control: &[NodeId],
    ) -> Result<Node, Failure> {
        let node = builder.op(&self.op).name(&self.name).device(&self.device);
        let node = node.inputs(inputs.iter().copied());
        let node = control.iter().fold(node, |node, &id| node.control(id));
        let node = self.attrs.into_iter().fold(node, |node, (name, value)| node.attr(&name, value));
        Ok(node.checked()?.0)
    }

    /// Adds a node that is named after a function, which no registry has: as a message.
    fn finish_call(self, inputs: &[Output], control: &[NodeId]) -> Result<OpRef, Failure> {
        let graph = Arc::clone(&self.graph);
        let id = graph.change(|graph, registry| {
            let data = inputs.iter().map(|&input| graph.output_name(input));
            let control = control.iter().map(|&id| format!("^{}", graph.node(id).name));
            let attr = self.attrs.iter().map(|(name, value)| {
                Ok((name.clone(), tenon_proto::convert::attr_to_proto(value)?))
            });
            let node = tenon_proto::NodeDef {
                name: self.name.clone(),
                op: self.op.clone(),
                input: data.chain(control).collect(),
                device: self.device.clone(),
                attr: attr.collect::<Result<_, Failure>>()?,
                ..Default::default()
            };
            let def = tenon_proto::GraphDef { node: vec![node], ..Default::default() };
            let added = graph.extend(&def, registry)?;
            Ok(NodeId(added.start))
        })?;
        Ok(graph.lock().operation(id))
    }
}

/// The element type of an output.
fn dtype(output: &TF_Output) -> Option<DType> {
    let outputs = output.oper.as_ref()?.node.outputs();
    outputs.get(usize::try_from(output.index).ok()?).map(|dtype| dtype.base())
}

fn op_of(function: &FunctionDef) -> Result<Arc<OpDef>, Failure> {
    let signature = function.signature.as_ref();
    let signature = signature.ok_or_else(|| Failure::invalid("a function without a signature"))?;
    Ok(Arc::new(function_op_from_proto(signature)?))
}

/// Begins a description.
fn begin(graph: Option<&TF_Graph>, op: Text<'_>, name: Text<'_>) -> *mut TF_OperationDescription {
    let Ok(graph) = shared(graph).map(Arc::clone) else { return ptr::null_mut() };
    let (op_name, name_text) = (op.required("the op"), name.required("the name"));
    let failure = op_name.as_ref().err().or(name_text.as_ref().err()).cloned();
    let (op, name) = (op_name.unwrap_or_default(), name_text.unwrap_or_default());
    let made = TF_OperationDescription { failure, ..TF_OperationDescription::new(graph, op, name) };
    let made = Box::into_raw(Box::new(made));
    OPEN.lock().insert(made as usize);
    made
}

/// Takes a description back that [`begin`] gave.
fn end(description: *mut TF_OperationDescription) -> Result<Box<TF_OperationDescription>, Failure> {
    if description.is_null() {
        return Err(Failure::null("the description"));
    }
    if !OPEN.lock().remove(&(description as usize)) {
        return Err(Failure::invalid(
            "the description of an operation is finished already: begin another one",
        ));
    }
    // SAFETY: `begin` made it of a box, and it was not taken back yet.
    Ok(unsafe { Box::from_raw(description) })
}

api! {
    /// Begins an operation of this op and this name. Null if the graph is null.
    fn TF_NewOperation(
        graph: Option<&TF_Graph>,
        op: Text<'_>,
        name: Text<'_>,
    ) -> *mut TF_OperationDescription {
        begin(graph, op, name)
    }

    /// Requests a device, by a full or partial name.
    fn TF_SetDevice(description: Option<&mut TF_OperationDescription>, device: Text<'_>) {
        let Some(description) = description else { return };
        match device.optional("the device") {
            Ok(device) => description.set_device(device),
            Err(failure) => description.note(Err(failure)),
        }
    }

    /// Adds the tensor of the next input, which is not a list.
    fn TF_AddInput(description: Option<&mut TF_OperationDescription>, input: TF_Output) {
        if let Some(description) = description {
            description.add_input(input);
        }
    }

    /// Adds the tensors of the next input, a list.
    fn TF_AddInputList(
        description: Option<&mut TF_OperationDescription>,
        inputs: Array<'_, TF_Output>,
        count: c_int,
    ) {
        let Some(description) = description else { return };
        match inputs.checked(count, "the inputs") {
            Ok(inputs) => description.add_list(inputs.to_vec()),
            Err(failure) => description.note(Err(failure)),
        }
    }

    /// Makes the operation wait for another one.
    fn TF_AddControlInput(
        description: Option<&mut TF_OperationDescription>,
        input: Option<OpRef>,
    ) {
        if let Some(description) = description {
            description.add_control(input);
        }
    }

    /// Requests the device of another operation.
    fn TF_ColocateWith(description: Option<&mut TF_OperationDescription>, other: Option<OpRef>) {
        let Some(description) = description else { return };
        match node_of(other, &description.graph, "the operation to be colocated with") {
            Ok(_) => {
                if let Some(other) = other {
                    description.colocate(other);
                }
            }
            Err(failure) => description.note(Err(failure)),
        }
    }

    /// Adds the operation to its graph, and deletes the description, also if it is refused.
    fn TF_FinishOperation(
        description: *mut TF_OperationDescription,
        status: Option<&mut TF_Status>,
    ) -> Option<OpRef> [status] {
        end(description)?.finish().map(Some)
    }
}
