//! Resources, variables and reference slots, as services for kernels.
//!
//! On the boundary a variable is its resource: both pointers are the same, and the resource is what
//! is counted. A reference slot shows a variable without counting it; from the first such slot on
//! the step keeps the variable until its end.

mod found;
mod handles;
mod locks;
mod resources;
mod variants;

use crate::{
    call::{CallFrame, Cancellation, OVER, Value, input, output},
    devices::{copy_tensor, device_of},
    memory::{HostMemory, copy_on_host},
    resources::Variable,
};

pub use handles::HANDLES;
use locks::{lock_variables, share_variables, unlock};
use resources::{
    manager, release_resource, remove_resource, resource, resource_value, retain_resource,
};
use std::{ptr::NonNull, sync::Arc};
use tenon_abi::{
    CallRecord, Code, DType, Resource, Slot, StateTable, Str, Variable as RawVariable, slot_flags,
};
use tenon_framework::{
    KernelError, Tensor,
    device::base::{LocalDevice, StreamId},
    resource::{ResourceRef, lend_raw},
    tensor::Memory,
};
pub use variants::VARIANTS;

/// The table that `Host::state` points to.
pub static STATE_TABLE: StateTable = StateTable {
    struct_size: size_of::<StateTable>() as u32,
    reserved: 0,
    resource: Some(resource),
    resource_value: Some(resource_value),
    retain_resource: Some(retain_resource),
    release_resource: Some(release_resource),
    remove_resource: Some(remove_resource),
    variable: Some(variable),
    as_variable: Some(as_variable),
    variable_resource: Some(variable_resource),
    lock_variables: Some(lock_variables),
    share_variables: Some(share_variables),
    unlock_variables: Some(unlock),
    read_variable: Some(read_variable),
    output_variable: Some(output_variable),
    assign_variable: Some(assign_variable),
    update_variable: Some(update_variable),
    output_ref: Some(output_ref),
    ref_variable: Some(ref_variable),
    output_value: Some(output_value),
};

/// Ends a service: passes the result to `give`, or stores the error's message.
fn conclude<T>(frame: &CallFrame, result: Result<T, KernelError>, give: impl FnOnce(T)) -> Code {
    match result {
        Ok(value) => {
            give(value);
            Code::OK
        }
        Err(error) => {
            frame.set_message(error.code, error.message.as_bytes());
            error.code
        }
    }
}

/// # Safety
/// - The text is readable for `'a`.
unsafe fn text<'a>(what: &str, text: Str) -> Result<&'a str, KernelError> {
    // SAFETY: the caller guarantees that the text is readable for `'a`.
    unsafe { text.text() }
        .ok_or_else(|| KernelError::invalid_argument(format!("{what} is not UTF-8")))
}

/// # Safety
/// - `raw` is null or a variable, as its resource, that lives for `'a`.
unsafe fn variable_of<'a>(raw: *const RawVariable) -> Result<&'a Variable, KernelError> {
    // SAFETY: the caller guarantees that `raw` is null or a variable that lives for `'a`, and a
    // variable's pointer is its resource's.
    let resource = unsafe { lend_raw(raw.cast()) };
    resource
        .and_then(Variable::from_resource)
        .ok_or_else(|| KernelError::invalid_argument("expected a variable, found none"))
}

/// A service for one variable of a call: calls `body` with the call and the variable.
///
/// # Safety
/// - `record` is that of a running call.
/// - `raw` meets what [`variable_of`] requires.
unsafe fn serve(
    record: *mut CallRecord,
    raw: *const RawVariable,
    body: impl FnOnce(&CallFrame, &Variable) -> Result<(), KernelError>,
) -> Code {
    // SAFETY: the caller guarantees that `record` is that of a call, and `raw` null or a live
    // variable.
    unsafe {
        let Some(frame) = CallFrame::from_raw(record) else { return OVER };
        let result = variable_of(raw).and_then(|variable| body(frame, variable));
        conclude(frame, result, |()| ())
    }
}

