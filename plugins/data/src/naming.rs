//! Under which name a variable is found.

use tenon_sdk::prelude::*;

/// The container, name and type of a variable, from the attributes of the node that makes it.
pub struct Named {
    pub container: String,
    pub name: String,
    pub dtype: DType,
}

impl Named {
    /// The attributes `container`, `shared_name` and `dtype`; without a shared name, the name of the node.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a shared name that begins with `_`, which is for names of the host's own.
    pub fn new(c: &CreateContext<'_>) -> Result<Named, KernelError> {
        let shared: &str = c.attr("shared_name")?;
        check_shared_name(shared)?;
        let name = if shared.is_empty() { c.node() } else { shared };
        let container = c.attr::<&str>("container")?.to_owned();
        Ok(Named { container, name: name.to_owned(), dtype: c.attr("dtype")? })
    }
}

/// Checks a name that a graph gives.
///
/// # Errors
/// `INVALID_ARGUMENT` for one that begins with `_`, which is for names of the host's own.
pub fn check_shared_name(shared: &str) -> Result<(), KernelError> {
    if !shared.starts_with('_') {
        return Ok(());
    }
    Err(KernelError::invalid_argument(format!(
        "shared_name: expected a name that does not begin with '_', found '{shared}'"
    )))
}
