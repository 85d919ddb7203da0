//! A call of a kernel, in the worker.
//!
//! The record behind the call's pointer belongs to the computing thread; what other threads may do
//! to it (complete the call, request services) is protected by locks. If a kernel completes its
//! call later, the channel's thread waits until it does.

use super::{
    serve::Line,
    services::WORKER_SERVICES,
    states::Made,
    values::{Held, held},
};
use crate::wire::{Ask, Computation, Output, Written, checked_dims};
use std::{
    cell::UnsafeCell,
    ptr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
use tenon_abi::{
    Call, CallRecord, Code, DType, MAX_RANK, MemoryKind, NO_DEADLINE, Range, Slot, Step, Str,
    StringElement, kernel_flags, slot_flags,
};
use tenon_framework::{
    KernelError,
    sync::{Condvar, Mutex},
    tensor::Buffer,
};
use tenon_host::{
    call::{Cancellation, monotonic_ns},
    pool::ThreadPool,
};

/// The state of an output.
pub(super) enum Outcome {
    Unset,
    /// In the worker's arena.
    There,
    /// The value of an input.
    Shared(u32),
    /// Strings, in this process's own memory.
    Strings {
        _owner: Buffer,
    },
}

/// An output; the slot that the kernel sees is in a separate array.
pub(super) struct Target {
    pub dtype: DType,
    pub dims: [i64; MAX_RANK],
    pub state: Outcome,
}

/// The record of a call.
pub(super) struct Record {
    pub line: Arc<Line>,
    pub made: Arc<Made>,
    pub pool: Arc<ThreadPool>,
    pub cancellation: Arc<Cancellation>,
    /// On this process's clock.
    pub deadline_ns: u64,
    /// Whether a loop of the call was cut short: its outputs are incomplete, even if the kernel
    /// reports success.
    pub cut: AtomicBool,
    pub inputs: Vec<Held>,
    pub slots: UnsafeCell<Vec<Slot>>,
    pub targets: UnsafeCell<Vec<Target>>,
    pub message: Mutex<(Code, String)>,
    pub scratch: Mutex<Vec<Buffer>>,
    pub completed: Mutex<Option<Code>>,
    pub told: Condvar,
    pub over: AtomicBool,
}

// SAFETY: outputs belong to the computing thread, until it is done; locks protect everything
// shared.
unsafe impl Send for Record {}
// SAFETY: as for `Send`.
unsafe impl Sync for Record {}

impl Record {
    /// The record behind a call's pointer.
    ///
    /// # Safety
    /// - `record` is that of a running call.
    pub unsafe fn of<'r>(record: *mut CallRecord) -> &'r Record {
        // SAFETY: `record` is that of a call that runs, as the caller guarantees, and so a
        // `Record`.
        unsafe { &*record.cast::<Record>() }
    }

    /// Slot and target of an output.
    ///
    /// # Safety
    /// - The outputs belong to the caller.
    #[allow(clippy::mut_from_ref, reason = "during a call its outputs belong to the caller")]
    pub unsafe fn output(&self, at: u32) -> Result<(&mut Slot, &mut Target), KernelError> {
        // SAFETY: the caller guarantees that the outputs are its own, so that nothing else uses
        // their slots and targets.
        let (slots, targets) = unsafe { (&mut *self.slots.get(), &mut *self.targets.get()) };
        let count = targets.len();
        slots.get_mut(at as usize).zip(targets.get_mut(at as usize)).ok_or_else(|| {
            KernelError::internal(format!("output {at} does not exist: the node has {count}"))
        })
    }

    /// An input.
    pub fn input(&self, at: u32) -> Result<&Held, KernelError> {
        let count = self.inputs.len();
        self.inputs.get(at as usize).ok_or_else(|| {
            KernelError::internal(format!("input {at} does not exist: the node has {count}"))
        })
    }

    /// Stores the message of a failing call: the kernel's own message takes precedence over that of
    /// a service that it passes on.
    pub fn set_message(&self, code: Code, message: &str) {
        let mut kept = self.message.lock();
        let text = match (kept.0 == code && !kept.1.is_empty(), message.is_empty()) {
            (true, true) => std::mem::take(&mut kept.1),
            (true, false) => format!("{message}: {}", kept.1),
            (false, _) => message.to_owned(),
        };
        *kept = (code, text);
    }

    fn error(&self, code: Code) -> KernelError {
        let message = std::mem::take(&mut self.message.lock().1);
        let message =
            if message.is_empty() { "the kernel gave no message".to_owned() } else { message };
        KernelError::new(code, message)
    }

    /// What the kernel did to the outputs.
    fn written(&self) -> Result<Vec<Written<'_>>, KernelError> {
        // SAFETY: the kernel is done, so nothing else uses the outputs.
        let (slots, targets) = unsafe { (&*self.slots.get(), &*self.targets.get()) };
        let one = |(slot, target): (&Slot, &Target)| {
            let dims = || target.dims[..slot.rank as usize].to_vec();
            match &target.state {
                Outcome::Unset => Written::Unset,
                Outcome::There => Written::There,
                Outcome::Shared(input) => Written::Shared { input: *input, dims: dims() },
                Outcome::Strings { .. } => {
                    // SAFETY: the kernel has written all of its strings.
                    let items = unsafe { strings(slot) };
                    Written::Strings { dims: dims(), items }
                }
            }
        };
        Ok(slots.iter().zip(targets).map(one).collect())
    }
}

