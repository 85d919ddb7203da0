//! `Sum`, `Mean`, `Prod`, `EuclideanNorm`, `Max`, `Min`, `All`, `Any` over the axes of a plan, and `ArgMax` over one axis.

use crate::math_binary::larger;
use crate::{Accumulate, LowestFinite};
use tenon_framework::element::{Element, Number};
use tenon_geometry::{ArgGeometry, ReducePlan};

/// Writes to each output element what `f` makes of its input elements, which it finds from an iterator over
/// their offsets.
fn reduce<T>(
    plan: &ReducePlan,
    output: &mut [T],
    f: impl Fn(&mut dyn Iterator<Item = usize>) -> T,
) {
    debug_assert_eq!(plan.output_len(), output.len());
    for (base, output) in plan.outputs().zip(output) {
        *output = f(&mut plan.reduced().map(|offset| base + offset));
    }
}

/// The sum; 0 of nothing.
pub fn sum<T: Accumulate>(plan: &ReducePlan, input: &[T], output: &mut [T]) {
    reduce(plan, output, |offsets| {
        T::rounded(offsets.fold(T::Total::ZERO, |sum, i| sum.add(input[i].total())))
    });
}

/// The mean, as [`Accumulate::mean`] takes it.
pub fn mean<T: Accumulate>(plan: &ReducePlan, input: &[T], output: &mut [T]) {
    reduce(plan, output, |offsets| T::mean(offsets.map(|i| input[i])));
}

/// The largest element; NaN when one is NaN; negative infinity, or the smallest integer, of nothing.
pub fn max<T: Number>(plan: &ReducePlan, input: &[T], output: &mut [T]) {
    reduce(plan, output, |offsets| offsets.fold(T::LOWEST, |best, i| larger(best, input[i])));
}

/// The smallest element; NaN when one is NaN; infinity, or the largest integer, of nothing.
pub fn min<T: Number>(plan: &ReducePlan, input: &[T], output: &mut [T]) {
    let smaller = |x: T, y: T| if y.is_nan() || y < x { y } else { x };
    reduce(plan, output, |offsets| offsets.fold(T::HIGHEST, |best, i| smaller(best, input[i])));
}

/// The product; 1 of nothing.
pub fn prod<T: Accumulate>(plan: &ReducePlan, input: &[T], output: &mut [T]) {
    reduce(plan, output, |offsets| {
        T::rounded(offsets.fold(T::Total::ONE, |product, i| product.mul(input[i].total())))
    });
}

/// The square root of the sum of squares; 0 of nothing. Integers wrap, and their root is rounded down; of a sum that
/// wrapped to a negative number it is what TensorFlow converts NaN to: the least number of 32 and 64 bits, else 0.
pub fn euclidean_norm<T: Accumulate>(plan: &ReducePlan, input: &[T], output: &mut [T]) {
    let of_negative = if size_of::<T>() < 4 { T::ZERO } else { T::LOWEST };
    reduce(plan, output, |offsets| {
        let squares = offsets.map(|i| input[i].total()).map(|x| x.mul(x));
        let sum = squares.fold(T::Total::ZERO, Number::add);
        if sum < T::Total::ZERO { of_negative } else { T::from_f64(sum.to_f64().sqrt()) }
    });
}

/// Whether all elements are true; true of nothing.
pub fn all(plan: &ReducePlan, input: &[bool], output: &mut [bool]) {
    reduce(plan, output, |offsets| offsets.fold(true, |all, i| all & input[i]));
}

/// Whether an element is true; false of nothing.
pub fn any(plan: &ReducePlan, input: &[bool], output: &mut [bool]) {
    reduce(plan, output, |offsets| offsets.fold(false, |any, i| any | input[i]));
}

/// A type of indices that `ArgMax` gives. An index that does not fit loses its high bits.
pub trait IndexElement: Element {
    /// From an index.
    fn from_index(index: usize) -> Self;
}

macro_rules! index_elements {
    ($($ty:ty),*) => {
        $(impl IndexElement for $ty {
            fn from_index(index: usize) -> $ty {
                index as $ty
            }
        })*
    };
}

index_elements!(i16, u16, i32, i64);

