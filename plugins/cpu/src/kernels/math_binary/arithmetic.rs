//! `Add`, `AddV2`, `Sub`, `Mul`, `RealDiv`, `Maximum`, `Minimum` with broadcasting; `AddN`.

use crate::kernels::{
    elementary::Elementary,
    elementwise::{BinaryOp, binary, zip, zip_in_place},
};
use crate::{
    arch::Isa,
    lane::{Compute, flushed},
    split::{Parts, for_elements},
};
use half::{bf16, f16};
use tenon_sdk::{
    DType, KernelError, author::ComputeContext, geometry::BroadcastPlan, growth, reg::Numerics,
    register_kernel,
};

macro_rules! binary_ops {
    ($($op:ident, $function:ident: $bound:ident, |$x:ident, $y:ident| $value:expr;)*) => {$(
        /// One of the ops of this file.
        pub struct $op;

        impl<W: $bound<Wide = W>> BinaryOp<W> for $op {
            #[inline(always)]
            fn apply<I: Isa>($x: W, $y: W) -> W {
                $value
            }
        }

        #[doc = concat!("`", stringify!($op), "` of two tensors, with broadcasting.")]
        ///
        /// # Errors
        /// Shapes that do not broadcast; no memory for the output.
        #[inline(always)]
        pub fn $function<T: Compute<Wide: $bound>>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
            binary::<T, $op>(c)
        }
    )*};
}

binary_ops! {
    Add, add: Compute, |x, y| x.add(y);
    Sub, sub: Compute, |x, y| x.sub(y);
    Mul, mul: Compute, |x, y| x.mul(y);
    RealDiv, real_div: Elementary, |x, y| x.div(y);
    Maximum, maximum: Compute, |x, y| flushed(if y > x || y.is_nan() { y } else { x });
    Minimum, minimum: Compute, |x, y| flushed(if y < x || y.is_nan() { y } else { x });
}

/// Concatenates strings, with broadcasting.
fn add_strings(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let plan = BroadcastPlan::new([c.dims(0), c.dims(1)])?;
    let (x, y) = (c.strings(0)?, c.strings(1)?);
    let mut z = growth::with_room(plan.len())?;
    for run in plan.runs() {
        z.extend((0..run.len).map(|i| {
            [x[run.offsets[0] + i * run.strides[0]], y[run.offsets[1] + i * run.strides[1]]]
        }));
    }
    c.write_texts(0, plan.output_dims(), |at, text| {
        growth::append(text, z[at][0])?;
        growth::append(text, z[at][1])
    })
}

/// Refuses inputs of different shapes.
pub(super) fn same_shapes(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let dims = c.dims(0);
    match (0..c.input_count()).find(|&i| c.dims(i) != dims) {
        Some(i) => Err(KernelError::invalid_argument(format!(
            "inputs must have the same shape: inputs[0] has {dims:?}, inputs[{i}] has {:?}",
            c.dims(i)
        ))),
        None => Ok(()),
    }
}

/// Sums any number of tensors of one shape.
///
/// The order is TensorFlow's, since every addition rounds: of `n` inputs the first `n % 8` (8 and 9
/// for 0 and 1) from left to right, then sums of eight at a time.
pub(super) fn add_n<T: Compute>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let (dims, count) = (c.dims(0), c.input_count());
    same_shapes(c)?;
    let y = c.output::<T>(0, dims)?.data;
    let len = y.len();
    let y = Parts::new(y);
    // A limited number at a time, so that their list takes no heap memory.
    let mut inputs: [&[T]; BATCH] = [&[]; BATCH];
    let (mut done, mut first) = (0, leading(count));
    while done < count {
        let some = (count - done).min(first + (BATCH - first) / 8 * 8);
        for (at, input) in inputs[..some].iter_mut().enumerate() {
            *input = c.input::<T>(done + at)?.data;
        }
        let (first_ones, rest) = inputs[..some].split_at(first);
        for_elements(c, len, 0.1 * some as f64, |range| {
            // SAFETY: ranges of one split are disjoint.
            sum_inputs(first_ones, rest, range.clone(), unsafe { y.part(range) });
        })?;
        (done, first) = (done + some, 0);
    }
    Ok(())
}

/// The number of inputs that are read in one pass over the output.
const BATCH: usize = 64;

/// The number of the `count` inputs that are added from left to right before the sums of eight.
pub(super) fn leading(count: usize) -> usize {
    match count % 8 {
        r @ (0 | 1) => (r + 8).min(count),
        r => r,
    }
}

