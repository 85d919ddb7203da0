//! `BiasAdd`, `BiasAddV1`, and their gradient, a sum over everything but the channels.

use crate::{
    arch::vectorised,
    kernels::{
        elementwise::repeated_row,
        math_binary::Add,
        reduction::{Fold, Sum, reduce, rounding_kernels},
    },
    lane::Compute,
    split::{Parts, for_parts, for_units},
};
use half::{bf16, f16};
use num_complex::Complex;
use std::marker::PhantomData;
use tenon_reference::complex::ComplexNumber;
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::{Element, Number},
    geometry::{ChannelSplit, DataFormat, Dims, GeometryError, ReducePlan},
    reg::Numerics,
    register_kernel,
};

struct BiasAdd<T> {
    format: DataFormat,
    element: PhantomData<T>,
}

/// The format attribute; channels last for `BiasAddV1`, which does not have it.
fn format(c: &CreateContext<'_>) -> Result<DataFormat, KernelError> {
    match c.attrs().has("data_format") {
        true => Ok(DataFormat::parse(c.attr("data_format")?)?),
        false => Ok(DataFormat::Nhwc),
    }
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
        Ok(BiasAdd { format: format(c)?, element: PhantomData })
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

struct ComplexBiasAdd<T> {
    format: DataFormat,
    element: PhantomData<T>,
}

impl<T: ComplexNumber> Kernel for ComplexBiasAdd<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(ComplexBiasAdd { format: format(c)?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let split = ChannelSplit::with_vector(c.dims(0), self.format, "bias", c.dims(1))?;
        let (x, bias) = (c.input::<T>(0)?, c.input::<T>(1)?.data);
        let y = c.output::<T>(0, x.dims)?.data;
        for_parts(c, y, 1.0, |start, y| {
            for (at, (y, &x)) in (start..).zip(y.iter_mut().zip(&x.data[start..])) {
                *y = x + bias[at / split.inner % split.channels];
            }
        })
    }
}

struct BiasAddGrad<T> {
    format: DataFormat,
    element: PhantomData<T>,
}

impl<T: Element> Kernel for BiasAddGrad<T>
where
    Sum: Fold<T>,
{
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(BiasAddGrad { format: format(c)?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let x = c.input::<T>(0)?;
        let rank = x.dims.len();
        if rank < 2 {
            let what = "out_backprop";
            return Err(GeometryError::RankTooSmall { what, expected: 2, found: rank }.into());
        }
        let channel = self.format.channel_dim(rank);
        let mut axes = Dims::EMPTY;
        let mut others = (0..rank).filter(|&axis| axis != channel);
        others.try_for_each(|axis| axes.push(axis as i64))?;
        let plan = ReducePlan::new(x.dims, &axes, false)?;
        let y = c.output::<T>(0, plan.output_dims())?.data;
        reduce::<T, Sum>(c, &plan, x.data, y)
    }
}

rounding_kernels! {
    "BiasAddGrad": [BiasAddGrad];
}

register_kernel!("BiasAdd" on "CPU": ComplexBiasAdd<T> for "T" in [Complex<f32>, Complex<f64>],
    numerics = Numerics::EXACT);
register_kernel!("BiasAddV1" on "CPU": ComplexBiasAdd<T> for "T" in [Complex<f32>, Complex<f64>],
    numerics = Numerics::EXACT);
register_kernel!("BiasAddV1" on "CPU": BiasAdd<T>
    for "T" in [i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64],
    in_place = &[(0, 0)], numerics = Numerics::EXACT);
register_kernel!("BiasAdd" on "CPU": BiasAdd<T>
    for "T" in [i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64],
    in_place = &[(0, 0)], numerics = Numerics::EXACT);
