//! Resources, variables and reference slots, as kernels use them.
//!
//! On the boundary a variable is its resource: both pointers are the same, and what is counted is the
//! resource. A reference slot shows a variable without counting it; from the first such slot on the step keeps the
//! variable to its end.

mod resources;

use crate::{
    call::{CallFrame, OVER, Value, input, output},
    devices::{copy_tensor, device_of},
    memory::{HostMemory, copy_on_host},
    resources::{Access, Variable, lock_variables as lock, unlock_variables},
};
use resources::{
    manager, release_resource, remove_resource, resource, resource_value, retain_resource,
};
use std::sync::Arc;
use tenon_abi::{
    CallRecord, Code, DType, Resource, Slot, StateTable, Str, Variable as RawVariable, slot_flags,
};
use tenon_framework::{
    KernelError, Tensor,
    device::base::{LocalDevice, StreamId},
    resource::ResourceRef,
    tensor::Memory,
};

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
};

/// Ends a service: gives the result away, or keeps the error's message.
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
/// The text is readable for `'a`.
unsafe fn text<'a>(what: &str, text: Str) -> Result<&'a str, KernelError> {
    // SAFETY: the text is readable for `'a`, as the caller guarantees.
    unsafe { text.text() }
        .ok_or_else(|| KernelError::invalid_argument(format!("{what} is not UTF-8")))
}

/// # Safety
/// `raw` is null or a live variable, as its resource.
unsafe fn variable_of(raw: *const RawVariable) -> Result<ResourceRef, KernelError> {
    // SAFETY: `raw` is null or a live variable, as the caller guarantees, and a variable's pointer is its resource's.
    let resource = unsafe { ResourceRef::clone_raw(raw.cast()) };
    resource
        .filter(|resource| Variable::of(resource).is_some())
        .ok_or_else(|| KernelError::invalid_argument("expected a variable, found none"))
}

/// Runs `body` with the variable behind a pointer.
///
/// # Safety
/// As [`variable_of`]; `record` is that of a running call.
unsafe fn with_variable<T>(
    raw: *const RawVariable,
    body: impl FnOnce(&Variable, &ResourceRef) -> Result<T, KernelError>,
) -> Result<T, KernelError> {
    // SAFETY: `raw` is null or a live variable, as the caller guarantees.
    let resource = unsafe { variable_of(raw) }?;
    match Variable::of(&resource) {
        Some(variable) => body(variable, &resource),
        None => Err(KernelError::internal("a variable turned into something else")),
    }
}

/// A service for one variable of a call: `body` gets the call, the variable and its resource.
///
/// # Safety
/// As [`with_variable`].
unsafe fn serve(
    record: *mut CallRecord,
    raw: *const RawVariable,
    body: impl FnOnce(&CallFrame, &Variable, &ResourceRef) -> Result<(), KernelError>,
) -> Code {
    // SAFETY: `record` is that of a call, and `raw` null or a live variable, as the caller guarantees.
    unsafe {
        let Some(frame) = CallFrame::from_raw(record) else { return OVER };
        let result = with_variable(raw, |variable, resource| body(frame, variable, resource));
        conclude(frame, result, |()| ())
    }
}

unsafe extern "C" fn variable(
    record: *mut CallRecord,
    container: Str,
    name: Str,
    dtype: DType,
    result: *mut *mut RawVariable,
) -> Code {
    // SAFETY: the kernel gives its call's record, readable names and a place.
    unsafe {
        let Some(frame) = CallFrame::from_raw(record) else { return OVER };
        let names = || Ok((text("a container", container)?, text("a name", name)?));
        let found =
            names().and_then(|(container, name)| manager(frame).variable(container, name, dtype));
        conclude(frame, found, |resource| *result = resource.into_raw().cast())
    }
}

unsafe extern "C" fn as_variable(resource: *mut Resource) -> *mut RawVariable {
    // SAFETY: the kernel gives a live resource, or null.
    match unsafe { variable_of(resource.cast_const().cast()) } {
        Ok(_) => resource.cast(),
        Err(_) => std::ptr::null_mut(),
    }
}

unsafe extern "C" fn variable_resource(variable: *mut RawVariable) -> *mut Resource {
    variable.cast()
}

