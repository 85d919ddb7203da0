//! `SparseConcat`, `SparseSplit`, `SparseSlice` and its gradient.

use super::{
    moved::{From, MOVED, Values},
    places::{Places, rank, size, write_numbers},
};
use crate::scatter::Product;
use num_complex::Complex;
use tenon_sdk::{geometry::GeometryError, growth, prelude::*};

/// The dimension that a number names, of `rank`; below 0 from the end.
fn axis(what: &'static str, found: i64, rank: usize) -> Result<usize, GeometryError> {
    let high = rank as i64;
    let at = if found < 0 { found + high } else { found };
    match (0..high).contains(&at) {
        true => Ok(at as usize),
        false => Err(GeometryError::Axis { what, low: -high, high, axis: found }),
    }
}

struct Concat {
    axis: i64,
}

impl Kernel for Concat {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Concat { axis: c.attr("concat_dim")? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (indices, values, shapes) = (c.input_range(0), c.input_range(1), c.input_range(2));
        let count = indices.len();
        let (mut joined, mut from): (Vec<i64>, Vec<From>) = (Vec::new(), Vec::new());
        let mut shape: Vec<i64> = Vec::new();
        for input in 0..count {
            let inputs = [&indices, &values, &shapes].map(|range| range.start + input);
            let places = Places::new(c, inputs)?;
            let axis = axis("concat_dim", self.axis, places.shape.len())?;
            let before = if input == 0 { 0 } else { Self::check(&shape, &places.shape, axis)? };
            for value in 0..places.count {
                let start = joined.len();
                growth::append(&mut joined, places.at(value))?;
                let place = joined[start + axis].checked_add(before);
                joined[start + axis] = place.ok_or_else(|| too_large(&shape))?;
                growth::push(&mut from, (input, value))?;
            }
            let own = places.shape[axis];
            if input == 0 {
                shape = places.shape;
            } else {
                shape[axis] = before.checked_add(own).ok_or_else(|| too_large(&shape))?;
            }
        }
        let places = Places::of(joined, shape, from.len());
        let order = places.sorted()?;
        places.write(c, 0, &order)?;
        let dims = [order.len() as i64];
        let values = Values::new(c, values)?;
        values.write(c, 1, &dims, order.iter().map(|&value| from[value]))?;
        write_numbers(c, 2, &places.shape)
    }
}

fn too_large(shape: &[i64]) -> GeometryError {
    GeometryError::TooLarge { dims: shape.to_vec() }
}

impl Concat {
    /// Checks that a shape is that of the inputs before it but for one dimension, whose size so far it returns.
    fn check(before: &[i64], found: &[i64], axis: usize) -> Result<i64, KernelError> {
        let rest_differs = || {
            let pairs = before.iter().zip(found).enumerate();
            pairs.filter(|(at, _)| *at != axis).any(|(_, (a, b))| a != b)
        };
        if before.len() != found.len() || rest_differs() {
            return Err(KernelError::invalid_argument(format!(
                "shapes: expected that of the first input but for dimension {axis}, {before:?}, found {found:?}"
            )));
        }
        Ok(before[axis])
    }
}

struct Split {
    parts: usize,
}

impl Kernel for Split {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let parts: i64 = c.attr("num_split")?;
        Ok(Split { parts: parts as usize })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        rank(c, 0, "split_dim", 0)?;
        let places = Places::inside(c, [1, 2, 3])?;
        let axis = axis("split_dim", c.integer(0, "split_dim")?, places.shape.len())?;
        let whole = places.shape[axis];
        let parts = self.parts as i64;
        if whole < parts {
            let what = "num_split";
            return Err(GeometryError::TooMuch { what, most: whole, found: parts }.into());
        }
        // The first parts are larger by one where the parts are not equal.
        let (each, larger) = (whole / parts, whole % parts);
        let values = Values::new(c, [2])?;
        let mut start = 0;
        for part in 0..self.parts {
            let len = each + i64::from((part as i64) < larger);
            let mut shape = places.shape.clone();
            shape[axis] = len;
            let inside = |value: &usize| (start..start + len).contains(&places.at(*value)[axis]);
            let chosen = growth::collected((0..places.count).filter(inside))?;
            let outputs = [0, 1, 2].map(|list| list * self.parts + part);
            let mut first = growth::filled(shape.len(), 0i64)?;
            first[axis] = start;
            write_moved(c, outputs, (&places, &values), &chosen, &first)?;
            write_numbers(c, outputs[2], &shape)?;
            start += len;
        }
        Ok(())
    }
}

