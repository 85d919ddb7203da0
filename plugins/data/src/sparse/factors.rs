//! `SparseMatMul`: the product of whole matrices of which most elements may be 0. Products are added up in single precision,
//! in the order of the columns of the left factor; zeros of the left factor are left out where the op says that it has many.

use super::places::{rank, size};
use std::borrow::Cow;
use tenon_sdk::{geometry::byte_size, growth, prelude::*};

struct SparseMatMul {
    turned: [bool; 2],
    has_zeros: bool,
}

/// A matrix in single precision, with its rows one after the other.
fn matrix<'c>(
    c: &ComputeContext<'c>,
    input: usize,
    is_turned: bool,
) -> Result<Cow<'c, [f32]>, KernelError> {
    let plain: Cow<'c, [f32]> = match c.slot(input)?.dtype {
        DType::FLOAT => Cow::Borrowed(c.input::<f32>(input)?.data),
        _ => {
            let x = c.input::<bf16>(input)?.data;
            Cow::Owned(growth::collected(x.iter().map(|x| x.to_f32()))?)
        }
    };
    if !is_turned {
        return Ok(plain);
    }
    let (rows, columns) = (c.dims(input)[0] as usize, c.dims(input)[1] as usize);
    let places = (0..columns).flat_map(|column| (0..rows).map(move |row| row * columns + column));
    Ok(Cow::Owned(growth::collected(places.map(|at| plain[at]))?))
}

impl Kernel for SparseMatMul {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let turned = [c.attr("transpose_a")?, c.attr("transpose_b")?];
        Ok(SparseMatMul { turned, has_zeros: c.attr("a_is_sparse")? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        rank(c, 0, "a", 2)?;
        rank(c, 1, "b", 2)?;
        let dims = |at: usize| match self.turned[at] {
            true => [c.dims(at)[1], c.dims(at)[0]],
            false => [c.dims(at)[0], c.dims(at)[1]],
        };
        let ([rows, inner], [found, columns]) = (dims(0), dims(1));
        size("the inner dimension of b", inner, found)?;
        byte_size(&[rows, columns], 4)?;
        let y = c.output::<f32>(0, &[rows, columns])?.data;
        y.fill(0.0);
        if y.is_empty() || inner == 0 {
            return Ok(());
        }
        let (a, b) = (matrix(c, 0, self.turned[0])?, matrix(c, 1, self.turned[1])?);
        let (inner, columns) = (inner as usize, columns as usize);
        let rows = y.chunks_exact_mut(columns).zip(a.chunks_exact(inner));
        c.parallel_items(rows, 0.3 * (inner * columns) as f64, |_, (y, a)| {
            for (&x, b) in a.iter().zip(b.chunks_exact(columns)) {
                if x != 0.0 || !self.has_zeros {
                    y.iter_mut().zip(b).for_each(|(y, b)| *y += x * b);
                }
            }
            Ok(())
        })
    }
}

register_kernel!("SparseMatMul" on "CPU": SparseMatMul, numerics = Numerics::relative(1e-30, 1e-5));
