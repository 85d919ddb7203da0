//! `Transpose`.

use super::{
    NUMBERS, REAL, Word, by_size, element_size,
    gather::gather,
    turn::{SIDE, STRIP, turn},
    words, words_mut,
};
use crate::{
    lists,
    split::{Parts, for_units},
    stream::{Stores, stores},
};
use num_complex::Complex;
use std::ops::Neg;
use tenon_reference::array as reference;
use tenon_sdk::{
    DType, KernelError,
    author::ComputeContext,
    element::Element,
    geometry::{TransposeKind, TransposePlan},
    reg::Numerics,
    register_kernel,
};

/// Least number of elements that are transposed at a time.
const UNIT: usize = 1 << 15;

/// The plan of a call.
pub fn transpose_plan(c: &ComputeContext<'_>) -> Result<TransposePlan, KernelError> {
    if c.dims(1).len() != 1 {
        return Err(KernelError::invalid_argument(format!(
            "perm must be a vector, found shape {:?}",
            c.dims(1)
        )));
    }
    Ok(TransposePlan::new(c.dims(0), &lists::short(c, 1)?)?)
}

/// Transposes one matrix of blocks: output block (c, r) is input block (r, c).
fn turn_blocks<W: Word>(x: &[W], [rows, cols, block]: [usize; 3], first: usize, y: &mut [W]) {
    for (at, y) in y.chunks_exact_mut(block).enumerate() {
        let (column, row) = (first + at / rows, at % rows);
        y.copy_from_slice(&x[(row * cols + column) * block..][..block]);
    }
}

fn compute<W: Word>(c: &ComputeContext<'_>, plan: &TransposePlan) -> Result<(), KernelError> {
    let x = words::<W>(c.input_bytes(0)?)?;
    let y = words_mut::<W>(c.output_bytes(0, plan.output_dims())?)?;
    let TransposeKind::Matrix { batch, rows, cols, block } = plan.kind() else {
        return gather(plan.extents(), plan.strides(), 0, x, y);
    };
    if y.is_empty() {
        return Ok(());
    }
    let (matrix, y) = (rows * cols * block, Parts::new(y));
    if block == 1 {
        let (strips, large) = (rows.div_ceil(STRIP), stores::<W>(batch * matrix) == Stores::Past);
        // With few rows, some columns at a time, so that there is work for all threads.
        let width = (UNIT / STRIP.min(rows)).next_multiple_of(SIDE).min(cols);
        let pieces = cols.div_ceil(width);
        let cost = 0.3 * (STRIP.min(rows) * width) as f64;
        return for_units(c, batch * strips * pieces, cost, |range| {
            for unit in range {
                let (strip, piece) = (unit / pieces, unit % pieces * width);
                let (image, first) = (strip / strips, strip % strips * STRIP);
                let x = &x[image * matrix..][..matrix];
                let rows_of = [first, STRIP.min(rows - first)];
                let columns = piece..(piece + width).min(cols);
                turn(x, [rows, cols], rows_of, columns, (&y, image * matrix), large);
            }
        });
    }
    for_units(c, batch * cols, 0.5 * (rows * block) as f64, |range| {
        for unit in range {
            let (image, column) = (unit / cols, unit % cols);
            let start = image * matrix;
            let row = start + column * rows * block;
            // SAFETY: each unit has an output row of its own.
            let y = unsafe { y.part(row..row + rows * block) };
            turn_blocks(&x[start..start + matrix], [rows, cols, block], column, y);
        }
    })
}

fn transpose(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let plan = transpose_plan(c)?;
    if let TransposeKind::Copy { .. } = plan.kind() {
        return c.share(0, 0, plan.output_dims());
    }
    by_size!(element_size(c, 0)?, compute(c, &plan))
}

fn transpose_strings(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let plan = transpose_plan(c)?;
    let x = c.strings(0)?;
    c.fill_strings(0, plan.output_dims(), |y| reference::transpose(&plan, &x, y))
}

