//! The services of a call.

use super::{
    frame::CallFrame,
    value::{KEEP_BYTES, Value, fill_slot, is_handle},
};
use crate::{clock::monotonic_ns, devices::device_of};
use std::{ffi::c_void, ptr::NonNull, slice, sync::Arc};
use tenon_abi::{
    CallRecord, CallServices, CancelCallback, Code, DType, KeptTensor, MemoryKind, ParallelBody,
    Slot, Str, slot_flags,
};
use tenon_framework::{
    KernelError, Shape, Tensor,
    device::base::{LocalDevice, StreamId},
    tensor::{Buffer, Memory},
};

/// The code of a service for an asynchronous call that is over.
pub(crate) const OVER: Code = Code::FAILED_PRECONDITION;

/// The table to which every call points.
pub static CALL_SERVICES: CallServices = CallServices {
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

/// # Safety
/// - `record` meets what [`CallFrame::from_raw`] requires.
/// - `message` is readable.
unsafe extern "C" fn fail(record: *mut CallRecord, code: Code, message: Str) -> Code {
    let code = if code.is_ok() { Code::UNKNOWN } else { code };
    // SAFETY: the kernel passes its call's record and a message that is valid during the call.
    unsafe {
        let Some(frame) = CallFrame::from_raw(record) else { return OVER };
        frame.set_message(code, message.bytes());
    }
    code
}

/// Ends a service: stores the message of an error.
fn conclude(frame: &CallFrame, result: Result<(), KernelError>) -> Code {
    match result {
        Ok(()) => Code::OK,
        Err(error) => {
            frame.set_message(error.code, error.message.as_bytes());
            error.code
        }
    }
}

/// # Safety
/// - `first` is null or points to `rank` readable dimensions.
unsafe fn dims(first: *const i64, rank: u32) -> Result<Shape, KernelError> {
    let dims: &[i64] = if first.is_null() || rank == 0 {
        &[]
    } else {
        // SAFETY: `first` is not null, and the caller guarantees `rank` readable dimensions there.
        unsafe { slice::from_raw_parts(first, rank as usize) }
    };
    Shape::new(dims).map_err(|e| KernelError::new(e.code(), e.to_string()))
}

/// Slot and value of an output.
///
/// # Safety
/// - The call runs.
/// - Its outputs belong to the caller.
#[allow(clippy::mut_from_ref, reason = "during a call its outputs belong to the caller")]
pub(crate) unsafe fn output(
    frame: &CallFrame,
    index: u32,
) -> Result<(&mut Slot, &mut Value), KernelError> {
    if index >= frame.call().output_count {
        return Err(KernelError::internal(format!(
            "output {index} does not exist: the node has {}",
            frame.call().output_count
        )));
    }
    // SAFETY: the call has `output_count` slots and values, and the caller guarantees that they
    // belong to it.
    unsafe {
        Ok((
            &mut *frame.call().outputs.add(index as usize),
            &mut *frame.outputs.add(index as usize),
        ))
    }
}

/// Slot of an input.
///
/// # Safety
/// - The call runs.
pub(crate) unsafe fn input(frame: &CallFrame, index: u32) -> Result<&Slot, KernelError> {
    if index >= frame.call().input_count {
        return Err(KernelError::internal(format!(
            "input {index} does not exist: the node has {}",
            frame.call().input_count
        )));
    }
    // SAFETY: the call has `input_count` pointers to filled slots.
    Ok(unsafe { &**frame.call().inputs.add(index as usize) })
}

/// Memory for what a call uses while it runs. On a stream, enqueued work may use it too, so it is
/// freed in stream order.
fn call_memory(frame: &CallFrame, kind: MemoryKind) -> Result<Arc<dyn Memory>, KernelError> {
    if let Some(stream) = NonNull::new(frame.call().stream)
        && kind != MemoryKind::HOST
        // SAFETY: null, or the record of the node's device, which outlives every plan over it.
        && let Some(device) = unsafe { device_of(frame.node().device) }
    {
        // SAFETY: the call's own stream, which is the device's and lives as long as the step's
        // state.
        let stream = unsafe { StreamId::new(device.number(), stream) };
        if let Some(memory) = device.stream_memory(kind, stream) {
            return Ok(memory);
        }
    }
    other_memory(frame, kind)
}

/// Memory of a kind other than the ordinary one: the host's, or any kind that the device has.
#[cold]
fn other_memory(frame: &CallFrame, kind: MemoryKind) -> Result<Arc<dyn Memory>, KernelError> {
    let node = frame.node();
    let known = [&node.host_memory, &node.device_memory];
    if let Some(memory) = known.into_iter().find(|memory| memory.kind() == kind) {
        return Ok(Arc::clone(memory));
    }
    // SAFETY: null, or the record of the node's device, which outlives every plan over it.
    let device = unsafe { device_of(node.device) };
    device.and_then(|device| device.memory(kind)).ok_or_else(|| {
        KernelError::invalid_argument(format!("the device has no memory of kind {}", kind.0))
    })
}

fn allocate_output(
    frame: &CallFrame,
    (slot, value): (&mut Slot, &mut Value),
    dtype: tenon_abi::DType,
    memory: &Arc<dyn Memory>,
    shape: &Shape,
) -> Result<(), KernelError> {
    let size = dtype.size().ok_or_else(|| {
        KernelError::unimplemented(format!("tensors of {dtype} are not supported"))
    })?;
    let bytes = shape.elements().checked_mul(size).ok_or_else(|| {
        KernelError::invalid_argument(format!("{shape} of {dtype} exceeds 2^63 bytes"))
    })?;
    value.dims[..shape.rank()].copy_from_slice(shape.dims());
    // What a handle leads to would live as long as a buffer that stays; and the last reader may
    // take over a buffer with an owner.
    let stays = bytes <= KEEP_BYTES && !is_handle(dtype);
    // The ABI guarantees that owning elements are empty in a new buffer; those of a kept one
    // would be overwritten, and leak.
    let reusable = !dtype.needs_drop()
        && value.kept.as_ref().is_some_and(|kept| {
            kept.capacity() >= bytes && kept.kind() == memory.kind() && kept.is_unique()
        });
    if stays {
        if !reusable {
            let fresh = Buffer::allocate(memory, dtype, shape.elements(), bytes)?;
            // In a loop, work that the previous call enqueued may still use the buffer that is now
            // too small.
            frame.env().keep_for(frame.call().stream, value.kept.replace(fresh));
        }
    } else {
        value.owner = Some(Buffer::allocate(memory, dtype, shape.elements(), bytes)?);
    }
    let held = if stays { value.kept.as_ref() } else { value.owner.as_ref() };
    if let Some(buffer) = held {
        let rank = shape.rank();
        let dims: &[i64] = &value.dims[..rank];
        fill_slot(slot, buffer, dtype, dims, slot_flags::SET);
    }
    Ok(())
}

/// # Safety
/// - `record` meets what [`CallFrame::from_raw`] requires, and the outputs belong to the caller.
/// - `first` is null or points to `rank` readable dimensions.
unsafe extern "C" fn allocate(
    record: *mut CallRecord,
    index: u32,
    first: *const i64,
    rank: u32,
    kind: MemoryKind,
) -> Code {
    // SAFETY: the kernel passes its call's record and `rank` dimensions.
    unsafe {
        let Some(frame) = CallFrame::from_raw(record) else { return OVER };
        let result = dims(first, rank).and_then(|shape| {
            let place = output(frame, index)?;
            let spec = &frame.node().outputs[index as usize];
            if kind == MemoryKind::ORDINARY || kind == spec.memory.kind() {
                return allocate_output(frame, place, spec.dtype, &spec.memory, &shape);
            }
            allocate_output(frame, place, spec.dtype, &other_memory(frame, kind)?, &shape)
        });
        conclude(frame, result)
    }
}

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
        let Some(frame) = CallFrame::from_raw(record) else { return 0 };
        let (Ok(shape), Ok(source), Ok((slot, value))) =
            (dims(first, rank), input(frame, from), output(frame, to))
        else {
            return 0;
        };
        let spec = &frame.node().outputs[to as usize];
        let held = frame.inputs[from as usize];
        let fits = source.dtype == spec.dtype.base()
            && source.memory == spec.memory.kind()
            && source.elements == shape.elements() as u64;
        if !fits || held.is_null() || !(*held).is_last_holder() {
            return 0;
        }
        let Some(buffer) = (*held).owner.take() else { return 0 };
        value.dims[..shape.rank()].copy_from_slice(shape.dims());
        fill_slot(slot, &buffer, spec.dtype, &value.dims[..shape.rank()], slot_flags::SET);
        value.owner = Some(buffer);
        1
    }
}

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
        let Some(frame) = CallFrame::from_raw(record) else { return OVER };
        let result = dims(first, rank).and_then(|shape| {
            let source = input(frame, from)?;
            let (slot, value) = output(frame, to)?;
            let dtype = frame.node().outputs[to as usize].dtype;
            let size = u64::from(dtype.bits() / 8);
            check_kinds(source, dtype)?;
            if (shape.elements() as u64).checked_mul(size) != Some(source.bytes) {
                return Err(KernelError::invalid_argument(format!(
                    "an input of {} bytes cannot be returned as {shape} of {dtype}",
                    source.bytes
                )));
            }
            let buffer = Buffer::clone_raw(source.buffer).ok_or_else(|| {
                KernelError::internal(format!("input {from} has no buffer to return"))
            })?;
            let alias = source.alias;
            value.dims[..shape.rank()].copy_from_slice(shape.dims());
            fill_slot(slot, &buffer, dtype, &value.dims[..shape.rank()], slot_flags::SET);
            slot.alias = alias;
            value.owner = Some(buffer);
            Ok(())
        });
        conclude(frame, result)
    }
}

