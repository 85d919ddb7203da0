//! The host's table for a plugin in a worker: operations that need the host's process are refused.

use super::call::Record;
use std::{ffi::c_void, slice};
use tenon_abi::{
    CallRecord, Code, DType, Host, KeptTensor, Resource, ResourceFactory, ResourceType, Slot,
    StateTable, Str, Variable,
};
use tenon_framework::Tensor;
use tenon_host::{
    entries::HOST,
    services::{buffers::keep_entry, state::STATE_TABLE},
};

/// The host's table of a plugin in a worker.
pub(super) static WORKER_HOST: Host = Host {
    struct_size: HOST.struct_size,
    abi_major: HOST.abi_major,
    abi_minor: HOST.abi_minor,
    reserved: 0,
    report: HOST.report,
    log: HOST.log,
    attr: HOST.attr,
    knob: HOST.knob,
    retain_context: HOST.retain_context,
    release_context: HOST.release_context,
    path: HOST.path,
    allocate: HOST.allocate,
    deallocate: HOST.deallocate,
    now_ns: HOST.now_ns,
    keep: Some(keep),
    view: HOST.view,
    release: HOST.release,
    device_lost: HOST.device_lost,
    strings: HOST.strings,
    shapes: HOST.shapes,
    state: &WORKER_STATE,
    ext: std::ptr::null(),
};

/// State belongs to the host: an entry that requests it, with the record of a call, fails.
static WORKER_STATE: StateTable = StateTable {
    struct_size: STATE_TABLE.struct_size,
    reserved: 0,
    resource: Some(resource),
    resource_value: STATE_TABLE.resource_value,
    retain_resource: STATE_TABLE.retain_resource,
    release_resource: STATE_TABLE.release_resource,
    remove_resource: Some(remove_resource),
    variable: Some(variable),
    as_variable: STATE_TABLE.as_variable,
    variable_resource: STATE_TABLE.variable_resource,
    lock_variables: Some(lock_variables),
    share_variables: Some(share_variables),
    unlock_variables: Some(unlock_variables),
    read_variable: Some(slot_of_variable),
    output_variable: Some(with_variable),
    assign_variable: Some(with_variable),
    update_variable: Some(slot_of_variable),
    output_ref: Some(with_variable),
    ref_variable: STATE_TABLE.ref_variable,
    output_value: Some(with_variable),
};

/// As `Host::keep`: a tensor in an arena is copied, because its memory belongs to the host.
///
/// # Safety
/// - `slot` is null, or a slot that is valid during the call.
unsafe extern "C" fn keep(slot: *const Slot) -> *mut KeptTensor {
    // SAFETY: null, or a slot that is valid during the call.
    let Some(shown) = (unsafe { slot.as_ref() }) else { return std::ptr::null_mut() };
    if shown.data.is_null() || !shown.buffer.is_null() {
        // SAFETY: null, or a slot that is valid during the call.
        return unsafe { keep_entry(slot) };
    }
    // SAFETY: a set slot shows `bytes` bytes and its dimensions.
    let (bytes, dims) = unsafe {
        (slice::from_raw_parts(shown.data.cast::<u8>(), shown.bytes as usize), shown.shape())
    };
    match Tensor::from_bytes(shown.dtype, dims, bytes) {
        Ok(tensor) => Box::into_raw(Box::new(tensor)).cast(),
        Err(_) => std::ptr::null_mut(),
    }
}

/// Fails the call: the host's state does not exist in a worker.
///
/// # Safety
/// - `record` is that of a running call.
unsafe fn refuse(record: *mut CallRecord) -> Code {
    // SAFETY: `record` is that of a call that runs, as the caller guarantees.
    let record = unsafe { Record::of(record) };
    record.set_message(
        Code::UNIMPLEMENTED,
        "resources and variables are the host's, and this plugin runs in a process of its own: load it without \
         isolation",
    );
    Code::UNIMPLEMENTED
}

/// Would find or create a resource; refuses.
///
/// # Safety
/// - The caller upholds what [`refuse`] requires.
unsafe extern "C" fn resource(
    record: *mut CallRecord,
    _container: Str,
    _name: Str,
    _kind: *const ResourceType,
    _factory: ResourceFactory,
    _data: *mut c_void,
    _result: *mut *mut Resource,
) -> Code {
    // SAFETY: the kernel passes its call's record.
    unsafe { refuse(record) }
}

/// Would remove a resource; refuses.
///
/// # Safety
/// - The caller upholds what [`refuse`] requires.
unsafe extern "C" fn remove_resource(
    record: *mut CallRecord,
    _container: Str,
    _name: Str,
    _kind: Str,
) -> Code {
    // SAFETY: the kernel passes its call's record.
    unsafe { refuse(record) }
}

/// Would find a variable; refuses.
///
/// # Safety
/// - The caller upholds what [`refuse`] requires.
unsafe extern "C" fn variable(
    record: *mut CallRecord,
    _container: Str,
    _name: Str,
    _dtype: DType,
    _result: *mut *mut Variable,
) -> Code {
    // SAFETY: the kernel passes its call's record.
    unsafe { refuse(record) }
}

/// Would lock variables for writing; refuses.
///
/// # Safety
/// - The caller upholds what [`refuse`] requires.
unsafe extern "C" fn lock_variables(
    record: *mut CallRecord,
    _variables: *const *mut Variable,
    count: usize,
) -> Code {
    // SAFETY: the kernel passes its call's record.
    if count == 0 { Code::OK } else { unsafe { refuse(record) } }
}

/// Would lock variables for reading or an update; refuses.
///
/// # Safety
/// - The caller upholds what [`refuse`] requires.
unsafe extern "C" fn share_variables(
    record: *mut CallRecord,
    _variables: *const *mut Variable,
    _count: usize,
    _update: u32,
) -> Code {
    // SAFETY: the kernel passes its call's record.
    unsafe { refuse(record) }
}

/// Does nothing: no variable was locked.
///
/// # Safety
/// None: `unsafe` only for the type of the table's entry.
unsafe extern "C" fn unlock_variables(
    _record: *mut CallRecord,
    _variables: *const *mut Variable,
    _count: usize,
) {
}

/// Would show the value of a variable; refuses.
///
/// # Safety
/// - The caller upholds what [`refuse`] requires.
unsafe extern "C" fn slot_of_variable(
    record: *mut CallRecord,
    _variable: *mut Variable,
    _value: *mut Slot,
) -> Code {
    // SAFETY: the kernel passes its call's record.
    unsafe { refuse(record) }
}

/// For entries that take a variable and an argument of the call; refuses.
///
/// # Safety
/// - The caller upholds what [`refuse`] requires.
unsafe extern "C" fn with_variable(
    record: *mut CallRecord,
    _variable: *mut Variable,
    _argument: u32,
) -> Code {
    // SAFETY: the kernel passes its call's record.
    unsafe { refuse(record) }
}
