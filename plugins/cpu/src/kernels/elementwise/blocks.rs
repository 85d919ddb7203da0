//! The loop of functions of two numbers that are computed for many pairs together.

use crate::split::for_parts;
use tenon_sdk::{
    KernelError,
    author::ComputeContext,
    element::Number,
    geometry::{BroadcastPlan, Run},
};

/// The number of pairs that are computed together.
pub const BLOCK: usize = 64;

/// Writes the function's results for the pairs of elements of inputs 0 and 1, broadcast. It gets at
/// most [`BLOCK`] pairs at a time, and room for as many results.
pub fn zip_blocks<T: Number>(
    c: &ComputeContext<'_>,
    cost_ns: f64,
    f: impl Fn(&[T], &[T], &mut [T]) + Sync,
) -> Result<(), KernelError> {
    let (x, y) = (c.input::<T>(0)?, c.input::<T>(1)?);
    if x.dims == y.dims {
        let z = c.output::<T>(0, x.dims)?.data;
        return for_parts(c, z, cost_ns, |start, z| {
            let inputs = x.data[start..].chunks(BLOCK).zip(y.data[start..].chunks(BLOCK));
            for (z, (x, y)) in z.chunks_mut(BLOCK).zip(inputs) {
                f(&x[..z.len()], &y[..z.len()], z);
            }
        });
    }
    let plan = BroadcastPlan::new([x.dims, y.dims])?;
    let z = c.output::<T>(0, plan.output_dims())?.data;
    for_parts(c, z, cost_ns, |start, z| gathered(&plan, [x.data, y.data], start, z, &f))
}

/// The elements of a run that are among those from `start` to `end` of the output.
fn within<const N: usize>(run: &Run<N>, start: usize, end: usize) -> std::ops::Range<usize> {
    let first = start.saturating_sub(run.output);
    first..run.len.min(end.saturating_sub(run.output)).max(first)
}

/// Computes the results from `start` on. Runs may be short, so pairs of several are put next to each
/// other.
pub(super) fn gathered<X: Copy, Z>(
    plan: &BroadcastPlan<2>,
    inputs: [&[X]; 2],
    start: usize,
    z: &mut [Z],
    f: &impl Fn(&[X], &[X], &mut [Z]),
) {
    if z.is_empty() {
        return;
    }
    let (len, end) = (plan.run_len(), start + z.len());
    let mut pairs = inputs.map(|input| [input[0]; BLOCK]);
    let (mut count, mut rest) = (0, z);
    for run in plan.runs_in(start / len..end.div_ceil(len)) {
        let mut at = within(&run, start, end);
        while !at.is_empty() {
            let some = at.start..at.end.min(at.start + BLOCK - count);
            for (input, (to, from)) in pairs.iter_mut().zip(inputs).enumerate() {
                let to = &mut to[count..count + some.len()];
                let first = run.offsets[input];
                match run.strides[input] {
                    0 => to.fill(from[first]),
                    _ => to.copy_from_slice(&from[first + some.start..first + some.end]),
                }
            }
            count += some.len();
            at.start = some.end;
            if count == BLOCK {
                let (now, later) = rest.split_at_mut(BLOCK);
                f(&pairs[0], &pairs[1], now);
                (count, rest) = (0, later);
            }
        }
    }
    if count > 0 {
        f(&pairs[0][..count], &pairs[1][..count], rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::values;
    use tenon_reference::math_binary;

    /// A difference, whose operands cannot be exchanged.
    fn minus(x: &[f32], y: &[f32], z: &mut [f32]) {
        assert!(x.len() == z.len() && y.len() == z.len() && z.len() <= BLOCK);
        z.iter_mut().zip(x.iter().zip(y)).for_each(|(z, (x, y))| *z = x - y);
    }

    #[test]
    fn parts_of_broadcast_pairs_are_as_the_reference_computes_them() {
        let shapes: [[&[i64]; 2]; 7] = [
            [&[500, 2], &[2]],
            [&[500, 2], &[500, 1]],
            [&[3, 1], &[1, 100]],
            [&[], &[200]],
            [&[200], &[]],
            [&[2, 1, 70], &[1, 3, 70]],
            [&[1], &[1, 1]],
        ];
        for [a, b] in shapes {
            let count = |dims: &[i64]| dims.iter().product::<i64>() as usize;
            let (x, y) = (values::<f32>(count(a), 1), values::<f32>(count(b), 2));
            let plan = BroadcastPlan::new([a, b]).unwrap();
            let mut expected = vec![0.0; plan.len()];
            math_binary::sub(&plan, &x, &y, &mut expected);
            for step in [1, 63, 64, 129, plan.len()] {
                let mut found = vec![f32::NAN; plan.len()];
                for (part, z) in found.chunks_mut(step).enumerate() {
                    gathered(&plan, [&x, &y], part * step, z, &minus);
                }
                assert_eq!(found, expected, "{a:?} {b:?} {step}");
            }
        }
    }
}
