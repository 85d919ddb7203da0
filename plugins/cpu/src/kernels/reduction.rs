//! Reductions over axes, searches along one axis in [`arg`], and other ops that reduce many
//! elements to few.

mod approximate;
pub mod arg;
mod bincount;
mod counting;
mod fold;
mod isotonic;
mod neighbours;
mod ranking;
mod scan;
mod segment;
mod segment_grad;
mod visit;

use fold::{All, Any, EuclideanNorm};
pub use fold::{Averaged, Fold, Max, Mean, Min, Prod, RootMean, Sum};
pub use visit::{reduce, row};

use crate::lists;
use half::{bf16, f16};
use num_complex::Complex;
use std::marker::PhantomData;
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::Element,
    geometry::ReducePlan,
    reg::Numerics,
    register_kernel,
};

/// A reduction over the axes of the second input.
struct Reduce<T, F> {
    keep_dims: bool,
    kind: PhantomData<(T, F)>,
}

impl<T: Element, F: Fold<T>> Kernel for Reduce<T, F> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Reduce { keep_dims: c.attr("keep_dims")?, kind: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let x = c.input::<T>(0)?;
        let axes = lists::axes(c, 1, "reduction_indices")?;
        let plan = ReducePlan::new(x.dims, &axes, self.keep_dims)?;
        let y = c.output::<T>(0, plan.output_dims())?;
        reduce::<T, F>(c, &plan, x.data, y.data)
    }
}

type SumOf<T> = Reduce<T, Sum>;
type MeanOf<T> = Reduce<T, Mean>;
type MaxOf<T> = Reduce<T, Max>;
type MinOf<T> = Reduce<T, Min>;
type ProdOf<T> = Reduce<T, Prod>;
type NormOf<T> = Reduce<T, EuclideanNorm>;
type AllOf = Reduce<bool, All>;
type AnyOf = Reduce<bool, Any>;

/// Error relative to the sum of the absolute terms: the errors of a block, and of adding the
/// blocks.
pub const FLOAT: Numerics = Numerics::relative(1e-30, 1e-5).accumulation(DType::FLOAT);
/// As [`FLOAT`].
pub const DOUBLE: Numerics = Numerics::relative(1e-300, 1e-13).accumulation(DType::DOUBLE);
/// As [`FLOAT`], rounded to half once.
pub const HALF: Numerics = Numerics::relative(6e-8, 2e-3).accumulation(DType::FLOAT);
/// As [`FLOAT`], rounded to bfloat16 once.
pub const BFLOAT16: Numerics = Numerics::relative(1e-30, 1.6e-2).accumulation(DType::FLOAT);

/// Registers a kernel that is generic over the element type, and sums or multiplies, with the
/// numerics of each type.
macro_rules! rounding_kernels {
    ($($op:literal: $form:tt;)*) => {
        $($crate::kernels::reduction::rounding_kernels!(@one $op, $form);)*
    };
    (@one $op:literal, [fn $kernel:ident$(, $option:ident = $value:expr)*]) => {
        register_kernel!($op on "CPU": fn $kernel<T> for "T" in [i8, i16, i32, i64, u8, u16, u32, u64],
            numerics = Numerics::EXACT$(, $option = $value)*);
        register_kernel!($op on "CPU": fn $kernel<T> for "T" in [f32, Complex<f32>],
            numerics = $crate::kernels::reduction::FLOAT$(, $option = $value)*);
        register_kernel!($op on "CPU": fn $kernel<T> for "T" in [f64, Complex<f64>],
            numerics = $crate::kernels::reduction::DOUBLE$(, $option = $value)*);
        register_kernel!($op on "CPU": fn $kernel<T> for "T" in [f16],
            numerics = $crate::kernels::reduction::HALF$(, $option = $value)*);
        register_kernel!($op on "CPU": fn $kernel<T> for "T" in [bf16],
            numerics = $crate::kernels::reduction::BFLOAT16$(, $option = $value)*);
    };
    (@one $op:literal, [$kernel:ident$(, $option:ident = $value:expr)*]) => {
        register_kernel!($op on "CPU": $kernel<T> for "T" in [i8, i16, i32, i64, u8, u16, u32, u64],
            numerics = Numerics::EXACT$(, $option = $value)*);
        register_kernel!($op on "CPU": $kernel<T> for "T" in [f32, Complex<f32>],
            numerics = $crate::kernels::reduction::FLOAT$(, $option = $value)*);
        register_kernel!($op on "CPU": $kernel<T> for "T" in [f64, Complex<f64>],
            numerics = $crate::kernels::reduction::DOUBLE$(, $option = $value)*);
        register_kernel!($op on "CPU": $kernel<T> for "T" in [f16],
            numerics = $crate::kernels::reduction::HALF$(, $option = $value)*);
        register_kernel!($op on "CPU": $kernel<T> for "T" in [bf16],
            numerics = $crate::kernels::reduction::BFLOAT16$(, $option = $value)*);
    };
}

