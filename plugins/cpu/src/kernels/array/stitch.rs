//! `DynamicPartition`, `DynamicStitch`, `ParallelDynamicStitch`.

use super::{
    copy,
    moves::{Item, Move, SLICED_TEXTS, TEXTS, make, place},
    picked::Numbered,
};
use crate::split::for_rows;
use tenon_sdk::{
    Code, DType, KernelError,
    author::{ComputeContext, Kept, Piece},
    geometry::{Dims, element_count, shape_after, shape_behind, stitch_rows},
    growth,
    reg::Numerics,
    register_kernel,
};

/// Elements of a type that are copied one by one, since each has an owner.
const OWNED: [DType; 2] = [DType::RESOURCE, DType::VARIANT];

/// The rows of each partition, in order.
fn partitions(c: &ComputeContext<'_>) -> Result<Vec<Vec<usize>>, KernelError> {
    let count = c.output_count();
    let numbers = c.input::<i32>(1)?;
    let part_of = |number: i32| usize::try_from(number).ok().filter(|&part| part < count);
    let mut sizes = growth::filled(count, 0usize)?;
    for (at, &number) in numbers.data.iter().enumerate() {
        let Some(part) = part_of(number) else {
            return Err(KernelError::invalid_argument(format!(
                "partitions{} = {number} is not in [0, {count})",
                place(c.dims(1), at)
            )));
        };
        sizes[part] += 1;
    }
    let mut rows = growth::try_collected(sizes.into_iter().map(growth::with_room::<usize>))?;
    for (row, &number) in numbers.data.iter().enumerate() {
        if let Some(part) = part_of(number) {
            growth::push(&mut rows[part], row)?;
        }
    }
    Ok(rows)
}

fn partition(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let slice = shape_after(c.dims(0), c.dims(1), ["data", "partitions"])?;
    let (dtype, len) = (c.slot(0)?.dtype, element_count(&slice)?);
    let all = partitions(c)?;
    let kept = if OWNED.contains(&dtype) { Some(c.keep(0)?) } else { None };
    for (output, rows) in all.iter().enumerate() {
        let dims = shape_behind(rows.len() as i64, &slice)?;
        match &kept {
            Some(from) => {
                let piece = |(to, row): (usize, &usize)| Piece {
                    from,
                    start: row * len,
                    len,
                    to: to * len,
                };
                c.output_pieces(output, &dims, rows.iter().enumerate().map(piece))?;
            }
            None => make(c, dtype, &[0], (output, &dims), &Numbered { slices: rows, len })?,
        }
    }
    Ok(())
}

/// The rows of several tensors and their places in the output.
struct Stitch {
    /// The number of the first row of each tensor, when the rows of all are counted.
    starts: Vec<usize>,
    /// The number of the row that each row of the output has; [`NOTHING`] where none names it.
    sources: Vec<u32>,
    len: usize,
}

/// No row.
const NOTHING: u32 = u32::MAX;

impl Stitch {
    fn new(indices: &[Vec<i64>], rows: i64, len: usize) -> Result<Stitch, KernelError> {
        let total: usize = indices.iter().map(Vec::len).sum();
        if total >= NOTHING as usize {
            let message = format!("indices name {total} slices: expected less than 2^32 - 1");
            return Err(KernelError::new(Code::RESOURCE_EXHAUSTED, message));
        }
        let mut sources = growth::filled(rows as usize, NOTHING)?;
        let mut starts = growth::with_room(indices.len())?;
        let mut row = 0;
        for list in indices {
            growth::push(&mut starts, row as usize)?;
            for &index in list {
                sources[index as usize] = row;
                row += 1;
            }
        }
        Ok(Stitch { starts, sources, len })
    }

    /// The tensor that has a row, and the row's first element there.
    fn find(&self, row: u32) -> (usize, usize) {
        let row = row as usize;
        let list = self.starts.partition_point(|&start| start <= row) - 1;
        (list, (row - self.starts[list]) * self.len)
    }
}

