//! `SparseFillEmptyRows`, and its gradient, which is that of `RaggedFillEmptyRows` too.

use super::{
    moved::{From, MOVED, Values},
    places::{Places, rank},
};
use crate::update::Sum;
use num_complex::Complex;
use tenon_sdk::{geometry::GeometryError, growth, prelude::*};

/// The places in the result: of each value of the input, and of the values that fill rows.
pub struct Filled {
    /// The first place of each row, and the number of all.
    pub starts: Vec<usize>,
    /// For each value of the input, its place in the result.
    pub map: Vec<i64>,
    /// For each place in the result, a value of the input, or none.
    pub from: Vec<Option<usize>>,
}

impl Filled {
    /// The places of `values` values in `rows` rows, of which `row_of` gives each value's.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a row that is not there; `RESOURCE_EXHAUSTED` without memory.
    pub fn new(
        rows: i64,
        values: usize,
        row_of: impl Fn(usize) -> i64,
    ) -> Result<Filled, KernelError> {
        let in_rows =
            usize::try_from(rows).map_err(|_| GeometryError::TooLarge { dims: vec![rows] })?;
        let mut counts = growth::filled(in_rows, 0usize)?;
        for value in 0..values {
            let found = row_of(value);
            let count = usize::try_from(found).ok().and_then(|row| counts.get_mut(row));
            *count.ok_or_else(|| {
                KernelError::invalid_argument(format!(
                    "indices: expected rows from 0 to before {rows}, found {found} for value {value}"
                ))
            })? += 1;
        }
        let mut starts = growth::with_room(in_rows + 1)?;
        let mut total = 0usize;
        for count in &counts {
            starts.push(total);
            total += (*count).max(1);
        }
        starts.push(total);
        let mut next = growth::copied(&starts)?;
        let (mut map, mut from) = (growth::with_room(values)?, growth::filled(total, None)?);
        for value in 0..values {
            let place = &mut next[row_of(value) as usize];
            map.push(*place as i64);
            from[*place] = Some(value);
            *place += 1;
        }
        Ok(Filled { starts, map, from })
    }
}

fn fill(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    rank(c, 3, "default_value", 0)?;
    let places = Places::new(c, [0, 1, 2])?;
    let columns = places.shape.len();
    if columns == 0 {
        return Err(GeometryError::Length { what: "dense_shape", expected: 1, found: 0 }.into());
    }
    let row_of = |value| places.at(value)[0];
    let Filled { starts, map, from } = Filled::new(places.shape[0], places.count, row_of)?;
    let total = from.len() as i64;
    let indices = c.output::<i64>(0, &[total, columns as i64])?.data;
    let mut row = 0;
    for (at, (place, from)) in indices.chunks_exact_mut(columns).zip(&from).enumerate() {
        while starts[row + 1] <= at {
            row += 1;
        }
        match from {
            Some(value) => place.copy_from_slice(places.at(*value)),
            None => {
                place.fill(0);
                place[0] = row as i64;
            }
        }
    }
    let values = Values::new(c, [1, 3])?;
    let source = |from: &Option<usize>| -> From { from.map_or((1, 0), |value| (0, value)) };
    values.write(c, 1, &[total], from.iter().map(source))?;
    let empty = c.output::<bool>(2, &places.shape[..1])?.data;
    for (row, empty) in empty.iter_mut().enumerate() {
        *empty = from[starts[row]].is_none();
    }
    c.output::<i64>(3, &[map.len() as i64])?.data.copy_from_slice(&map);
    Ok(())
}

fn grad<T: Sum>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    rank(c, 0, "reverse_index_map", 1)?;
    rank(c, 1, "grad_values", 1)?;
    let (map, grads) = (c.input::<i64>(0)?, c.input::<T>(1)?);
    let mut is_taken = growth::filled(grads.data.len(), false)?;
    let y = c.output::<T>(0, map.dims)?.data;
    for (y, &at) in y.iter_mut().zip(map.data) {
        let at = usize::try_from(at).ok().filter(|&at| at < grads.data.len()).ok_or_else(|| {
            KernelError::invalid_argument(format!(
                "reverse_index_map: expected places from 0 to before {}, found {at}",
                grads.data.len()
            ))
        })?;
        is_taken[at] = true;
        *y = grads.data[at];
    }
    let left = grads.data.iter().zip(&is_taken).filter(|(_, taken)| !**taken);
    let sum = left.fold(T::default(), |sum, (&grad, _)| sum.plus(grad));
    c.output::<T>(1, &[])?.data[0] = sum;
    Ok(())
}

register_kernel!("SparseFillEmptyRows" on "CPU": fn fill, types = ("T", MOVED),
    host_memory = &["dense_shape"]);
register_kernel!("SparseFillEmptyRowsGrad" on "CPU": fn grad<T> for "T" in [
    i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64, Complex<f32>, Complex<f64>]);
register_kernel!("RaggedFillEmptyRowsGrad" on "CPU": fn grad<T> for "T" in [
    i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64, Complex<f32>, Complex<f64>]);
