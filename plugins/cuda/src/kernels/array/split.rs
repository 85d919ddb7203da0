//! `Split`, `SplitV`, `Unpack`.

use super::{
    NUMBERS, check_vector,
    pieces::{Direction, Part, Pieces},
};
use crate::launch::Launch;
use tenon_sdk::{
    DType, KernelError,
    geometry::{Dims, element_count, normalize_axis, split_dims, split_sizes, unpack_dims},
    prelude::*,
    reg::{Numerics, join_types},
};

/// The only element of an integer input of any shape.
fn one_integer(c: &ComputeContext<'_>, input: usize, name: &str) -> Result<i64, KernelError> {
    match integers(c, input)?[..] {
        [value] => Ok(value),
        _ => Err(KernelError::invalid_argument(format!(
            "{name} must hold one integer, found shape {:?}",
            c.dims(input)
        ))),
    }
}

/// Integers in host memory, of any type that sizes may have.
fn integers(c: &ComputeContext<'_>, input: usize) -> Result<Vec<i64>, KernelError> {
    match c.slot(input)?.dtype {
        DType::INT8 => Ok(c.input::<i8>(input)?.data.iter().map(|&x| x.into()).collect()),
        _ => c.integers(input),
    }
}

/// Writes the parts of input `value`, which have `sizes` along the axis; `dims` is the shape of an
/// output with a given size.
fn write(
    c: &ComputeContext<'_>,
    pieces: &Pieces,
    (value, axis): (usize, usize),
    sizes: &[i64],
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
    let inner = element_count(&whole[axis + 1..])? as u64;
    let launch = Launch::new(c)?;
    let (mut parts, mut start) = (Vec::with_capacity(sizes.len()), 0);
    for (output, &size) in sizes.iter().enumerate() {
        let piece = inner.saturating_mul(size as u64);
        parts.push(Part { operand: launch.output(output, &dims(size)?)?, start, piece });
        start = start.saturating_add(piece);
    }
    // SAFETY: the sizes are checked to partition the axis.
    unsafe { pieces.run(&launch, &launch.input(value)?, start, &parts) }
}

/// The shape with `size` along `axis`.
fn resized(dims: &[i64], axis: usize, size: i64) -> Result<Dims, KernelError> {
    let mut dims = Dims::from_slice(dims)?;
    dims[axis] = size;
    Ok(dims)
}

struct Split(Pieces);

impl Kernel for Split {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Split(Pieces::new(c, Direction::Cut)?))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let axis = one_integer(c, 0, "split_dim")?;
        let (dims, count) = (c.dims(1), c.output_count());
        let part = split_dims(dims, axis, count as i64)?;
        let axis = normalize_axis("split_dim", axis, dims.len())?;
        write(c, &self.0, (1, axis), &vec![part[axis]; count], |size| resized(dims, axis, size))
    }
}

struct SplitV(Pieces);

impl Kernel for SplitV {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(SplitV(Pieces::new(c, Direction::Cut)?))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        check_vector(c, 1, "size_splits")?;
        let dims = c.dims(0);
        let axis = normalize_axis("split_dim", one_integer(c, 2, "split_dim")?, dims.len())?;
        let mut sizes = integers(c, 1)?;
        split_sizes(dims[axis], &mut sizes)?;
        write(c, &self.0, (0, axis), &sizes, |size| resized(dims, axis, size))
    }
}

struct Unpack {
    axis: i64,
    pieces: Pieces,
}

impl Kernel for Unpack {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Unpack { axis: c.attr("axis")?, pieces: Pieces::new(c, Direction::Cut)? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (dims, count) = (c.dims(0), c.output_count());
        let part = unpack_dims(dims, self.axis, count as i64)?;
        let axis = normalize_axis("axis", self.axis, dims.len())?;
        if count == 0 {
            return Ok(());
        }
        write(c, &self.pieces, (0, axis), &vec![1; count], |_| Ok(part))
    }
}

/// Types that TensorFlow splits.
const CUT: &[DType] = &join_types::<{ NUMBERS.len() + 1 }>(NUMBERS, &[DType::QUINT8]);

register_kernel!("Split" on "CUDA": Split, types = ("T", CUT), host_memory = &["split_dim"],
    numerics = Numerics::EXACT);
register_kernel!("SplitV" on "CUDA": SplitV, types = ("T", CUT),
    host_memory = &["size_splits", "split_dim"], numerics = Numerics::EXACT);
register_kernel!("Unpack" on "CUDA": Unpack, types = ("T", NUMBERS), numerics = Numerics::EXACT);