/// Writes the places of these values, less those of `first`, and the values.
fn write_moved(
    c: &ComputeContext<'_>,
    outputs: [usize; 3],
    (places, values): (&Places, &Values<'_>),
    chosen: &[usize],
    first: &[i64],
) -> Result<(), KernelError> {
    let dims = [chosen.len() as i64, first.len() as i64];
    let y = c.output::<i64>(outputs[0], &dims)?.data;
    for (row, &value) in y.chunks_exact_mut(first.len().max(1)).zip(chosen) {
        for ((y, at), first) in row.iter_mut().zip(places.at(value)).zip(first) {
            *y = at - first;
        }
    }
    values.pick(c, outputs[1], chosen)
}

/// The numbers in a vector with one for each dimension.
fn by_dimension(
    c: &ComputeContext<'_>,
    input: usize,
    what: &'static str,
    rank_of: usize,
) -> Result<Vec<i64>, KernelError> {
    rank(c, input, what, 1)?;
    let numbers = c.integers(input)?;
    match numbers.len() {
        found if found != rank_of => {
            Err(GeometryError::Length { what, expected: rank_of, found }.into())
        }
        _ => Ok(numbers),
    }
}

fn slice(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let places = Places::new(c, [0, 1, 2])?;
    let rank_of = places.shape.len();
    let start = by_dimension(c, 3, "start", rank_of)?;
    let sizes = by_dimension(c, 4, "size", rank_of)?;
    let negative = |numbers: &[i64]| numbers.iter().copied().find(|&number| number < 0);
    for (what, found) in [("start", negative(&start)), ("size", negative(&sizes))] {
        if let Some(found) = found {
            return Err(GeometryError::TooSmall { what, least: 0, found }.into());
        }
    }
    // No longer than what is left of the dimension behind the start.
    let left = start.iter().zip(&places.shape).map(|(start, size)| (size - start).max(0));
    let shape = growth::collected(left.zip(&sizes).map(|(left, size)| left.min(*size)))?;
    let inside = |value: &usize| {
        let place = places.at(*value).iter().zip(&start).zip(&shape);
        place.into_iter().all(|((at, start), size)| at >= start && at - start < *size)
    };
    let chosen = growth::collected((0..places.count).filter(inside))?;
    write_moved(c, [0, 1, 2], (&places, &Values::new(c, [1])?), &chosen, &start)?;
    write_numbers(c, 2, &shape)
}

/// The gradient of `SparseSlice` for the values: zero for those that were cut off.
fn slice_grad<T: Product>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    for (at, what, expected) in [
        (0, "backprop_val_grad", 1),
        (1, "input_indices", 2),
        (2, "input_start", 1),
        (3, "output_indices", 2),
    ] {
        rank(c, at, what, expected)?;
    }
    let (grads, start) = (c.input::<T>(0)?, c.integers(2)?);
    let (input, output) = (c.input::<i64>(1)?, c.input::<i64>(3)?);
    let rank_of = start.len();
    size("the second dimension of input_indices", rank_of as i64, input.dims[1])?;
    size("the second dimension of output_indices", rank_of as i64, output.dims[1])?;
    size("the number of backprop_val_grad", output.dims[0], grads.dims[0])?;
    let y = c.output::<T>(0, &[input.dims[0]])?.data;
    let mut next = 0;
    for (value, y) in y.iter_mut().enumerate() {
        let is_next = next < grads.data.len() && {
            let (from, to) = (&input.data[value * rank_of..], &output.data[next * rank_of..]);
            let mut pairs = from[..rank_of].iter().zip(&to[..rank_of]).zip(&start);
            pairs.all(|((from, to), start)| from.checked_sub(*start) == Some(*to))
        };
        *y = if is_next { grads.data[next] } else { T::default() };
        next += usize::from(is_next);
    }
    match next == grads.data.len() {
        true => Ok(()),
        // TensorFlow's code.
        false => Err(KernelError::internal(format!(
            "output_indices: expected places of input_indices in their order, found none for gradient {next}"
        ))),
    }
}

register_kernel!("SparseConcat" on "CPU": Concat, types = ("T", MOVED), host_memory = &["shapes"]);
register_kernel!("SparseSplit" on "CPU": Split, types = ("T", MOVED),
    host_memory = &["split_dim", "shape"]);
register_kernel!("SparseSlice" on "CPU": fn slice, types = ("T", MOVED),
    host_memory = &["shape", "start", "size"]);
register_kernel!("SparseSliceGrad" on "CPU": fn slice_grad<T> for "T" in [
    i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64, Complex<f32>, Complex<f64>]);
