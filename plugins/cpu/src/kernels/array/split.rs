//! `Split`, `SplitV`, `Unpack`.

use super::{
    copy,
    moves::{Item, Move, TEXTS, check_vector, indices, make, one_integer},
};
use crate::split::for_rows;
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    geometry::{Dims, element_count, normalize_axis, split_dims, split_sizes, unpack_dims},
    reg::{Numerics, join_types},
    register_kernel,
};

/// Piece number `first` of `len` elements in each row of `row` elements.
struct Piece {
    row: usize,
    first: usize,
    len: usize,
}

impl Move for Piece {
    fn run<T: Item>(
        &self,
        c: &ComputeContext<'_>,
        x: &[&[T]],
        y: &mut [T],
    ) -> Result<(), KernelError> {
        let cost = 3.0 + 0.05 * self.len as f64 * size_of::<T>() as f64;
        for_rows(c, y, self.len, cost, |first, y| {
            let x = &x[0][first * self.row..];
            match (self.len, self.row) {
                (1, 2) => return column::<T, 2>(x, self.first, y),
                (1, 3) => return column::<T, 3>(x, self.first, y),
                (1, 4) => return column::<T, 4>(x, self.first, y),
                _ => {}
            }
            for (o, y) in y.chunks_exact_mut(self.len).enumerate() {
                copy(&x[o * self.row + self.first..][..self.len], y);
            }
        })
    }
}

/// Copies a column of a matrix of `N` columns, by a loop that vectorises.
fn column<T: Item, const N: usize>(x: &[T], column: usize, y: &mut [T]) {
    for (y, row) in y.iter_mut().zip(x.as_chunks::<N>().0) {
        *y = row[column];
    }
}

/// Writes the pieces of input `value`, which have `sizes` along the axis; `dims` is the shape of an
/// output with a given size.
fn pieces(
    c: &ComputeContext<'_>,
    (value, axis): (usize, usize),
    sizes: impl ExactSizeIterator<Item = i64>,
    dims: impl Fn(i64) -> Result<Dims, KernelError>,
) -> Result<(), KernelError> {
    let whole = c.dims(value);
    if sizes.len() != c.output_count() {
        return Err(KernelError::invalid_argument(format!(
            "size_splits must hold {} values, got {}",
            c.output_count(),
            sizes.len()
        )));
    }
    if sizes.len() == 1 {
        return c.share(value, 0, &dims(whole[axis])?);
    }
    let inner = element_count(&whole[axis + 1..])?;
    let row = inner.saturating_mul(whole[axis] as usize);
    let (dtype, mut first) = (c.slot(value)?.dtype, 0);
    for (output, size) in sizes.enumerate() {
        let len = inner.saturating_mul(size as usize);
        make(c, dtype, &[value], (output, &dims(size)?), &Piece { row, first, len })?;
        first += len;
    }
    Ok(())
}

/// The shape with `size` along `axis`.
fn resized(dims: &[i64], axis: usize, size: i64) -> Result<Dims, KernelError> {
    let mut dims = Dims::from_slice(dims)?;
    dims[axis] = size;
    Ok(dims)
}

fn split(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let axis = one_integer(c, 0, "split_dim")?;
    let (dims, count) = (c.dims(1), c.output_count());
    let piece = split_dims(dims, axis, count as i64)?;
    let axis = normalize_axis("split_dim", axis, dims.len())?;
    let sizes = (0..count).map(|_| piece[axis]);
    pieces(c, (1, axis), sizes, |size| resized(dims, axis, size))
}

fn split_v(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    check_vector(c, 1, "size_splits")?;
    let dims = c.dims(0);
    let axis = normalize_axis("split_dim", one_integer(c, 2, "split_dim")?, dims.len())?;
    let mut sizes = indices(c, 1)?;
    split_sizes(dims[axis], &mut sizes)?;
    pieces(c, (0, axis), sizes.into_iter(), |size| resized(dims, axis, size))
}

/// `Unpack`.
struct Unpack {
    axis: i64,
}

impl Kernel for Unpack {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Unpack { axis: c.attr("axis")? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (dims, count) = (c.dims(0), c.output_count());
        let part = unpack_dims(dims, self.axis, count as i64)?;
        let axis = normalize_axis("axis", self.axis, dims.len())?;
        if count == 0 {
            return Ok(());
        }
        pieces(c, (0, axis), (0..count).map(|_| 1), |_| Ok(part))
    }
}

/// Types that TensorFlow splits.
const CUT: &[DType] = &join_types::<{ TEXTS.len() + 1 }>(TEXTS, &[DType::QUINT8]);

register_kernel!("Split" on "CPU": fn split, types = ("T", CUT), host_memory = &["split_dim"],
    numerics = Numerics::EXACT);
register_kernel!("SplitV" on "CPU": fn split_v, types = ("T", CUT),
    host_memory = &["size_splits", "split_dim"], numerics = Numerics::EXACT);
register_kernel!("Unpack" on "CPU": Unpack, types = ("T", TEXTS), numerics = Numerics::EXACT);