/// # Safety
/// `count` live variables at `first`.
unsafe fn list(
    first: *const *mut RawVariable,
    count: usize,
) -> Result<Vec<ResourceRef>, KernelError> {
    if first.is_null() || count == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: `first` points to `count` live variables, as the caller guarantees.
    let raws = unsafe { std::slice::from_raw_parts(first, count) };
    // SAFETY: as above.
    raws.iter().map(|&raw| unsafe { variable_of(raw) }).collect()
}

unsafe extern "C" fn lock_variables(
    record: *mut CallRecord,
    variables: *const *mut RawVariable,
    count: usize,
) -> Code {
    // SAFETY: the kernel gives its call's record and `count` live variables.
    unsafe { lock_for(record, variables, count, Access::Exclusive) }
}

unsafe extern "C" fn share_variables(
    record: *mut CallRecord,
    variables: *const *mut RawVariable,
    count: usize,
    update: u32,
) -> Code {
    let access = if update == 0 { Access::Shared } else { Access::SharedUpdate };
    // SAFETY: as in `lock_variables`.
    unsafe { lock_for(record, variables, count, access) }
}

/// # Safety
/// The record of a running call, and `count` live variables.
unsafe fn lock_for(
    record: *mut CallRecord,
    variables: *const *mut RawVariable,
    count: usize,
    access: Access,
) -> Code {
    // SAFETY: `record` is that of a call, and `variables` points to `count` live variables, as the caller guarantees.
    unsafe {
        let Some(frame) = CallFrame::from_raw(record) else { return OVER };
        let locked = list(variables, count).and_then(|resources| {
            let variables: Vec<&Variable> = resources.iter().filter_map(Variable::of).collect();
            let copy = |tensor: &Tensor| copy_value(frame, tensor);
            lock(&variables, access, &frame.env().cancellation, copy)?;
            frame.locks(variables.len());
            Ok(())
        });
        conclude(frame, locked, |()| ())
    }
}

unsafe extern "C" fn unlock(
    record: *mut CallRecord,
    variables: *const *mut RawVariable,
    count: usize,
) {
    // SAFETY: the kernel gives `count` live variables, which it has locked.
    if let Ok(resources) = unsafe { list(variables, count) } {
        let variables: Vec<&Variable> = resources.iter().filter_map(Variable::of).collect();
        unlock_variables(&variables);
        // SAFETY: the kernel gives its call's record.
        if let Some(frame) = unsafe { CallFrame::from_raw(record) } {
            frame.unlocks(variables.len());
        }
    }
}

unsafe extern "C" fn read_variable(
    record: *mut CallRecord,
    variable: *mut RawVariable,
    value: *mut Slot,
) -> Code {
    // SAFETY: the kernel gives its call's record, a variable that it has locked, and a place.
    unsafe {
        serve(record, variable, |frame, variable, _| {
            *value = variable.slot()?;
            let stream = frame.call().stream;
            if !stream.is_null() {
                // Another step may replace the value before what this call enqueues has read it.
                let read = variable.value().map(|tensor| tensor.buffer().clone());
                frame.env().keep_for(stream, read);
            }
            Ok(())
        })
    }
}

unsafe extern "C" fn output_variable(
    record: *mut CallRecord,
    variable: *mut RawVariable,
    index: u32,
) -> Code {
    // SAFETY: the kernel gives its call's record and a variable that it has locked.
    unsafe {
        serve(record, variable, |frame, variable, _| {
            let (slot, value) = output(frame, index)?;
            let expected = frame.node().outputs[index as usize].dtype.base();
            if expected != variable.dtype() {
                return Err(KernelError::invalid_argument(format!(
                    "output {index} is {expected}, variable '{}' holds {}",
                    variable.name(),
                    variable.dtype()
                )));
            }
            let tensor = variable.get()?;
            let tensor = match variable.copies_on_read() {
                true => copy_value(frame, &tensor)?,
                false => tensor,
            };
            value.hold(slot, &tensor);
            Ok(())
        })
    }
}

/// The tensor that an input shows: a further reference to its buffer, or a copy where it has none.
///
/// # Safety
/// The slot is a filled input of the running call.
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