/// Checks that an output may have an input's elements: texts and handles contain addresses of the
/// host, and only the bytes 0 and 1 are bools.
fn check_kinds(source: &Slot, to: DType) -> Result<(), KernelError> {
    let owns = source.dtype.needs_drop() || to.needs_drop();
    if source.dtype != to.base() && (owns || to.base() == DType::BOOL) {
        let from = source.dtype;
        let message = format!("an input of {from} cannot be returned as {to}: copy its elements");
        return Err(KernelError::invalid_argument(message));
    }
    Ok(())
}

/// # Safety
/// - `record` meets what [`CallFrame::from_raw`] requires.
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
        let Some(frame) = CallFrame::from_raw(record) else { return OVER };
        let lent = lend_scratch(frame, bytes, align, kind);
        conclude(frame, lent.map(|data| *result = data))
    }
}

fn lend_scratch(
    frame: &CallFrame,
    bytes: u64,
    align: u64,
    kind: MemoryKind,
) -> Result<*mut c_void, KernelError> {
    if align > tenon_abi::HOST_ALIGNMENT as u64 || !align.is_power_of_two() {
        return Err(KernelError::invalid_argument(format!(
            "scratch memory is aligned to at most {} bytes, asked for {align}",
            tenon_abi::HOST_ALIGNMENT
        )));
    }
    let kind = if kind == MemoryKind::ORDINARY { MemoryKind::HOST } else { kind };
    let memory = call_memory(frame, kind)?;
    let buffer =
        Buffer::allocate(&memory, tenon_abi::DType::UINT8, bytes as usize, bytes as usize)?;
    let data = buffer.data();
    // SAFETY: the call belongs to this thread (see `CallFrame`).
    unsafe { (*frame.scratch.get()).push(buffer) };
    Ok(data)
}

