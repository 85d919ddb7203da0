//! `BiasAdd`.

use crate::{
    arch::vectorised,
    kernels::{elementwise::repeated_row, math_binary::Add},
    lane::Compute,
    split::{Parts, for_units},
};
use half::{bf16, f16};
use std::marker::PhantomData;
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::Number,
    geometry::{ChannelSplit, DataFormat},
    reg::Numerics,
    register_kernel,
};

struct BiasAdd<T> {
    format: DataFormat,
    element: PhantomData<T>,
}

vectorised! {
    /// `y[i] = x[i] + bias`.
    fn add_one[T: Compute](x: &[T], bias: T, y: &mut [T]) {
        for (y, &x) in y.iter_mut().zip(x) {
            *y = T::down(x.up().add(bias.up()));
        }
    }
}

impl<T: Compute> Kernel for BiasAdd<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let format = DataFormat::parse(c.attr("data_format")?)?;
        Ok(BiasAdd { format, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let split = ChannelSplit::with_vector(c.dims(0), self.format, "bias", c.dims(1))?;
        if split.inner == 1 {
            return repeated_row::<T, Add>(c);
        }
        let (x, bias) = (c.input::<T>(0)?, c.input::<T>(1)?.data);
        let y = c.output::<T>(0, x.dims)?.data;
        if y.is_empty() {
            return Ok(());
        }
        let y = Parts::new(y);
        for_units(c, split.outer * split.channels, 0.2 * split.inner as f64, |range| {
            for plane in range {
                let at = plane * split.inner..(plane + 1) * split.inner;
                // SAFETY: each unit has a plane of its own.
                let y = unsafe { y.part(at.clone()) };
                add_one(&x.data[at], bias[plane % split.channels], y);
            }
        })
    }
}

register_kernel!("BiasAdd" on "CPU": BiasAdd<T>
    for "T" in [i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64],
    in_place = &[(0, 0)], numerics = Numerics::EXACT);