/// # Safety
/// - The slot shows initialised strings.
/// - They are readable for `'a`.
unsafe fn strings<'a>(slot: &Slot) -> Vec<&'a [u8]> {
    let first = slot.data.cast::<StringElement>();
    // SAFETY: the slot shows `elements` initialised strings, as the caller guarantees.
    let one = |at| unsafe {
        let element = &*first.add(at);
        Str { ptr: element.data, len: element.len as usize }.bytes()
    };
    (0..slot.elements as usize).map(one).collect()
}

/// Fills a slot that shows `data` under the target's first `rank` dimensions.
pub(super) fn show(
    slot: &mut Slot,
    target: &mut Target,
    data: *mut std::ffi::c_void,
    dims: &[i64],
) {
    target.dims[..dims.len()].copy_from_slice(dims);
    slot.data = data;
    slot.dims = target.dims.as_ptr();
    slot.rank = dims.len() as u32;
    slot.elements = dims.iter().product::<i64>() as u64;
    slot.bytes = slot.elements * u64::from(target.dtype.bits() / 8);
    slot.dtype = target.dtype.base();
    slot.memory = MemoryKind::HOST;
    slot.flags |= slot_flags::SET;
}

/// What a call runs on.
pub(super) struct Site {
    pub line: Arc<Line>,
    pub made: Arc<Made>,
    pub pool: Arc<ThreadPool>,
    pub cancellation: Arc<Cancellation>,
}

