//! Access of this plugin's kernels to files.

pub use tenon_files::{Access, path_of};
use tenon_sdk::prelude::*;

tenon_files::register_file_knobs!();

/// The access that a node's session permits.
///
/// # Errors
/// `INVALID_ARGUMENT` for a knob's value that says nothing.
pub fn access(c: &CreateContext<'_>) -> Result<Access, KernelError> {
    Access::read("data", c.knobs())
}