/// Sums a range of the inputs, a block that stays in the cache at a time: `first` from left to
/// right, if there are any, then the rest eight at a time, onto the sums so far.
fn sum_inputs<T: Compute>(
    first: &[&[T]],
    rest: &[&[T]],
    range: std::ops::Range<usize>,
    y: &mut [T],
) {
    const BLOCK: usize = 512;
    let mut eight = [T::ZERO; BLOCK];
    for (block, y) in y.chunks_mut(BLOCK).enumerate() {
        let start = range.start + block * BLOCK;
        let end = start + y.len();
        if !first.is_empty() {
            left_to_right(first, start..end, y);
        }
        for inputs in rest.chunks(8) {
            let eight = &mut eight[..y.len()];
            left_to_right(inputs, start..end, eight);
            zip_in_place::<T, Add>(y, eight);
        }
    }
}

fn left_to_right<T: Compute>(inputs: &[&[T]], range: std::ops::Range<usize>, y: &mut [T]) {
    match inputs {
        [] => y.fill(T::ZERO),
        [x] => y.copy_from_slice(&x[range]),
        [a, b, rest @ ..] => {
            zip::<T, Add>(&a[range.clone()], &b[range.clone()], y);
            rest.iter().for_each(|x| zip_in_place::<T, Add>(y, &x[range.clone()]));
        }
    }
}

register_kernel!("Add" on "CPU": fn add<T> for "T" in [i8, i16, i32, i64, u8, f16, bf16, f32, f64],
    in_place = &[(0, 0)], numerics = Numerics::EXACT);
register_kernel!("Add" on "CPU": fn add_strings, types = ("T", &[DType::STRING]),
    numerics = Numerics::EXACT);
register_kernel!("AddV2" on "CPU": fn add<T>
    for "T" in [i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64],
    in_place = &[(0, 0)], numerics = Numerics::EXACT);
register_kernel!("Sub" on "CPU": fn sub<T>
    for "T" in [i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64],
    in_place = &[(0, 0)], numerics = Numerics::EXACT);
register_kernel!("Mul" on "CPU": fn mul<T>
    for "T" in [i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64],
    in_place = &[(0, 0)], numerics = Numerics::EXACT);
register_kernel!("RealDiv" on "CPU": fn real_div<T> for "T" in [f16, bf16, f32, f64],
    in_place = &[(0, 0)], numerics = Numerics::EXACT);
register_kernel!("Maximum" on "CPU": fn maximum<T>
    for "T" in [i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64],
    in_place = &[(0, 0)], numerics = Numerics::EXACT);
register_kernel!("Minimum" on "CPU": fn minimum<T>
    for "T" in [i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64],
    in_place = &[(0, 0)], numerics = Numerics::EXACT);
register_kernel!("AddN" on "CPU": fn add_n<T>
    for "T" in [i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64],
    numerics = Numerics::EXACT);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::values;
    use tenon_reference::math_binary as reference;

    #[test]
    fn ops_agree_with_the_reference() {
        fn check<T: Compute, O: BinaryOp<T::Wide>>(
            expected: fn(&BroadcastPlan<2>, &[T], &[T], &mut [T]),
        ) {
            let plan = BroadcastPlan::new([&[517], &[517]]).unwrap();
            let (mut x, y) = (values::<T>(517, 1), values::<T>(517, 2));
            x[3] = T::from_f64(f64::NAN);
            let (mut z, mut found) = (vec![T::ZERO; 517], vec![T::ZERO; 517]);
            expected(&plan, &x, &y, &mut z);
            zip::<T, O>(&x, &y, &mut found);
            crate::testing::assert_ulps(&found, &z, 0.0);
        }
        check::<f32, Add>(reference::add);
        check::<f16, Add>(reference::add);
        check::<i8, Mul>(reference::mul);
        check::<bf16, Sub>(reference::sub);
        check::<f64, RealDiv>(reference::real_div);
        check::<f16, RealDiv>(reference::real_div);
        check::<f32, Maximum>(reference::maximum);
        check::<u16, Minimum>(reference::minimum);
    }

    #[test]
    fn sums_of_any_number_of_inputs_round_in_the_reference_order() {
        for n in 1..=27 {
            let inputs: Vec<Vec<f16>> = (0..n).map(|i| values(700, i + 1)).collect();
            let inputs: Vec<&[f16]> = inputs.iter().map(|x| &x[..]).collect();
            let mut expected = vec![f16::ZERO; 700];
            reference::add_n(&inputs, &mut expected);
            let mut found = vec![f16::ZERO; 600];
            let (first, rest) = inputs.split_at(leading(inputs.len()));
            sum_inputs(first, rest, 100..700, &mut found);
            assert_eq!(found, expected[100..], "{n} inputs");
        }
    }
}
