//! The entries that a pass of a library calls, over a [`GraphEdit`].

use super::{
    GraphEdit, NodeSpec, PassDef,
    given::{add_attrs, code_of, list, node, reason, write_dims},
};
use crate::{KernelError, attr::AttrMap, plugin};
use std::{collections::HashMap, ptr};
use tenon_abi::{Attrs, Code, DType, Edge, NO_NODE, PassCall, PassNode, PassTable, Slot, Str};

static TABLE: PassTable = PassTable {
    struct_size: size_of::<PassTable>() as u32,
    reserved: 0,
    nodes: Some(nodes),
    name: Some(name),
    op: Some(op),
    device: Some(device),
    attrs: Some(attrs),
    input_count: Some(input_count),
    input: Some(input),
    output_count: Some(output_count),
    dtype: Some(dtype),
    shape: Some(shape),
    constant: Some(constant),
    uses: Some(uses),
    is_fed: Some(is_fed),
    is_kept: Some(is_kept),
    is_rewritable: Some(is_rewritable),
    replace: Some(replace),
    add: Some(add),
    redirect: Some(redirect),
    bypass: Some(bypass),
    note: Some(note),
    fail: Some(fail),
};

/// One run: the graph, and what is lent of it.
struct Run<'g> {
    graph: &'g mut dyn GraphEdit,
    /// Slots that were given out, by tensor.
    slots: HashMap<(u32, u32), Box<Slot>>,
    /// Names of devices that were given out.
    texts: Vec<Box<str>>,
    error: Option<KernelError>,
}

/// Runs a pass of a library over a graph.
///
/// # Errors
/// What the pass says, a panic in it included.
pub fn run_pass(def: &PassDef, graph: &mut dyn GraphEdit) -> Result<(), KernelError> {
    let mut run = Run { graph, slots: HashMap::new(), texts: Vec::new(), error: None };
    // SAFETY: the pass's own entry with the host's table and a run that lives through the call.
    let code = unsafe { (def.run)(plugin::host(), (&raw mut run).cast(), &raw const TABLE) };
    reason(code, run.error, "no reason was given")
}

/// The run behind a handle.
///
/// # Safety
/// `call` is what `run_pass` gave to the pass that is running, and no other borrow of it lives.
unsafe fn run<'a>(call: *mut PassCall) -> &'a mut Run<'a> {
    // SAFETY: the caller passes on the `Run` that `run_pass` gave as a handle, and has no other borrow of it.
    unsafe { &mut *call.cast::<Run<'a>>() }
}

impl Run<'_> {
    fn done(&mut self, outcome: Result<(), KernelError>) -> Code {
        // What was lent ends with an edit.
        self.slots.clear();
        code_of(outcome, &mut self.error)
    }
}

fn text(text: Option<&str>) -> Str {
    text.map_or(Str::EMPTY, |text| Str { ptr: text.as_ptr(), len: text.len() })
}

fn pair(edge: Edge) -> (u32, u32) {
    (edge.node, edge.output)
}

// SAFETY of all entries: a pass gives the run that it was lent, on the thread that runs it.

unsafe extern "C" fn nodes(call: *mut PassCall, nodes: *mut u32, capacity: u32) -> u32 {
    // SAFETY: as said above; the plugin has room for `capacity` numbers.
    unsafe {
        let Ok(all) = run(call).graph.nodes() else { return 0 };
        let count = all.len().min(capacity as usize);
        if !nodes.is_null() {
            ptr::copy_nonoverlapping(all.as_ptr(), nodes, count);
        }
        all.len() as u32
    }
}

unsafe extern "C" fn name(call: *mut PassCall, node: u32) -> Str {
    // SAFETY: as said above; so below.
    text(unsafe { run(call) }.graph.name(node))
}

unsafe extern "C" fn op(call: *mut PassCall, node: u32) -> Str {
    // SAFETY: as in `name`.
    text(unsafe { run(call) }.graph.op(node))
}

unsafe extern "C" fn device(call: *mut PassCall, node: u32) -> Str {
    // SAFETY: as in `name`.
    let run = unsafe { run(call) };
    let Some(name) = run.graph.device(node) else { return Str::EMPTY };
    if !run.texts.iter().any(|known| **known == *name) {
        run.texts.push(name.clone().into_boxed_str());
    }
    text(run.texts.iter().find(|known| ***known == *name).map(|name| &**name))
}

unsafe extern "C" fn attrs(call: *mut PassCall, node: u32) -> *const Attrs {
    // SAFETY: as in `name`.
    unsafe { run(call) }.graph.attrs(node).map_or(ptr::null(), |attrs| attrs.as_raw())
}

unsafe extern "C" fn input_count(call: *mut PassCall, node: u32) -> u32 {
    // SAFETY: as in `name`.
    unsafe { run(call) }.graph.inputs(node).len() as u32
}

unsafe extern "C" fn input(call: *mut PassCall, node: u32, index: u32) -> Edge {
    // SAFETY: as in `name`.
    let inputs = unsafe { run(call) }.graph.inputs(node);
    let none = Edge { node: NO_NODE, output: 0 };
    inputs.get(index as usize).map_or(none, |&(node, output)| Edge { node, output })
}

