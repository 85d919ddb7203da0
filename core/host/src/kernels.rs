//! The host's own kernels, for every device type (`DEFAULT`): ops that do not move elements.
//!
//! They only use shapes, which are in host memory on any device, and return their inputs' buffers,
//! so that a device's author need not write them. Arguments with shapes, axes and sizes are in host
//! memory. The geometry is `tenon_geometry`'s, like that of the ops' shape functions.

mod control;
mod identity;
mod query;
mod reshape;
mod source;

use tenon_author::ComputeContext;
use tenon_framework::KernelError;
use tenon_geometry::GeometryError;

tenon_author::kernels_check_shapes!();

/// Cost of such a kernel, independent of size: fixed nanoseconds, and nanoseconds per element.
const COST: (f64, f64) = (30.0, 0.0);

/// Returns an input's buffer as the output with the same index, with the input's shape.
fn pass_on(c: &ComputeContext<'_>, at: usize) -> Result<(), KernelError> {
    c.share(at, at, c.dims(at))
}

/// An error of the shared geometry as a kernel's error.
fn wrong(error: GeometryError) -> KernelError {
    error.into()
}

#[cfg(all(test, not(loom)))]
mod tests;