/// `ConjugateTranspose` of complex numbers; for other types it is `Transpose`.
fn conjugate<T: Element + Neg<Output = T>>(c: &ComputeContext<'_>) -> Result<(), KernelError>
where
    Complex<T>: Element,
{
    let plan = transpose_plan(c)?;
    let x = c.input::<Complex<T>>(0)?;
    let y = c.output::<Complex<T>>(0, plan.output_dims())?;
    gather(plan.extents(), plan.strides(), 0, x.data, y.data)?;
    y.data.iter_mut().for_each(|y| y.im = -y.im);
    Ok(())
}

register_kernel!("ConjugateTranspose" on "CPU": fn transpose, types = ("T", REAL),
    host_memory = &["perm"], numerics = Numerics::EXACT);
register_kernel!("ConjugateTranspose" on "CPU": fn transpose_strings, types = ("T", &[DType::STRING]),
    host_memory = &["perm"], numerics = Numerics::EXACT);
register_kernel!("ConjugateTranspose" on "CPU": fn conjugate::<f32>, types = ("T", &[DType::COMPLEX64]),
    host_memory = &["perm"], numerics = Numerics::EXACT);
register_kernel!("ConjugateTranspose" on "CPU": fn conjugate::<f64>, types = ("T", &[DType::COMPLEX128]),
    host_memory = &["perm"], numerics = Numerics::EXACT);
register_kernel!("Transpose" on "CPU": fn transpose, types = ("T", NUMBERS),
    host_memory = &["perm"], numerics = Numerics::EXACT);
register_kernel!("Transpose" on "CPU": fn transpose_strings, types = ("T", &[DType::STRING]),
    host_memory = &["perm"], numerics = Numerics::EXACT);

#[cfg(test)]
mod tests {
    use super::*;

    /// One matrix, transposed by the method for its kind.
    fn transposed<W: Word>(plan: &TransposePlan, x: &[W], large: bool) -> Vec<W> {
        let mut y = vec![W::default(); x.len()];
        let TransposeKind::Matrix { batch, rows, cols, block } = plan.kind() else {
            gather(plan.extents(), plan.strides(), 0, x, &mut y).unwrap();
            return y;
        };
        let len = rows * cols * block;
        for b in 0..batch {
            let x = &x[b * len..][..len];
            if block > 1 {
                turn_blocks(x, [rows, cols, block], 0, &mut y[b * len..][..len]);
                continue;
            }
            let y = Parts::new(&mut y);
            for first in (0..rows).step_by(STRIP) {
                let strip = [first, STRIP.min(rows - first)];
                turn(x, [rows, cols], strip, 0..cols, (&y, b * len), large);
            }
        }
        y
    }

    fn check<W: Word + PartialEq + std::fmt::Debug>(element: impl Fn(usize) -> W) {
        let cases: [(&[i64], &[i64]); 12] = [
            (&[1033, 2], &[1, 0]),
            (&[301, 3], &[1, 0]),
            (&[5, 130, 4], &[0, 2, 1]),
            (&[37, 21], &[1, 0]),
            (&[300, 33], &[1, 0]),
            (&[512, 35], &[1, 0]),
            (&[2, 2], &[1, 0]),
            (&[1030, 7], &[1, 0]),
            (&[3, 20, 17], &[0, 2, 1]),
            (&[5, 6, 7], &[1, 0, 2]),
            (&[2, 3, 4, 5], &[0, 3, 1, 2]),
            (&[2, 3, 4, 5], &[3, 1, 0, 2]),
        ];
        for (dims, perm) in cases {
            let plan = TransposePlan::new(dims, perm).unwrap();
            let x: Vec<W> = (0..plan.len()).map(&element).collect();
            let mut expected = vec![W::default(); x.len()];
            reference::transpose(&plan, &x, &mut expected);
            for large in [false, true] {
                assert_eq!(transposed(&plan, &x, large), expected, "{dims:?} {perm:?} {large}");
            }
        }
    }

    #[test]
    fn matrices_and_boxes_agree_with_the_reference() {
        check(|at| at as u8);
        check(|at| at as u16);
        check(|at| at as u32);
        check(|at| at as u64);
    }
}
