//! `SparseSegmentSumGrad` and `SparseSegmentMeanGrad`: the rows of a gradient, added where the rows
//! of their segments were picked.
//!
//! Positions are first sorted by the row of the output to which they belong, so that each row of
//! the output is one sum, made by one thread in the order of the positions.

use crate::{lane::Compute, split::try_rows};
use half::{bf16, f16};
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
    fn new(c: &ComputeContext<'_>) -> Result<Picks, KernelError> {
        let Some((&segments, row)) = c.dims(0).split_first() else {
            return Err(refuse("grad must have at least 1 dimensions, got 0".to_owned()));
        };
        let rows = c.integer(3, "output_dim0")?;
        if rows < 0 {
            return Err(refuse(format!("output_dim0 must be at least 0, got {rows}")));
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

/// Computes the gradient; `mean` divides that of a segment by its size.
fn gradient<T: Compute>(c: &ComputeContext<'_>, mean: bool) -> Result<(), KernelError> {
    let picks = Picks::new(c)?;
    let grad = c.input::<T>(0)?.data;
    let y = c.output::<T>(0, &picks.output)?.data;
    let (order, starts) = picks.by_row()?;
    let sizes = if mean { picks.sizes()? } else { Vec::new() };
    let inner = picks.inner;
    let each = 1.0 + order.len() as f64 / picks.rows.max(1) as f64;
    try_rows(c, y, inner, each * inner as f64, |first, y| {
        let mut sums = growth::filled(inner, T::Wide::ZERO)?;
        for (row, y) in (first..).zip(y.chunks_exact_mut(inner)) {
            sums.fill(T::Wide::ZERO);
            for &position in &order[starts[row]..starts[row + 1]] {
                let segment = picks.ids[position] as usize;
                let scale = sizes.get(segment).map_or(1.0, |&size| 1.0 / size as f64);
                let scale = <T::Wide as Number>::from_f64(scale);
                let grad = &grad[segment * inner..][..inner];
                for (sum, grad) in sums.iter_mut().zip(grad) {
                    *sum = sum.add(grad.up().mul(scale));
                }
            }
            y.iter_mut().zip(&sums).for_each(|(y, &sum)| *y = T::down(sum));
        }
        Ok(())
    })
}

fn sum_grad<T: Compute>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    gradient::<T>(c, false)
}

fn mean_grad<T: Compute>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    gradient::<T>(c, true)
}

macro_rules! gradients {
    ($($op:literal $kernel:ident;)*) => {$(
        register_kernel!($op on "CPU": fn $kernel<T> for "T" in [f32],
            host_memory = &["output_dim0"], numerics = super::FLOAT);
        register_kernel!($op on "CPU": fn $kernel<T> for "T" in [f64],
            host_memory = &["output_dim0"], numerics = super::DOUBLE);
        register_kernel!($op on "CPU": fn $kernel<T> for "T" in [f16],
            host_memory = &["output_dim0"], numerics = super::HALF);
        register_kernel!($op on "CPU": fn $kernel<T> for "T" in [bf16],
            host_memory = &["output_dim0"], numerics = super::BFLOAT16);
    )*};
}

gradients! {
    "SparseSegmentSumGrad" sum_grad;
    "SparseSegmentMeanGrad" mean_grad;
}
