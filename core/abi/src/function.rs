//! What the host offers to kernels beyond its tables, as links: calls of functions, and handles of resources.

use crate::{CallRecord, Code, ExtHeader, KeptTensor, Resource, Str};
use abi_stable::StableAbi;
use core::ffi::c_void;

/// A function of a graph's library that is ready to be called. Opaque to plugins; reference-counted.
#[repr(C)]
#[derive(StableAbi)]
pub struct Function {
    _opaque: [u8; 0],
}

/// On which thread a call of a function begins.
#[repr(transparent)]
#[derive(StableAbi, Clone, Copy, PartialEq, Eq, Debug)]
pub struct FunctionStart(pub u32);

impl FunctionStart {
    /// On the calling thread, which drives the call until only outstanding work is left.
    pub const HERE: FunctionStart = FunctionStart(0);
    /// On a thread of the host's pool, so that calls run at the same time.
    pub const POOL: FunctionStart = FunctionStart(1);
}

/// Takes the end of a call: `OK` and the results, whose references pass to the plugin, or an error with its message
/// and no results. Array and message are valid while it runs. It runs once per call, on any thread, perhaps before
/// [`ExtFunctions::call`] returns. It must not unwind.
#[repr(transparent)]
#[derive(StableAbi, Clone, Copy)]
pub struct FunctionDone {
    /// Required.
    pub run: Option<
        unsafe extern "C" fn(
            data: *mut c_void,
            code: Code,
            message: Str,
            results: *const *mut KeptTensor,
            result_count: usize,
        ),
    >,
}

/// Link [`crate::ext_tags::FUNCTIONS`] of the host's table: calls of the functions that a node's attributes name.
/// Filled by the host; every entry is there.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct ExtFunctions {
    /// Head, with tag [`crate::ext_tags::FUNCTIONS`].
    pub header: ExtHeader,
    /// Finds the function that item `item` of attribute `attr` of the call's node names; item 0 of an attribute that
    /// is not a list. The result is a counted reference that outlives the call, its step and its session: `release`
    /// gives it back. `NOT_FOUND` when the attribute names no function that the graph's library defines.
    pub find: Option<
        unsafe extern "C" fn(
            record: *mut CallRecord,
            attr: Str,
            item: usize,
            result: *mut *mut Function,
        ) -> Code,
    >,
    /// Adds a reference; null is allowed.
    pub retain: Option<unsafe extern "C" fn(function: *mut Function)>,
    /// Gives a reference back; null is allowed. Calls that run go on.
    pub release: Option<unsafe extern "C" fn(function: *mut Function)>,
    /// Calls the function with `arg_count` kept tensors in host memory, which the caller keeps until the entry returns.
    /// A call with the record of a kernel's call belongs to that step: it has the step's number and deadline, and ends
    /// with it. A call with null is a step of its own, without a deadline. The end comes through `done` with `data`,
    /// errors of the arguments too.
    pub call: Option<
        unsafe extern "C" fn(
            function: *mut Function,
            record: *mut CallRecord,
            args: *const *const KeptTensor,
            arg_count: usize,
            start: FunctionStart,
            done: FunctionDone,
            data: *mut c_void,
        ),
    >,
    /// Ends the calls that are steps of their own, those that run and later ones, with `CANCELLED`. They are those of
    /// all references to what one `find` gave.
    pub cancel: Option<unsafe extern "C" fn(function: *mut Function)>,
}

/// Link [`crate::ext_tags::HANDLES`] of the host's table: resources by their handles. Filled by the host; every entry
/// is there.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct ExtHandles {
    /// Head, with tag [`crate::ext_tags::HANDLES`].
    pub header: ExtHeader,
    /// Removes a resource from its container on the call's device, and the value of a variable; later calls that ask
    /// for its name make a new one. A holder of a reference keeps the resource. `NOT_FOUND` when no container has it.
    pub remove:
        Option<unsafe extern "C" fn(record: *mut CallRecord, resource: *mut Resource) -> Code>,
    /// Whether a container has or had a resource under a name: 1, or 0 for an anonymous one and for null.
    pub has_name: Option<unsafe extern "C" fn(resource: *const Resource) -> u32>,
}

// SAFETY: a link is immutable data of function pointers.
unsafe impl Sync for ExtFunctions {}
// SAFETY: as above.
unsafe impl Sync for ExtHandles {}