/// Finds or creates a variable.
///
/// # Safety
/// - `record` meets what [`CallFrame::from_raw`] requires.
/// - The names are readable.
/// - `result` is valid for writes.
unsafe extern "C" fn variable(
    record: *mut CallRecord,
    container: Str,
    name: Str,
    dtype: DType,
    result: *mut *mut RawVariable,
) -> Code {
    // SAFETY: the kernel passes its call's record, readable names and a valid result pointer.
    unsafe {
        let Some(frame) = CallFrame::from_raw(record) else { return OVER };
        if let Some(variable) = found::again(frame, container, name, dtype) {
            *result = variable.into_raw().cast();
            return Code::OK;
        }
        let names = || Ok((text("a container", container)?, text("a name", name)?));
        let found = names().and_then(|(container, name)| {
            found::first(frame, manager(frame), (container, name), dtype, |manager| {
                manager.variable(container, name, dtype)
            })
        });
        conclude(frame, found, |resource| *result = resource.into_raw().cast())
    }
}

/// The resource as a variable; null if it is not one.
///
/// # Safety
/// - `resource` is null or a live resource.
unsafe extern "C" fn as_variable(resource: *mut Resource) -> *mut RawVariable {
    // SAFETY: the kernel passes a live resource, or null.
    match unsafe { variable_of(resource.cast_const().cast()) } {
        Ok(_) => resource.cast(),
        Err(_) => std::ptr::null_mut(),
    }
}

/// The resource of a variable.
///
/// # Safety
/// None: `unsafe` only for the type of the table's entry.
unsafe extern "C" fn variable_resource(variable: *mut RawVariable) -> *mut Resource {
    variable.cast()
}

/// Shows the value of a variable.
///
/// # Safety
/// - The caller upholds what [`serve`] requires, and holds the variable's lock.
/// - `value` is valid for writes.
unsafe extern "C" fn read_variable(
    record: *mut CallRecord,
    variable: *mut RawVariable,
    value: *mut Slot,
) -> Code {
    // SAFETY: the kernel passes its call's record, a variable that it has locked, and a valid
    // result pointer.
    unsafe {
        serve(record, variable, |frame, variable| {
            *value = variable.slot()?;
            let stream = frame.call().stream;
            if !stream.is_null() {
                // Another step may replace the value before the work that this call enqueues has
                // read it.
                let read = variable.value().map(|tensor| tensor.buffer().clone());
                frame.env().keep_for(stream, read);
            }
            Ok(())
        })
    }
}

/// Sets an output to the value of a variable.
///
/// # Safety
/// - The caller upholds what [`serve`] requires, and holds the variable's lock.
/// - The outputs belong to the caller.
unsafe extern "C" fn output_variable(
    record: *mut CallRecord,
    variable: *mut RawVariable,
    index: u32,
) -> Code {
    // SAFETY: the kernel passes its call's record and a variable that it has locked.
    unsafe {
        serve(record, variable, |frame, variable| {
            let (slot, value) = typed_output(frame, variable, index)?;
            value.hold(slot, &variable.read_locked(|tensor| copy_value(frame, tensor))?);
            Ok(())
        })
    }
}

/// Sets an output to the value of a variable that the call has not locked.
///
/// # Safety
/// - The caller upholds what [`serve`] requires.
/// - The outputs belong to the caller.
unsafe extern "C" fn output_value(
    record: *mut CallRecord,
    variable: *mut RawVariable,
    index: u32,
) -> Code {
    // SAFETY: the kernel passes its call's record and a live variable.
    unsafe {
        serve(record, variable, |frame, variable| {
            let (slot, value) = typed_output(frame, variable, index)?;
            if let Some(shown) = variable.peek(|shown| value.share(slot, shown)) {
                // From here on an update copies the value first, so that none begins meanwhile.
                return shown.and_then(|_| variable.await_writer(frame.call().stream));
            }
            let (cancellation, stream) = (&frame.env().cancellation, frame.call().stream);
            let copy = |tensor: &Tensor| {
                variable.await_writer(stream)?;
                copy_value(frame, tensor)
            };
            value.hold(slot, &variable.read(cancellation, copy)?);
            variable.await_writer(stream)
        })
    }
}

