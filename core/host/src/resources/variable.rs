//! Variables: resources that hold one tensor.
//!
//! # States
//! The lock is *free*, *exclusive* (held by one call) or *shared* (held by several calls). It is
//! not bound to a thread: an asynchronous kernel may unlock on another one. Calls that lock several
//! variables do so in the order of their numbers, so that no two wait for each other; a call whose
//! step is cancelled stops waiting. A later call for the shared lock does not overtake a call that
//! waits for the exclusive lock.
//!
//! The value is replaced only under the exclusive lock, so that a holder of either lock reads it
//! without more; a variable without a value may get its first one from a call without the lock.
//!
//! **Copy on read.** A variable whose rows are updated in place under the shared lock must not
//! share its buffer. From the first such update on it is in this mode: readers get a copy, and an
//! assigned value is copied. It never leaves the mode, in which a sparse update copies nothing.

use crate::{
    bools,
    cancel::Cancellation,
    memory::{HostMemory, copy_on_host},
};
use lock::Lock;
use smallvec::SmallVec;
use std::{any::Any, cell::UnsafeCell, sync::Arc};
use tenon_abi::Slot;
use tenon_framework::{
    Code, DType, KernelError, Tensor,
    resource::{Resource, ResourceRef},
    sync::atomic::{AtomicBool, Ordering},
    tensor::{Buffer, Memory},
};
use writer::Writer;

mod lock;
#[cfg(all(test, loom))]
mod model;
mod writer;

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

/// A variable.
pub struct Variable {
    number: u64,
    name: String,
    dtype: DType,
    lock: Lock,
    /// Whether there is a value. It changes under the mutex of the lock: by the holder of the exclusive
    /// lock, or while there is none.
    is_set: AtomicBool,
    /// It changes as `is_set` does.
    value: UnsafeCell<Option<Tensor>>,
    /// What shows the value, but for the place of the dimensions; it changes as `value` does.
    shown: UnsafeCell<Slot>,
    /// Whether a holder of the lock received the value for writing; used for bools only.
    written: AtomicBool,
    writer: Writer,
}

// SAFETY: the value is a tensor, which threads may share; a holder of the lock reads it, while no
// other replaces it; and while there is none, it changes under the mutex.
unsafe impl Sync for Variable {}

