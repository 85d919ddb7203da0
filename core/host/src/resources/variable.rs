//! Variables: resources that hold one tensor.
//!
//! States of the lock: *free* ↔ *held* by one call. It is not bound to a thread: an asynchronous kernel may
//! unlock elsewhere. Calls that want several take them in the order of their numbers, so that no two wait
//! for each other; one whose step is cancelled stops waiting. `held` and `value` are under one mutex, which
//! is never held while anything waits for the lock, and the value changes only by whoever holds it.

use crate::call::{Cancellation, bools};
use std::{any::Any, ffi::c_void, sync::atomic::Ordering};
use tenon_abi::{CancelCallback, Slot};
use tenon_framework::{
    Code, DType, KernelError, Tensor,
    resource::{Resource, ResourceRef},
    sync::{Condvar, Mutex, rank},
};

/// Name of the type of variables.
pub const VARIABLE_TYPE: &str = "tenon.Variable";

#[derive(Default)]
struct Core {
    held: bool,
    /// Whether whoever holds it was given the value to write.
    written: bool,
    value: Option<Tensor>,
}

/// A variable.
pub struct Variable {
    number: u64,
    name: String,
    dtype: DType,
    core: Mutex<Core>,
    freed: Condvar,
}

impl Resource for Variable {
    fn type_name(&self) -> &str {
        VARIABLE_TYPE
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

unsafe extern "C" fn wake(data: *mut c_void) {
    // SAFETY: `data` is the variable that the waiting call holds until it has withdrawn the callback.
    let variable = unsafe { &*data.cast_const().cast::<Variable>() };
    // With the mutex in between, a call that has just seen "not cancelled" is waiting by now.
    drop(variable.core.lock());
    variable.freed.notify_all();
}

impl Variable {
    /// A variable without a value.
    pub fn new(name: &str, dtype: DType) -> Variable {
        // The numbers order locks of all sessions; they do not synchronise, so the standard type will do.
        static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
        Variable {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            name: name.to_owned(),
            dtype,
            core: Mutex::ranked(rank::VARIABLE, Core::default()),
            freed: Condvar::new(),
        }
    }

    /// The variable that a resource is.
    pub fn of(resource: &ResourceRef) -> Option<&Variable> {
        super::downcast(resource)
    }

    /// Its place in the order of locks.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Type of its elements.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// A further reference to the value as it is now.
    pub fn value(&self) -> Option<Tensor> {
        self.core.lock().value.clone()
    }

    /// Gives it a value, or takes it away. Whoever holds the lock calls this, or nobody else uses it.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for another element type.
    pub fn set(&self, value: Option<Tensor>) -> Result<(), KernelError> {
        self.replace(value).map(drop)
    }

    /// As [`Variable::set`]; the value that it had.
    ///
    /// # Errors
    /// As [`Variable::set`].
    pub fn replace(&self, value: Option<Tensor>) -> Result<Option<Tensor>, KernelError> {
        if let Some(tensor) = value.as_ref().filter(|tensor| tensor.dtype().base() != self.dtype) {
            return Err(KernelError::invalid_argument(format!(
                "variable '{}' holds {}, assigned {}",
                self.name,
                self.dtype,
                tensor.dtype()
            )));
        }
        Ok(std::mem::replace(&mut self.core.lock().value, value))
    }

    /// The slot that shows the value: valid while the lock is held and nobody assigns.
    ///
    /// # Errors
    /// `FAILED_PRECONDITION` without a value.
    pub fn slot(&self) -> Result<Slot, KernelError> {
        let core = self.core.lock();
        core.value.as_ref().map(Tensor::slot).ok_or_else(|| self.unset())
    }

    /// The slot that shows the value for writing: `copy` replaces it first when somebody else holds it, so
    /// that readers of the old value keep it.
    ///
    /// # Errors
    /// `FAILED_PRECONDITION` without a value; what `copy` says.
    pub fn slot_for_update(
        &self,
        copy: impl FnOnce(&Tensor) -> Result<Tensor, KernelError>,
    ) -> Result<Slot, KernelError> {
        let current = {
            let mut core = self.core.lock();
            core.written = true;
            let core = &*core;
            let value = core.value.as_ref().ok_or_else(|| self.unset())?;
            if value.buffer().is_unique() {
                return Ok(value.slot());
            }
            value.clone()
        };
        // Only who holds the lock changes the value, so that it is still this one after the copy.
        self.set(Some(copy(&current)?))?;
        self.slot()
    }

    fn unset(&self) -> KernelError {
        KernelError::new(
            Code::FAILED_PRECONDITION,
            format!("variable '{}' has no value: run its initialiser first", self.name),
        )
    }

    fn try_lock(&self) -> bool {
        !std::mem::replace(&mut self.core.lock().held, true)
    }

    fn lock(&self, cancellation: &Cancellation) -> Result<(), KernelError> {
        if self.try_lock() {
            return Ok(());
        }
        let data = std::ptr::from_ref(self).cast_mut().cast();
        let token = cancellation.register(CancelCallback { run: Some(wake) }, data);
        let mut core = self.core.lock();
        while core.held && !cancellation.is_cancelled() {
            core = self.freed.wait(core);
        }
        let locked = !core.held;
        core.held = true;
        drop(core);
        cancellation.withdraw(token);
        if locked {
            return Ok(());
        }
        Err(KernelError::new(
            Code::CANCELLED,
            format!("the step was cancelled while it waited for variable '{}'", self.name),
        ))
    }

    fn unlock(&self) {
        let mut core = self.core.lock();
        if std::mem::take(&mut core.written)
            && let Some(value) = core.value.as_ref().filter(|_| self.dtype == DType::BOOL)
        {
            // SAFETY: a kernel, in whatever language, has written it, and still holds the lock of whoever writes or
            // reads it; readers of the value before have a tensor of their own.
            unsafe { bools::settle_tensor(value) };
        }
        core.held = false;
        drop(core);
        self.freed.notify_one();
    }
}

/// The variables in the order of their numbers, each once.
fn ordered<'v>(variables: &[&'v Variable]) -> Vec<&'v Variable> {
    let mut ordered = variables.to_vec();
    ordered.sort_by_key(|variable| variable.number);
    ordered.dedup_by_key(|variable| variable.number);
    ordered
}

