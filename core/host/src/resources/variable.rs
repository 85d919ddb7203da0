//! Variables: resources that hold one tensor.
//!
//! # States
//! The lock is *free*, *exclusive* (held by one call) or *shared* (held by several calls). It is
//! not bound to a thread: an asynchronous kernel may unlock on another one. Calls that lock several
//! variables do so in the order of their numbers, so that no two wait for each other; a call whose
//! step is cancelled stops waiting. A later call for the shared lock does not overtake a call that
//! waits for the exclusive lock. Lock and value are protected by one mutex, which is never held
//! while waiting for the lock; the value is replaced only under the exclusive lock.
//!
//! **Copy on read.** A variable whose rows are updated in place under the shared lock must not
//! share its buffer. From the first such update on it is in this mode: readers get a copy, and an
//! assigned value is copied. It never leaves the mode, in which a sparse update copies nothing.

use crate::{
    bools,
    cancel::Cancellation,
    memory::{HostMemory, copy_on_host},
};
use smallvec::SmallVec;
use std::{any::Any, ffi::c_void, sync::atomic::Ordering};
use tenon_abi::{CancelCallback, Slot};
use tenon_framework::{
    Code, DType, KernelError, Tensor,
    resource::{Resource, ResourceRef},
    sync::{Condvar, Mutex, rank},
    tensor::Memory,
};

#[cfg(all(test, loom))]
mod model;

/// Name of the type of variables.
pub const VARIABLE_TYPE: &str = "tenon.Variable";

/// How calls use a variable that they lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// By one call at a time, which may replace the value.
    Exclusive,
    /// By several calls at the same time, which read.
    Shared,
    /// As [`Access::Shared`], by calls that write elements in place, in a variable that is copied
    /// when it is read.
    SharedUpdate,
}

#[derive(Default)]
struct Core {
    /// Whether a call has the exclusive lock.
    held: bool,
    /// Number of calls that have the shared lock.
    sharers: u32,
    /// Number of calls that wait for the exclusive lock.
    waiting: u32,
    /// Number of calls that wait for either lock.
    waiters: u32,
    /// Whether a holder of the lock received the value for writing.
    written: bool,
    copy_on_read: bool,
    value: Option<Tensor>,
}

impl Core {
    /// Takes the lock if possible; returns whether it did.
    fn take(&mut self, access: Access) -> bool {
        match access {
            Access::Exclusive if !self.held && self.sharers == 0 => self.held = true,
            Access::Shared | Access::SharedUpdate if !self.held && self.waiting == 0 => {
                self.sharers += 1;
            }
            _ => return false,
        }
        true
    }
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

/// Wakes the calls that wait for a variable, so that they see the cancellation.
///
/// # Safety
/// - `data` is a live [`Variable`].
unsafe extern "C" fn wake(data: *mut c_void) {
    // SAFETY: `data` is the variable, which the waiting call keeps alive until it has withdrawn the
    // callback.
    let variable = unsafe { &*data.cast_const().cast::<Variable>() };
    // Because of the mutex, a call that has just seen "not cancelled" is waiting by now.
    drop(variable.core.lock());
    variable.freed.notify_all();
}

impl Variable {
    /// A variable without a value.
    pub fn new(name: &str, dtype: DType) -> Variable {
        // The numbers order locks of all sessions; they do not synchronise, so the standard type
        // suffices.
        static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
        Variable {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            name: name.to_owned(),
            dtype,
            core: Mutex::ranked(rank::VARIABLE, Core::default()),
            freed: Condvar::new(),
        }
    }

    /// The resource as a variable, if it is one.
    pub fn of(resource: &ResourceRef) -> Option<&Variable> {
        Variable::from_resource(resource.get())
    }

    /// The resource as a variable, if it is one.
    pub fn from_resource(resource: &dyn Resource) -> Option<&Variable> {
        resource.as_any().downcast_ref()
    }

    /// Its position in the order of locks.
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

    /// A further reference to the current value. In copy-on-read mode only a holder of the lock may
    /// call this, and must drop the reference before unlocking.
    pub fn value(&self) -> Option<Tensor> {
        self.core.lock().value.clone()
    }

    /// The current value, for a holder of the lock.
    ///
    /// # Errors
    /// `FAILED_PRECONDITION` without a value.
    pub fn get(&self) -> Result<Tensor, KernelError> {
        self.value().ok_or_else(|| self.unset())
    }

    /// The current value, unaffected by later updates, for callers without the lock. Waits while a
    /// call holds the exclusive one. In copy-on-read mode it is a copy that `copy` makes.
    ///
    /// # Errors
    /// `FAILED_PRECONDITION` without a value; `CANCELLED` when the step is cancelled meanwhile; the
    /// error of `copy`.
    pub fn read(
        &self,
        cancellation: &Cancellation,
        copy: impl FnOnce(&Tensor) -> Result<Tensor, KernelError>,
    ) -> Result<Tensor, KernelError> {
        {
            let core = self.core.lock();
            if !core.held && !core.copy_on_read {
                return core.value.clone().ok_or_else(|| self.unset());
            }
        }
        // Calls that update rows hold the shared lock.
        self.lock(Access::Exclusive, cancellation)?;
        let read = self.read_locked(copy);
        self.unlock();
        read
    }