/// # Safety
/// - `record` meets what [`CallFrame::from_raw`] requires.
/// - `callback` may run with `data` on any thread until it is withdrawn or the step ends.
unsafe extern "C" fn on_cancel(
    record: *mut CallRecord,
    callback: CancelCallback,
    data: *mut c_void,
) -> u64 {
    // SAFETY: the kernel passes its call's record.
    let Some(frame) = (unsafe { CallFrame::from_raw(record) }) else { return 0 };
    frame.env().cancellation.register(callback, data)
}

/// # Safety
/// - `record` meets what [`CallFrame::from_raw`] requires.
unsafe extern "C" fn off_cancel(record: *mut CallRecord, token: u64) {
    // SAFETY: the kernel passes its call's record.
    if let Some(frame) = unsafe { CallFrame::from_raw(record) } {
        frame.env().cancellation.withdraw(token);
    }
}

/// # Safety
/// - `record` meets what [`CallFrame::from_raw`] requires.
unsafe extern "C" fn complete(record: *mut CallRecord, code: Code) {
    // SAFETY: the kernel passes its call's record.
    unsafe { CallFrame::complete(record, code) };
}

/// The body of a kernel's `parallel_for`, for the pool's threads.
pub struct LoopBody {
    body: ParallelBody,
    data: *mut c_void,
}