pub(in crate::kernels) use rounding_kernels;

rounding_kernels! {
    "Sum": [SumOf, host_memory = &["reduction_indices"]];
    "Mean": [MeanOf, host_memory = &["reduction_indices"]];
    "Prod": [ProdOf, host_memory = &["reduction_indices"]];
    "EuclideanNorm": [NormOf, host_memory = &["reduction_indices"]];
}

register_kernel!("Max" on "CPU": MaxOf<T>
    for "T" in [i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64],
    host_memory = &["reduction_indices"], numerics = Numerics::EXACT);
register_kernel!("Min" on "CPU": MinOf<T>
    for "T" in [i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64],
    host_memory = &["reduction_indices"], numerics = Numerics::EXACT);
register_kernel!("All" on "CPU": AllOf,
    host_memory = &["reduction_indices"], numerics = Numerics::EXACT);
register_kernel!("Any" on "CPU": AnyOf,
    host_memory = &["reduction_indices"], numerics = Numerics::EXACT);

#[cfg(test)]
mod tests {
    use super::{visit::reduce_alone, *};
    use crate::testing::{assert_close, values};
    use tenon_reference::{Accumulate, reduction as reference};

    const SHAPES: [(&[i64], &[i64]); 18] = [
        (&[500, 2], &[1]),
        (&[1, 333], &[0]),
        (&[2, 70, 3], &[2]),
        (&[67, 31], &[1]),
        (&[], &[]),
        (&[7], &[]),
        (&[10_007], &[0]),
        (&[3, 50], &[1]),
        (&[300, 3], &[0]),
        (&[1000, 70], &[0]),
        (&[5, 300, 2], &[1]),
        (&[4, 9, 300], &[1]),
        (&[2, 3, 4, 5], &[0, 2]),
        (&[2, 3, 4, 5], &[1, 3]),
        (&[2, 1, 4, 5], &[1]),
        (&[3, 0], &[1]),
        (&[0, 3], &[1]),
        (&[2, 3, 2, 3, 40], &[0, 2, 4]),
    ];

    fn check<T, F>(expected: fn(&ReducePlan, &[T], &mut [T]), absolute: f64, relative: f64)
    where
        T: Averaged + Accumulate,
        F: Fold<T>,
    {
        for (dims, axes) in SHAPES {
            let plan = ReducePlan::new(dims, axes, false).unwrap();
            let x = values::<T>(dims.iter().product::<i64>() as usize, 5);
            let mut y = vec![T::ZERO; plan.output_len()];
            let mut found = vec![T::ONE; plan.output_len()];
            expected(&plan, &x, &mut y);
            reduce_alone::<T, F>(&plan, &x, &mut found);
            assert_close(&found, &y, absolute, relative);
        }
    }

    #[test]
    fn reductions_agree_with_the_reference_over_every_pattern_of_axes() {
        check::<f32, Sum>(reference::sum, 1e-2, 1e-5);
        check::<f64, Sum>(reference::sum, 1e-10, 1e-13);
        check::<i8, Sum>(reference::sum, 0.0, 0.0);
        check::<u32, Sum>(reference::sum, 0.0, 0.0);
        check::<f32, Mean>(reference::mean, 1e-5, 1e-5);
        check::<f16, Mean>(reference::mean, 1e-5, 2e-3);
        check::<i16, Mean>(reference::mean, 0.0, 0.0);
        check::<u8, Mean>(reference::mean, 0.0, 0.0);
        check::<f32, Prod>(reference::prod, 1e-30, 1e-5);
        check::<i32, Prod>(reference::prod, 0.0, 0.0);
        check::<f64, EuclideanNorm>(reference::euclidean_norm, 1e-10, 1e-13);
        check::<f16, EuclideanNorm>(reference::euclidean_norm, 1e-5, 2e-3);
        check::<f32, Min>(reference::min, 0.0, 0.0);
        check::<u8, Min>(reference::min, 0.0, 0.0);
        check::<f32, Max>(reference::max, 0.0, 0.0);
        check::<bf16, Max>(reference::max, 0.0, 0.0);
        check::<i64, Max>(reference::max, 0.0, 0.0);
    }

    #[test]
    fn nan_wins_wherever_it_stands() {
        for at in [0, 31, 32, 63, 99] {
            let mut x = vec![1.0f32; 100];
            x[at] = f32::NAN;
            assert!(<Max as Fold<f32>>::finish(row::<f32, Max>(&x), 100).is_nan(), "{at}");
            assert!(<Min as Fold<f32>>::finish(row::<f32, Min>(&x), 100).is_nan(), "{at}");
        }
    }
}
