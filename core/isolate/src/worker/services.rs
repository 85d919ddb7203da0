//! The services of a call that runs in a worker: those that need the host ask it.

use super::call::{Outcome, Record, allocate as allocate_output, bytes_of, show};
use crate::wire::{ArenaName, Ask, checked_dims};
use std::{
    ffi::c_void,
    ptr, slice,
    sync::{Arc, atomic::Ordering},
};
use tenon_abi::{
    CallRecord, CallServices, CancelCallback, Code, DType, HOST_ALIGNMENT, KeptTensor, MemoryKind,
    NO_CALLBACK, ParallelBody, Str,
};
use tenon_framework::{
    KernelError, Tensor,
    tensor::{Buffer, Memory},
};
use tenon_host::{
    call::{LoopBody, monotonic_ns},
    memory::HostMemory,
    pool::Stop,
};

/// The table that every call in a worker points to.
pub(super) static WORKER_SERVICES: CallServices = CallServices {
    struct_size: size_of::<CallServices>() as u32,
    reserved: 0,
    fail: Some(fail),
    allocate: Some(allocate),
    forward: Some(forward),
    share: Some(share),
    scratch: Some(scratch),
    on_cancel: Some(on_cancel),
    off_cancel: Some(off_cancel),
    complete: Some(complete),
    output_kept: Some(output_kept),
    parallel_for: Some(parallel_for),
    parallelism: Some(parallelism),
    trace: Some(trace),
    now_ns: Some(now_ns),
    node: Some(node),
};

/// The record, if its call is running.
///
/// # Safety
/// - `record` is that of a running call, or of an asynchronous call that is over and whose record
///   is retained.
unsafe fn running<'r>(record: *mut CallRecord) -> Option<&'r Record> {
    // SAFETY: the kernel gives the record of a call that runs, or of an asynchronous one that is
    // over and still kept.
    let record = unsafe { Record::of(record) };
    (!record.over.load(Ordering::Acquire)).then_some(record)
}

/// The code of a service for a call that is over.
const OVER: Code = Code::FAILED_PRECONDITION;

fn conclude(record: &Record, result: Result<(), KernelError>) -> Code {
    match result {
        Ok(()) => Code::OK,
        Err(error) => {
            record.set_message(error.code, &error.message);
            error.code
        }
    }
}

/// # Safety
/// - `first` is null or points to `rank` readable dimensions.
unsafe fn dims<'a>(first: *const i64, rank: u32) -> Result<&'a [i64], KernelError> {
    if first.is_null() || rank == 0 {
        return Ok(&[]);
    }
    // SAFETY: `first` is not null, and the caller guarantees `rank` readable dimensions there.
    let dims = unsafe { slice::from_raw_parts(first, rank as usize) };
    checked_dims(dims).map_err(|_| {
        let message = format!(
            "expected at most {} dimensions, each 0 or more, found {dims:?}",
            tenon_abi::MAX_RANK
        );
        KernelError::invalid_argument(message)
    })
}

/// Sets the message of a failing call.
///
/// # Safety
/// - `record` meets what [`running`] requires.
/// - `message` is readable.
unsafe extern "C" fn fail(record: *mut CallRecord, code: Code, message: Str) -> Code {
    let code = if code.is_ok() { Code::UNKNOWN } else { code };
    // SAFETY: the kernel passes its call's record and a message that is valid during the call.
    unsafe {
        let Some(record) = running(record) else { return OVER };
        record.set_message(code, &String::from_utf8_lossy(message.bytes()));
    }
    code
}

/// Allocates an output.
///
/// # Safety
/// - `record` meets what [`running`] requires.
/// - `first` is null or points to `rank` readable dimensions.
/// - The outputs belong to the caller.
unsafe extern "C" fn allocate(
    record: *mut CallRecord,
    output: u32,
    first: *const i64,
    rank: u32,
    memory: MemoryKind,
) -> Code {
    // SAFETY: the kernel passes its call's record and `rank` dimensions.
    unsafe {
        let Some(record) = running(record) else { return OVER };
        let result = dims(first, rank).and_then(|dims| {
            host_memory_only(memory)?;
            allocate_output(record, output, dims)
        });
        conclude(record, result)
    }
}

fn host_memory_only(kind: MemoryKind) -> Result<(), KernelError> {
    if kind == MemoryKind::ORDINARY || kind == MemoryKind::HOST {
        return Ok(());
    }
    let message = format!("the device has no memory of kind {}", kind.0);
    Err(KernelError::invalid_argument(message))
}