unsafe extern "C" fn output_count(call: *mut PassCall, node: u32) -> u32 {
    // SAFETY: as in `name`.
    unsafe { run(call) }.graph.output_count(node) as u32
}

unsafe extern "C" fn dtype(call: *mut PassCall, tensor: Edge) -> DType {
    // SAFETY: as in `name`.
    unsafe { run(call) }.graph.dtype(pair(tensor))
}

unsafe extern "C" fn shape(
    call: *mut PassCall,
    tensor: Edge,
    dims: *mut i64,
    capacity: u32,
) -> i32 {
    // SAFETY: as in `name`; the plugin has room for `capacity` dimensions.
    unsafe {
        let known = run(call).graph.dims(pair(tensor));
        write_dims(known.as_deref(), dims, capacity)
    }
}

unsafe extern "C" fn constant(call: *mut PassCall, tensor: Edge) -> *const Slot {
    // SAFETY: as in `name`.
    let run = unsafe { run(call) };
    let Some(value) = run.graph.constant(pair(tensor)) else { return ptr::null() };
    let slot = value.slot();
    // A slot points to the tensor's shape, which the graph keeps until the next edit.
    let kept = run.slots.entry(pair(tensor)).or_insert_with(|| Box::new(slot));
    &raw const **kept
}

unsafe extern "C" fn uses(call: *mut PassCall, tensor: Edge) -> u32 {
    // SAFETY: as in `name`.
    unsafe { run(call) }.graph.uses(pair(tensor)) as u32
}

unsafe extern "C" fn is_fed(call: *mut PassCall, tensor: Edge) -> u32 {
    // SAFETY: as in `name`.
    u32::from(unsafe { run(call) }.graph.is_fed(pair(tensor)))
}

unsafe extern "C" fn is_kept(call: *mut PassCall, node: u32) -> u32 {
    // SAFETY: as in `name`.
    u32::from(unsafe { run(call) }.graph.is_kept(node))
}

unsafe extern "C" fn is_rewritable(call: *mut PassCall, node: u32) -> u32 {
    // SAFETY: as in `name`.
    u32::from(unsafe { run(call) }.graph.is_rewritable(node))
}

unsafe extern "C" fn replace(call: *mut PassCall, node: u32, new: *const PassNode) -> Code {
    // SAFETY: as in `name`; the plugin gives a whole node.
    let run = unsafe { run(call) };
    // SAFETY: as above.
    let outcome = unsafe { spec(run, new) };
    let outcome = outcome.and_then(|new| run.graph.replace(node, new));
    run.done(outcome)
}

unsafe extern "C" fn add(
    call: *mut PassCall,
    near: u32,
    suffix: Str,
    new: *const PassNode,
    result: *mut u32,
) -> Code {
    // SAFETY: as in `replace`; `result` is null or may be written.
    unsafe {
        let run = run(call);
        let suffix = suffix.text().unwrap_or("node").to_owned();
        let outcome = spec(run, new).and_then(|new| run.graph.add(near, &suffix, new));
        let outcome = outcome.map(|made| {
            if let Some(result) = result.as_mut() {
                *result = made;
            }
        });
        run.done(outcome)
    }
}

unsafe extern "C" fn redirect(call: *mut PassCall, from: Edge, to: Edge) -> Code {
    // SAFETY: as in `name`.
    let run = unsafe { run(call) };
    let outcome = run.graph.redirect(pair(from), pair(to));
    run.done(outcome)
}

unsafe extern "C" fn bypass(call: *mut PassCall, node: u32, index: u32) -> Code {
    // SAFETY: as in `name`.
    let run = unsafe { run(call) };
    let outcome = run.graph.bypass(node, index as usize);
    run.done(outcome)
}

unsafe extern "C" fn note(call: *mut PassCall, node: u32, said: Str) {
    // SAFETY: as in `name`; the plugin's text is readable.
    unsafe {
        let said = said.text().unwrap_or_default().to_owned();
        run(call).graph.note(node, &said);
    }
}

unsafe extern "C" fn fail(call: *mut PassCall, code: Code, message: Str) -> Code {
    // SAFETY: as in `note`.
    unsafe {
        let message = String::from_utf8_lossy(message.bytes()).into_owned();
        run(call).error = Some(KernelError::new(code, message));
    }
    code
}

/// Copies the description of a node that a pass makes.
///
/// # Safety
/// `new` is null or begins with its size; a node of the whole size has readable lists and texts.
unsafe fn spec(run: &Run<'_>, new: *const PassNode) -> Result<NodeSpec, KernelError> {
    // SAFETY: lists and texts of a node of the whole size are readable, as the caller guarantees.
    unsafe {
        let new = node(new)?;
        let op = new.op.text().unwrap_or_default().to_owned();
        let mut attrs: AttrMap = match new.like {
            NO_NODE => AttrMap::new(),
            like => run.graph.attrs(like).map(|attrs| attrs.attrs().clone()).unwrap_or_default(),
        };
        add_attrs(&mut attrs, list(new.attrs, new.attr_count), &op, "passes")?;
        let inputs = list(new.inputs, new.input_count).iter().map(|&edge| pair(edge)).collect();
        let control = list(new.control, new.control_count).to_vec();
        Ok(NodeSpec { op, attrs, inputs, control })
    }
}
