//! Resources, variables and reference slots, as a kernel sees them.

use super::{host::host, host::report};
use crate::KernelError;
use std::{ffi::c_void, marker::PhantomData};
use tenon_abi::{
    Call, Code, DType, Resource, ResourceElement, ResourceFactory, ResourceType, Sink, Slot,
    StateTable, Str, Variable,
};

/// The state services of one call.
pub struct StateContext<'a> {
    call: &'a Call,
    table: &'static StateTable,
}

/// A counted reference to a resource whose value is a `T`.
pub struct Ref<T> {
    raw: *mut Resource,
    value: *const T,
}

// SAFETY: the count is the host's and takes any thread; the value is shared as a `&T`.
unsafe impl<T: Send + Sync> Send for Ref<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Ref<T> {}

impl<T> std::ops::Deref for Ref<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the reference keeps the value alive.
        unsafe { &*self.value }
    }
}

impl<T> Drop for Ref<T> {
    fn drop(&mut self) {
        let table = state_table();
        // SAFETY: this object holds one reference.
        unsafe { table.release_resource.expect("the host fills every entry")(self.raw) };
    }
}

fn state_table() -> &'static StateTable {
    // SAFETY: the host's table lives as long as the process.
    unsafe { &*host().state }
}

/// The type of a plugin's own resources: frees a boxed `T`.
pub const fn resource_type<T: Send + Sync + 'static>(name: &'static str) -> ResourceType {
    unsafe extern "C" fn destroy<T>(value: *mut c_void) {
        // SAFETY: the host gives back what the factory made, once.
        let _ = super::guard::guard(|| drop(unsafe { Box::from_raw(value.cast::<T>()) }));
    }
    ResourceType {
        struct_size: size_of::<ResourceType>() as u32,
        reserved: 0,
        name: Str::new(name),
        destroy: Some(destroy::<T>),
        ext: std::ptr::null(),
    }
}

struct Factory<F> {
    make: Option<F>,
}

unsafe extern "C" fn run_factory<T, F: FnOnce() -> Result<T, KernelError>>(
    data: *mut c_void,
    value: *mut *mut c_void,
    sink: *mut Sink,
) -> Code {
    // SAFETY: `data` is the `Factory` of the running look-up; the host runs it at most once.
    unsafe {
        let factory = &mut *data.cast::<Factory<F>>();
        let Some(make) = factory.make.take() else { return Code::INTERNAL };
        match super::guard::guard(make) {
            Ok(Ok(made)) => {
                *value = Box::into_raw(Box::new(made)).cast();
                Code::OK
            }
            Ok(Err(error)) => report(sink, &error),
            Err(panic) => {
                report(sink, &KernelError::internal(format!("making a resource panicked: {panic}")))
            }
        }
    }
}

impl<'a> StateContext<'a> {
    /// Wraps the call.
    ///
    /// # Safety
    /// The call lives for `'a`.
    pub(super) unsafe fn new(call: &'a Call) -> StateContext<'a> {
        StateContext { call, table: state_table() }
    }

    /// Finds the resource of this name, or makes it. An empty container is the default one.
    ///
    /// # Errors
    /// What `make` says; `INVALID_ARGUMENT` when the name belongs to a resource of another type.
    ///
    /// # Safety
    /// Values of `kind` are boxed `T`s: it was made by [`resource_type`] of the same `T`.
    pub unsafe fn find_or_make<T: Send + Sync + 'static, F: FnOnce() -> Result<T, KernelError>>(
        &self,
        container: &str,
        name: &str,
        kind: &'static ResourceType,
        make: F,
    ) -> Result<Ref<T>, KernelError> {
        let mut factory = Factory { make: Some(make) };
        let mut raw = std::ptr::null_mut();
        let entry = self.table.resource.expect("the host fills every entry");
        // SAFETY: names, factory and result live through the call.
        unsafe {
            let code = entry(
                self.call.record,
                Str::new(container),
                Str::new(name),
                kind,
                ResourceFactory { run: Some(run_factory::<T, F>) },
                (&raw mut factory).cast(),
                &mut raw,
            );
            check(code, "cannot find or make the resource")?;
            let value = self.table.resource_value.expect("the host fills every entry")(raw, kind);
            Ok(Ref { raw, value: value.cast_const().cast() })
        }
    }

    /// Finds the variable of this name, or makes one without a value.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when the name belongs to something else.
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

