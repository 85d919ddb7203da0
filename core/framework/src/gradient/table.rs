//! The entries that the gradient of an op calls, over a [`GradientEdit`].

use super::{Gradient, GradientEdit, GradientFn};
use crate::{
    KernelError,
    attr::AttrMap,
    pass::{
        Edge, NodeSpec,
        given::{add_attrs, code_of, list, node, reason, write_dims},
    },
    plugin,
};
use std::{collections::HashMap, ptr};
use tenon_abi::{
    Attrs, Code, DType, GradientCall, GradientKind, GradientNode, GradientParts, GradientTable,
    GraphValue, Slot, Str,
};

static TABLE: GradientTable = GradientTable {
    struct_size: size_of::<GradientTable>() as u32,
    reserved: 0,
    name: Some(name),
    op: Some(op),
    scope: Some(scope),
    attrs: Some(attrs),
    input_count: Some(input_count),
    output_count: Some(output_count),
    input: Some(input),
    output: Some(output),
    is_wanted: Some(is_wanted),
    gradient: Some(gradient),
    dense_gradient: Some(dense_gradient),
    dtype: Some(dtype),
    shape: Some(shape),
    constant: Some(constant),
    same_shape: Some(same_shape),
    add: Some(add),
    set: Some(set),
    fail: Some(fail),
};

/// One run: the node and its graph, and what is lent of them.
struct Run<'g> {
    edit: &'g mut dyn GradientEdit,
    /// Slots that were given out, by tensor.
    slots: HashMap<Edge, Box<Slot>>,
    error: Option<KernelError>,
}

/// Runs the gradient of an op for a node.
///
/// # Errors
/// What the gradient says, a panic in it included.
pub fn run_gradient(run: GradientFn, edit: &mut dyn GradientEdit) -> Result<(), KernelError> {
    let mut state = Run { edit, slots: HashMap::new(), error: None };
    // SAFETY: an op's own entry with the host's table and a run that lives through the call.
    let code = unsafe { run(plugin::host(), (&raw mut state).cast(), &raw const TABLE) };
    reason(code, state.error, "the gradient gave no reason")
}

/// The run behind a handle.
///
/// # Safety
/// `call` is what `run_gradient` gave to the gradient that is running, and no other borrow of it lives.
unsafe fn run<'a>(call: *mut GradientCall) -> &'a mut Run<'a> {
    // SAFETY: the caller passes on the `Run` that `run_gradient` gave as a handle, and has no other borrow of it.
    unsafe { &mut *call.cast::<Run<'a>>() }
}

impl Run<'_> {
    fn done(&mut self, outcome: Result<(), KernelError>) -> Code {
        code_of(outcome, &mut self.error)
    }
}

/// The number of a tensor: its node from 1, then its output.
fn value(edge: Option<Edge>) -> GraphValue {
    edge.map_or(GraphValue::NONE, |(node, output)| {
        GraphValue(((u64::from(node) + 1) << 32) | u64::from(output))
    })
}

fn edge(value: GraphValue) -> Option<Edge> {
    let node = (value.0 >> 32).checked_sub(1)?;
    Some((node as u32, value.0 as u32))
}

fn parts(gradient: Option<Gradient<Edge>>) -> GradientParts {
    let none = GraphValue::NONE;
    let parts = |kind, values, indices, dense_shape| GradientParts {
        kind,
        reserved: 0,
        values,
        indices,
        dense_shape,
    };
    match gradient {
        None => parts(GradientKind::NONE, none, none, none),
        Some(Gradient::Dense(values)) => {
            parts(GradientKind::DENSE, value(Some(values)), none, none)
        }
        Some(Gradient::Slices { values, indices, dense_shape }) => parts(
            GradientKind::SLICES,
            value(Some(values)),
            value(Some(indices)),
            value(dense_shape),
        ),
    }
}

fn text(text: &str) -> Str {
    Str { ptr: text.as_ptr(), len: text.len() }
}

// SAFETY of all entries: a gradient gives the run that it was lent, on the thread that runs it.