/// Gives an output the memory of an input, if possible.
///
/// # Safety
/// - The caller upholds what [`allocate`] requires.
unsafe extern "C" fn forward(
    record: *mut CallRecord,
    from: u32,
    to: u32,
    first: *const i64,
    rank: u32,
) -> u32 {
    // SAFETY: as in `allocate`.
    unsafe {
        let Some(record) = running(record) else { return 0 };
        let (Ok(dims), Ok(held), Ok((slot, target))) =
            (dims(first, rank), record.input(from), record.output(to))
        else {
            return 0;
        };
        let fits = held.slot.dtype == target.dtype.base()
            && bytes_of(target.dtype, dims).is_ok_and(|bytes| bytes == held.slot.bytes);
        // Inputs that the host computed are read-only.
        if !fits || held.arena != Some(ArenaName::Worker) {
            return 0;
        }
        let ask = Ask::Forward { input: from, output: to, dims: dims.to_vec() };
        let Ok(Some(place)) = record.line.ask(&ask) else { return 0 };
        let Ok(data) = record.line.arenas().at(place, held.slot.bytes) else { return 0 };
        show(slot, target, data.as_ptr(), dims);
        target.state = Outcome::There;
        1
    }
}

/// Returns an input with another shape as an output.
///
/// # Safety
/// - The caller upholds what [`allocate`] requires.
unsafe extern "C" fn share(
    record: *mut CallRecord,
    from: u32,
    to: u32,
    first: *const i64,
    rank: u32,
) -> Code {
    // SAFETY: as in `allocate`.
    unsafe {
        let Some(record) = running(record) else { return OVER };
        let result = dims(first, rank).and_then(|dims| {
            let held = record.input(from)?;
            let (slot, target) = record.output(to)?;
            let (found, bytes) = (held.slot.bytes, bytes_of(target.dtype, dims)?);
            if found != bytes {
                let dtype = target.dtype;
                return Err(KernelError::invalid_argument(format!(
                    "an input of {found} bytes cannot be returned as {dims:?} of {dtype}"
                )));
            }
            show(slot, target, held.slot.data, dims);
            target.state = Outcome::Shared(from);
            Ok(())
        });
        conclude(record, result)
    }
}

/// Allocates scratch memory for the call.
///
/// # Safety
/// - `record` meets what [`running`] requires.
/// - `result` is valid for writes.
unsafe extern "C" fn scratch(
    record: *mut CallRecord,
    bytes: u64,
    align: u64,
    kind: MemoryKind,
    result: *mut *mut c_void,
) -> Code {
    // SAFETY: as in `allocate`; `result` is valid for writes.
    unsafe {
        let Some(record) = running(record) else { return OVER };
        let lent = host_memory_only(kind).and_then(|()| {
            if align > HOST_ALIGNMENT as u64 || !align.is_power_of_two() {
                return Err(KernelError::invalid_argument(format!(
                    "scratch memory is aligned to at most {HOST_ALIGNMENT} bytes, asked for {align}"
                )));
            }
            let memory: Arc<dyn Memory> = HostMemory::shared().clone();
            let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
            Buffer::allocate(&memory, DType::UINT8, bytes, bytes)
        });
        let lent = lent.map(|buffer| {
            *result = buffer.data();
            record.scratch.lock().push(buffer);
        });
        conclude(record, lent)
    }
}

/// Registers a callback for cancellation.
///
/// # Safety
/// - `record` meets what [`running`] requires.
/// - `callback` may be called with `data` on any thread, until it is withdrawn or the call is over.
unsafe extern "C" fn on_cancel(
    record: *mut CallRecord,
    callback: CancelCallback,
    data: *mut c_void,
) -> u64 {
    // SAFETY: the kernel passes its call's record.
    match unsafe { running(record) } {
        Some(record) => record.cancellation.register(callback, data),
        None => NO_CALLBACK,
    }
}

/// Withdraws a callback for cancellation.
///
/// # Safety
/// - `record` meets what [`running`] requires.
unsafe extern "C" fn off_cancel(record: *mut CallRecord, token: u64) {
    // SAFETY: the kernel passes its call's record.
    if let Some(record) = unsafe { running(record) } {
        record.cancellation.withdraw(token);
    }
}

