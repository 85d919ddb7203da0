//! Variables and reference slots, as a kernel sees them. Resources of a plugin's own: `resource.rs`.

mod guards;

use crate::{compute::ComputeContext, kept::Kept, resource::state_table};
pub use guards::{SharedVars, VarGuard};
use smallvec::SmallVec;
use std::marker::PhantomData;
use tenon_abi::{Call, Code, DType, Resource, StateTable, Str, Variable};
use tenon_framework::{KernelError, resource::step_container};

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

    /// Returns the value of a variable as it is now as an output: without a copy, or as a copy if the variable was shared
    /// for an update before. The call must not have locked the variable, since it would wait for itself.
    ///
    /// # Errors
    /// As [`StateContext::snapshot`].
    pub fn output_value(&self, variable: &Var<'a>, output: usize) -> Result<(), KernelError> {
        let entry = self.table.output_value.expect("the host fills every entry");
        // SAFETY: the variable is alive.
        let code = unsafe { entry(self.call.record, variable.raw, output as u32) };
        check(code, "cannot return the value of the variable")
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

pub(super) fn check(code: Code, what: &str) -> Result<(), KernelError> {
    if code.is_ok() { Ok(()) } else { Err(KernelError::new(code, what)) }
}