impl Move for Stitch {
    fn run<T: Item>(
        &self,
        c: &ComputeContext<'_>,
        x: &[&[T]],
        y: &mut [T],
    ) -> Result<(), KernelError> {
        if y.is_empty() {
            return Ok(());
        }
        let cost = 3.0 + 0.05 * self.len as f64 * size_of::<T>() as f64;
        for_rows(c, y, self.len, cost, |first, y| {
            for (&source, y) in self.sources[first..].iter().zip(y.chunks_exact_mut(self.len)) {
                if source == NOTHING {
                    y.fill(T::default());
                    continue;
                }
                let (list, start) = self.find(source);
                copy(&x[list][start..][..self.len], y);
            }
        })
    }
}

/// The shape of a slice, which all tensors have.
fn slice_of(c: &ComputeContext<'_>, count: usize) -> Result<Dims, KernelError> {
    let slice = |at: usize| {
        let names = [format!("data[{at}]"), format!("indices[{at}]")];
        shape_after(c.dims(count + at), c.dims(at), [&names[0], &names[1]])
    };
    let first = slice(0)?;
    for at in 1..count {
        let found = slice(at)?;
        if found != first {
            return Err(KernelError::invalid_argument(format!(
                "all slices of data must have one shape: expected {:?}, as in data[0], found {:?} in data[{at}]",
                &first[..],
                &found[..]
            )));
        }
    }
    Ok(first)
}

fn stitch(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let count = c.input_count() / 2;
    let slice = slice_of(c, count)?;
    let indices = growth::try_collected((0..count).map(|at| c.integers(at)))?;
    let rows = stitch_rows(indices.iter().map(Vec::as_slice))?;
    let (dims, len) = (shape_behind(rows, &slice)?, element_count(&slice)?);
    let dtype = c.slot(count)?.dtype;
    let inputs = growth::collected(count..2 * count)?;
    if OWNED.contains(&dtype) {
        return stitch_owned(c, &indices, &inputs, &dims, len);
    }
    // Slices without elements have no place.
    let (indices, rows) = if len == 0 { (&[][..], 0) } else { (&indices[..], rows) };
    let stitch = Stitch::new(indices, rows, len);
    make(c, dtype, &inputs, (0, &dims), &stitch?)
}

/// Joins elements that have owners. Where several are for one place, the last one stays.
fn stitch_owned(
    c: &ComputeContext<'_>,
    indices: &[Vec<i64>],
    inputs: &[usize],
    dims: &[i64],
    len: usize,
) -> Result<(), KernelError> {
    let kept = growth::try_collected(inputs.iter().map(|&input| c.keep(input)))?;
    let pieces = kept.iter().zip(indices).flat_map(|(from, list)| {
        let piece = move |(row, &index): (usize, &i64)| Piece {
            from,
            start: row * len,
            len,
            to: index as usize * len,
        };
        list.iter().enumerate().map(piece)
    });
    c.output_kept(0, &Kept::from_pieces(DType::VARIANT, dims, pieces)?)
}

register_kernel!("DynamicPartition" on "CPU": fn partition, types = ("T", TEXTS),
    numerics = Numerics::EXACT);
register_kernel!("DynamicPartition" on "CPU": fn partition, types = ("T", &OWNED),
    numerics = Numerics::EXACT);
register_kernel!("DynamicStitch" on "CPU": fn stitch, types = ("T", SLICED_TEXTS),
    numerics = Numerics::EXACT);
register_kernel!("DynamicStitch" on "CPU": fn stitch, types = ("T", &[DType::VARIANT]),
    numerics = Numerics::EXACT);
register_kernel!("ParallelDynamicStitch" on "CPU": fn stitch, types = ("T", SLICED_TEXTS),
    numerics = Numerics::EXACT);
register_kernel!("ParallelDynamicStitch" on "CPU": fn stitch, types = ("T", &[DType::VARIANT]),
    numerics = Numerics::EXACT);