/// Locks variables in the order of their numbers; each is locked once, however often it is listed. Waits
/// until they are free.
///
/// # Errors
/// `CANCELLED` when the step is cancelled meanwhile; then none is locked.
pub fn lock_variables(
    variables: &[&Variable],
    cancellation: &Cancellation,
) -> Result<(), KernelError> {
    let ordered = ordered(variables);
    for (at, variable) in ordered.iter().enumerate() {
        if let Err(error) = variable.lock(cancellation) {
            ordered[..at].iter().rev().for_each(|locked| locked.unlock());
            return Err(error);
        }
    }
    Ok(())
}

/// Unlocks what [`lock_variables`] locked for the same list.
pub fn unlock_variables(variables: &[&Variable]) {
    ordered(variables).iter().rev().for_each(|variable| variable.unlock());
}

/// Variables that are unlocked when this is dropped.
pub struct LockedVariables<'v> {
    variables: Vec<&'v Variable>,
}

impl<'v> LockedVariables<'v> {
    /// Locks.
    ///
    /// # Errors
    /// As [`lock_variables`].
    pub fn lock(
        variables: &[&'v Variable],
        cancellation: &Cancellation,
    ) -> Result<LockedVariables<'v>, KernelError> {
        lock_variables(variables, cancellation)?;
        Ok(LockedVariables { variables: variables.to_vec() })
    }
}

impl Drop for LockedVariables<'_> {
    fn drop(&mut self) {
        unlock_variables(&self.variables);
    }
}
