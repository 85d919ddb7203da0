//! The host's own kernels, for every device type (`DEFAULT`): ops that move no elements.
//!
//! They look at shapes, which are in host memory on any device, and return their inputs' buffers, so that a
//! device's author need not write them. Arguments that hold shapes, axes and sizes lie in host memory. The
//! geometry is `tenon_geometry`'s, which the ops' shape functions use too.

mod control;
mod identity;
mod query;
mod reshape;
mod source;

use tenon_framework::{KernelError, author::ComputeContext};
use tenon_geometry::GeometryError;

tenon_framework::kernels_check_shapes!();

/// What such a kernel costs whatever the size: nanoseconds fixed, and per element.
const COST: (f64, f64) = (30.0, 0.0);

/// Returns an input's buffer as the output of the same number, under its own shape.
fn pass_on(c: &ComputeContext<'_>, at: usize) -> Result<(), KernelError> {
    c.share(at, at, c.dims(at))
}

/// An error of the shared geometry, for a kernel's user.
fn wrong(error: GeometryError) -> KernelError {
    error.into()
}

#[cfg(all(test, not(loom)))]
mod tests;