unsafe extern "C" fn assign_variable(
    record: *mut CallRecord,
    variable: *mut RawVariable,
    index: u32,
) -> Code {
    // SAFETY: the kernel gives its call's record and a variable that it has locked.
    unsafe {
        serve(record, variable, |frame, variable, _| {
            let mut tensor = input_tensor(input(frame, index)?)?;
            if variable.copies_on_read() {
                tensor = copy_value(frame, &tensor)?;
            }
            let before = variable.replace(Some(tensor))?;
            let before = before.map(|tensor| tensor.buffer().clone());
            frame.env().keep_for(frame.call().stream, before);
            Ok(())
        })
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
    let Some(stream) = std::ptr::NonNull::new(frame.call().stream) else {
        return copy_tensor(tensor, Some(device), memory, Some(device));
    };
    let copy = Tensor::allocate(memory, tensor.dtype(), *tensor.shape())?;
    let (from, to) = (
        crate::devices::location(tensor.buffer(), Some(device)),
        crate::devices::location(copy.buffer(), Some(device)),
    );
    // SAFETY: the call's own stream; two buffers of the device that live until what is enqueued is done: the
    // variable holds one, or the step once it is replaced, and the step holds the other.
    unsafe {
        let stream = StreamId::new(device.number(), stream);
        device.copy(from, to, tensor.byte_len() as u64, Some(stream))?;
    }
    frame.env().keep_for(frame.call().stream, Some(tensor.buffer().clone()));
    Ok(copy)
}

unsafe extern "C" fn update_variable(
    record: *mut CallRecord,
    variable: *mut RawVariable,
    value: *mut Slot,
) -> Code {
    // SAFETY: the kernel gives its call's record, a variable that it has locked, and a place.
    unsafe {
        serve(record, variable, |frame, variable, _| {
            *value = variable.slot_for_update(|tensor| copy_value(frame, tensor))?;
            Ok(())
        })
    }
}

unsafe extern "C" fn output_ref(
    record: *mut CallRecord,
    raw: *mut RawVariable,
    index: u32,
) -> Code {
    // SAFETY: the kernel gives its call's record and a live variable.
    unsafe {
        serve(record, raw, |frame, variable, resource| {
            let (slot, value) = output(frame, index)?;
            let expected = frame.node().outputs[index as usize].dtype;
            if !expected.is_ref() || expected.base() != variable.dtype() {
                return Err(KernelError::internal(format!(
                    "output {index} is {expected}, not a reference to {}",
                    variable.dtype()
                )));
            }
            frame.env().keep_shown(resource);
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

unsafe extern "C" fn ref_variable(slot: *const Slot) -> *mut RawVariable {
    // SAFETY: the kernel gives a filled slot of its call, or null.
    match unsafe { slot.as_ref() } {
        Some(slot) if slot.flags & slot_flags::REF != 0 => slot.buffer.cast(),
        _ => std::ptr::null_mut(),
    }
}

/// Shows a variable's present value in the slot of a reference, for an input that takes the plain value.
///
/// # Errors
/// `FAILED_PRECONDITION` without a value; `INVALID_ARGUMENT` when the slot is no reference.
///
/// # Safety
/// `reference` is a filled slot of a running step.
pub unsafe fn dereference(
    reference: &Slot,
    slot: &mut Slot,
    value: &mut Value,
) -> Result<(), KernelError> {
    // SAFETY: the caller gives a filled slot; the running step keeps the variable of one that is a reference.
    unsafe {
        with_variable(ref_variable(reference), |variable, _| {
            value.hold(slot, &variable.snapshot()?);
            Ok(())
        })
    }
}

/// Says why a reference may not be used as an input: its variable has no value.
///
/// # Errors
/// `FAILED_PRECONDITION` without a value; `INVALID_ARGUMENT` when the slot is not a reference.
///
/// # Safety
/// As [`dereference`].
pub unsafe fn is_initialized(reference: &Slot) -> Result<(), KernelError> {
    // SAFETY: as in `dereference`.
    unsafe { with_variable(ref_variable(reference), |variable, _| variable.slot().map(drop)) }
}

#[cfg(all(test, not(loom)))]
#[path = "state_tests.rs"]
mod tests;
