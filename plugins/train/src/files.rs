//! Access of this plugin's kernels to files.

use tenon_files::Access;
use tenon_sdk::prelude::*;

tenon_files::register_file_knobs!();

/// The access that a node's session permits.
///
/// # Errors
/// `INVALID_ARGUMENT` for a value of a knob that does not fit.
pub fn access(c: &CreateContext<'_>) -> Result<Access, KernelError> {
    Access::read("train", c.knobs())
}