unsafe extern "C" fn name(call: *mut GradientCall) -> Str {
    // SAFETY: as said above; so below.
    text(unsafe { run(call) }.edit.name())
}

unsafe extern "C" fn op(call: *mut GradientCall) -> Str {
    // SAFETY: as in `name`.
    text(unsafe { run(call) }.edit.op())
}

unsafe extern "C" fn scope(call: *mut GradientCall) -> Str {
    // SAFETY: as in `name`.
    text(unsafe { run(call) }.edit.scope())
}

unsafe extern "C" fn attrs(call: *mut GradientCall) -> *const Attrs {
    // SAFETY: as in `name`.
    unsafe { run(call) }.edit.attrs().as_raw()
}

unsafe extern "C" fn input_count(call: *mut GradientCall) -> u32 {
    // SAFETY: as in `name`.
    unsafe { run(call) }.edit.input_count() as u32
}

unsafe extern "C" fn output_count(call: *mut GradientCall) -> u32 {
    // SAFETY: as in `name`.
    unsafe { run(call) }.edit.output_count() as u32
}

unsafe extern "C" fn input(call: *mut GradientCall, index: u32) -> GraphValue {
    // SAFETY: as in `name`.
    value(unsafe { run(call) }.edit.input(index as usize))
}

unsafe extern "C" fn output(call: *mut GradientCall, index: u32) -> GraphValue {
    // SAFETY: as in `name`.
    value(unsafe { run(call) }.edit.output(index as usize))
}

unsafe extern "C" fn is_wanted(call: *mut GradientCall, input: u32) -> u32 {
    // SAFETY: as in `name`.
    u32::from(unsafe { run(call) }.edit.is_wanted(input as usize))
}

unsafe extern "C" fn gradient(call: *mut GradientCall, output: u32) -> GradientParts {
    // SAFETY: as in `name`.
    parts(unsafe { run(call) }.edit.gradient(output as usize))
}

unsafe extern "C" fn dense_gradient(
    call: *mut GradientCall,
    output: u32,
    result: *mut GraphValue,
) -> Code {
    // SAFETY: as in `name`; `result` is null or may be written.
    unsafe {
        let run = run(call);
        let dense = run.edit.dense_gradient(output as usize);
        let outcome = dense.map(|dense| {
            if let Some(result) = result.as_mut() {
                *result = value(Some(dense));
            }
        });
        run.done(outcome)
    }
}

unsafe extern "C" fn dtype(call: *mut GradientCall, value: GraphValue) -> DType {
    // SAFETY: as in `name`.
    edge(value).map_or(DType::INVALID, |edge| unsafe { run(call) }.edit.dtype(edge))
}

unsafe extern "C" fn shape(
    call: *mut GradientCall,
    value: GraphValue,
    dims: *mut i64,
    capacity: u32,
) -> i32 {
    // SAFETY: as in `name`; the plugin has room for `capacity` dimensions.
    unsafe {
        let known = edge(value).and_then(|edge| run(call).edit.dims(edge));
        write_dims(known.as_deref(), dims, capacity)
    }
}

unsafe extern "C" fn constant(call: *mut GradientCall, value: GraphValue) -> *const Slot {
    // SAFETY: as in `name`.
    let run = unsafe { run(call) };
    let Some(edge) = edge(value) else { return ptr::null() };
    let Some(constant) = run.edit.constant(edge) else { return ptr::null() };
    let slot = constant.slot();
    // A slot points to the tensor's shape, which the graph keeps until the next edit.
    let kept = run.slots.entry(edge).or_insert_with(|| Box::new(slot));
    &raw const **kept
}

unsafe extern "C" fn same_shape(call: *mut GradientCall, a: GraphValue, b: GraphValue) -> u32 {
    let (Some(a), Some(b)) = (edge(a), edge(b)) else { return 0 };
    // SAFETY: as in `name`.
    u32::from(unsafe { run(call) }.edit.same_shape(a, b))
}