/// The index along the axis of the first of the largest elements. NaN is never the largest; where no element
/// is above the lowest finite value, the index is 0.
pub fn arg_max<T: LowestFinite, I: IndexElement>(
    geometry: &ArgGeometry,
    input: &[T],
    output: &mut [I],
) {
    let ArgGeometry { len, inner, .. } = *geometry;
    for (o, output) in output.iter_mut().enumerate() {
        let base = o / inner * len * inner + o % inner;
        let (mut best, mut index) = (T::LOWEST_FINITE, 0);
        for i in 0..len {
            let value = input[base + i * inner];
            if value > best {
                (best, index) = (value, i);
            }
        }
        *output = I::from_index(index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Kernel<T> = fn(&ReducePlan, &[T], &mut [T]);

    fn run<T: Number>(f: Kernel<T>, dims: &[i64], axes: &[i64], input: &[T]) -> Vec<T> {
        let plan = ReducePlan::new(dims, axes, false).unwrap();
        let mut output = vec![T::ONE; plan.output_len()];
        f(&plan, input, &mut output);
        output
    }

    fn arg(dims: &[i64], axis: i64, input: &[f32]) -> Vec<i64> {
        let geometry = ArgGeometry::new(dims, axis).unwrap();
        let mut output = vec![-1; geometry.outer * geometry.inner];
        arg_max(&geometry, input, &mut output);
        output
    }

    #[test]
    fn values_are_tensorflow_s() {
        let input: Vec<f32> = (0..24).map(|i| i as f32).collect();
        let dims = [2, 3, 4];
        assert_eq!(run(sum, &dims, &[0, 2], &input), [60.0, 92.0, 124.0]);
        let means = [4.0, 5.0, 6.0, 7.0, 16.0, 17.0, 18.0, 19.0];
        assert_eq!(run(mean, &dims, &[1], &input), means);
        assert_eq!(run(max, &dims, &[0, 1], &input), [20.0, 21.0, 22.0, 23.0]);
        assert_eq!(run(sum, &[2], &[0], &[i32::MAX, 1]), [i32::MIN]);
        assert_eq!(arg(&dims, 1, &input), [2; 8]);
        let twice = [1.0, 3.0, 3.0, 2.0];
        assert_eq!(arg(&[4], 0, &twice), [1]);
        assert_eq!(arg(&[2, 2], 0, &twice), [1, 0]);
    }

    #[test]
    fn nothing_to_reduce() {
        assert_eq!(run::<f32>(sum, &[0, 2], &[0], &[]), [0.0; 2]);
        assert_eq!(run::<f32>(max, &[0], &[0], &[]), [f32::NEG_INFINITY]);
        assert_eq!(run::<i32>(max, &[0], &[0], &[]), [i32::MIN]);
        assert!(run::<f32>(mean, &[0], &[0], &[])[0].is_nan());
        assert_eq!(run(sum, &[], &[], &[5.0f32]), [5.0]);
        assert_eq!(run::<f32>(min, &[0], &[0], &[]), [f32::INFINITY]);
        assert_eq!(run::<f32>(prod, &[0], &[0], &[]), [1.0]);
        assert_eq!(run::<f32>(euclidean_norm, &[0], &[0], &[]), [0.0]);
    }

    #[test]
    fn nan_wins_in_max_and_never_in_arg_max() {
        let nan = f32::NAN;
        assert!(run(max, &[3], &[0], &[nan, 1.0, 2.0])[0].is_nan());
        assert!(run(max, &[3], &[0], &[0.0, 1.0, nan])[0].is_nan());
        assert_eq!(arg(&[3], 0, &[nan, 1.0, 2.0]), [2]);
        assert_eq!(arg(&[3], 0, &[0.0, 1.0, nan]), [1]);
        assert_eq!(arg(&[2], 0, &[nan, f32::NEG_INFINITY]), [0]);
        assert_eq!(arg(&[2], 0, &[f32::NEG_INFINITY, f32::MIN]), [0]);
    }

    #[test]
    fn an_index_that_does_not_fit_loses_its_high_bits() {
        let input: Vec<i32> = (0..70000).collect();
        let mut output = [0u16];
        arg_max(&ArgGeometry::new(&[70000], 0).unwrap(), &input, &mut output);
        assert_eq!(output, [4463]);
    }
}
