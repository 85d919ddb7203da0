//! Several resource variables at once, and how a variable is read.

use crate::naming::check_shared_name;
use tenon_sdk::prelude::*;

/// Container, name and type of a variable.
struct Handles(Vec<(String, String, DType)>);

impl Kernel for Handles {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let containers: Vec<&str> = c.attr("containers")?;
        let names: Vec<&str> = c.attr("shared_names")?;
        let dtypes: Vec<DType> = c.attr("dtypes")?;
        let count = c.output_types().len();
        for (attr, found) in [
            ("containers", containers.len()),
            ("shared_names", names.len()),
            ("dtypes", dtypes.len()),
        ] {
            if found != count {
                return Err(KernelError::invalid_argument(format!(
                    "{attr}: expected N = {count} of them, found {found}"
                )));
            }
        }
        names.iter().try_for_each(|name| check_shared_name(name))?;
        let handles = containers.iter().zip(&names).zip(&dtypes);
        let owned = |((container, name), dtype): ((&&str, &&str), &DType)| {
            ((*container).to_owned(), (*name).to_owned(), *dtype)
        };
        Ok(Handles(handles.map(owned).collect()))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let state = c.state();
        self.0.iter().enumerate().try_for_each(|(at, (container, name, dtype))| {
            c.output_handle(at, &state.variable(container, name, *dtype)?)
        })
    }
}

register_kernel!("_VarHandlesOp" on "DEFAULT": Handles);

fn read(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let state = c.state();
    (0..c.input_count()).try_for_each(|at| {
        let variable = state.input_variable(at)?;
        state.lock(&[&variable])?.output(0, at)
    })
}

register_kernel!("_ReadVariablesOp" on "DEFAULT": fn read);
