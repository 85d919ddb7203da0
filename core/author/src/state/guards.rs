//! Variables that a call has locked.

use super::{Raws, check};
use crate::{cells::Cells, slots, slots::view};
use std::slice;
use tenon_abi::{Call, DType, Slot, StateTable, Str, StringElement, Variable};
use tenon_framework::{KernelError, View, ViewMut, element::Element, plugin::host};

/// Variables that several calls have locked at the same time, by their position in the call of
/// [`StateContext::share`](super::StateContext::share) or [`StateContext::share_for_update`](super::StateContext::share_for_update).
pub struct SharedVars<'v>(pub(super) VarGuard<'v>);

impl SharedVars<'_> {
    /// The value's slot, valid while this guard exists; calls that share the variable for an update may write its
    /// elements in the meantime.
    ///
    /// # Errors
    /// As [`VarGuard::read`].
    pub fn read(&self, at: usize) -> Result<Slot, KernelError> {
        self.0.read(at)
    }

    /// The value's slot, whose elements may be written in place, by atomic operations where another call may write or
    /// read the same one.
    ///
    /// # Errors
    /// As [`VarGuard::read`]; `FAILED_PRECONDITION` unless it is locked by [`StateContext::share_for_update`](super::StateContext::share_for_update).
    pub fn update(&self, at: usize) -> Result<Slot, KernelError> {
        self.0.written(at)
    }

    /// Fails if two of the first `count` variables are one.
    ///
    /// # Errors
    /// As [`VarGuard::differ`].
    pub fn differ(&self, count: usize) -> Result<(), KernelError> {
        self.0.differ(count)
    }

    /// The value's elements, to be read while other calls may write them.
    ///
    /// # Errors
    /// As [`VarGuard::view`].
    pub fn cells<T: Element>(&self, at: usize) -> Result<Cells<'_, T>, KernelError> {
        let slot = self.read(at)?;
        expect::<T>(&slot)?;
        // SAFETY: elements of this type in host memory, which all calls that share the lock access by atomic
        // operations.
        Ok(unsafe { Cells::of(&slot, false) })
    }

    /// The value's elements, to be read and written while other calls do so too.
    ///
    /// # Errors
    /// As [`SharedVars::update`] and [`VarGuard::view`].
    pub fn cells_mut<T: Element>(&self, at: usize) -> Result<Cells<'_, T>, KernelError> {
        let slot = self.update(at)?;
        expect::<T>(&slot)?;
        // SAFETY: as in `cells`; the variable is locked for an update.
        Ok(unsafe { Cells::of(&slot, true) })
    }
}

/// Locked variables, by their position in the call of [`StateContext::lock`](super::StateContext::lock).
pub struct VarGuard<'v> {
    pub(super) call: &'v Call,
    pub(super) raws: Raws,
    pub(super) table: &'static StateTable,
}

