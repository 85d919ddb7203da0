//! `SparseSegmentSumGrad` and similar ops: the rows of a gradient, added where the rows of their
//! segments were picked. The second versions give only the rows that were picked.
//!
//! Positions are first sorted by the row of the output to which they belong, so that each row of
//! the output is one sum, made by one thread in the order of the positions.

use super::{super::array::write_integers, segment::of_floats};
use crate::{lane::Compute, split::try_rows};
use half::{bf16, f16};
use std::ops::Range;
use tenon_sdk::{
    KernelError,
    author::ComputeContext,
    element::Number,
    geometry::{Dims, byte_size, element_count},
    growth, register_kernel,
};

/// The checked inputs of a gradient: for each position a row of the output and one of the gradient.
struct Picks {
    output: Dims,
    inner: usize,
    rows: usize,
    segments: usize,
    indices: Vec<i64>,
    ids: Vec<i64>,
}

fn refuse(message: String) -> KernelError {
    KernelError::invalid_argument(message)
}

/// Checks that each value is at least 0 and below `end`.
fn check_range(what: &str, values: &[i64], end: usize) -> Result<(), KernelError> {
    match values.iter().position(|&value| value < 0 || value as u64 >= end as u64) {
        None => Ok(()),
        Some(at) => {
            Err(refuse(format!("{what}[{at}] must be in [0, {end}), found {}", values[at])))
        }
    }
}

impl Picks {
    /// `count` is the name of the input that says how many rows there are.
    fn new(c: &ComputeContext<'_>, count: &str) -> Result<Picks, KernelError> {
        let Some((&segments, row)) = c.dims(0).split_first() else {
            return Err(refuse("grad must have at least 1 dimensions, got 0".to_owned()));
        };
        let rows = c.integer(3, count)?;
        if rows < 0 {
            return Err(refuse(format!("{count} must be at least 0, got {rows}")));
        }
        if c.dims(1).len() != 1 || c.dims(1) != c.dims(2) {
            return Err(refuse(format!(
                "indices and segment_ids must be vectors of one length, found shapes {:?} and {:?}",
                c.dims(1),
                c.dims(2)
            )));
        }
        let mut output = Dims::EMPTY;
        output.push(rows)?;
        row.iter().try_for_each(|&dim| output.push(dim))?;
        byte_size(&output, 8)?;
        let (rows, segments) = (rows as usize, segments as usize);
        let (indices, ids) = (c.integers(1)?, c.integers(2)?);
        check_range("indices", &indices, rows)?;
        check_range("segment_ids", &ids, segments)?;
        Ok(Picks { output, inner: element_count(row)?, rows, segments, indices, ids })
    }

    /// The positions in the order of their rows of the output, and the number of those before each
    /// row.
    fn by_row(&self) -> Result<(Vec<usize>, Vec<usize>), KernelError> {
        let mut starts = growth::filled(self.rows + 1, 0usize)?;
        for &index in &self.indices {
            starts[index as usize + 1] += 1;
        }
        (1..starts.len()).for_each(|row| starts[row] += starts[row - 1]);
        let mut next = growth::collected(starts.iter().copied())?;
        let mut order = growth::filled(self.indices.len(), 0usize)?;
        for (position, &index) in self.indices.iter().enumerate() {
            let next = &mut next[index as usize];
            order[*next] = position;
            *next += 1;
        }
        Ok((order, starts))
    }

    /// How often each segment occurs.
    fn sizes(&self) -> Result<Vec<usize>, KernelError> {
        let mut sizes = growth::filled(self.segments, 0usize)?;
        self.ids.iter().for_each(|&id| sizes[id as usize] += 1);
        Ok(sizes)
    }
}

/// What the gradient of a segment is multiplied by.
#[derive(Clone, Copy)]
enum Scale {
    One,
    /// 1 / size.
    Mean,
    /// 1 / the square root of the size.
    Root,
}

impl Scale {
    /// The factors of the segments.
    fn factors(self, picks: &Picks) -> Result<Vec<f64>, KernelError> {
        let factor = |size: usize| match self {
            Scale::One => 1.0,
            Scale::Mean => 1.0 / size as f64,
            Scale::Root => 1.0 / (size as f64).sqrt(),
        };
        growth::collected(picks.sizes()?.into_iter().map(factor))
    }
}

