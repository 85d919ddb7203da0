//! `_QuantizedFusedAdd`: the residual addition.

use super::scales::{OUT, activation, affine};
use crate::{
    isa::{Isa, Summand, chosen},
    kernels::pairs::for_runs,
    residual::Residual,
};
use std::marker::PhantomData;
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::{Element, QInt8, QUInt8},
    fixed_point::{Activation, Addition, QuantizedRange},
    reg::Numerics,
    register_kernel,
};

struct Add<T> {
    activation: Activation,
    isa: &'static Isa,
    of: PhantomData<fn() -> T>,
}

impl<T: Summand> Kernel for Add<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Add { activation: activation(c)?, isa: chosen(c.knobs())?, of: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let a = affine::<T>(c, 2, ["a_scale", "a_zero_point"])?;
        let b = affine::<T>(c, 4, ["b_scale", "b_zero_point"])?;
        let out = affine::<T>(c, 6, OUT)?;
        let range = QuantizedRange::new(self.activation, T::DTYPE, out.scale, out.zero_point)?;
        let addition = Addition::new([a.scale, b.scale], out.scale)?;
        let zeros = [a.zero_point, b.zero_point, out.zero_point];
        let residual = Residual { addition, zeros, range };
        for_runs(c, 0.15, |x: &[T], y: &[T], strides, z: &mut [T]| match strides {
            [0, _] => z.iter_mut().zip(y).for_each(|(z, &y)| *z = residual.of(x[0], y)),
            [_, 0] => z.iter_mut().zip(x).for_each(|(z, &x)| *z = residual.of(x, y[0])),
            _ => self.isa.add(&residual, x, y, z),
        })
    }
}

register_kernel!("_QuantizedFusedAdd" on "CPU": Add<QUInt8>, types = ("T", &[<QUInt8 as Element>::DTYPE]),
    numerics = Numerics::EXACT);
register_kernel!("_QuantizedFusedAdd" on "CPU": Add<QInt8>, types = ("T", &[<QInt8 as Element>::DTYPE]),
    numerics = Numerics::EXACT);