/// Computes, waits until the kernel is done, and calls `reply` with what it wrote.
pub(super) fn compute(
    site: Site,
    sent: &Computation<'_>,
    reply: impl FnOnce(Result<Vec<Written<'_>>, KernelError>),
) {
    let record = match record(site, sent) {
        Ok(record) => record,
        Err(error) => return reply(Err(error)),
    };
    let step = Step {
        struct_size: size_of::<Step>() as u32,
        reserved: 0,
        step_id: sent.step,
        deadline_ns: record.deadline_ns,
        cancelled: record.cancellation.flag(),
        ext: ptr::null(),
    };
    let result = run(&record, &step, sent);
    reply(result.and_then(|()| record.written()));
    record.over.store(true, Ordering::Release);
    let scratch = std::mem::take(&mut *record.scratch.lock());
    // Without the lock: memory has its own locks.
    drop(scratch);
    // If a kernel completes its call twice, it finds a record that is over, for as long as the
    // record is retained.
    if record.made.table.flags & kernel_flags::ASYNC != 0 {
        let line = Arc::clone(&record.line);
        line.retire(record);
    }
}

fn record(site: Site, sent: &Computation<'_>) -> Result<Box<Record>, KernelError> {
    let Site { line, made, pool, cancellation } = site;
    let inputs = sent.inputs.iter();
    let inputs = inputs.map(|(value, alias, flags)| held(line.arenas(), value, *alias, *flags));
    let inputs = inputs.collect::<Result<_, _>>()?;
    let record = Box::new(Record {
        line,
        made,
        pool,
        cancellation,
        deadline_ns: sent
            .deadline_ns
            .map_or(NO_DEADLINE, |left| monotonic_ns().saturating_add(left)),
        cut: AtomicBool::new(false),
        inputs,
        slots: UnsafeCell::new(vec![Slot::EMPTY; sent.outputs.len()]),
        targets: UnsafeCell::new(sent.outputs.iter().map(target).collect()),
        message: Mutex::new((Code::OK, String::new())),
        scratch: Mutex::default(),
        completed: Mutex::default(),
        told: Condvar::new(),
        over: AtomicBool::new(false),
    });
    for (at, output) in sent.outputs.iter().enumerate() {
        // SAFETY: nothing else has the record yet.
        let (slot, target) = unsafe { record.output(at as u32)? };
        slot.flags = output.flags & !slot_flags::REF;
        slot.dtype = target.dtype.base();
        if let Some((dims, place)) = &output.planned {
            let dims = checked_dims(dims)?;
            let bytes = bytes_of(target.dtype, dims)?;
            let data = record.line.arenas().at(*place, bytes)?.as_ptr();
            show(slot, target, data, dims);
            target.state = Outcome::There;
        }
    }
    Ok(record)
}

fn target(output: &Output) -> Target {
    Target { dtype: DType(output.dtype), dims: [0; MAX_RANK], state: Outcome::Unset }
}

/// Bytes of a tensor.
pub(super) fn bytes_of(dtype: DType, dims: &[i64]) -> Result<u64, KernelError> {
    let size = dtype.size().ok_or_else(|| {
        KernelError::unimplemented(format!("tensors of {dtype} are not supported"))
    })?;
    let bytes = dims.iter().try_fold(size as i64, |all, &dim| all.checked_mul(dim));
    bytes.map(|bytes| bytes as u64).ok_or_else(|| {
        KernelError::invalid_argument(format!("{dims:?} of {dtype} exceeds 2^63 bytes"))
    })
}

fn run(record: &Record, step: &Step, sent: &Computation<'_>) -> Result<(), KernelError> {
    let made = &record.made;
    let ranges = |list: &[(u32, u32)]| -> Vec<Range> {
        list.iter().map(|&(start, len)| Range { start, len }).collect()
    };
    let (input_args, output_args) = (ranges(&sent.input_args), ranges(&sent.output_args));
    let inputs: Vec<*const Slot> = record.inputs.iter().map(|held| &raw const held.slot).collect();
    let call = Call {
        struct_size: size_of::<Call>() as u32,
        input_count: inputs.len() as u32,
        output_count: sent.outputs.len() as u32,
        tracing: u32::from(sent.tracing),
        inputs: inputs.as_ptr(),
        // SAFETY: the array does not move, and belongs to the kernel from here on.
        outputs: unsafe { (*record.slots.get()).as_mut_ptr() },
        input_args: input_args.as_ptr(),
        output_args: output_args.as_ptr(),
        input_arg_count: input_args.len() as u32,
        output_arg_count: output_args.len() as u32,
        record: ptr::from_ref(record).cast_mut().cast(),
        services: &WORKER_SERVICES,
        step,
        device: ptr::null_mut(),
        device_state: ptr::null_mut(),
        stream: ptr::null_mut(),
        frame: sent.frame,
        iteration: sent.iteration,
        ext: ptr::null(),
    };
    let compute = made.table.compute.ok_or_else(|| KernelError::internal("no `compute`"))?;
    // SAFETY: the kernel's own entry and state, and a filled call that is valid until it is over.
    let mut code = unsafe { compute(made.state, &call) };
    if code == Code::PENDING {
        if made.table.flags & kernel_flags::ASYNC == 0 {
            let message = "the kernel returned PENDING: its table lacks the flag ASYNC";
            return Err(KernelError::internal(message));
        }
        let mut completed = record.completed.lock();
        code = loop {
            match *completed {
                Some(code) => break code,
                None => completed = record.told.wait(completed),
            }
        };
    }
    if !code.is_ok() {
        return Err(record.error(code));
    }
    if record.cut.load(Ordering::Relaxed) {
        let message = "the step was cancelled, or its deadline passed, while the kernel computed";
        return Err(KernelError::new(Code::CANCELLED, message));
    }
    Ok(())
}

/// Requests memory for an output from the host.
pub(super) fn allocate(record: &Record, at: u32, dims: &[i64]) -> Result<(), KernelError> {
    // SAFETY: the outputs belong to the computing thread, which is the caller.
    let (slot, target) = unsafe { record.output(at)? };
    let bytes = bytes_of(target.dtype, dims)?;
    if target.dtype == DType::STRING {
        let elements = dims.iter().product::<i64>() as usize;
        let memory: Arc<dyn tenon_framework::tensor::Memory> =
            tenon_host::memory::HostMemory::shared().clone();
        let buffer = Buffer::allocate(&memory, DType::STRING, elements, bytes as usize)?;
        show(slot, target, buffer.data(), dims);
        target.state = Outcome::Strings { _owner: buffer };
        return Ok(());
    }
    let place = record.line.ask_place(&Ask::Allocate { output: at, dims: dims.to_vec() })?;
    let data = record.line.arenas().at(place, bytes)?.as_ptr();
    show(slot, target, data, dims);
    target.state = Outcome::There;
    Ok(())
}