/// Sums into each row of `y` the gradients at its positions, which `at` finds in `order`.
fn add_rows<T: Compute>(
    c: &ComputeContext<'_>,
    picks: &Picks,
    scale: Scale,
    y: &mut [T],
    (order, at): (&[usize], impl Fn(usize) -> Range<usize> + Sync),
) -> Result<(), KernelError> {
    let grad = c.input::<T>(0)?.data;
    let (inner, factors) = (picks.inner, scale.factors(picks)?);
    let rows = y.len().checked_div(inner).unwrap_or(0);
    let each = 1.0 + order.len() as f64 / rows.max(1) as f64;
    try_rows(c, y, inner, each * inner as f64, |first, y| {
        let mut sums = growth::filled(inner, T::Wide::ZERO)?;
        for (row, y) in (first..).zip(y.chunks_exact_mut(inner)) {
            sums.fill(T::Wide::ZERO);
            for &position in &order[at(row)] {
                let segment = picks.ids[position] as usize;
                let factor = <T::Wide as Number>::from_f64(factors[segment]);
                let grad = &grad[segment * inner..][..inner];
                for (sum, grad) in sums.iter_mut().zip(grad) {
                    *sum = sum.add(grad.up().mul(factor));
                }
            }
            y.iter_mut().zip(&sums).for_each(|(y, &sum)| *y = T::down(sum));
        }
        Ok(())
    })
}

/// Computes the gradient of all rows.
fn gradient<T: Compute>(c: &ComputeContext<'_>, scale: Scale) -> Result<(), KernelError> {
    let picks = Picks::new(c, "output_dim0")?;
    let y = c.output::<T>(0, &picks.output)?.data;
    let (order, starts) = picks.by_row()?;
    add_rows(c, &picks, scale, y, (&order, |row| starts[row]..starts[row + 1]))
}

/// Computes the gradient of the rows that were picked, and their numbers. The work and the memory
/// follow from the number of indices, not from that of rows.
fn gradient_rows<T: Compute>(c: &ComputeContext<'_>, scale: Scale) -> Result<(), KernelError> {
    let picks = Picks::new(c, "dense_output_dim0")?;
    let mut order = growth::collected(0..picks.indices.len())?;
    order.sort_by_key(|&position| picks.indices[position]);
    let same = |a: &usize, b: &usize| picks.indices[*a] == picks.indices[*b];
    let mut starts = growth::collected(order.chunk_by(same).scan(0, |next, run| {
        let start = *next;
        *next += run.len();
        Some(start)
    }))?;
    let rows = starts.len();
    starts.push(order.len());
    let mut output = Dims::EMPTY;
    output.push(rows as i64)?;
    picks.output.iter().skip(1).try_for_each(|&dim| output.push(dim))?;
    let unique = starts[..rows].iter().map(|&start| picks.indices[order[start]]);
    write_integers(c, 1, &[rows as i64], unique)?;
    let y = c.output::<T>(0, &output)?.data;
    add_rows(c, &picks, scale, y, (&order, |row| starts[row]..starts[row + 1]))
}

/// Registers gradients, and those of picked rows alone.
macro_rules! gradients {
    ($($op:literal $kernel:ident, $sparse:literal $rows:ident: $scale:expr;)*) => {
        $(
            fn $kernel<T: Compute>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
                gradient::<T>(c, $scale)
            }

            fn $rows<T: Compute>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
                gradient_rows::<T>(c, $scale)
            }
        )*
        of_floats! {$(
            $op $kernel, host_memory = &["output_dim0"];
            $sparse $rows, host_memory = &["dense_output_dim0"];
        )*}
    };
}

gradients! {
    "SparseSegmentSumGrad" sum_grad, "SparseSegmentSumGradV2" sum_rows: Scale::One;
    "SparseSegmentMeanGrad" mean_grad, "SparseSegmentMeanGradV2" mean_rows: Scale::Mean;
    "SparseSegmentSqrtNGrad" root_grad, "SparseSegmentSqrtNGradV2" root_rows: Scale::Root;
}
