//! Checkpoints on the CPU: kernels that save and restore tensors.
//!
//! What it is: a plugin with the kernels of TensorFlow's ops for checkpoints, of both formats, for device type `CPU`.
//! `save` writes, `restore` reads, `remap` reads rows and columns into other places, `merge` makes one bundle of several; `inputs` reads their texts, `variants` encodes and
//! decodes variants.
//!
//! What it is not: the forms of the files, which are in `tenon-bundle`; the ops, which `core/ops` defines; the names of
//! shards (`ShardedFilename`), which plugins/text makes.
//!
//! # Invariants
//! - Every access to a file goes through `tenon-files`, which asks the knob `checkpoint.files`.
//! - Kernels run on threads that may wait for a disk.
//! - Elements go from the inputs to the files, and from the files to the outputs, without a copy of a whole tensor between
//!   them, unless they are strings, variants or parts.

mod inputs;
mod merge;
mod remap;
mod restore;
mod save;
mod variants;

tenon_sdk::export_plugin!();
tenon_sdk::kernels_check_shapes!();
tenon_files::register_file_knobs!(files);

use tenon_files::Access;
use tenon_sdk::prelude::*;

/// The access that a node's session permits.
///
/// # Errors
/// `INVALID_ARGUMENT` for a knob's value that says nothing.
fn access(c: &CreateContext<'_>) -> Result<Access, KernelError> {
    Access::of_files("checkpoint", c.knobs())
}

/// Declares a kernel that may wait for a disk, and has access to files.
macro_rules! on_disk {
    ($op:literal, $kernel:ident, $compute:path) => {
        struct $kernel(tenon_files::Access);

        impl Kernel for $kernel {
            const MODE: Mode = Mode::Blocking;

            fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
                crate::access(c).map($kernel)
            }

            fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
                $compute(c, &self.0)
            }
        }

        register_kernel!($op on "CPU": $kernel, numerics = Numerics::EXACT);
    };
}
use on_disk;