/// Completes an asynchronous call.
///
/// # Safety
/// - `record` meets what [`running`] requires.
unsafe extern "C" fn complete(record: *mut CallRecord, code: Code) {
    // SAFETY: the kernel passes its call's record.
    let Some(record) = (unsafe { running(record) }) else {
        tracing::error!(
            "a kernel completed a call that was over: completion is called exactly once"
        );
        return;
    };
    let mut completed = record.completed.lock();
    if completed.replace(code).is_some() {
        tracing::error!(node = %record.made.node, "a kernel completed its call twice");
    }
    // Notified under the lock: the waiting thread may drop the record as soon as it sees the code.
    record.told.notify_all();
}

/// Sets an output to a kept tensor.
///
/// # Safety
/// - `record` meets what [`running`] requires.
/// - `kept` came from the host's `keep` and has not been released.
/// - The outputs belong to the caller.
unsafe extern "C" fn output_kept(
    record: *mut CallRecord,
    to: u32,
    kept: *const KeptTensor,
) -> Code {
    // SAFETY: the kernel passes its call's record and a tensor that it keeps.
    unsafe {
        let Some(record) = running(record) else { return OVER };
        let tensor = &*kept.cast::<Tensor>();
        conclude(record, put_kept(record, to, tensor))
    }
}

fn put_kept(record: &Record, to: u32, tensor: &Tensor) -> Result<(), KernelError> {
    // SAFETY: the outputs belong to the computing thread, which is the caller.
    let (slot, target) = unsafe { record.output(to)? };
    if tensor.dtype() != target.dtype {
        return Err(KernelError::invalid_argument(format!(
            "output {to} is {}, the kept tensor {}",
            target.dtype,
            tensor.dtype()
        )));
    }
    if target.dtype == DType::STRING {
        show(slot, target, tensor.buffer().data(), tensor.shape().dims());
        target.state = Outcome::Strings { _owner: tensor.buffer().clone() };
        return Ok(());
    }
    allocate_output(record, to, tensor.shape().dims())?;
    // SAFETY: as above; the memory is newly allocated with this size.
    unsafe {
        let (slot, _) = record.output(to)?;
        let from = tensor.buffer().data().cast::<u8>();
        ptr::copy_nonoverlapping(from, slot.data.cast(), tensor.byte_len());
    }
    Ok(())
}

/// Runs a loop on the threads of the pool.
///
/// # Safety
/// - `record` meets what [`running`] requires.
/// - `body` may be called with `data`, on several threads at once, until this returns.
unsafe extern "C" fn parallel_for(
    record: *mut CallRecord,
    total: u64,
    cost_ns: f64,
    body: ParallelBody,
    data: *mut c_void,
) {
    // SAFETY: the kernel passes its call's record.
    let Some(record) = (unsafe { running(record) }) else { return };
    // SAFETY: the kernel passes a body that accepts its data, until `parallel_for` returns.
    let body = unsafe { LoopBody::new(body, data) };
    let stop = Stop::new(record.cancellation.flag(), record.deadline_ns);
    let run = |begin, end, worker| body.run(begin, end, worker);
    if !record.pool.parallel_for_until(total, cost_ns, &stop, &run) {
        record.cut.store(true, Ordering::Relaxed);
    }
}

/// The number of threads that run a loop.
///
/// # Safety
/// - `record` meets what [`running`] requires.
unsafe extern "C" fn parallelism(record: *mut CallRecord) -> u32 {
    // SAFETY: the kernel passes its call's record.
    let record = unsafe { running(record) };
    record.map_or(1, |record| record.pool.parallelism() as u32)
}

/// Adds a span to the trace.
///
/// # Safety
/// - `record` meets what [`running`] requires.
/// - `name` is readable.
unsafe extern "C" fn trace(record: *mut CallRecord, name: Str, begin_ns: u64, end_ns: u64) {
    // SAFETY: the kernel passes its call's record and a name that is valid during the call.
    unsafe {
        let Some(record) = running(record) else { return };
        let now = monotonic_ns();
        let (began, ended) = (now.saturating_sub(begin_ns), now.saturating_sub(end_ns));
        // A lost span is no reason to fail.
        let _ = record.line.ask(&Ask::Span { name: name.text().unwrap_or(""), began, ended });
    }
}

/// The current time of the process's clock, in nanoseconds.
///
/// # Safety
/// None: `unsafe` only for the type of the table's entry.
unsafe extern "C" fn now_ns() -> u64 {
    monotonic_ns()
}

/// The name of the call's node.
///
/// # Safety
/// - `record` meets what [`running`] requires.
unsafe extern "C" fn node(record: *mut CallRecord) -> Str {
    // SAFETY: the kernel passes its call's record.
    let record = unsafe { running(record) };
    record.map_or(Str::EMPTY, |record| Str::new(&record.made.node))
}
