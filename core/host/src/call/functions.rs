//! Calls of functions by kernels: the link [`FUNCTIONS`] of the host's table.
//!
//! A kernel finds the function that an attribute of its node names in the functions of the running
//! step ([`FunctionTable`]), which the executor provides. What it gets is a handle: a counted
//! reference to the function, and the cancellation of the calls that belong to no step.

use super::{CallFrame, Cancellation, OVER, StepEnv};
use std::{
    ffi::c_void,
    ptr, slice,
    sync::{Arc, Weak},
};
use tenon_abi::{
    CallRecord, Code, ExtFunctions, ExtHeader, Function, FunctionDone, FunctionStart, KeptTensor,
    Str, ext_tags, layout::EXT_FUNCTIONS,
};
use tenon_framework::{
    KernelError, Tensor,
    attr::{AttrList, AttrMap, AttrValue, FuncValue},
};

/// The functions that the kernels of a step may call.
pub trait FunctionTable: Send + Sync {
    /// The function that an attribute names; `None` if the graph's library does not define it.
    fn find(&self, function: &FuncValue) -> Option<Arc<dyn CallableFunction>>;
}

/// A function that kernels call.
pub trait CallableFunction: Send + Sync {
    /// Calls it; errors come through the end of the call too.
    fn call(&self, args: &[Tensor], call: FunctionCall<'_>);
}

/// Takes the results of a call, once.
pub type FunctionEnd = Box<dyn FnOnce(Result<Vec<Tensor>, KernelError>) + Send>;

/// How a kernel calls a function.
pub struct FunctionCall<'c> {
    /// The step that the call belongs to; `None` for a step of its own.
    pub step: Option<&'c StepEnv>,
    /// Cancels a call that is a step of its own.
    pub cancellation: &'c Arc<Cancellation>,
    /// The number of calls that the step is within in which the function was found.
    pub depth: u32,
    /// Whether it begins on a thread of the pool.
    pub on_pool: bool,
    /// Takes the results.
    pub end: FunctionEnd,
}

/// The functions that a node's attributes name: by attribute, in the order of a list.
pub type NodeFunctions = Vec<(String, Vec<FuncValue>)>;

/// The functions that attributes name. Their definitions stay with the graph.
pub(crate) fn functions_of(attrs: &AttrMap) -> NodeFunctions {
    let reference = |function: &FuncValue| FuncValue {
        name: function.name.clone(),
        call: function.call.clone(),
        definition: Vec::new(),
    };
    let named = attrs.iter().filter_map(|(name, value)| match value {
        AttrValue::Func(function) => Some((name.clone(), vec![reference(function)])),
        AttrValue::List(AttrList::Func(list)) => {
            Some((name.clone(), list.iter().map(reference).collect()))
        }
        _ => None,
    });
    named.collect()
}

/// What a raw [`Function`] points to.
struct Handle {
    function: Arc<dyn CallableFunction>,
    cancellation: Arc<Cancellation>,
    /// The number of calls that the step is within in which it was found.
    depth: u32,
}

/// The link of the host's table.
pub const FUNCTIONS: ExtFunctions = ExtFunctions {
    header: ExtHeader::new(ext_tags::FUNCTIONS, 1, &EXT_FUNCTIONS),
    find: Some(find_entry),
    retain: Some(retain_entry),
    release: Some(release_entry),
    call: Some(call_entry),
    cancel: Some(cancel_entry),
};

/// # Safety
/// - `record` meets what [`CallFrame::from_raw`] requires.
/// - `attr` is readable, and `result` is valid for writes.
unsafe extern "C" fn find_entry(
    record: *mut CallRecord,
    attr: Str,
    item: usize,
    result: *mut *mut Function,
) -> Code {
    // SAFETY: the kernel passes its call's record and a readable name.
    let (frame, attr) = unsafe {
        let Some(frame) = CallFrame::from_raw(record) else { return OVER };
        (frame, attr.text().unwrap_or_default())
    };
    match find(frame, attr, item) {
        Ok(handle) => {
            // SAFETY: the kernel passes a valid place for the result.
            unsafe { result.write(Arc::into_raw(Arc::new(handle)).cast_mut().cast()) };
            Code::OK
        }
        Err(error) => {
            frame.set_message(error.code, error.message.as_bytes());
            error.code
        }
    }
}

fn find(frame: &CallFrame, attr: &str, item: usize) -> Result<Handle, KernelError> {
    let named = frame.node().functions.iter().find(|(name, _)| name == attr);
    let named = named.and_then(|(_, list)| list.get(item)).ok_or_else(|| {
        let message =
            format!("item {item} of attribute '{attr}' names no function: expected type func");
        KernelError::new(Code::NOT_FOUND, message)
    })?;
    let table = frame.env().functions.as_ref().and_then(Weak::upgrade);
    let function = table.and_then(|table| table.find(named)).ok_or_else(|| {
        let message = format!(
            "attribute '{attr}' names function '{}': expected a function in the graph's library",
            named.name
        );
        KernelError::new(Code::NOT_FOUND, message)
    })?;
    Ok(Handle { function, cancellation: Arc::default(), depth: frame.env().depth })
}

