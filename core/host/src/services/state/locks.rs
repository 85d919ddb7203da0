//! The locks of variables, as services for kernels.

use super::{conclude, copy_value, variable_of};
use crate::{
    call::{CallFrame, OVER},
    resources::{Access, Few, lock_variables as lock, unlock_variables},
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
        let locked = list(variables, count).and_then(|variables| {
            let copy = |tensor: &Tensor| copy_value(frame, tensor);
            lock(&variables, access, &frame.env().cancellation, copy)?;
            frame.locks(variables.len());
            Ok(())
        });
        conclude(frame, locked, |()| ())
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
    if let Ok(variables) = unsafe { list(variables, count) } {
        unlock_variables(&variables);
        // SAFETY: the kernel passes its call's record.
        if let Some(frame) = unsafe { CallFrame::from_raw(record) } {
            frame.unlocks(variables.len());
        }
    }
}
