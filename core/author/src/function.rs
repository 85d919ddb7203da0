//! Functions of the graph's library, which kernels call.

use crate::{compute::ComputeContext, kept::Kept, links::host_link};
use std::{borrow::Borrow, ffi::c_void, ptr, ptr::NonNull, slice};
use tenon_abi::{
    CallRecord, Code, ExtFunctions, FunctionDone, FunctionStart, KeptTensor, Str, ext_tags,
    layout::EXT_FUNCTIONS,
};
use tenon_framework::{KernelError, plugin::guard};

/// A function that an attribute of a node names, ready to be called.
///
/// It is found in a call of the node's kernel ([`ComputeContext::function`]), and may be called then, later and
/// elsewhere: by an iterator that outlives the step, from any thread. Clones are the same function.
///
/// ```
/// use tenon_author::{AsyncCall, ComputeContext, CreateContext, Kernel, Mode, Schedule};
/// use tenon_framework::KernelError;
///
/// /// Calls the function of attribute `f` with its input, and returns the function's first result.
/// struct Apply;
///
/// impl Kernel for Apply {
///     const MODE: Mode = Mode::Async;
///
///     fn new(_: &CreateContext<'_>) -> Result<Self, KernelError> {
///         Ok(Apply)
///     }
///
///     fn compute(&self, _: &ComputeContext<'_>) -> Result<(), KernelError> {
///         Ok(())
///     }
///
///     fn start(&self, mut call: AsyncCall) {
///         let context = call.context();
///         let parts = context.function("f").and_then(|f| Ok((f, context.keep(0)?)));
///         match parts {
///             Ok((f, input)) => f.call_within(call, &[input], Schedule::Inline, |mut call, results| {
///                 let result = results.and_then(|results| match results.first() {
///                     Some(first) => call.context().output_kept(0, first),
///                     None => Err(KernelError::invalid_argument("expected a result, found none")),
///                 });
///                 call.finish(result);
///             }),
///             Err(error) => call.finish(Err(error)),
///         }
///     }
/// }
/// ```
pub struct Function {
    raw: NonNull<tenon_abi::Function>,
    link: &'static ExtFunctions,
}

// SAFETY: the host's services for functions take any thread.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

/// On which thread a call of a function begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schedule {
    /// On the calling thread, which drives the call until only outstanding work is left.
    Inline,
    /// On a thread of the host's pool, so that calls run at the same time.
    Pool,
}

impl Schedule {
    fn raw(self) -> FunctionStart {
        match self {
            Schedule::Inline => FunctionStart::HERE,
            Schedule::Pool => FunctionStart::POOL,
        }
    }
}

/// The results of a call of a function.
pub type FunctionResults = Result<Vec<Kept>, KernelError>;

impl ComputeContext<'_> {
    /// The function that attribute `attr` names.
    ///
    /// # Errors
    /// `NOT_FOUND` when it names none that the graph's library defines; `UNIMPLEMENTED` in a host without functions, as
    /// in the process of an isolated plugin.
    pub fn function(&self, attr: &str) -> Result<Function, KernelError> {
        self.function_at(attr, 0)
    }

    /// The function that item `item` of a list of functions names.
    ///
    /// # Errors
    /// As [`ComputeContext::function`].
    pub fn function_at(&self, attr: &str, item: usize) -> Result<Function, KernelError> {
        let link: &'static ExtFunctions =
            host_link(ext_tags::FUNCTIONS, &EXT_FUNCTIONS, "calls of functions")?;
        let find = link.find.expect("the host fills every entry");
        let mut raw = ptr::null_mut();
        // SAFETY: the record of this call, readable text, and a place for the result.
        let code = unsafe { find(self.raw().record, Str::new(attr), item, &mut raw) };
        match NonNull::new(raw).filter(|_| code.is_ok()) {
            Some(raw) => Ok(Function { raw, link }),
            // The host keeps the whole message for the call.
            None => Err(KernelError::new(
                code,
                format!("attribute '{attr}' names no function that can be called"),
            )),
        }
    }
}