/// # Safety
/// - `function` is null or a reference of the caller.
unsafe extern "C" fn retain_entry(function: *mut Function) {
    if !function.is_null() {
        // SAFETY: a handle from `find_entry`, of which the caller has a reference.
        unsafe { Arc::increment_strong_count(function.cast_const().cast::<Handle>()) }
    }
}

/// # Safety
/// - `function` is null or a reference of the caller, which does not use it any more.
unsafe extern "C" fn release_entry(function: *mut Function) {
    if !function.is_null() {
        // SAFETY: a handle from `find_entry`; the caller gives this reference back.
        drop(unsafe { Arc::from_raw(function.cast_const().cast::<Handle>()) });
    }
}

/// # Safety
/// - `function` is null or a reference of the caller.
unsafe extern "C" fn cancel_entry(function: *mut Function) {
    // SAFETY: null, or a handle from `find_entry`, of which the caller has a reference.
    if let Some(handle) = unsafe { function.cast_const().cast::<Handle>().as_ref() } {
        handle.cancellation.cancel();
    }
}

/// The end of a call on the plugin's side.
pub(super) struct PluginEnd {
    done: FunctionDone,
    data: *mut c_void,
}

// SAFETY: the contract of `FunctionDone` says that it runs on any thread.
unsafe impl Send for PluginEnd {}

impl PluginEnd {
    pub fn new(done: FunctionDone, data: *mut c_void) -> PluginEnd {
        PluginEnd { done, data }
    }

    /// Hands the end of the call to the plugin.
    pub fn give(self, result: Result<Vec<Tensor>, KernelError>) {
        let Some(run) = self.done.run else { return };
        match result {
            Ok(tensors) => {
                let kept: Vec<*mut KeptTensor> = (tensors.into_iter())
                    .map(|tensor| Box::into_raw(Box::new(tensor)).cast())
                    .collect();
                // SAFETY: the plugin's own function and data; the array lives during the call, and
                // its references pass to the plugin.
                unsafe { run(self.data, Code::OK, Str::EMPTY, kept.as_ptr(), kept.len()) }
            }
            // SAFETY: as above; the message lives during the call.
            Err(error) => unsafe {
                run(self.data, error.code, Str::new(&error.message), ptr::null(), 0);
            },
        }
    }
}

/// # Safety
/// - `function` is a reference of the caller, or null.
/// - `record` is null or meets what [`CallFrame::from_raw`] requires.
/// - `args` shows `arg_count` kept tensors.
/// - `done` may be called once with `data`, on any thread.
unsafe extern "C" fn call_entry(
    function: *mut Function,
    record: *mut CallRecord,
    args: *const *const KeptTensor,
    arg_count: usize,
    start: FunctionStart,
    done: FunctionDone,
    data: *mut c_void,
) {
    let end = PluginEnd::new(done, data);
    // SAFETY: null, or a handle from `find_entry`, of which the caller has a reference.
    let Some(handle) = (unsafe { function.cast_const().cast::<Handle>().as_ref() }) else {
        return end.give(Err(KernelError::invalid_argument("expected a function, found null")));
    };
    let step = if record.is_null() {
        None
    } else {
        // SAFETY: the kernel passes its call's record.
        let Some(frame) = (unsafe { CallFrame::from_raw(record) }) else {
            let over = "a function was called for a call that is over: expected one that runs";
            return end.give(Err(KernelError::new(OVER, over)));
        };
        Some(frame.env())
    };
    // SAFETY: the caller shows `arg_count` kept tensors.
    let args = match unsafe { arguments(args, arg_count) } {
        Ok(args) => args,
        Err(error) => return end.give(Err(error)),
    };
    let call = FunctionCall {
        step,
        cancellation: &handle.cancellation,
        depth: handle.depth,
        on_pool: start == FunctionStart::POOL,
        end: Box::new(move |result| end.give(result)),
    };
    handle.function.call(&args, call);
}

/// The tensors of a call.
///
/// # Safety
/// - `args` shows `count` pointers, each null or a kept tensor.
unsafe fn arguments(
    args: *const *const KeptTensor,
    count: usize,
) -> Result<Vec<Tensor>, KernelError> {
    if count == 0 {
        return Ok(Vec::new());
    }
    if args.is_null() {
        return Err(KernelError::invalid_argument(format!(
            "expected {count} arguments, found null"
        )));
    }
    // SAFETY: the caller shows `count` pointers.
    let args = unsafe { slice::from_raw_parts(args, count) };
    let tensors = args.iter().enumerate().map(|(at, &kept)| {
        // SAFETY: the caller shows null or a kept tensor, which is a boxed `Tensor`.
        let tensor = unsafe { kept.cast::<Tensor>().as_ref() };
        tensor.cloned().ok_or_else(|| {
            KernelError::invalid_argument(format!("argument {at} is null: expected a kept tensor"))
        })
    });
    tensors.collect()
}