// SAFETY: the contract of `parallel_for` says that blocks run on any thread, at the same time.
unsafe impl Sync for LoopBody {}

impl LoopBody {
    /// A body and its data, valid as long as the call of `parallel_for` that passes them.
    ///
    /// # Safety
    /// - `body` may be called with `data`, from any thread, until the value is dropped.
    pub unsafe fn new(body: ParallelBody, data: *mut c_void) -> LoopBody {
        LoopBody { body, data }
    }

    /// Runs a block.
    pub fn run(&self, begin: u64, end: u64, worker: u32) {
        if let Some(entry) = self.body.run {
            // SAFETY: `parallel_for` has not returned, so that `data` is valid.
            unsafe { entry(self.data, begin, end, worker) }
        }
    }
}

/// # Safety
/// - `record` meets what [`CallFrame::from_raw`] requires.
/// - `body` may run with `data`, on several threads at once, until this returns.
unsafe extern "C" fn parallel_for(
    record: *mut CallRecord,
    total: u64,
    cost_ns: f64,
    body: ParallelBody,
    data: *mut c_void,
) {
    // SAFETY: the kernel passes its call's record.
    let Some(frame) = (unsafe { CallFrame::from_raw(record) }) else { return };
    // SAFETY: the kernel passes a body that accepts its data, until `parallel_for` returns.
    let body = unsafe { LoopBody::new(body, data) };
    let env = frame.env();
    let run = |begin, end, worker| body.run(begin, end, worker);
    if frame.holds_variables() {
        env.pool.parallel_for(total, cost_ns, &run);
    } else if !env.pool.parallel_for_until(total, cost_ns, &env.stop(), &run) {
        frame.set_cut();
    }
}

/// # Safety
/// - `record` meets what [`CallFrame::from_raw`] requires.
unsafe extern "C" fn parallelism(record: *mut CallRecord) -> u32 {
    // SAFETY: the kernel passes its call's record.
    let frame = unsafe { CallFrame::from_raw(record) };
    frame.map_or(1, |frame| frame.env().pool.parallelism() as u32)
}

/// # Safety
/// - `record` meets what [`CallFrame::from_raw`] requires, and the outputs belong to the caller.
/// - `kept` is a kept tensor that has not been released.
unsafe extern "C" fn output_kept(
    record: *mut CallRecord,
    to: u32,
    kept: *const KeptTensor,
) -> Code {
    // SAFETY: the kernel passes its call's record and a tensor that it keeps.
    unsafe {
        let Some(frame) = CallFrame::from_raw(record) else { return OVER };
        let tensor = &*kept.cast::<Tensor>();
        let result = output(frame, to).and_then(|(slot, value)| {
            let expected = frame.node().outputs[to as usize].dtype;
            if tensor.dtype() != expected {
                return Err(KernelError::invalid_argument(format!(
                    "output {to} is {expected}, the kept tensor {}",
                    tensor.dtype()
                )));
            }
            value.hold(slot, tensor);
            Ok(())
        });
        conclude(frame, result)
    }
}

/// # Safety
/// - `record` meets what [`CallFrame::from_raw`] requires.
/// - `name` is readable.
unsafe extern "C" fn trace(record: *mut CallRecord, name: Str, begin_ns: u64, end_ns: u64) {
    // SAFETY: the kernel passes its call's record and a name that is valid during the call.
    unsafe {
        let Some(frame) = CallFrame::from_raw(record) else { return };
        if let Some(sink) = &frame.env().trace {
            sink.span(&frame.node().name, name.text().unwrap_or(""), begin_ns, end_ns);
        }
    }
}

/// # Safety
/// None: `unsafe` only for the type of the table's entry.
unsafe extern "C" fn now_ns() -> u64 {
    monotonic_ns()
}

/// # Safety
/// - `record` meets what [`CallFrame::from_raw`] requires.
unsafe extern "C" fn node(record: *mut CallRecord) -> Str {
    // SAFETY: the kernel passes its call's record.
    let frame = unsafe { CallFrame::from_raw(record) };
    frame.map_or(Str::EMPTY, |frame| Str::new(&frame.node().name))
}