    /// As [`Variable::read`], for a holder of the lock.
    ///
    /// # Errors
    /// `FAILED_PRECONDITION` without a value; the error of `copy`.
    pub fn read_locked(
        &self,
        copy: impl FnOnce(&Tensor) -> Result<Tensor, KernelError>,
    ) -> Result<Tensor, KernelError> {
        let tensor = self.get()?;
        if self.copies_on_read() { copy(&tensor) } else { Ok(tensor) }
    }

    /// As [`Variable::read`]; in copy-on-read mode the copy is in host memory.
    ///
    /// # Errors
    /// As [`Variable::read`]; `UNIMPLEMENTED` in copy-on-read mode for a value in memory of a device.
    pub fn snapshot(&self, cancellation: &Cancellation) -> Result<Tensor, KernelError> {
        self.read(cancellation, |tensor| {
            if !tensor.is_on_host() {
                return Err(KernelError::unimplemented(format!(
                    "variable '{}' is updated by rows in memory of a device: read it by a kernel that locks it",
                    self.name
                )));
            }
            let pooled: std::sync::Arc<dyn Memory> = HostMemory::shared().clone();
            copy_on_host(tensor, &pooled)
        })
    }

    /// Whether readers, and assignments, must copy the value.
    pub fn copies_on_read(&self) -> bool {
        self.core.lock().copy_on_read
    }

    /// Whether a call waits for the exclusive lock.
    #[cfg(test)]
    pub(super) fn is_awaited(&self) -> bool {
        self.core.lock().waiting > 0
    }

    /// Sets or removes the value. The caller must hold the exclusive lock, or be the only user.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for another element type.
    pub fn set(&self, value: Option<Tensor>) -> Result<(), KernelError> {
        self.replace(value).map(drop)
    }

    /// Like [`Variable::set`]; returns the former value.
    ///
    /// # Errors
    /// As [`Variable::set`].
    pub fn replace(&self, value: Option<Tensor>) -> Result<Option<Tensor>, KernelError> {
        value.iter().try_for_each(|value| self.check_type(value))?;
        Ok(std::mem::replace(&mut self.core.lock().value, value))
    }

    /// Gives a variable its first value, without the lock; a value that is there stays.
    ///
    /// # Errors
    /// As [`Variable::set`].
    pub fn initialize(&self, value: Tensor) -> Result<(), KernelError> {
        self.check_type(&value)?;
        self.core.lock().value.get_or_insert(value);
        Ok(())
    }

    fn check_type(&self, value: &Tensor) -> Result<(), KernelError> {
        if value.dtype().base() == self.dtype {
            return Ok(());
        }
        Err(KernelError::invalid_argument(format!(
            "variable '{}' holds {}, assigned {}",
            self.name,
            self.dtype,
            value.dtype()
        )))
    }

    /// The slot that shows the value: valid while the lock is held and nothing is assigned.
    ///
    /// # Errors
    /// `FAILED_PRECONDITION` without a value.
    pub fn slot(&self) -> Result<Slot, KernelError> {
        let core = self.core.lock();
        core.value.as_ref().map(Tensor::slot).ok_or_else(|| self.unset())
    }

    /// The slot that shows the value for writing: under the exclusive lock `copy` replaces the
    /// value first if it has other holders, so that readers of the old value keep it.
    ///
    /// # Errors
    /// `FAILED_PRECONDITION` without a value, and if calls that only read share the lock; the error
    /// of `copy`.
    pub fn slot_for_update(
        &self,
        copy: impl FnOnce(&Tensor) -> Result<Tensor, KernelError>,
    ) -> Result<Slot, KernelError> {
        let current = {
            let mut core = self.core.lock();
            core.written = true;
            let core = &*core;
            let value = core.value.as_ref().ok_or_else(|| self.unset())?;
            if value.buffer().is_unique() || (core.sharers > 0 && core.copy_on_read) {
                return Ok(value.slot());
            }
            if core.sharers > 0 {
                return Err(self.only_read());
            }
            value.clone()
        };
        // Only the holder of the exclusive lock replaces the value, so it is unchanged after the
        // copy.
        self.set(Some(copy(&current)?))?;
        self.slot()
    }

    fn unset(&self) -> KernelError {
        KernelError::new(
            Code::FAILED_PRECONDITION,
            format!(
                "Attempting to use uninitialized value {}: run its initialiser first",
                self.name
            ),
        )
    }

    fn only_read(&self) -> KernelError {
        KernelError::new(
            Code::FAILED_PRECONDITION,
            format!(
                "variable '{}' is locked for reading by several calls: lock it exclusively, or for shared updates, \
                 to write it",
                self.name
            ),
        )
    }