impl VarGuard<'_> {
    fn raw(&self, at: usize) -> Result<*mut Variable, KernelError> {
        self.raws
            .get(at)
            .copied()
            .ok_or_else(|| KernelError::internal(format!("variable {at} is not locked")))
    }

    /// Fails if two of the first `count` variables are one.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT`, with the positions of both; `INTERNAL` when fewer are locked.
    pub fn differ(&self, count: usize) -> Result<(), KernelError> {
        for at in 0..count {
            let raw = self.raw(at)?;
            if let Some(same) = self.raws[..at].iter().position(|&other| other == raw) {
                return Err(KernelError::invalid_argument(format!(
                    "variables {same} and {at}: expected two variables, found one"
                )));
            }
        }
        Ok(())
    }

    /// The elements of the value.
    ///
    /// # Errors
    /// `FAILED_PRECONDITION` when it has no value; `INVALID_ARGUMENT` when it is of another type or in memory of a
    /// device.
    pub fn view<T: Element>(&self, at: usize) -> Result<View<'_, T>, KernelError> {
        let slot = self.read(at)?;
        expect::<T>(&slot)?;
        // SAFETY: elements of this type in host memory, which are written only under the lock that this guard holds.
        Ok(unsafe { view(&slot) })
    }

    /// The elements of the value, to be written in place; readers of the old value keep it.
    ///
    /// # Errors
    /// As [`VarGuard::view`].
    pub fn view_mut<T: Element>(&mut self, at: usize) -> Result<ViewMut<'_, T>, KernelError> {
        let slot = self.update(at)?;
        expect::<T>(&slot)?;
        // SAFETY: elements of this type in host memory that no other code holds, for as long as this guard is
        // borrowed.
        Ok(unsafe {
            let data = slice::from_raw_parts_mut(slot.data.cast(), slot.elements as usize);
            ViewMut { dims: slot.shape(), data }
        })
    }

    /// The elements of the first `N` variables, to be written in place; readers of the old values keep them.
    ///
    /// # Errors
    /// As [`VarGuard::view`]; `INVALID_ARGUMENT` when two of them are one variable, whose elements would then be
    /// written through two slices.
    pub fn views_mut<T: Element, const N: usize>(
        &mut self,
    ) -> Result<[ViewMut<'_, T>; N], KernelError> {
        self.differ(N)?;
        let mut slots = [Slot::EMPTY; N];
        for (at, slot) in slots.iter_mut().enumerate() {
            *slot = self.written(at)?;
            expect::<T>(slot)?;
        }
        // SAFETY: elements of this type in host memory that no other code holds, for as long as this guard is
        // borrowed; the variables differ, so their elements do.
        Ok(slots.map(|slot| unsafe {
            let data = slice::from_raw_parts_mut(slot.data.cast(), slot.elements as usize);
            ViewMut { dims: slot.shape(), data }
        }))
    }

    /// The strings of the value.
    ///
    /// # Errors
    /// As [`VarGuard::view`].
    pub fn strings(&self, at: usize) -> Result<Vec<&[u8]>, KernelError> {
        let slot = self.read(at)?;
        expect_type(&slot, DType::STRING)?;
        // SAFETY: strings in host memory, which are written only under the lock that this guard holds.
        unsafe { slots::strings(&slot) }
    }

    /// Writes one string of the value in place; readers of the old value keep it.
    ///
    /// # Errors
    /// As [`VarGuard::view`]; `RESOURCE_EXHAUSTED` when memory for it is not available; `INTERNAL` when there is no such
    /// element.
    pub fn set_string(
        &mut self,
        at: usize,
        element: usize,
        value: &[u8],
    ) -> Result<(), KernelError> {
        let slot = self.update(at)?;
        expect_type(&slot, DType::STRING)?;
        if element as u64 >= slot.elements {
            return Err(KernelError::internal(format!(
                "element {element} of a variable with {}",
                slot.elements
            )));
        }
        // SAFETY: the host fills the table, which lives as long as the process; the element is one of the value's, which
        // no other code uses while this guard is borrowed.
        let code = unsafe {
            let set = (*host().strings).set.expect("the host fills every entry");
            set(slot.data.cast::<StringElement>().add(element), Str::from_bytes(value))
        };
        check(code, "cannot write a string of the variable")
    }

    /// The value's slot, valid while it is locked and not assigned.
    ///
    /// # Errors
    /// `FAILED_PRECONDITION` when it has no value.
    pub fn read(&self, at: usize) -> Result<Slot, KernelError> {
        let mut slot = Slot::EMPTY;
        let entry = self.table.read_variable.expect("the host fills every entry");
        // SAFETY: the variable is locked by this guard.
        let code = unsafe { entry(self.call.record, self.raw(at)?, &mut slot) };
        check(code, "the variable has no value, or is locked for reading alone")?;
        Ok(slot)
    }

    /// Whether the variable has a value.
    pub fn has_value(&self, at: usize) -> bool {
        self.read(at).is_ok()
    }

    /// The sizes of the value; `None` when it has none.
    pub fn dims(&self, at: usize) -> Option<Vec<i64>> {
        let slot = self.read(at).ok()?;
        // SAFETY: the slot shows a value that this guard keeps locked, with its sizes.
        Some(unsafe { slot.shape() }.to_vec())
    }

    /// Returns the value as an output, without a copy.
    ///
    /// # Errors
    /// As [`VarGuard::read`].
    pub fn output(&self, at: usize, output: usize) -> Result<(), KernelError> {
        let entry = self.table.output_variable.expect("the host fills every entry");
        // SAFETY: as in `read`.
        let code = unsafe { entry(self.call.record, self.raw(at)?, output as u32) };
        check(code, "the variable has no value, or is locked for reading alone")
    }

    /// Gives the variable the tensor of an input.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when the types differ.
    pub fn assign(&mut self, at: usize, input: usize) -> Result<(), KernelError> {
        let entry = self.table.assign_variable.expect("the host fills every entry");
        // SAFETY: as in `read`.
        let code = unsafe { entry(self.call.record, self.raw(at)?, input as u32) };
        check(code, "cannot assign the variable")
    }

    /// The value's slot, to be written in place; readers of the old value keep it.
    ///
    /// # Errors
    /// As [`VarGuard::read`].
    pub fn update(&mut self, at: usize) -> Result<Slot, KernelError> {
        self.written(at)
    }

    fn written(&self, at: usize) -> Result<Slot, KernelError> {
        let mut slot = Slot::EMPTY;
        let entry = self.table.update_variable.expect("the host fills every entry");
        // SAFETY: as in `read`.
        let code = unsafe { entry(self.call.record, self.raw(at)?, &mut slot) };
        check(code, "the variable has no value, or is locked for reading alone")?;
        Ok(slot)
    }
}

impl Drop for VarGuard<'_> {
    fn drop(&mut self) {
        let entry = self.table.unlock_variables.expect("the host fills every entry");
        // SAFETY: this guard locked them.
        unsafe { entry(self.call.record, self.raws.as_ptr(), self.raws.len()) };
    }
}

fn expect<T: Element>(slot: &Slot) -> Result<(), KernelError> {
    expect_type(slot, T::DTYPE)
}

fn expect_type(slot: &Slot, dtype: DType) -> Result<(), KernelError> {
    if slot.dtype == dtype && slot.memory.is_host_address() {
        return Ok(());
    }
    Err(KernelError::invalid_argument(format!(
        "the variable: expected {dtype} in host memory, found {} in memory kind {}",
        slot.dtype, slot.memory.0
    )))
}
