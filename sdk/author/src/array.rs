//! `ndarray` views of host memory, made on request, without a copy.

use ndarray::{ArrayViewD, ArrayViewMutD, IxDyn};
use tenon_framework::{KernelError, View, ViewMut};

fn dims(dims: &[i64]) -> IxDyn {
    IxDyn(&dims.iter().map(|&dim| dim as usize).collect::<Vec<_>>())
}

/// An input as an `ndarray` view.
///
/// # Errors
/// `INTERNAL` when dimensions and elements disagree, which a view from a context never does.
pub fn array_view<'a, T>(view: &View<'a, T>) -> Result<ArrayViewD<'a, T>, KernelError> {
    ArrayViewD::from_shape(dims(view.dims), view.data)
        .map_err(|e| KernelError::internal(format!("a view of {:?}: {e}", view.dims)))
}

/// An output as an `ndarray` view.
///
/// # Errors
/// As [`array_view`].
pub fn array_view_mut<'a, T>(view: ViewMut<'a, T>) -> Result<ArrayViewMutD<'a, T>, KernelError> {
    let shape = dims(view.dims);
    ArrayViewMutD::from_shape(shape, view.data)
        .map_err(|e| KernelError::internal(format!("a view of {:?}: {e}", view.dims)))
}
