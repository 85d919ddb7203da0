//! `_FusedSoftmaxScale`: a softmax of logits that are scaled and masked.

use super::{
    functions::Special,
    mask::{Mask, at_most_one, prepare},
};
use crate::{
    kernels::{
        linalg::matmul::{convert_down, convert_up},
        nn::softmax::softmax_row,
    },
    lane::Compute,
    panels::{Panels, as_wide},
    split::for_rows,
};
use half::{bf16, f16};
use std::marker::PhantomData;
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::Number,
    geometry::broadcast_shape,
    reg::Numerics,
    register_kernel,
};

struct FusedSoftmaxScale<T> {
    scale: f32,
    element: PhantomData<T>,
}

impl<T: Compute<Wide: Special>> Kernel for FusedSoftmaxScale<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(FusedSoftmaxScale { scale: c.attr("scale")?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let x = c.input::<T>(0)?;
        let mut dims = x.dims.to_vec();
        let mask = match at_most_one("mask", c.input_count() - 1)? {
            true => Some(c.input::<T>(1)?),
            false => None,
        };
        if let Some(mask) = &mask {
            dims = broadcast_shape(&dims, mask.dims)?.to_vec();
        }
        if dims.is_empty() {
            let message = "logits must have at least 1 dimensions, got 0";
            return Err(KernelError::invalid_argument(message));
        }
        let mask = mask.map(|mask| Mask::over(mask.data, mask.dims, &dims));
        let x = Mask::over(x.data, x.dims, &dims);
        let cols = dims.last().map_or(1, |&cols| cols as usize);
        let scale = <T::Wide as Number>::from_f64(self.scale.into());
        let y = c.output::<T>(0, &dims)?.data;
        let panels = Panels::<T::Wide>::new(c, y.len(), narrow_len::<T>(cols))?;
        let cost = softmax_cost::<T>() * cols as f64 + 10.0;
        for_rows(c, y, cols, cost, |first, y| {
            let mut panel = panels.take();
            for (at, y) in y.chunks_exact_mut(cols).enumerate() {
                let row = first + at;
                let mask = mask.as_ref().map(|mask| mask.row(row));
                softmax_of(x.row(row), scale, mask, &mut panel, y);
            }
        })
    }
}

/// Length of a row in the type of computation, if that is a different one.
fn narrow_len<T: Compute>(cols: usize) -> usize {
    if as_wide::<T>(&mut []).is_some() { 0 } else { cols }
}

/// Approximate nanoseconds per element of a softmax.
pub fn softmax_cost<T: Compute<Wide: Special>>() -> f64 {
    <T::Wide as crate::kernels::elementary::Elementary>::COST_NS + 0.7
}

/// Computes one row, of as many logits or of a single repeated one; `wide` has room for the row if
/// it is computed in another type.
fn softmax_of<T: Compute<Wide: Special>>(
    x: &[T],
    scale: T::Wide,
    mask: Option<&[T]>,
    wide: &mut [T::Wide],
    y: &mut [T],
) {
    match x {
        &[one] => y.fill(one),
        x => y.copy_from_slice(x),
    }
    if let Some(y) = as_wide(y) {
        prepare(y, scale, mask);
        softmax_row(y);
        return;
    }
    convert_up(y, wide);
    prepare(wide, scale, mask);
    softmax_row(wide);
    convert_down(wide, y);
}

macro_rules! softmaxes {
    ($($ty:ident, $accumulation:ident, $absolute:expr, $relative:expr;)*) => {$(
        register_kernel!("_FusedSoftmaxScale" on "CPU": FusedSoftmaxScale<T> for "T" in [$ty],
            numerics = Numerics::relative($absolute, $relative).accumulation(DType::$accumulation));
    )*};
}

softmaxes! {
    f32, FLOAT, 1e-7, 1e-5;
    f64, DOUBLE, 1e-16, 1e-13;
    f16, FLOAT, 1e-5, 4e-3;
    bf16, FLOAT, 1e-4, 3.2e-2;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_scaled_and_masked_before_the_softmax() {
        let (x, mask) = ([4.0f32, 8.0, 0.0], [0.0, f32::NEG_INFINITY, 1.0]);
        let mut y = [0.0; 3];
        softmax_of(&x, 0.25, Some(&mask), &mut [], &mut y);
        assert_eq!(y, [0.5, 0.0, 0.5]);
        let narrow = x.map(bf16::from_f32);
        let (mut y, mut wide) = ([bf16::ZERO; 3], [0.0; 3]);
        softmax_of(&narrow, 0.25, Some(&mask.map(bf16::from_f32)), &mut wide, &mut y);
        assert_eq!(y.map(|y| y.to_f32()), [0.5, 0.0, 0.5]);
    }

    #[test]
    fn a_single_logit_is_repeated_along_a_mask() {
        let mut y = [0.0f32; 2];
        softmax_of(&[8.0], 0.25, Some(&[1.0, 1.0]), &mut [], &mut y);
        assert_eq!(y, [0.5, 0.5]);
    }
}
