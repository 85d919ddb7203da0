//! A call of an isolated kernel: the request, the services that it asks for, and what it wrote.

use super::{
    kernel::{RemoteState, unexpected},
    values::{self, Copies, cannot_cross, place_of},
    wire::{
        Answer, Ask, Computation, Data, Output, Place, Reply, Request, Value, Written, checked_dims,
    },
    worker_call::WorkerCall,
};
use crate::{call::monotonic_ns, fpu::FpState};
use std::{ptr, slice, sync::atomic::Ordering};
use tenon_abi::{
    Call, CallRecord, CallServices, Code, DType, KernelState, MemoryKind, NO_DEADLINE, Range, Slot,
    Str, StringElement, slot_flags,
};
use tenon_framework::{
    KernelError,
    author::guard,
    tensor::{Buffer, Memory, set_string},
};

/// `compute` of every isolated kernel.
///
/// # Safety
/// A state that [`super::kernel`] made, and a call of the host's.
pub(super) unsafe extern "C" fn compute(state: *mut KernelState, call: *const Call) -> Code {
    // SAFETY: the caller's promise.
    let (state, call) = unsafe { (&*state.cast::<RemoteState>(), &*call) };
    // SAFETY: a call of the host's has its services.
    let host = Host { call, services: unsafe { &*call.services } };
    match guard(|| run(state, &host)) {
        Ok(Ok(())) => Code::OK,
        Ok(Err(error)) => host.fail(&error),
        Err(panic) => host.fail(&KernelError::internal(format!("the host panicked: {panic}"))),
    }
}

/// The call as the host's executor made it.
struct Host<'a> {
    call: &'a Call,
    services: &'a CallServices,
}

/// An output that the worker writes elsewhere than where it is to go: where, and how many bytes.
type Detour = Option<(Buffer, usize)>;

fn run(state: &RemoteState, host: &Host<'_>) -> Result<(), KernelError> {
    let plugin = &*state.plugin;
    plugin.check_quarantine()?;
    let mut call = plugin.call(&state.name)?;
    // SAFETY: the step outlives its calls, and its flag the step.
    call.heed(unsafe { &*(*host.call.step).cancelled });
    let kernel = state.in_worker(&mut call)?;
    let mut copies = Copies::new();
    let mut detours: Vec<Detour> = Vec::new();
    let request = computation(state, host, (kernel, call.number), &mut copies, &mut detours)?;
    call.send_encoded(&Request::Compute(request))?;
    converse(state, host, &mut call, &mut detours)?;
    plugin.computed();
    Ok(())
}

fn broken(what: &str) -> KernelError {
    KernelError::internal(format!("the worker's message is out of order: {what}"))
}

/// Gives services until the kernel is done.
fn converse(
    state: &RemoteState,
    host: &Host<'_>,
    call: &mut WorkerCall<'_>,
    detours: &mut [Detour],
) -> Result<(), KernelError> {
    loop {
        let answer = match call.next()? {
            Reply::Done(written) => return host.take(&written, detours),
            Reply::Ask(Ask::Room { bytes }) => {
                call.give_room(bytes)?;
                continue;
            }
            Reply::Ask(Ask::Allocate { output, dims }) => {
                host.allocate(output, &dims).and_then(|()| host.placed(state, output, detours))
            }
            Reply::Ask(Ask::Forward { input, output, dims }) => {
                host.forward(state, input, output, &dims, detours)
            }
            Reply::Ask(Ask::Span { name, began, ended }) => {
                host.span(name, began, ended);
                Ok(None)
            }
            other => return Err(unexpected(&other)),
        };
        match answer {
            Ok(Some(place)) => call.answer(&Answer::At(place))?,
            Ok(None) => call.answer(&Answer::No)?,
            Err(error) => call.answer(&Answer::Refused(error.code.0, &error.message))?,
        }
    }
}

fn ranges(first: *const Range, count: u32) -> Vec<(u32, u32)> {
    if first.is_null() {
        return Vec::new();
    }
    // SAFETY: a call of the host's has as many ranges.
    let ranges = unsafe { slice::from_raw_parts(first, count as usize) };
    ranges.iter().map(|range| (range.start, range.len)).collect()
}