/// Slot and value of an output that is to have the value of a variable.
///
/// # Safety
/// - The call runs, and its outputs belong to the caller.
#[allow(clippy::mut_from_ref, reason = "during a call its outputs belong to the caller")]
unsafe fn typed_output<'f>(
    frame: &'f CallFrame,
    variable: &Variable,
    index: u32,
) -> Result<(&'f mut Slot, &'f mut Value), KernelError> {
    // SAFETY: the outputs belong to the caller.
    let (slot, value) = unsafe { output(frame, index) }?;
    let expected = frame.node().outputs[index as usize].dtype.base();
    if expected != variable.dtype() {
        return Err(KernelError::invalid_argument(format!(
            "output {index} is {expected}, variable '{}' holds {}",
            variable.name(),
            variable.dtype()
        )));
    }
    Ok((slot, value))
}

/// The tensor that an input shows: a further reference to its buffer, or a copy if it has none.
///
/// # Safety
/// - `slot` is a filled input of the running call.
unsafe fn input_tensor(slot: &Slot) -> Result<Tensor, KernelError> {
    if let Some(tensor) = Value::tensor(slot) {
        return Ok(tensor);
    }
    if slot.data.is_null() || !slot.memory.is_host_address() || slot.dtype.needs_drop() {
        return Err(KernelError::internal("the assigned value has no buffer that can be kept"));
    }
    // SAFETY: a filled slot.
    let (dims, bytes) = unsafe {
        let bytes = std::slice::from_raw_parts(slot.data.cast::<u8>(), slot.bytes as usize);
        (slot.shape(), bytes)
    };
    Ok(Tensor::from_bytes(slot.dtype, dims, bytes)?)
}

/// Sets a variable to the value of an input.
///
/// # Safety
/// - The caller upholds what [`serve`] requires, and holds the variable's exclusive lock.
unsafe extern "C" fn assign_variable(
    record: *mut CallRecord,
    raw: *mut RawVariable,
    index: u32,
) -> Code {
    // SAFETY: the kernel passes its call's record and a variable that it has locked.
    unsafe {
        serve(record, raw, |frame, variable| {
            let mut tensor = input_tensor(input(frame, index)?)?;
            if variable.copies_on_read() {
                tensor = copy_value(frame, &tensor)?;
            }
            note_writer(frame, variable, raw);
            let before = variable.replace(Some(tensor))?;
            let before = before.map(|tensor| tensor.buffer().clone());
            frame.env().keep_for(frame.call().stream, before);
            Ok(())
        })
    }
}

/// Notes that the work which a call enqueues writes the value of a variable: calls with another
/// stream wait for it, until the stream is done.
///
/// # Safety
/// - `raw` is the variable, as its resource.
unsafe fn note_writer(frame: &CallFrame, variable: &Variable, raw: *const RawVariable) {
    let Some(stream) = NonNull::new(frame.call().stream) else { return };
    // SAFETY: the device of a running call is open.
    let Some(device) = (unsafe { device_of(frame.call().device) }) else { return };
    // SAFETY: the stream of a running call is one of its device, and lives until the step has told
    // the variable that it is done.
    let stream = unsafe { StreamId::new(device.number(), stream) };
    // SAFETY: the caller guarantees that this is the variable, as its resource.
    let resource = unsafe { ResourceRef::clone_raw(raw.cast()) };
    if let Some(resource) = resource.filter(|_| variable.written_by(device, stream)) {
        frame.env().note_written(stream, resource);
    }
}

/// A copy of a variable's value, in the same memory, in the order of the call's stream.
fn copy_value(frame: &CallFrame, tensor: &Tensor) -> Result<Tensor, KernelError> {
    let memory: &Arc<dyn Memory> = tensor.buffer().memory();
    if tensor.is_on_host() && memory.device() == 0 {
        let pooled: Arc<dyn Memory> = HostMemory::shared().clone();
        return copy_on_host(tensor, &pooled);
    }
    // SAFETY: the device of a running call is open.
    let device = unsafe { device_of(frame.call().device) }
        .filter(|device| device.number() == memory.device())
        .ok_or_else(|| {
            KernelError::internal(
                "the variable lies on another device than the kernel that updates it",
            )
        })?;
    let device: &dyn LocalDevice = &*device;
    let Some(stream) = NonNull::new(frame.call().stream) else {
        return copy_tensor(tensor, Some(device), memory, Some(device));
    };
    let copy = Tensor::allocate(memory, tensor.dtype(), *tensor.shape())?;
    let (from, to) = (
        crate::devices::location(tensor.buffer(), Some(device)),
        crate::devices::location(copy.buffer(), Some(device)),
    );
    // SAFETY: the call's own stream, and two buffers of the device that live until the enqueued
    // copy is done: the variable holds one (or the step, once it is replaced), and the step holds
    // the other.
    unsafe {
        let stream = StreamId::new(device.number(), stream);
        device.copy(from, to, tensor.byte_len() as u64, Some(stream))?;
    }
    frame.env().keep_for(frame.call().stream, Some(tensor.buffer().clone()));
    Ok(copy)
}

