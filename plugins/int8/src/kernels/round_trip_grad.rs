//! `QuantizeAndDequantizeV4Grad`: gradients are passed on within the range of their channel. The
//! gradients of the ends are 0, as in TensorFlow.

use super::channels::{axis, check_ends, split};
use std::marker::PhantomData;
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::Number,
    reg::Numerics,
    register_kernel,
};

/// Least number of elements that a thread computes at a time.
const BLOCK: usize = 1 << 14;

struct Grad<T> {
    axis: Option<i64>,
    of: PhantomData<T>,
}

impl<T: Number> Kernel for Grad<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Grad { axis: axis(c)?, of: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (gradients, x) = (c.input::<T>(0)?, c.input::<T>(1)?);
        if gradients.dims != x.dims {
            return Err(KernelError::invalid_argument(format!(
                "gradients and input must have one shape, found {:?} and {:?}",
                gradients.dims, x.dims
            )));
        }
        let split = split(x.dims, self.axis)?;
        check_ends("input_min", c.dims(2), self.axis, split.len)?;
        check_ends("input_max", c.dims(3), self.axis, split.len)?;
        let (min, max) = (c.input::<T>(2)?, c.input::<T>(3)?);
        let y = c.output::<T>(0, x.dims)?.data;
        c.output::<T>(1, min.dims)?.data.fill(T::ZERO);
        c.output::<T>(2, max.dims)?.data.fill(T::ZERO);
        if y.is_empty() {
            return Ok(());
        }
        // Whole rows of channels, or any part of a single one.
        let (inner, row) = match split.len {
            1 => (BLOCK, BLOCK),
            channels => (split.inner, channels * split.inner),
        };
        let block = BLOCK.div_ceil(row) * row;
        let ys = y.chunks_mut(block).zip(gradients.data.chunks(block)).zip(x.data.chunks(block));
        c.parallel_items(ys, 0.7 * block as f64, |_, ((y, gradients), x)| {
            let parts = y.chunks_mut(inner).zip(gradients.chunks(inner)).zip(x.chunks(inner));
            for (at, ((y, gradients), x)) in parts.enumerate() {
                let channel = at % split.len;
                let (min, max) = (min.data[channel], max.data[channel]);
                for ((y, gradient), &x) in y.iter_mut().zip(gradients).zip(x) {
                    let within = if x >= min && x <= max { T::ONE } else { T::ZERO };
                    *y = gradient.mul(within);
                }
            }
            Ok(())
        })
    }
}

register_kernel!("QuantizeAndDequantizeV4Grad" on "CPU": Grad<T> for "T" in [f32, f64],
    host_memory = &["input_min", "input_max"], numerics = Numerics::EXACT);
