//! A call of an isolated kernel: its request, and the conversation in [`super::outputs`] until the
//! kernel is done.

use super::{
    kernel::RemoteState,
    outputs::{Host, Trouble},
    values::{self, Copies, place_of},
    wire::{Computation, Data, Output, Request, Value},
};
use std::{slice, sync::atomic::Ordering};
use tenon_abi::{Call, Code, KernelState, NO_DEADLINE, Range, Slot, slot_flags};
use tenon_framework::{KernelError, plugin::guard};
use tenon_host::{call::monotonic_ns, fpu::FpState};

/// `compute` of every isolated kernel.
///
/// # Safety
/// - `state` came from [`super::kernel`].
/// - `call` is a call of the host, valid until this returns.
pub(super) unsafe extern "C" fn compute(state: *mut KernelState, call: *const Call) -> Code {
    // SAFETY: the host gives a state that `Kernel` made and a filled call of this kernel; both live
    // until it returns.
    let (state, call) = unsafe { (&*state.cast::<RemoteState>(), &*call) };
    // SAFETY: as above; the call is this kernel's until it returns.
    let mut host = unsafe { Host::new(call, state.plugin.memory()) };
    match guard(|| run(state, &mut host)) {
        Ok(Ok(())) => Code::OK,
        Ok(Err(error)) => host.fail(&error),
        Err(panic) => host.fail(&KernelError::internal(format!("the host panicked: {panic}"))),
    }
}

fn run(state: &RemoteState, host: &mut Host<'_>) -> Result<(), KernelError> {
    let plugin = &state.plugin;
    plugin.check_quarantine()?;
    // SAFETY: the step outlives its calls, and its flag the step.
    let (step, cancelled) = unsafe { (&*host.call().step, &*(*host.call().step).cancelled) };
    let mut call = plugin.call_in_step(&state.name, step.deadline_ns, cancelled)?;
    let kernel = state.in_worker(&mut call)?;
    let mut copies = Copies::new();
    let request = computation(state, host, (kernel, call.number), &mut copies)?;
    call.begin(&Request::Compute(request))?;
    match host.converse(&mut call) {
        Ok(()) => plugin.computed(),
        Err(Trouble::Failed(error)) => return Err(error),
        Err(Trouble::Broken(what)) => {
            call.end_process();
            let message = format!(
                "{}: a message of its process is out of order: {what}; the process is ended",
                state.name
            );
            return Err(KernelError::internal(message));
        }
    }
    Ok(())
}

fn ranges(first: *const Range, count: u32) -> Vec<(u32, u32)> {
    if first.is_null() {
        return Vec::new();
    }
    // SAFETY: a call of the host has as many ranges as it says.
    let ranges = unsafe { slice::from_raw_parts(first, count as usize) };
    ranges.iter().map(|range| (range.start, range.len)).collect()
}

fn computation<'a>(
    state: &RemoteState,
    host: &mut Host<'a>,
    (kernel, number): (u64, u64),
    copies: &mut Copies,
) -> Result<Computation<'a>, KernelError> {
    let call = host.call();
    // SAFETY: the step outlives its calls.
    let step = unsafe { &*call.step };
    let mut inputs = Vec::with_capacity(call.input_count as usize);
    for slot in (0..call.input_count).filter_map(|at| host.input(at)) {
        inputs.push((input(state, slot, copies)?, slot.alias, slot.flags));
    }
    let mut outputs = Vec::with_capacity(call.output_count as usize);
    for at in 0..call.output_count {
        let (slot, planned) = (host.slot(at), host.planned(at)?);
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

/// An input for a message. A copy of a constant that a worker cannot read in place is kept.
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
        let place = place_of(state.plugin.memory(), &there)
            .ok_or_else(|| KernelError::internal("a copy lies in no arena"))?;
        // SAFETY: a set slot has its dimensions.
        let dims = unsafe { slot.shape() }.to_vec();
        return Ok(Value { dtype: slot.dtype.0, dims, data: Data::At(place) });
    }
    let before = copies.len();
    // SAFETY: a set slot has its dimensions.
    let value = unsafe { values::value(&state.plugin, slot, copies)? };
    constants.extend(copies.drain(before..).map(|copy| (address, copy)));
    Ok(value)
}