/// Shows the value of a variable for writing.
///
/// # Safety
/// - The caller upholds what [`serve`] requires, and holds the variable's lock.
/// - `value` is valid for writes.
unsafe extern "C" fn update_variable(
    record: *mut CallRecord,
    raw: *mut RawVariable,
    value: *mut Slot,
) -> Code {
    // SAFETY: the kernel passes its call's record, a variable that it has locked, and a valid
    // result pointer.
    unsafe {
        serve(record, raw, |frame, variable| {
            *value = variable.slot_for_update(
                |buffer| frame.are_read(buffer),
                |tensor| copy_value(frame, tensor),
            )?;
            note_writer(frame, variable, raw);
            Ok(())
        })
    }
}

/// Sets an output to a reference to a variable. A tensor of the output becomes the value of a variable
/// that has none.
///
/// # Safety
/// - The caller upholds what [`serve`] requires.
/// - The outputs belong to the caller.
unsafe extern "C" fn output_ref(
    record: *mut CallRecord,
    raw: *mut RawVariable,
    index: u32,
) -> Code {
    // SAFETY: the kernel passes its call's record and a live variable.
    unsafe {
        serve(record, raw, |frame, variable| {
            let (slot, value) = output(frame, index)?;
            let expected = frame.node().outputs[index as usize].dtype;
            if !expected.is_ref() || expected.base() != variable.dtype() {
                return Err(KernelError::internal(format!(
                    "output {index} is {expected}, not a reference to {}",
                    variable.dtype()
                )));
            }
            if let Some(tensor) = Value::tensor(slot) {
                variable.initialize(tensor)?;
            }
            if let Some(resource) = ResourceRef::clone_raw(raw.cast()) {
                frame.env().keep_shown(resource);
            }
            value.release();
            *slot = Slot {
                buffer: raw.cast(),
                dtype: variable.dtype(),
                flags: slot_flags::REF | slot_flags::SET,
                ..Slot::EMPTY
            };
            Ok(())
        })
    }
}

/// The variable that a reference slot shows; null for any other slot.
///
/// # Safety
/// - `slot` is null or a filled slot of a running call.
unsafe extern "C" fn ref_variable(slot: *const Slot) -> *mut RawVariable {
    // SAFETY: the kernel passes a filled slot of its call, or null.
    match unsafe { slot.as_ref() } {
        Some(slot) if slot.flags & slot_flags::REF != 0 => slot.buffer.cast(),
        _ => std::ptr::null_mut(),
    }
}

/// Shows a variable's current value in place of a reference, for an input that requires a plain
/// value.
///
/// # Errors
/// As [`Variable::snapshot`]; `INVALID_ARGUMENT` when the slot is not a reference.
///
/// # Safety
/// - `reference` is a filled slot of a running step.
pub unsafe fn dereference(
    reference: &Slot,
    slot: &mut Slot,
    value: &mut Value,
    cancellation: &Cancellation,
) -> Result<(), KernelError> {
    // SAFETY: the caller guarantees a filled slot; the running step keeps the variable of a
    // reference.
    let variable = unsafe { variable_of(ref_variable(reference)) }?;
    value.hold(slot, &variable.snapshot(cancellation)?);
    Ok(())
}

/// Fails if a reference cannot be used as an input because its variable has no value.
///
/// # Errors
/// `FAILED_PRECONDITION` without a value; `INVALID_ARGUMENT` when the slot is not a reference.
///
/// # Safety
/// - `reference` is a filled slot of a running step.
pub unsafe fn is_initialized(reference: &Slot) -> Result<(), KernelError> {
    // SAFETY: as in `dereference`.
    unsafe { variable_of(ref_variable(reference)) }?.slot().map(drop)
}

#[cfg(all(test, not(loom)))]
#[path = "state_tests.rs"]
mod tests;
