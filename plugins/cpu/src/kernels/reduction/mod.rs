//! `Sum`, `Mean`, `Max`; `ArgMax` in [`arg_max`].

pub mod arg_max;
mod fold;
mod visit;

pub use fold::{Averaged, Fold, Max, Mean, Sum};
pub use visit::{reduce, row};

use half::{bf16, f16};
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
        let axes = c.integer_list(1, "reduction_indices")?;
        let plan = ReducePlan::new(x.dims, &axes, self.keep_dims)?;
        let y = c.output::<T>(0, plan.output_dims())?;
        reduce::<T, F>(c, &plan, x.data, y.data)
    }
}

type SumOf<T> = Reduce<T, Sum>;
type MeanOf<T> = Reduce<T, Mean>;
type MaxOf<T> = Reduce<T, Max>;

/// Relative to the sum of the absolute terms: the errors of a block, and of adding the blocks up.
const FLOAT: Numerics = Numerics::relative(1e-30, 1e-5).accumulation(DType::FLOAT);
const DOUBLE: Numerics = Numerics::relative(1e-300, 1e-13).accumulation(DType::DOUBLE);
const HALF: Numerics = Numerics::relative(6e-8, 2e-3).accumulation(DType::FLOAT);
const BFLOAT16: Numerics = Numerics::relative(1e-30, 1.6e-2).accumulation(DType::FLOAT);

register_kernel!("Sum" on "CPU": SumOf<T> for "T" in [i8, i16, i32, i64, u8, u16, u32, u64],
    host_memory = &["reduction_indices"], numerics = Numerics::EXACT);
register_kernel!("Sum" on "CPU": SumOf<T> for "T" in [f32],
    host_memory = &["reduction_indices"], numerics = FLOAT);
register_kernel!("Sum" on "CPU": SumOf<T> for "T" in [f64],
    host_memory = &["reduction_indices"], numerics = DOUBLE);
register_kernel!("Sum" on "CPU": SumOf<T> for "T" in [f16],
    host_memory = &["reduction_indices"], numerics = HALF);
register_kernel!("Sum" on "CPU": SumOf<T> for "T" in [bf16],
    host_memory = &["reduction_indices"], numerics = BFLOAT16);
register_kernel!("Mean" on "CPU": MeanOf<T> for "T" in [i8, i16, i32, i64, u8, u16, u32, u64],
    host_memory = &["reduction_indices"], numerics = Numerics::EXACT);
register_kernel!("Mean" on "CPU": MeanOf<T> for "T" in [f32],
    host_memory = &["reduction_indices"], numerics = FLOAT);
register_kernel!("Mean" on "CPU": MeanOf<T> for "T" in [f64],
    host_memory = &["reduction_indices"], numerics = DOUBLE);
register_kernel!("Mean" on "CPU": MeanOf<T> for "T" in [f16],
    host_memory = &["reduction_indices"], numerics = HALF);
register_kernel!("Mean" on "CPU": MeanOf<T> for "T" in [bf16],
    host_memory = &["reduction_indices"], numerics = BFLOAT16);
register_kernel!("Max" on "CPU": MaxOf<T>
    for "T" in [i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64],
    host_memory = &["reduction_indices"], numerics = Numerics::EXACT);

#[cfg(test)]
mod tests {
    use super::{visit::reduce_alone, *};
    use crate::testing::{assert_close, values};
    use tenon_reference::{Accumulate, reduction as reference};

    const SHAPES: [(&[i64], &[i64]); 14] = [
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
        }
    }
}