    fn lock(&self, access: Access, cancellation: &Cancellation) -> Result<(), KernelError> {
        if self.core.lock().take(access) {
            return Ok(());
        }
        let data = std::ptr::from_ref(self).cast_mut().cast();
        let token = cancellation.register(CancelCallback { run: Some(wake) }, data);
        let mut core = self.core.lock();
        let waits = u32::from(access == Access::Exclusive);
        core.waiting += waits;
        core.waiters += 1;
        let mut locked = core.take(access);
        while !locked && !cancellation.is_cancelled() {
            core = self.freed.wait(core);
            locked = core.take(access);
        }
        core.waiting -= waits;
        core.waiters -= 1;
        drop(core);
        cancellation.withdraw(token);
        if locked {
            return Ok(());
        }
        // Calls that wait for the shared lock were waiting for this one.
        self.freed.notify_all();
        Err(KernelError::new(
            Code::CANCELLED,
            format!("the step was cancelled while it waited for variable '{}'", self.name),
        ))
    }

    fn unlock(&self) {
        let mut core = self.core.lock();
        // Calls that share the lock for an update may still write.
        if core.sharers <= 1
            && std::mem::take(&mut core.written)
            && let Some(value) = core.value.as_ref().filter(|_| self.dtype == DType::BOOL)
        {
            // SAFETY: a kernel, in any language, has written it, and still holds the lock that
            // every writer or reader needs; readers of the former value have their own tensor.
            unsafe { bools::normalise_tensor(value) };
        }
        match core.sharers {
            0 => core.held = false,
            _ => core.sharers -= 1,
        }
        let is_awaited = core.waiters > 0;
        drop(core);
        // It is a system call, even without a waiting thread.
        if is_awaited {
            self.freed.notify_all();
        }
    }

    /// Enters copy-on-read mode, under the exclusive lock: other holders keep the value, and the
    /// variable gets a copy.
    fn enter_copy_on_read(
        &self,
        copy: &impl Fn(&Tensor) -> Result<Tensor, KernelError>,
    ) -> Result<(), KernelError> {
        if !self.copies_on_read() {
            if self.value().is_some() {
                self.slot_for_update(copy)?;
            }
            self.core.lock().copy_on_read = true;
        }
        Ok(())
    }
}

/// Variables that a call locks at the same time; a list of the usual length needs no memory.
pub type Few<'v> = SmallVec<[&'v Variable; 6]>;

/// The variables in the order of their numbers, without duplicates.
fn ordered<'v>(variables: &[&'v Variable]) -> Few<'v> {
    let mut ordered = Few::from_slice(variables);
    ordered.sort_by_key(|variable| variable.number);
    ordered.dedup_by_key(|variable| variable.number);
    ordered
}

/// Locks variables in the order of their numbers; each is locked once, even if it is listed
/// repeatedly. Waits until they are free. `copy` copies the value of a variable that enters
/// copy-on-read mode, for [`Access::SharedUpdate`].
///
/// # Errors
/// `CANCELLED` when the step is cancelled meanwhile; the error of `copy`. Then none is locked.
pub fn lock_variables(
    variables: &[&Variable],
    access: Access,
    cancellation: &Cancellation,
    copy: impl Fn(&Tensor) -> Result<Tensor, KernelError>,
) -> Result<(), KernelError> {
    if access == Access::SharedUpdate {
        for variable in variables.iter().filter(|variable| !variable.copies_on_read()) {
            variable.lock(Access::Exclusive, cancellation)?;
            let entered = variable.enter_copy_on_read(&copy);
            variable.unlock();
            entered?;
        }
    }
    if let [variable] = variables {
        return variable.lock(access, cancellation);
    }
    let ordered = ordered(variables);
    for (at, variable) in ordered.iter().enumerate() {
        if let Err(error) = variable.lock(access, cancellation) {
            ordered[..at].iter().rev().for_each(|locked| locked.unlock());
            return Err(error);
        }
    }
    Ok(())
}

/// Unlocks what [`lock_variables`] locked for the same list.
pub fn unlock_variables(variables: &[&Variable]) {
    if let [variable] = variables {
        return variable.unlock();
    }
    ordered(variables).iter().rev().for_each(|variable| variable.unlock());
}

/// Variables that are locked exclusively until this value is dropped.
pub struct LockedVariables<'v> {
    variables: Vec<&'v Variable>,
}

impl<'v> LockedVariables<'v> {
    /// Locks the variables.
    ///
    /// # Errors
    /// As [`lock_variables`].
    pub fn lock(
        variables: &[&'v Variable],
        cancellation: &Cancellation,
    ) -> Result<LockedVariables<'v>, KernelError> {
        lock_variables(variables, Access::Exclusive, cancellation, |tensor| Ok(tensor.clone()))?;
        Ok(LockedVariables { variables: variables.to_vec() })
    }
}

impl Drop for LockedVariables<'_> {
    fn drop(&mut self) {
        unlock_variables(&self.variables);
    }
}
