//! `Transpose`.

use super::{NUMBERS, REAL, Word, by_size, element_size, gather::gather, words, words_mut};
use crate::split::{Parts, for_units};
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

/// Side of the square of elements that is turned at a time: both sides stay in the cache.
const TILE: usize = 16;

/// The plan of a call.
pub fn transpose_plan(c: &ComputeContext<'_>) -> Result<TransposePlan, KernelError> {
    if c.dims(1).len() != 1 {
        return Err(KernelError::invalid_argument(format!(
            "perm must be a vector, found shape {:?}",
            c.dims(1)
        )));
    }
    Ok(TransposePlan::new(c.dims(0), &c.integers(1)?)?)
}

/// Rows `range` of tiles of the output (its rows are the input's columns), of one matrix.
fn turn<W: Word>(x: &[W], rows: usize, cols: usize, first: usize, y: &mut [W]) {
    let count = y.len() / rows;
    for r in (0..rows).step_by(TILE) {
        let height = TILE.min(rows - r);
        for (i, y) in y.chunks_exact_mut(rows).take(count).enumerate() {
            let column = first + i;
            for (k, y) in y[r..r + height].iter_mut().enumerate() {
                *y = x[(r + k) * cols + column];
            }
        }
    }
}

/// One matrix of blocks: output block (c, r) is input block (r, c).
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
    let matrix = rows * cols * block;
    let strips = cols.div_ceil(TILE);
    let y = Parts::new(y);
    let cost = 0.5 * (TILE.min(cols) * rows * block) as f64;
    for_units(c, batch * strips, cost, |range| {
        for unit in range {
            let (image, first) = (unit / strips, unit % strips * TILE);
            let end = (first + TILE).min(cols);
            let start = image * matrix;
            // SAFETY: each unit has output rows of its own.
            let y = unsafe { y.part(start + first * rows * block..start + end * rows * block) };
            let x = &x[start..start + matrix];
            if block == 1 {
                turn(x, rows, cols, first, y);
            } else {
                turn_blocks(x, [rows, cols, block], first, y);
            }
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

/// `ConjugateTranspose` of complex numbers; of others it is `Transpose`.
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

    #[test]
    fn matrices_and_boxes_agree_with_the_reference() {
        let cases: [(&[i64], &[i64]); 5] = [
            (&[37, 21], &[1, 0]),
            (&[3, 20, 17], &[0, 2, 1]),
            (&[5, 6, 7], &[1, 0, 2]),
            (&[2, 3, 4, 5], &[0, 3, 1, 2]),
            (&[2, 3, 4, 5], &[3, 1, 0, 2]),
        ];
        for (dims, perm) in cases {
            let plan = TransposePlan::new(dims, perm).unwrap();
            let x: Vec<u32> = (0..plan.len() as u32).collect();
            let mut expected = vec![0; x.len()];
            reference::transpose(&plan, &x, &mut expected);
            let mut found = vec![0; x.len()];
            match plan.kind() {
                TransposeKind::Matrix { batch, rows, cols, block } => {
                    let len = rows * cols * block;
                    for b in 0..batch {
                        let (x, y) = (&x[b * len..][..len], &mut found[b * len..][..len]);
                        match block {
                            1 => turn(x, rows, cols, 0, y),
                            _ => turn_blocks(x, [rows, cols, block], 0, y),
                        }
                    }
                }
                _ => gather(plan.extents(), plan.strides(), 0, &x, &mut found).unwrap(),
            }
            assert_eq!(found, expected, "{dims:?} {perm:?}");
        }
    }
}
