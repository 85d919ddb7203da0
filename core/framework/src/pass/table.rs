//! The entries that a pass of a library calls, over a [`GraphEdit`].

use super::{GraphEdit, NodeSpec, PassDef};
use crate::{
    KernelError, Tensor,
    attr::{AttrList, AttrMap, AttrValue, FromAttr},
    plugin,
};
use std::{collections::HashMap, ptr, slice};
use tenon_abi::{
    AttrKind, AttrView, Attrs, Code, DType, Edge, NO_NODE, PassAttr, PassCall, PassNode, PassTable,
    Slot, Str, UNKNOWN_RANK,
};

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
    if code.is_ok() {
        return Ok(());
    }
    let own = run.error.take().filter(|error| error.code == code);
    Err(own.unwrap_or_else(|| KernelError::new(code, "no reason was given")))
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
        match outcome {
            Ok(()) => Code::OK,
            Err(error) => {
                let code = error.code;
                self.error = Some(error);
                code
            }
        }
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
        let Some(known) = run(call).graph.dims(pair(tensor)) else { return UNKNOWN_RANK };
        if !dims.is_null() {
            ptr::copy_nonoverlapping(known.as_ptr(), dims, known.len().min(capacity as usize));
        }
        known.len() as i32
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

/// What a plugin gives as a list.
///
/// # Safety
/// `items` is null, or there are `count` of them.
pub(crate) unsafe fn list<'a, T>(items: *const T, count: usize) -> &'a [T] {
    if items.is_null() || count == 0 {
        return &[];
    }
    // SAFETY: `items` is not null, and the caller gives `count` of them, which are readable for `'a`.
    unsafe { slice::from_raw_parts(items, count) }
}

/// Copies the description of a node that a pass makes.
///
/// # Safety
/// `new` is null or begins with its size; a node of the whole size has readable lists and texts.
unsafe fn spec(run: &Run<'_>, new: *const PassNode) -> Result<NodeSpec, KernelError> {
    let invalid = KernelError::invalid_argument;
    if new.is_null() {
        return Err(invalid("expected a node, found null".to_owned()));
    }
    // SAFETY: the caller gives a node that begins with its size, and lists and texts of a whole one are readable.
    // Nothing else is read below.
    unsafe {
        let (expected, found) = (size_of::<PassNode>(), new.cast::<u32>().read());
        if (found as usize) < expected {
            return Err(invalid(format!("struct_size of a node is {found}, expected {expected}")));
        }
        let new = &*new;
        let op = new.op.text().unwrap_or_default().to_owned();
        let mut attrs: AttrMap = match new.like {
            NO_NODE => AttrMap::new(),
            like => run.graph.attrs(like).map(|attrs| attrs.attrs().clone()).unwrap_or_default(),
        };
        for PassAttr { name, value } in list(new.attrs, new.attr_count) {
            let name = name.text().unwrap_or_default().to_owned();
            let value = attr(value).ok_or_else(|| {
                invalid(format!(
                    "attribute '{name}' of op '{op}': expected a value that passes can give"
                ))
            })?;
            attrs.insert(name, value);
        }
        let inputs = list(new.inputs, new.input_count).iter().map(|&edge| pair(edge)).collect();
        let control = list(new.control, new.control_count).to_vec();
        Ok(NodeSpec { op, attrs, inputs, control })
    }
}

/// What a plugin gives as an attribute; `None` for a kind that it cannot give.
///
/// # Safety
/// The view's items are readable.
pub(crate) unsafe fn attr(view: &AttrView) -> Option<AttrValue> {
    // SAFETY: the view's items are readable, as the caller guarantees; each type is that of the kind.
    unsafe {
        if view.is_list != 0 {
            return Some(AttrValue::List(match view.kind {
                AttrKind::INT => AttrList::Int(Vec::from_view(view)?),
                AttrKind::FLOAT => AttrList::Float(Vec::from_view(view)?),
                AttrKind::BOOL => AttrList::Bool(Vec::from_view(view)?),
                AttrKind::TYPE => AttrList::Type(Vec::from_view(view)?),
                AttrKind::SHAPE => AttrList::Shape(Vec::from_view(view)?),
                AttrKind::STRING => {
                    let items: Vec<&[u8]> = Vec::from_view(view)?;
                    AttrList::String(items.into_iter().map(<[u8]>::to_vec).collect())
                }
                _ => return None,
            }));
        }
        Some(match view.kind {
            AttrKind::INT => AttrValue::Int(i64::from_view(view)?),
            AttrKind::FLOAT => AttrValue::Float(f32::from_view(view)?),
            AttrKind::BOOL => AttrValue::Bool(bool::from_view(view)?),
            AttrKind::TYPE => AttrValue::Type(DType::from_view(view)?),
            AttrKind::SHAPE => AttrValue::Shape(crate::PartialShape::from_view(view)?),
            AttrKind::STRING => AttrValue::String(<&[u8]>::from_view(view)?.to_vec()),
            AttrKind::TENSOR => AttrValue::Tensor(copied(&Slot::from_view(view)?)?),
            _ => return None,
        })
    }
}

/// A copy of a tensor of plain elements in host memory.
///
/// # Safety
/// The slot's data and dimensions are readable.
unsafe fn copied(slot: &Slot) -> Option<Tensor> {
    // SAFETY: the slot's data and dimensions are readable, as the caller guarantees.
    unsafe {
        let dims = list(slot.dims, slot.rank as usize);
        let bytes = list(slot.data.cast::<u8>().cast_const(), slot.bytes as usize);
        Tensor::from_bytes(slot.dtype, dims, bytes).ok()
    }
}
