//! Runs of a broadcast plan, computed by the loops over equal shapes and over repeated rows: a loop of their own, for each
//! op and type, would double what there is to compile.

use super::{BinaryOp, Swap, rows, zip};
use crate::lane::Compute;
use tenon_sdk::geometry::BroadcastPlan;

/// Runs of one length, contiguous in the output: for each operand, where its runs begin, how far
/// apart they are, and whether it advances within a run.
struct Panel<'a, T> {
    len: usize,
    operands: [&'a [T]; 2],
    steps: [usize; 2],
    moves: [bool; 2],
}

/// Runs shorter than this are gathered before they are computed.
const SHORT: usize = 32;
/// Number of elements gathered at a time.
const GATHERED: usize = 256;

/// Copies runs of an operand to be contiguous.
fn gather<T: Copy>(x: &[T], step: usize, moves: bool, len: usize, y: &mut [T]) {
    for (r, y) in y.chunks_exact_mut(len).enumerate() {
        match moves {
            true => y.iter_mut().zip(&x[r * step..]).for_each(|(y, &x)| *y = x),
            false => y.fill(x[r * step]),
        }
    }
}

/// Computes short runs, as many as `z` holds.
fn gathered<T: Compute, O: BinaryOp<T::Wide>>(panel: &Panel<'_, T>, z: &mut [T]) {
    let (len, runs) = (panel.len, GATHERED / panel.len);
    let mut buffers = [[T::ZERO; GATHERED]; 2];
    for (block, z) in z.chunks_mut(runs * len).enumerate() {
        for (n, buffer) in buffers.iter_mut().enumerate() {
            let (step, moves) = (panel.steps[n], panel.moves[n]);
            let x = &panel.operands[n][block * runs * step..];
            gather(x, step, moves, len, &mut buffer[..z.len()]);
        }
        let [x, y] = &buffers;
        zip::<T, O>(&x[..z.len()], &y[..z.len()], z);
    }
}

/// Computes long runs, as many as `z` holds.
fn panel<T: Compute, O: BinaryOp<T::Wide>>(panel: &Panel<'_, T>, z: &mut [T]) {
    let ([x, y], [x_step, y_step], len) = (panel.operands, panel.steps, panel.len);
    let (mut i, mut j) = (0, 0);
    for z in z.chunks_exact_mut(len) {
        match panel.moves {
            [true, true] => zip::<T, O>(&x[i..i + len], &y[j..j + len], z),
            [true, false] => rows::<T, O>(&x[i..i + len], &y[j..=j], z),
            [false, true] => rows::<T, Swap<O>>(&y[j..j + len], &x[i..=i], z),
            [false, false] => {
                let (first, rest) = z.split_at_mut(1);
                zip::<T, O>(&x[i..=i], &y[j..=j], first);
                rest.fill(first[0]);
            }
        }
        (i, j) = (i + x_step, j + y_step);
    }
}

/// Computes the runs of a plan from number `first` on, as many as `z` holds; `z` begins with run
/// `first`. The runs along the dimension before the last form a panel.
pub fn runs<T: Compute, O: BinaryOp<T::Wide>>(
    plan: &BroadcastPlan<2>,
    first: usize,
    [x, y]: [&[T]; 2],
    z: &mut [T],
) {
    let (len, last) = (plan.run_len(), plan.extents().len() - 1);
    let height = if last == 0 { 1 } else { plan.extents()[last - 1] as usize };
    let steps = [0, 1].map(|n| if last == 0 { 0 } else { plan.strides(n)[last - 1] as usize });
    let (mut run, mut rest) = (first, z);
    while let Some(start) = plan.runs_in(run..run + 1).next() {
        let count = (height - run % height).min(rest.len() / len);
        if count == 0 {
            return;
        }
        let (z, behind) = rest.split_at_mut(count * len);
        let operands = [&x[start.offsets[0]..], &y[start.offsets[1]..]];
        let moves = start.strides.map(|stride| stride != 0);
        let some = Panel { len, operands, steps, moves };
        if len < SHORT {
            gathered::<T, O>(&some, z)
        } else {
            panel::<T, O>(&some, z)
        }
        (run, rest) = (run + count, behind);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Isa;
    use crate::testing::values;
    use half::f16;
    use tenon_reference::math_binary;

    struct Minus;
    impl<W: Compute> BinaryOp<W> for Minus {
        #[inline(always)]
        fn apply<I: Isa>(x: W, y: W) -> W {
            x.sub(y)
        }
    }

    #[test]
    fn runs_agree_with_the_reference_for_every_kind_of_broadcast() {
        check::<f32>();
        check::<f16>();
    }

    fn check<T: Compute>() {
        let shapes: [[&[i64]; 2]; 8] = [
            [&[2, 3, 5], &[2, 3, 5]],
            [&[7, 1], &[1, 9]],
            [&[4, 1, 3], &[1, 5, 1]],
            [&[6], &[4, 6]],
            [&[2, 1, 3, 1], &[5, 1, 2]],
            [&[1, 1], &[3]],
            [&[3, 17], &[3, 1]],
            [&[4, 90, 5], &[4, 1, 5]],
        ];
        for [a, b] in shapes {
            let plan = BroadcastPlan::new([a, b]).unwrap();
            let count = |dims: &[i64]| dims.iter().product::<i64>() as usize;
            let (x, y) = (values::<T>(count(a), 1), values::<T>(count(b), 2));
            let mut expected = vec![T::ZERO; plan.len()];
            math_binary::sub(&plan, &x, &y, &mut expected);
            let mut found = vec![T::ZERO; plan.len()];
            runs::<T, Minus>(&plan, 0, [&x, &y], &mut found);
            assert_eq!(found, expected, "{a:?} {b:?}");
            // A later range of runs alone.
            let (half, len) = (plan.run_count() / 2, plan.run_len());
            let mut tail = vec![T::ZERO; plan.len() - half * len];
            runs::<T, Minus>(&plan, half, [&x, &y], &mut tail);
            assert_eq!(tail, expected[half * len..], "{a:?} {b:?}");
        }
    }
}
