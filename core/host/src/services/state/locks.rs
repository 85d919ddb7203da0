//! The locks of variables, as services for kernels.

use super::{conclude, copy_value, variable_of};
use crate::{
    call::{CallFrame, OVER},
    resources::{Access, Few, Variable, lock_variables as lock, unlock_variables},
};
use tenon_abi::{CallRecord, Code, Variable as RawVariable};
use tenon_framework::{KernelError, Tensor};

/// # Safety
/// - `first` points to `count` variables that live for `'a`.
unsafe fn list<'a>(first: *const *mut RawVariable, count: usize) -> Result<Few<'a>, KernelError> {
    if first.is_null() || count == 0 {
        return Ok(Few::new());
    }
    // SAFETY: the caller guarantees that `first` points to `count` live variables.
    let raws = unsafe { std::slice::from_raw_parts(first, count) };
    let mut variables = Few::new();
    for &raw in raws {
        // SAFETY: the caller guarantees that the variables live for `'a`.
        variables.push(unsafe { variable_of(raw) }?);
    }
    Ok(variables)
}

/// The only variable of a list; most calls lock one.
///
/// # Safety
/// - `first` is null or points to `count` variables.
unsafe fn one(first: *const *mut RawVariable, count: usize) -> Option<*mut RawVariable> {
    // SAFETY: the caller guarantees that `first` points to one variable.
    (count == 1 && !first.is_null()).then(|| unsafe { *first })
}

/// Locks variables exclusively.
///
/// # Safety
/// - The caller upholds what [`lock_for`] requires.
pub(super) unsafe extern "C" fn lock_variables(
    record: *mut CallRecord,
    variables: *const *mut RawVariable,
    count: usize,
) -> Code {
    // SAFETY: the kernel passes its call's record and `count` live variables.
    unsafe { lock_for(record, variables, count, Access::Exclusive) }
}

/// Locks variables for reading, or for an update of rows.
///
/// # Safety
/// - The caller upholds what [`lock_for`] requires.
pub(super) unsafe extern "C" fn share_variables(
    record: *mut CallRecord,
    variables: *const *mut RawVariable,
    count: usize,
    update: u32,
) -> Code {
    let access = if update == 0 { Access::Shared } else { Access::SharedUpdate };
    // SAFETY: as in `lock_variables`.
    unsafe { lock_for(record, variables, count, access) }
}

/// # Safety
/// - `record` is that of a running call.
/// - `variables` points to `count` live variables.
unsafe fn lock_for(
    record: *mut CallRecord,
    variables: *const *mut RawVariable,
    count: usize,
    access: Access,
) -> Code {
    // SAFETY: the caller guarantees that `record` is that of a call, and that `variables` points to
    // `count` live variables.
    unsafe {
        let Some(frame) = CallFrame::from_raw(record) else { return OVER };
        let take = |variables: &[&Variable]| {
            let copy = |tensor: &Tensor| copy_value(frame, tensor);
            lock(variables, access, &frame.env().cancellation, copy)?;
            let stream = frame.call().stream;
            let done = variables.iter().try_for_each(|variable| variable.await_writer(stream));
            done.inspect_err(|_| unlock_variables(variables))
        };
        let locked = match one(variables, count) {
            Some(raw) => variable_of(raw).and_then(|variable| take(&[variable])),
            None => list(variables, count).and_then(|variables| take(&variables)),
        };
        conclude(frame, locked, |()| frame.locks(if variables.is_null() { 0 } else { count }))
    }
}

/// Unlocks variables.
///
/// # Safety
/// - `record` meets what [`CallFrame::from_raw`] requires.
/// - `variables` points to `count` live variables, which this call has locked.
pub(super) unsafe extern "C" fn unlock(
    record: *mut CallRecord,
    variables: *const *mut RawVariable,
    count: usize,
) {
    // SAFETY: the kernel passes `count` live variables, which it has locked.
    let unlocked = unsafe {
        match one(variables, count) {
            Some(raw) => variable_of(raw).map(|variable| unlock_variables(&[variable])),
            None => list(variables, count).map(|variables| unlock_variables(&variables)),
        }
    };
    // SAFETY: the kernel passes its call's record.
    if let (Ok(()), Some(frame)) = (unlocked, unsafe { CallFrame::from_raw(record) }) {
        frame.unlocks(if variables.is_null() { 0 } else { count });
    }
}