/// # Safety
/// `data` is the boxed `F` of this call, and this is the only time that it runs.
unsafe extern "C" fn run_done<F: FnOnce(FunctionResults)>(
    data: *mut c_void,
    code: Code,
    message: Str,
    results: *const *mut KeptTensor,
    result_count: usize,
) {
    // SAFETY: as the caller promises.
    let done: Box<F> = unsafe { Box::from_raw(data.cast()) };
    let results = if code.is_ok() {
        let raw: &[*mut KeptTensor] = match results.is_null() {
            true => &[],
            // SAFETY: the host shows as many references during this call, and gives them away.
            false => unsafe { slice::from_raw_parts(results, result_count) },
        };
        // SAFETY: references that belong to this plugin from now on.
        Ok(raw.iter().filter_map(|&raw| unsafe { Kept::from_raw(raw) }).collect())
    } else {
        // SAFETY: the message is readable during this call.
        let message = unsafe { String::from_utf8_lossy(message.bytes()).into_owned() };
        Err(KernelError::new(code, message))
    };
    // A panic has nowhere to go: what `done` holds is dropped, which fails a call that it was to complete.
    let _ = guard(|| done(results));
}

impl Function {
    /// Calls the function as a step of its own. `done` is called once, on any thread, perhaps before this returns.
    /// The call has no deadline; [`Function::cancel`] ends it.
    pub fn call(
        &self,
        args: &[impl Borrow<Kept>],
        schedule: Schedule,
        done: impl FnOnce(FunctionResults) + Send + 'static,
    ) {
        // SAFETY: a call without a record.
        unsafe { self.start(ptr::null_mut(), args, schedule, done) }
    }

    /// Calls the function within the step of an asynchronous call, which the call of the function belongs to: its
    /// deadline and cancellation hold, and traces show it there. `done` gets the call back.
    pub fn call_within(
        &self,
        mut call: crate::AsyncCall,
        args: &[impl Borrow<Kept>],
        schedule: Schedule,
        done: impl FnOnce(crate::AsyncCall, FunctionResults) + Send + 'static,
    ) {
        let record = call.context().raw().record;
        // SAFETY: the record of a call that lives until `done` gets it.
        unsafe { self.start(record, args, schedule, move |results| done(call, results)) }
    }

    /// # Safety
    /// `record` is null, or that of a call that is not completed before `done` runs.
    unsafe fn start<F: FnOnce(FunctionResults) + Send + 'static>(
        &self,
        record: *mut CallRecord,
        args: &[impl Borrow<Kept>],
        schedule: Schedule,
        done: F,
    ) {
        let entry = self.link.call.expect("the host fills every entry");
        let args: Vec<*const KeptTensor> = args.iter().map(|kept| kept.borrow().raw()).collect();
        let data = Box::into_raw(Box::new(done)).cast();
        let done = FunctionDone { run: Some(run_done::<F>) };
        // SAFETY: a function of the host's, a record as the caller promises, tensors that are kept until the entry
        // returns, and data that `run_done` takes once.
        unsafe {
            entry(self.raw.as_ptr(), record, args.as_ptr(), args.len(), schedule.raw(), done, data);
        }
    }

    /// Ends the calls that are steps of their own, those that run and later ones, with `CANCELLED`; those of all clones.
    pub fn cancel(&self) {
        let entry = self.link.cancel.expect("the host fills every entry");
        // SAFETY: a reference of this value.
        unsafe { entry(self.raw.as_ptr()) }
    }
}

impl Clone for Function {
    fn clone(&self) -> Function {
        let entry = self.link.retain.expect("the host fills every entry");
        // SAFETY: a reference of this value; the new one belongs to the clone.
        unsafe { entry(self.raw.as_ptr()) };
        Function { raw: self.raw, link: self.link }
    }
}

impl Drop for Function {
    fn drop(&mut self) {
        let entry = self.link.release.expect("the host fills every entry");
        // SAFETY: the reference of this value, which is given back once.
        unsafe { entry(self.raw.as_ptr()) }
    }
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Function({:p})", self.raw)
    }
}
