//! Variables and reference slots, as a kernel sees them. Resources of a plugin's own: `resource.rs`.

use crate::{
    cells::Cells, compute::ComputeContext, kept::Kept, resource::state_table, slots, slots::view,
};
use smallvec::SmallVec;
use std::{marker::PhantomData, slice};
use tenon_abi::{Call, Code, DType, Resource, Slot, StateTable, Str, StringElement, Variable};
use tenon_framework::{
    KernelError, View, ViewMut, element::Element, plugin::host, resource::step_container,
};

/// Name of the type of variables among the host's resources.
const VARIABLE_TYPE: &str = "tenon.Variable";

/// The state services of one call.
pub struct StateContext<'a> {
    pub(super) call: &'a Call,
    pub(super) table: &'static StateTable,
}

impl<'a> StateContext<'a> {
    /// Wraps the call.
    ///
    /// # Safety
    /// The call lives for `'a`.
    pub(super) unsafe fn new(call: &'a Call) -> StateContext<'a> {
        StateContext { call, table: state_table() }
    }

    /// Finds the variable of this name, or makes one without a value.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when the name belongs to a resource of another kind.
    pub fn variable(
        &self,
        container: &str,
        name: &str,
        dtype: DType,
    ) -> Result<Var<'a>, KernelError> {
        let mut raw = std::ptr::null_mut();
        let entry = self.table.variable.expect("the host fills every entry");
        // SAFETY: names and result live through the call.
        let code = unsafe {
            entry(self.call.record, Str::new(container), Str::new(name), dtype, &mut raw)
        };
        check(code, "cannot find or make the variable")?;
        Ok(Var { raw, owned: true, lent: PhantomData })
    }

    /// Removes the variable of this name from the call's device; returns whether there was one. Handles and
    /// references to it stay valid.
    ///
    /// # Errors
    /// A name that the host refuses.
    pub fn remove_variable(&self, container: &str, name: &str) -> Result<bool, KernelError> {
        let entry = self.table.remove_resource.expect("the host fills every entry");
        let (container, name) = (Str::new(container), Str::new(name));
        // SAFETY: names live through the call.
        match unsafe { entry(self.call.record, container, name, Str::new(VARIABLE_TYPE)) } {
            Code::NOT_FOUND => Ok(false),
            code => check(code, "cannot remove the variable").map(|()| true),
        }
    }

    /// The variable behind element 0 of a resource input.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when the input is not a resource, or not a variable's.
    pub fn input_variable(&self, input: usize) -> Result<Var<'a>, KernelError> {
        let error = || {
            KernelError::invalid_argument(format!(
                "input {input}: expected the handle of a variable"
            ))
        };
        let element = self.input_element(input).ok_or_else(error)?;
        // SAFETY: the input's element lives during the call; null is allowed.
        let raw = unsafe { self.table.as_variable.expect("the host fills every entry")(element) };
        if raw.is_null() {
            return Err(error());
        }
        Ok(Var { raw, owned: false, lent: PhantomData })
    }

    /// The variable behind a reference input.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when the input is not a reference.
    pub fn input_ref(&self, input: usize) -> Result<Var<'a>, KernelError> {
        let raw = if input < self.call.input_count as usize {
            // SAFETY: `input_count` pointers to filled slots.
            unsafe {
                self.table.ref_variable.expect("the host fills every entry")(
                    *self.call.inputs.add(input),
                )
            }
        } else {
            std::ptr::null_mut()
        };
        if raw.is_null() {
            return Err(KernelError::invalid_argument(format!(
                "input {input}: expected a reference to a variable"
            )));
        }
        Ok(Var { raw, owned: false, lent: PhantomData })
    }

    /// Makes an output a reference to a variable.
    ///
    /// # Errors
    /// `INTERNAL` when the output is not of a reference type.
    pub fn output_ref(&self, variable: &Var<'_>, output: usize) -> Result<(), KernelError> {
        let entry = self.table.output_ref.expect("the host fills every entry");
        // SAFETY: the variable is alive.
        let code = unsafe { entry(self.call.record, variable.raw, output as u32) };
        check(code, "cannot return a reference")
    }

    /// The strings behind a reference input, such as the container and name of something.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when the input is not a reference to strings; as [`StateContext::lock`].
    pub fn input_ref_strings(&self, input: usize) -> Result<Vec<String>, KernelError> {
        let kept = self.snapshot(&self.input_ref(input)?)?;
        if kept.dtype() != DType::STRING {
            return Err(KernelError::invalid_argument(format!(
                "input {input}: expected a reference to strings, found {}",
                kept.dtype()
            )));
        }
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(kept.strings()?.into_iter().map(text).collect())
    }

    /// Returns the value of a variable as it is now as an output, without a copy. The variable is locked for reading only
    /// while the reference is taken.
    ///
    /// # Errors
    /// As [`StateContext::snapshot`].
    pub fn output_value(&self, variable: &Var<'a>, output: usize) -> Result<(), KernelError> {
        let entry = self.table.output_value.expect("the host fills every entry");
        // SAFETY: the variable is alive.
        let code = unsafe { entry(self.call.record, variable.raw, output as u32) };
        check(code, "the variable has no value")
    }

    /// The value of a variable as it is now, without a copy: later assignments and updates do not change it, and it
    /// makes no other call wait. The variable is locked only while the reference is taken.
    ///
    /// # Errors
    /// `FAILED_PRECONDITION` when it has no value; as [`StateContext::lock`].
    pub fn snapshot(&self, variable: &Var<'a>) -> Result<Kept, KernelError> {
        let variables = [variable];
        let locked = self.lock(&variables)?;
        // SAFETY: the slot shows the value of a variable that is locked.
        unsafe { Kept::of(&locked.read(0)?) }
            .ok_or_else(|| KernelError::internal("the variable's value cannot be kept"))
    }

    /// Locks variables, in an order of the host's, until the guard is dropped.
    ///
    /// # Errors
    /// `CANCELLED` when the step was cancelled while it waited.
    pub fn lock<'v>(&self, variables: &'v [&'v Var<'a>]) -> Result<VarGuard<'v>, KernelError>
    where
        'a: 'v,
    {
        let raws = raws_of(variables);
        let entry = self.table.lock_variables.expect("the host fills every entry");
        // SAFETY: the variables are alive.
        let code = unsafe { entry(self.call.record, raws.as_ptr(), raws.len()) };
        check(code, "cannot lock the variables")?;
        Ok(VarGuard { call: self.call, raws, table: self.table })
    }

    /// Locks variables for reading, at the same time as other readers, until the guard is dropped.
    ///
    /// # Errors
    /// As [`StateContext::lock`].
    pub fn share<'v>(&self, variables: &'v [&'v Var<'a>]) -> Result<SharedVars<'v>, KernelError>
    where
        'a: 'v,
    {
        self.shared(variables, 0)
    }

    /// Locks variables for updates of some of their elements in place, at the same time as other calls that do so or
    /// read, until the guard is dropped. From then on, calls that read a variable outside the lock get a copy of its
    /// value.
    ///
    /// # Errors
    /// As [`StateContext::lock`]; there is no memory for a copy of a value that another reader still holds.
    pub fn share_for_update<'v>(
        &self,
        variables: &'v [&'v Var<'a>],
    ) -> Result<SharedVars<'v>, KernelError>
    where
        'a: 'v,
    {
        self.shared(variables, 1)
    }

    fn shared<'v>(
        &self,
        variables: &'v [&'v Var<'a>],
        update: u32,
    ) -> Result<SharedVars<'v>, KernelError>
    where
        'a: 'v,
    {
        let raws = raws_of(variables);
        let entry = self.table.share_variables.expect("the host fills every entry");
        // SAFETY: the variables are alive.
        let code = unsafe { entry(self.call.record, raws.as_ptr(), raws.len(), update) };
        check(code, "cannot lock the variables")?;
        Ok(SharedVars(VarGuard { call: self.call, raws, table: self.table }))
    }

    /// The container of the call's step, for [`StateContext::variable`] and resources: its content is dropped with
    /// the step.
    pub fn step_container(&self) -> String {
        // SAFETY: the host gives a step that lives through the call.
        step_container(unsafe { (*self.call.step).step_id })
    }
}