impl Resource for Variable {
    fn type_name(&self) -> &str {
        VARIABLE_TYPE
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
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
            lock: Lock::new(),
            is_set: AtomicBool::new(false),
            value: UnsafeCell::new(None),
            shown: UnsafeCell::new(Slot::EMPTY),
            written: AtomicBool::new(false),
            writer: Writer::new(),
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

    /// The current value, for a holder of the lock or the only user.
    #[inline]
    fn current(&self) -> Option<&Tensor> {
        if !self.is_set.load(Ordering::Acquire) {
            return None;
        }
        // SAFETY: while there is a value only the holder of the exclusive lock replaces it, which is
        // the caller or no call.
        unsafe { (*self.value.get()).as_ref() }
    }

    /// A further reference to the current value, for a holder of the lock or the only user. In
    /// copy-on-read mode it must be dropped before the lock is given up.
    pub fn value(&self) -> Option<Tensor> {
        self.current().cloned()
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
        if self.lock.peek() {
            let value = self.value();
            self.lock.give_shared();
            return value.ok_or_else(|| self.unset());
        }
        // Calls that update rows hold the shared lock.
        self.lock(Access::Exclusive, cancellation)?;
        let read = self.read_locked(copy);
        self.unlock();
        read
    }

    /// Shows the current value to `look`, for callers without the lock; `None` while a call holds the exclusive lock, and
    /// in copy-on-read mode.
    ///
    /// # Errors
    /// `FAILED_PRECONDITION` without a value.
    #[inline]
    pub fn peek<R>(&self, look: impl FnOnce(&Slot) -> R) -> Option<Result<R, KernelError>> {
        if !self.lock.peek() {
            return None;
        }
        let seen = self.current().map(|value| look(&self.shown(value)));
        self.lock.give_shared();
        Some(seen.ok_or_else(|| self.unset()))
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
            let pooled: Arc<dyn Memory> = HostMemory::shared().clone();
            copy_on_host(tensor, &pooled)
        })
    }

    /// Whether readers, and assignments, must copy the value.
    pub fn copies_on_read(&self) -> bool {
        self.lock.copies_on_read()
    }

    /// Whether a call waits for the exclusive lock.
    #[cfg(test)]
    pub(super) fn is_awaited(&self) -> bool {
        self.lock.is_awaited()
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
        let _setting = self.lock.mutex();
        self.is_set.store(value.is_some(), Ordering::Release);
        // SAFETY: the caller holds the exclusive lock or is the only user, so no call reads the value;
        // and under the mutex none sets a first one.
        unsafe {
            *self.shown.get() = value.as_ref().map_or(Slot::EMPTY, Tensor::slot);
            Ok(std::mem::replace(&mut *self.value.get(), value))
        }
    }

    /// Gives a variable its first value, without the lock; a value that is there stays.
    ///
    /// # Errors
    /// As [`Variable::set`].
    pub fn initialize(&self, value: Tensor) -> Result<(), KernelError> {
        self.check_type(&value)?;
        let _setting = self.lock.mutex();
        if !self.is_set.load(Ordering::Relaxed) {
            // SAFETY: no call reads the value while there is none, and under the mutex no other sets
            // one.
            unsafe {
                *self.shown.get() = value.slot();
                *self.value.get() = Some(value);
            }
            self.is_set.store(true, Ordering::Release);
        }
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
        self.current().map(|value| self.shown(value)).ok_or_else(|| self.unset())
    }

    /// The slot that shows the current value.
    fn shown(&self, current: &Tensor) -> Slot {
        // SAFETY: it changes with the value, which the caller reads.
        Slot { dims: current.shape().dims().as_ptr(), ..unsafe { *self.shown.get() } }
    }

    /// The slot that shows the value for writing: under the exclusive lock `copy` replaces the
    /// value first if it has other holders, so that readers of the old value keep it; unless
    /// `are_read` says of the buffer that none of them will read it.
    ///
    /// # Errors
    /// `FAILED_PRECONDITION` without a value, and if calls that only read share the lock; the error
    /// of `are_read` or `copy`.
    pub fn slot_for_update(
        &self,
        are_read: impl FnOnce(&Buffer) -> Result<bool, KernelError>,
        copy: impl FnOnce(&Tensor) -> Result<Tensor, KernelError>,
    ) -> Result<Slot, KernelError> {
        let is_shared = self.lock.is_shared();
        if self.dtype == DType::BOOL {
            self.written.store(true, Ordering::Relaxed);
        }
        let value = self.current().ok_or_else(|| self.unset())?;
        if value.buffer().is_unique() || (is_shared && self.copies_on_read()) {
            return Ok(self.shown(value));
        }
        if is_shared {
            return Err(self.only_read());
        }
        if are_read(value.buffer())? {
            return Ok(self.shown(value));
        }
        let copy = copy(value)?;
        self.set(Some(copy))?;
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

    #[inline]
    fn lock(&self, access: Access, cancellation: &Cancellation) -> Result<(), KernelError> {
        // Values of bools are corrected when the last sharer leaves; none joins meanwhile.
        let correcting = (self.dtype == DType::BOOL).then(|| self.lock.mutex());
        let taken = self.lock.take(access);
        drop(correcting);
        if taken || self.lock.wait(access, cancellation) {
            return Ok(());
        }
        Err(KernelError::new(
            Code::CANCELLED,
            format!("the step was cancelled while it waited for variable '{}'", self.name),
        ))
    }

    #[inline]
    fn unlock(&self) {
        if self.dtype == DType::BOOL {
            return self.unlock_bools();
        }
        self.lock.give();
    }

    /// Unlocks a variable of bools, whose value is corrected once no holder of the lock writes it.
    fn unlock_bools(&self) {
        let correcting = self.lock.mutex();
        // Calls that share the lock for an update may still write.
        if !self.lock.has_others()
            && self.written.swap(false, Ordering::Relaxed)
            && let Some(value) = self.current()
        {
            // SAFETY: a kernel, in any language, has written it, and still holds the lock that every
            // writer or reader needs; readers of the former value have their own tensor.
            unsafe { bools::normalise_tensor(value) };
        }
        let is_awaited = self.lock.give_silently();
        drop(correcting);
        if is_awaited {
            self.lock.wake();
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
                self.slot_for_update(|_| Ok(false), copy)?;
            }
            self.lock.copy_on_read();
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