unsafe extern "C" fn add(
    call: *mut GradientCall,
    made: *const GradientNode,
    outputs: *mut GraphValue,
    capacity: usize,
    count: *mut usize,
) -> Code {
    // SAFETY: as in `name`; the plugin gives a node, room for `capacity` values, and a place for the number or null.
    unsafe {
        let run = run(call);
        let spec = spec(&*run.edit, made);
        let added = spec.and_then(|(name, new)| run.edit.add(&name, new));
        run.slots.clear();
        let outcome = added.map(|(node, found)| {
            if !outputs.is_null() {
                for at in 0..found.min(capacity) {
                    outputs.add(at).write(value(Some((node, at as u32))));
                }
            }
            if let Some(count) = count.as_mut() {
                *count = found;
            }
        });
        run.done(outcome)
    }
}

unsafe extern "C" fn set(
    call: *mut GradientCall,
    input: u32,
    gradient: *const GradientParts,
) -> Code {
    // SAFETY: as in `name`; the plugin gives a gradient or null.
    unsafe {
        let run = run(call);
        let gradient = given_gradient(gradient.as_ref());
        let outcome = gradient.and_then(|gradient| run.edit.set(input as usize, gradient));
        run.done(outcome)
    }
}

unsafe extern "C" fn fail(call: *mut GradientCall, code: Code, message: Str) -> Code {
    // SAFETY: as in `name`; the plugin's text is readable.
    unsafe {
        let message = String::from_utf8_lossy(message.bytes()).into_owned();
        run(call).error = Some(KernelError::new(code, message));
    }
    code
}

fn given_gradient(given: Option<&GradientParts>) -> Result<Option<Gradient<Edge>>, KernelError> {
    let Some(given) = given else { return Ok(None) };
    let needed = |value: GraphValue, what: &str| {
        edge(value).ok_or_else(|| {
            KernelError::invalid_argument(format!("a gradient has no {what}: expected a value"))
        })
    };
    match given.kind {
        GradientKind::NONE => Ok(None),
        GradientKind::DENSE => Ok(Some(Gradient::Dense(needed(given.values, "tensor")?))),
        GradientKind::SLICES => Ok(Some(Gradient::Slices {
            values: needed(given.values, "slices")?,
            indices: needed(given.indices, "indices")?,
            dense_shape: edge(given.dense_shape),
        })),
        GradientKind(other) => Err(KernelError::invalid_argument(format!(
            "a gradient has form {other}: expected 0 (none), 1 (dense) or 2 (slices)"
        ))),
    }
}

/// Copies the description of a node that a gradient makes: the end of its name, and the node.
///
/// # Safety
/// `new` is null or begins with its size; a node of the whole size has readable lists and texts.
unsafe fn spec(
    edit: &dyn GradientEdit,
    new: *const GradientNode,
) -> Result<(String, NodeSpec), KernelError> {
    let invalid = |message: String| KernelError::invalid_argument(message);
    // SAFETY: lists and texts of a node of the whole size are readable, as the caller guarantees.
    unsafe {
        let new = node(new)?;
        let op = new.op.text().unwrap_or_default().to_owned();
        let name = new.name.text().filter(|name| !name.is_empty()).unwrap_or(&op).to_owned();
        let mut attrs = AttrMap::new();
        for copied in list(new.copied.ptr, new.copied.len) {
            let copied = copied.text().unwrap_or_default();
            let value = edit.attrs().get(copied).ok_or_else(|| {
                let (node, own) = (edit.name(), edit.op());
                invalid(format!("node '{node}' of op '{own}' has no attribute '{copied}' to copy"))
            })?;
            attrs.insert(copied.to_owned(), value.clone());
        }
        add_attrs(&mut attrs, list(new.attrs, new.attr_count), &op, "gradients")?;
        let operand = |(at, value): (usize, &GraphValue)| {
            edge(*value).ok_or_else(|| {
                invalid(format!("input {at} of op '{op}': expected a value, found none"))
            })
        };
        let inputs = list(new.inputs, new.input_count).iter().enumerate().map(operand);
        let inputs = inputs.collect::<Result<_, _>>()?;
        let control = list(new.control, new.control_count).iter().filter_map(|v| edge(*v));
        let control = control.map(|(node, _)| node).collect();
        Ok((name, NodeSpec { op, attrs, inputs, control }))
    }
}