impl ComputeContext<'_> {
    /// Makes an output a reference to strings of its own, such as the container and name of something that
    /// [`StateContext::input_ref_strings`] then finds.
    ///
    /// # Errors
    /// As [`ComputeContext::set_strings`] and [`StateContext::output_ref`].
    pub fn output_ref_to_strings(
        &self,
        output: usize,
        strings: &[&str],
    ) -> Result<(), KernelError> {
        self.set_strings(output, &[strings.len() as i64], strings.iter())?;
        let state = self.state();
        state.output_ref(&state.variable("", "", DType::STRING)?, output)
    }
}

/// Variables that several calls have locked at the same time, by their position in the call of
/// [`StateContext::share`] or [`StateContext::share_for_update`].
pub struct SharedVars<'v>(VarGuard<'v>);

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
    /// As [`VarGuard::read`]; `FAILED_PRECONDITION` unless it is locked by [`StateContext::share_for_update`].
    pub fn update(&self, at: usize) -> Result<Slot, KernelError> {
        self.0.written(at)
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

/// Variables of a call; a list of the usual length needs no memory.
type Raws = SmallVec<[*mut Variable; 6]>;

fn raws_of(variables: &[&Var<'_>]) -> Raws {
    let mut raws = Raws::new();
    variables.iter().for_each(|variable| raws.push(variable.raw));
    raws
}

/// A variable.
pub struct Var<'a> {
    raw: *mut Variable,
    owned: bool,
    lent: PhantomData<&'a Call>,
}

impl Var<'_> {
    /// The resource of the variable, without a new reference.
    pub(super) fn resource(&self) -> *mut Resource {
        let entry = state_table().variable_resource.expect("the host fills every entry");
        // SAFETY: the variable is alive.
        unsafe { entry(self.raw) }
    }
}

impl Drop for Var<'_> {
    fn drop(&mut self) {
        if self.owned {
            let entry = state_table().release_resource.expect("the host fills every entry");
            // SAFETY: this object holds one reference.
            unsafe { entry(self.resource()) };
        }
    }
}

/// Locked variables, by their position in the call of [`StateContext::lock`].
pub struct VarGuard<'v> {
    call: &'v Call,
    raws: Raws,
    table: &'static StateTable,
}

impl VarGuard<'_> {
    fn raw(&self, at: usize) -> Result<*mut Variable, KernelError> {
        self.raws
            .get(at)
            .copied()
            .ok_or_else(|| KernelError::internal(format!("variable {at} is not locked")))
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
        let mut slots = [Slot::EMPTY; N];
        for (at, slot) in slots.iter_mut().enumerate() {
            let raw = self.raw(at)?;
            if let Some(same) = self.raws[..at].iter().position(|&other| other == raw) {
                return Err(KernelError::invalid_argument(format!(
                    "variables {same} and {at}: expected two variables, found one"
                )));
            }
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

pub(super) fn check(code: Code, what: &str) -> Result<(), KernelError> {
    if code.is_ok() { Ok(()) } else { Err(KernelError::new(code, what)) }
}
