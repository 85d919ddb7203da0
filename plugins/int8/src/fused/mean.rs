//! `_QuantizedFusedMean`, and its common part with `_QuantizedFusedAvgPool`: the mean of values
//! from their sum.

use super::scales::{OUT, affine};
use std::marker::PhantomData;
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::{Element, QInt8, QUInt8, Quantised},
    fixed_point::{Affine, Scale, multiply_by_float},
    geometry::{GeometryError, ReduceKind, ReducePlan},
    growth,
    reg::Numerics,
    register_kernel,
};

/// Most values whose sum, each minus its zero point, fits in 32 bits.
const MOST: usize = i32::MAX as usize / 255;

/// Converts sums of values to values of another scale.
pub struct Means<T> {
    input: Affine,
    out: Affine,
    of: PhantomData<fn() -> T>,
}

impl<T: Quantised> Means<T> {
    /// Reads the parameters from input `at` on.
    ///
    /// # Errors
    /// An invalid parameter.
    pub fn read(c: &ComputeContext<'_>, at: usize) -> Result<Means<T>, KernelError> {
        let input = affine::<T>(c, at, ["input_scale", "input_zero_point"])?;
        Ok(Means { input, out: affine::<T>(c, at + 2, OUT)?, of: PhantomData })
    }

    /// The factor for sums of `count` values.
    ///
    /// # Errors
    /// The sum may not fit in 32 bits; the scales are too far apart.
    pub fn factor(&self, count: usize) -> Result<f32, KernelError> {
        if count > MOST {
            return Err(KernelError::invalid_argument(format!(
                "a mean of 8-bit values is taken of at most {MOST}, found {count}: reduce some dimensions first"
            )));
        }
        let count = count.max(1) as f64;
        // Scales are checked under their names; the count enters in double precision.
        let scale = Scale::requantize(
            ["input_scale", "input_scale"],
            self.input.scale,
            1.0,
            self.out.scale,
        )?;
        scale.as_float()?;
        Ok((f64::from(self.input.scale) / (f64::from(self.out.scale) * count)) as f32)
    }

    /// The mean of `count` values whose codes sum to `sum`.
    #[inline(always)]
    pub fn mean(&self, sum: i32, count: usize, factor: f32) -> T {
        let zeros = self.input.zero_point.wrapping_mul(count as i32);
        let [low, high] = [T::LOWEST - self.out.zero_point, T::HIGHEST - self.out.zero_point];
        let steps = multiply_by_float(sum.wrapping_sub(zeros), factor, [low, high]);
        T::saturated((steps + self.out.zero_point).into())
    }
}

struct Mean<T> {
    keep_dims: bool,
    of: PhantomData<fn() -> T>,
}

impl<T: Quantised> Kernel for Mean<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Mean { keep_dims: c.attr("keep_dims")?, of: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let means = Means::<T>::read(c, 2)?;
        if let found @ 2.. = c.dims(1).len() {
            let (what, expected) = ("reduction_indices", 1);
            return Err(GeometryError::Rank { what, expected, found }.into());
        }
        let axes = c.integers(1)?;
        let plan = ReducePlan::new(c.dims(0), &axes, self.keep_dims)?;
        let (count, x) = (plan.reduced_len(), c.input::<T>(0)?.data);
        let factor = means.factor(count)?;
        let y = c.output::<T>(0, plan.output_dims())?.data;
        let Some([reduced, inner]) = rows(&plan) else {
            let sum = |at: usize| plan.reduced().map(|by| x[at + by].code()).sum::<i32>();
            for (y, at) in y.iter_mut().zip(plan.outputs()) {
                *y = means.mean(sum(at), count, factor);
            }
            return Ok(());
        };
        if y.is_empty() {
            return Ok(());
        }
        let images = y.chunks_mut(inner);
        c.parallel_items(images, 0.3 * (reduced * inner) as f64, |number, y| {
            let mut sums = growth::filled(inner, 0i32)?;
            for row in x[number * reduced * inner..][..reduced * inner].chunks_exact(inner) {
                sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += x.code());
            }
            y.iter_mut().zip(&sums).for_each(|(y, &sum)| *y = means.mean(sum, count, factor));
            Ok(())
        })
    }
}

/// The number of rows and of adjacent values in each that are summed, if the reduction has that
/// form.
fn rows(plan: &ReducePlan) -> Option<[usize; 2]> {
    match plan.kind() {
        ReduceKind::Copy { .. } => Some([1, 1]),
        ReduceKind::All { len } => Some([len, 1]),
        ReduceKind::Rows { reduced, .. } => Some([reduced, 1]),
        ReduceKind::Columns { reduced, inner } | ReduceKind::Middle { reduced, inner, .. } => {
            Some([reduced, inner])
        }
        ReduceKind::General => None,
    }
}

register_kernel!("_QuantizedFusedMean" on "CPU": Mean<QUInt8>, types = ("T", &[<QUInt8 as Element>::DTYPE]),
    host_memory = &["reduction_indices"], numerics = Numerics::EXACT);
register_kernel!("_QuantizedFusedMean" on "CPU": Mean<QInt8>, types = ("T", &[<QInt8 as Element>::DTYPE]),
    host_memory = &["reduction_indices"], numerics = Numerics::EXACT);
