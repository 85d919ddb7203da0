//! Kernels that ask for the state of a reader, and set it.

use super::{Reader, State, Work, source::Format};
use crate::{
    place::{Shared, input},
    wire::{Value, fields, put_bytes, put_number},
};
use tenon_sdk::{growth, prelude::*};

fn produced(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let produced = input::<Reader>(c)?.state().produced;
    c.output::<i64>(0, &[])?.data[0] = produced;
    Ok(())
}

fn completed(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let finished = input::<Reader>(c)?.state().finished;
    c.output::<i64>(0, &[])?.data[0] = finished;
    Ok(())
}

fn reset(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    *input::<Reader>(c)?.state() = State::default();
    Ok(())
}

/// Readers whose place in a file is not kept cannot be continued elsewhere.
fn check_kept(reader: &Reader) -> Result<(), KernelError> {
    match reader.format {
        Format::Identity | Format::WholeFile => Ok(()),
        _ => Err(KernelError::unimplemented(format!(
            "{}: its state cannot be kept, since it has a place within a file",
            reader.place().label::<Reader>()
        ))),
    }
}

/// The state as a message, with the fields of TensorFlow's `ReaderBaseState`.
fn serialize(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let reader = input::<Reader>(c)?;
    check_kept(&reader)?;
    let (state, mut message) = (reader.state(), Vec::new());
    put_number(&mut message, 1, state.started as u64)?;
    put_number(&mut message, 2, state.finished as u64)?;
    put_number(&mut message, 3, state.produced as u64)?;
    if !state.current.is_empty() {
        put_bytes(&mut message, 4, &state.current)?;
    }
    drop(state);
    c.set_strings(0, &[], [message].iter())
}

fn parsed(reader: &Reader, message: &[u8]) -> Result<State, KernelError> {
    let wrong = |what: &str| {
        KernelError::invalid_argument(format!(
            "state: expected one of {}, found {what}",
            reader.place().label::<Reader>()
        ))
    };
    let mut state = State::default();
    for field in fields(message) {
        match field.map_err(|_| wrong("bytes that are no message"))? {
            (1, Value::Varint(value)) => state.started = value as i64,
            (2, Value::Varint(value)) => state.finished = value as i64,
            (3, Value::Varint(value)) => state.produced = value as i64,
            (4, Value::Bytes(value)) => state.current = growth::copied(value)?,
            _ => {}
        }
    }
    if state.started < 0 || state.finished < 0 || state.produced < 0 {
        return Err(wrong("negative numbers"));
    }
    if state.started < state.finished {
        return Err(wrong("more items that are finished than begun"));
    }
    if state.started > state.finished {
        state.work = Some(Work::Named);
    }
    Ok(state)
}

/// A reader whose state cannot be restored is put back to its first one, as in TensorFlow.
fn restore(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let reader = input::<Reader>(c)?;
    let (&[message], []) = (&c.strings(1)?[..], c.dims(1)) else {
        return Err(KernelError::invalid_argument(format!(
            "state: expected a scalar, found shape {:?}",
            c.dims(1)
        )));
    };
    let restored = check_kept(&reader).and_then(|()| parsed(&reader, message));
    let (state, result) = match restored {
        Ok(state) => (state, Ok(())),
        Err(error) => (State::default(), Err(error)),
    };
    *reader.state() = state;
    result
}

register_kernel!("ReaderNumRecordsProduced" on "CPU": fn produced);
register_kernel!("ReaderNumRecordsProducedV2" on "CPU": fn produced);
register_kernel!("ReaderNumWorkUnitsCompleted" on "CPU": fn completed);
register_kernel!("ReaderNumWorkUnitsCompletedV2" on "CPU": fn completed);
register_kernel!("ReaderReset" on "CPU": fn reset);
register_kernel!("ReaderResetV2" on "CPU": fn reset);
register_kernel!("ReaderSerializeState" on "CPU": fn serialize);
register_kernel!("ReaderSerializeStateV2" on "CPU": fn serialize);
register_kernel!("ReaderRestoreState" on "CPU": fn restore);
register_kernel!("ReaderRestoreStateV2" on "CPU": fn restore);