fn computation<'a>(
    state: &RemoteState,
    host: &Host<'a>,
    (kernel, number): (u64, u64),
    copies: &mut Copies,
    detours: &mut Vec<Detour>,
) -> Result<Computation<'a>, KernelError> {
    let call = host.call;
    // SAFETY: the step outlives its calls.
    let step = unsafe { &*call.step };
    let mut inputs = Vec::with_capacity(call.input_count as usize);
    for at in 0..call.input_count {
        let slot = host.input(at)?;
        inputs.push((input(state, slot, copies)?, slot.alias, slot.flags));
    }
    let mut outputs = Vec::with_capacity(call.output_count as usize);
    for at in 0..call.output_count {
        detours.push(None);
        let slot = host.output(at)?;
        let is_planned = slot.flags & slot_flags::PLANNED != 0 && !slot.data.is_null();
        let planned = match is_planned && !slot.dtype.needs_drop() {
            true => host.placed(state, at, detours)?,
            false => None,
        };
        // SAFETY: a planned output has its dimensions.
        let planned = planned.map(|place| (unsafe { slot.shape() }.to_vec(), place));
        let flags = if planned.is_some() { slot.flags } else { slot.flags & !slot_flags::PLANNED };
        outputs.push(Output { dtype: slot.dtype.0, flags, planned });
    }
    let deadline = step.deadline_ns;
    Ok(Computation {
        kernel,
        call: number,
        step: step.step_id,
        frame: call.frame,
        iteration: call.iteration,
        deadline_ns: (deadline != NO_DEADLINE).then(|| deadline.saturating_sub(monotonic_ns())),
        keep_denormals: !FpState::current().flushes(),
        // SAFETY: the flag lives as long as the step.
        cancelled: unsafe { &*step.cancelled }.load(Ordering::Relaxed) != 0,
        tracing: call.tracing != 0,
        inputs,
        outputs,
        input_args: ranges(call.input_args, call.input_arg_count),
        output_args: ranges(call.output_args, call.output_arg_count),
    })
}

/// An input as a message has it. The copy of a constant that no worker can read where it lies is kept.
fn input<'a>(
    state: &RemoteState,
    slot: &'a Slot,
    copies: &mut Copies,
) -> Result<Value<'a>, KernelError> {
    if slot.flags & slot_flags::CONSTANT == 0 {
        // SAFETY: a set slot, which lives as long as the call.
        return unsafe { values::value(&state.plugin, slot, copies) };
    }
    let address = slot.data.addr();
    let mut constants = state.constants.lock();
    if let Some((_, copy)) = constants.iter().find(|(of, _)| *of == address) {
        let there = Slot { data: copy.data(), ..*slot };
        let place = place_of(&state.plugin, &there).ok_or_else(|| broken("a copy has no place"))?;
        // SAFETY: a set slot has its dimensions.
        let dims = unsafe { slot.shape() }.to_vec();
        return Ok(Value { dtype: slot.dtype.0, dims, data: Data::At(place) });
    }
    let before = copies.len();
    // SAFETY: as above.
    let value = unsafe { values::value(&state.plugin, slot, copies)? };
    constants.extend(copies.drain(before..).map(|copy| (address, copy)));
    Ok(value)
}

impl<'a> Host<'a> {
    fn record(&self) -> *mut CallRecord {
        self.call.record
    }

    fn fail(&self, error: &KernelError) -> Code {
        let Some(fail) = self.services.fail else { return error.code };
        // SAFETY: the call's own record, and a text that lives through the call.
        unsafe { fail(self.record(), error.code, Str::new(&error.message)) }
    }