    /// The variable behind element 0 of a resource input.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when the input is no resource or not a variable's.
    pub fn input_variable(&self, input: usize) -> Result<Var<'a>, KernelError> {
        let error = || {
            KernelError::invalid_argument(format!(
                "input {input}: expected the handle of a variable"
            ))
        };
        if input >= self.call.input_count as usize {
            return Err(error());
        }
        // SAFETY: `input_count` pointers to filled slots; a resource slot holds resource elements.
        let raw = unsafe {
            let slot = &**self.call.inputs.add(input);
            if slot.dtype != DType::RESOURCE || slot.elements == 0 || slot.data.is_null() {
                return Err(error());
            }
            let element = *slot.data.cast::<ResourceElement>();
            self.table.as_variable.expect("the host fills every entry")(element.resource)
        };
        if raw.is_null() {
            return Err(error());
        }
        Ok(Var { raw, owned: false, lent: PhantomData })
    }

    /// The variable behind a reference input.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when the input is no reference.
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

    /// Writes the handle of a variable into element 0 of a resource output that is set and empty.
    ///
    /// # Errors
    /// `INTERNAL` when the output is no resource.
    pub fn output_handle(&self, variable: &Var<'_>, output: &Slot) -> Result<(), KernelError> {
        if output.dtype != DType::RESOURCE || output.elements == 0 || output.data.is_null() {
            return Err(KernelError::internal("expected a resource output with one element"));
        }
        // SAFETY: the variable is alive; the element belongs to the output, which owns one reference.
        unsafe {
            let resource =
                self.table.variable_resource.expect("the host fills every entry")(variable.raw);
            self.table.retain_resource.expect("the host fills every entry")(resource);
            *output.data.cast::<ResourceElement>() = ResourceElement { resource };
        }
        Ok(())
    }

    /// Locks variables, in an order of the host's, until the guard is dropped.
    ///
    /// # Errors
    /// `CANCELLED` when the step was cancelled while it waited.
    pub fn lock<'v>(&self, variables: &'v [&'v Var<'a>]) -> Result<VarGuard<'v>, KernelError>
    where
        'a: 'v,
    {
        let raws: Vec<*mut Variable> = variables.iter().map(|variable| variable.raw).collect();
        let entry = self.table.lock_variables.expect("the host fills every entry");
        // SAFETY: the variables are alive.
        let code = unsafe { entry(self.call.record, raws.as_ptr(), raws.len()) };
        check(code, "cannot lock the variables")?;
        Ok(VarGuard { call: self.call, raws, table: self.table })
    }
}

/// A variable.
pub struct Var<'a> {
    raw: *mut Variable,
    owned: bool,
    lent: PhantomData<&'a Call>,
}

impl Drop for Var<'_> {
    fn drop(&mut self) {
        if self.owned {
            let table = state_table();
            // SAFETY: this object holds one reference.
            unsafe {
                let resource =
                    table.variable_resource.expect("the host fills every entry")(self.raw);
                table.release_resource.expect("the host fills every entry")(resource);
            }
        }
    }
}

/// Locked variables, by their position in the call of [`StateContext::lock`].
pub struct VarGuard<'v> {
    call: &'v Call,
    raws: Vec<*mut Variable>,
    table: &'static StateTable,
}

impl VarGuard<'_> {
    fn raw(&self, at: usize) -> Result<*mut Variable, KernelError> {
        self.raws
            .get(at)
            .copied()
            .ok_or_else(|| KernelError::internal(format!("variable {at} is not locked")))
    }

    /// The value, valid while it is locked and not assigned.
    ///
    /// # Errors
    /// `FAILED_PRECONDITION` when it has none.
    pub fn read(&self, at: usize) -> Result<Slot, KernelError> {
        let mut slot = Slot::EMPTY;
        let entry = self.table.read_variable.expect("the host fills every entry");
        // SAFETY: the variable is locked by this guard.
        let code = unsafe { entry(self.call.record, self.raw(at)?, &mut slot) };
        check(code, "the variable has no value: run its initialiser first")?;
        Ok(slot)
    }

    /// Returns the value as an output, without a copy.
    ///
    /// # Errors
    /// As [`VarGuard::read`].
    pub fn output(&self, at: usize, output: usize) -> Result<(), KernelError> {
        let entry = self.table.output_variable.expect("the host fills every entry");
        // SAFETY: as in `read`.
        let code = unsafe { entry(self.call.record, self.raw(at)?, output as u32) };
        check(code, "the variable has no value: run its initialiser first")
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

    /// The value, to be written in place; readers of the old value keep it.
    ///
    /// # Errors
    /// As [`VarGuard::read`].
    pub fn update(&mut self, at: usize) -> Result<Slot, KernelError> {
        let mut slot = Slot::EMPTY;
        let entry = self.table.update_variable.expect("the host fills every entry");
        // SAFETY: as in `read`.
        let code = unsafe { entry(self.call.record, self.raw(at)?, &mut slot) };
        check(code, "the variable has no value: run its initialiser first")?;
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

fn check(code: Code, what: &str) -> Result<(), KernelError> {
    if code.is_ok() { Ok(()) } else { Err(KernelError::new(code, what)) }
}
