//! `_QuantizedFusedAdd`: the residual addition.

use super::scales::{OUT, activation, affine};
use crate::kernels::pairs::for_pairs;
use std::marker::PhantomData;
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::{Element, QInt8, QUInt8, Quantised},
    fixed_point::{Activation, Addition, QuantizedRange},
    reg::Numerics,
    register_kernel,
};

struct Add<T> {
    activation: Activation,
    of: PhantomData<fn() -> T>,
}

impl<T: Quantised> Kernel for Add<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Add { activation: activation(c)?, of: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let a = affine::<T>(c, 2, ["a_scale", "a_zero_point"])?;
        let b = affine::<T>(c, 4, ["b_scale", "b_zero_point"])?;
        let out = affine::<T>(c, 6, OUT)?;
        let range = QuantizedRange::new(self.activation, T::DTYPE, out.scale, out.zero_point)?;
        let addition = Addition::new([a.scale, b.scale], out.scale)?;
        let [low, high] = [range.low, range.high];
        for_pairs(c, |x: T, y: T| {
            let steps = addition.apply(x.code() - a.zero_point, y.code() - b.zero_point);
            T::saturated((steps + out.zero_point).clamp(low, high).into())
        })
    }
}

register_kernel!("_QuantizedFusedAdd" on "CPU": Add<QUInt8>, types = ("T", &[<QUInt8 as Element>::DTYPE]),
    numerics = Numerics::EXACT);
register_kernel!("_QuantizedFusedAdd" on "CPU": Add<QInt8>, types = ("T", &[<QInt8 as Element>::DTYPE]),
    numerics = Numerics::EXACT);