    fn input(&self, at: u32) -> Result<&'a Slot, KernelError> {
        if at >= self.call.input_count {
            return Err(broken(&format!("input {at} of {}", self.call.input_count)));
        }
        // SAFETY: as many pointers to filled slots, which live as long as the call.
        Ok(unsafe { &**self.call.inputs.add(at as usize) })
    }

    fn output(&self, at: u32) -> Result<Slot, KernelError> {
        if at >= self.call.output_count {
            return Err(broken(&format!("output {at} of {}", self.call.output_count)));
        }
        // SAFETY: as many slots, which belong to this call.
        Ok(unsafe { *self.call.outputs.add(at as usize) })
    }

    fn check(&self, code: Code) -> Result<(), KernelError> {
        // The service has kept a message, which comes after this one's words.
        if code.is_ok() { Ok(()) } else { Err(KernelError::new(code, "")) }
    }

    fn allocate(&self, output: u32, dims: &[i64]) -> Result<(), KernelError> {
        let dims = checked_dims(dims)?;
        self.output(output)?;
        let Some(allocate) = self.services.allocate else { return Err(broken("no `allocate`")) };
        // SAFETY: the call's own record and as many dimensions.
        let code = unsafe {
            let (first, rank) = (dims.as_ptr(), dims.len() as u32);
            allocate(self.record(), output, first, rank, MemoryKind::ORDINARY)
        };
        self.check(code)
    }

    /// Where the worker writes an output: where it lies, or where it can be copied from.
    fn placed(
        &self,
        state: &RemoteState,
        output: u32,
        detours: &mut [Detour],
    ) -> Result<Option<Place>, KernelError> {
        let slot = self.output(output)?;
        let memory = state.plugin.memory();
        let own = |data| Place {
            arena: super::wire::ArenaName::Worker,
            offset: memory.arena().offset_of(data).unwrap_or_default(),
        };
        if memory.arena().offset_of(slot.data).is_some() {
            detours[output as usize] = None;
            return Ok(Some(own(slot.data)));
        }
        let bytes = slot.bytes as usize;
        let memory: std::sync::Arc<dyn Memory> = memory.clone();
        let buffer = Buffer::allocate(&memory, DType::UINT8, bytes, bytes)?;
        let place = own(buffer.data());
        detours[output as usize] = Some((buffer, bytes));
        Ok(Some(place))
    }

    fn forward(
        &self,
        state: &RemoteState,
        input: u32,
        output: u32,
        dims: &[i64],
        detours: &mut [Detour],
    ) -> Result<Option<Place>, KernelError> {
        let dims = checked_dims(dims)?;
        let slot = self.input(input)?;
        self.output(output)?;
        // The worker may write its own arena only.
        let is_own = state.plugin.memory().arena().offset_of(slot.data).is_some();
        let Some(forward) = self.services.forward.filter(|_| is_own) else { return Ok(None) };
        // SAFETY: the call's own record and as many dimensions.
        let took = unsafe {
            let (first, rank) = (dims.as_ptr(), dims.len() as u32);
            forward(self.record(), input, output, first, rank)
        };
        if took == 0 { Ok(None) } else { self.placed(state, output, detours) }
    }

    fn span(&self, name: &str, began: u64, ended: u64) {
        let now = monotonic_ns();
        let Some(trace) = self.services.trace else { return };
        let (begin, end) = (now.saturating_sub(began), now.saturating_sub(ended));
        // SAFETY: the call's own record, and a name that lives through the call.
        unsafe { trace(self.record(), Str::new(name), begin, end) }
    }

    /// Takes what the kernel wrote.
    fn take(&self, written: &[Written<'_>], detours: &[Detour]) -> Result<(), KernelError> {
        if written.len() != self.call.output_count as usize {
            return Err(broken(&format!(
                "{} outputs of {}",
                written.len(),
                self.call.output_count
            )));
        }
        for (at, written) in written.iter().enumerate() {
            match written {
                Written::Unset => {}
                Written::There => self.take_there(at as u32, &detours[at])?,
                Written::Shared { input, dims } => self.share(*input, at as u32, dims)?,
                Written::Strings { dims, items } => self.take_strings(at as u32, dims, items)?,
            }
        }
        Ok(())
    }

    fn take_there(&self, output: u32, detour: &Detour) -> Result<(), KernelError> {
        let slot = self.output(output)?;
        if slot.data.is_null() {
            return Err(broken(&format!("output {output} has no memory")));
        }
        let Some((buffer, bytes)) = detour else { return Ok(()) };
        if *bytes != slot.bytes as usize {
            return Err(broken(&format!("output {output} has {} bytes, not {bytes}", slot.bytes)));
        }
        // SAFETY: both have as many bytes, and do not overlap.
        unsafe {
            let (from, to) = (buffer.data().cast::<u8>(), slot.data.cast::<u8>());
            ptr::copy_nonoverlapping(from, to, *bytes);
        }
        Ok(())
    }

    fn share(&self, input: u32, output: u32, dims: &[i64]) -> Result<(), KernelError> {
        let dims = checked_dims(dims)?;
        self.input(input)?;
        let Some(share) = self.services.share else { return Err(broken("no `share`")) };
        // SAFETY: the call's own record and as many dimensions.
        let code = unsafe { share(self.record(), input, output, dims.as_ptr(), dims.len() as u32) };
        self.check(code)
    }

    fn take_strings(&self, output: u32, dims: &[i64], items: &[&[u8]]) -> Result<(), KernelError> {
        self.allocate(output, dims)?;
        let slot = self.output(output)?;
        if slot.dtype != DType::STRING || slot.elements != items.len() as u64 {
            return Err(broken(&format!("{} strings for output {output}", items.len())));
        }
        let first = slot.data.cast::<StringElement>();
        for (at, item) in items.iter().enumerate() {
            // SAFETY: as many elements, fresh and so empty.
            let code = unsafe { set_string(first.add(at), item) };
            if !code.is_ok() {
                return Err(KernelError::new(code, cannot_cross("a string").message));
            }
        }
        Ok(())
    }
}
