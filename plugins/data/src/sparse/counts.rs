//! `DenseCountSparseOutput`, `SparseCountSparseOutput` and `RaggedCountSparseOutput`: how often numbers occur in each row.

use super::places::{Places, rank, write_numbers};
use std::marker::PhantomData;
use tenon_sdk::{geometry::GeometryError, growth, prelude::*};

/// Which numbers are counted, and how.
struct Count<W> {
    least: i64,
    most: i64,
    is_binary: bool,
    of: PhantomData<fn(W)>,
}

/// A number to count: its row, itself, and its place among the weights.
type Entry = (i64, i64, usize);

/// The rows of what is counted.
struct Rows {
    /// How many there are; none of a vector.
    count: Option<i64>,
    entries: Vec<Entry>,
}

fn refuse(message: String) -> KernelError {
    KernelError::invalid_argument(message)
}

/// The numbers of a vector or of the rows of a matrix.
fn dense(c: &ComputeContext<'_>) -> Result<Rows, KernelError> {
    let values = c.integers(0)?;
    let (count, width) = match *c.dims(0) {
        [_] => (None, 0),
        [0, _] => {
            return Err(refuse(format!(
                "values: expected a row or more, found shape {:?}",
                c.dims(0)
            )));
        }
        [rows, columns] => (Some(rows), columns),
        ref dims => {
            let (what, expected, found) = ("values", 2, dims.len());
            return Err(GeometryError::Rank { what, expected, found }.into());
        }
    };
    let row = |at: usize| if width == 0 { 0 } else { at as i64 / width };
    let entries = values.iter().enumerate().map(|(at, &value)| (row(at), value, at));
    Ok(Rows { count, entries: growth::collected(entries)? })
}

/// The numbers of a sparse vector or matrix.
fn sparse(c: &ComputeContext<'_>) -> Result<Rows, KernelError> {
    let places = Places::inside(c, [0, 1, 2])?;
    let count = match places.shape[..] {
        [_] => None,
        [rows, _] if rows > 0 => Some(rows),
        [rows, _] => {
            return Err(refuse(format!("dense_shape: expected a row or more, found {rows}")));
        }
        ref shape => {
            let (what, expected, found) = ("dense_shape", 2, shape.len());
            return Err(GeometryError::Length { what, expected, found }.into());
        }
    };
    let row = |at: usize| if count.is_some() { places.at(at)[0] } else { 0 };
    let values = c.integers(1)?;
    let entries = values.iter().enumerate().map(|(at, &value)| (row(at), value, at));
    Ok(Rows { count, entries: growth::collected(entries)? })
}

/// The numbers of a ragged matrix.
fn ragged(c: &ComputeContext<'_>) -> Result<Rows, KernelError> {
    rank(c, 0, "splits", 1)?;
    rank(c, 1, "values", 1)?;
    let (splits, values) = (c.integers(0)?, c.integers(1)?);
    let number = values.len() as i64;
    let ordered = splits.windows(2).all(|pair| pair[0] <= pair[1]);
    if splits.len() < 2 || splits[0] != 0 || splits.last() != Some(&number) || !ordered {
        return Err(refuse(format!(
            "splits: expected two or more in order, from 0 to the number of values, {number}, found {splits:?}"
        )));
    }
    let mut entries = growth::with_room(values.len())?;
    for (row, ends) in splits.windows(2).enumerate() {
        let own = ends[0] as usize..ends[1] as usize;
        entries.extend(own.map(|at| (row as i64, values[at], at)));
    }
    Ok(Rows { count: Some(splits.len() as i64 - 1), entries })
}

impl<W: Number> Count<W> {
    /// The weights of numbers in one input, from another: as many, or none.
    fn weights<'c>(
        c: &ComputeContext<'c>,
        [values, weights]: [usize; 2],
    ) -> Result<&'c [W], KernelError> {
        let found = c.input::<W>(weights)?;
        let dims = c.dims(values);
        match found.data.is_empty() || found.dims == dims {
            true => Ok(found.data),
            false => Err(refuse(format!(
                "weights: expected shape {dims:?}, that of values, or no elements, found shape {:?}",
                found.dims
            ))),
        }
    }

    /// Writes how often the numbers occur that are not left out.
    fn write(&self, c: &ComputeContext<'_>, rows: Rows, weights: &[W]) -> Result<(), KernelError> {
        let Rows { count, mut entries } = rows;
        if let Some((_, value, at)) = entries.iter().find(|entry| entry.1 < 0) {
            return Err(refuse(format!(
                "values: expected numbers of 0 or more, found {value} at place {at}"
            )));
        }
        entries.retain(|entry| self.most < 0 || entry.1 < self.most);
        // Weights of one number are added in their order.
        entries.sort_by_key(|&(row, value, _)| (row, value));
        let greatest = entries.iter().map(|entry| entry.1).max().unwrap_or(0);
        let size =
            if self.most >= 0 { self.most } else { greatest.saturating_add(1).max(self.least) };
        let same = |a: &Entry, b: &Entry| (a.0, a.1) == (b.0, b.1);
        let found = entries.chunk_by(same).count();
        let columns = if count.is_some() { 2 } else { 1 };
        let indices = c.output::<i64>(0, &[found as i64, columns as i64])?.data;
        let counts = c.output::<W>(1, &[found as i64])?.data;
        let outputs = indices.chunks_exact_mut(columns).zip(counts);
        for (entries, (place, counted)) in entries.chunk_by(same).zip(outputs) {
            let (row, value, _) = entries[0];
            place.copy_from_slice(&[row, value][2 - columns..]);
            let weight = |at: usize| weights.get(at).copied().unwrap_or(W::ONE);
            *counted = match self.is_binary {
                true => W::ONE,
                false => entries.iter().fold(W::ZERO, |sum, entry| sum.add(weight(entry.2))),
            };
        }
        match count {
            Some(rows) => write_numbers(c, 2, &[rows, size]),
            None => write_numbers(c, 2, &[size]),
        }
    }
}

impl<W: Number> Kernel for Count<W> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let (least, most) = (c.attr("minlength")?, c.attr("maxlength")?);
        Ok(Count { least, most, is_binary: c.attr("binary_output")?, of: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        match c.input_count() {
            2 => self.write(c, dense(c)?, Self::weights(c, [0, 1])?),
            4 => self.write(c, sparse(c)?, Self::weights(c, [1, 3])?),
            _ => self.write(c, ragged(c)?, Self::weights(c, [1, 2])?),
        }
    }
}

macro_rules! counts {
    ($($op:literal),*) => {$(
        register_kernel!($op on "CPU": Count<T> for "output_type" in [i32, i64, f32, f64],
            types = ("T", &[DType::INT32, DType::INT64]));
    )*};
}

counts!("DenseCountSparseOutput", "SparseCountSparseOutput", "RaggedCountSparseOutput");
