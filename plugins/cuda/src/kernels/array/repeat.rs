//! `Tile` and `BroadcastTo`.

use super::{
    JOINED, NUMBERS, check_vector,
    strided::{Box, Reader},
    words::Walk,
};
use crate::launch::Launch;
use tenon_sdk::{
    KernelError,
    geometry::{check_broadcast_to, row_major_strides, tile_dims, validate_dims},
    prelude::*,
    reg::Numerics,
};

/// Writes repetitions of input 0.
///
/// # Safety
/// - The steps are those of input 0, or 0.
/// - The walk has as many elements as the output.
unsafe fn write(
    c: &ComputeContext<'_>,
    reader: &Reader,
    output: &[i64],
    walk: Walk<1>,
) -> Result<(), KernelError> {
    let launch = Launch::new(c)?;
    let (x, y) = (launch.input(0)?, launch.output(0, output)?);
    // SAFETY: the caller guarantees that the steps stay within input 0, and that there are as many
    // as the output has elements.
    unsafe { reader.read(&launch, (&y, &x), &Box { walk, base: 0 }) }
}

struct Tile(Reader);

impl Kernel for Tile {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Tile(Reader::new(c)?))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        check_vector(c, 1, "multiples")?;
        let (dims, multiples) = (c.dims(0), c.integers(1)?);
        let output = tile_dims(dims, &multiples)?;
        if multiples.iter().all(|&multiple| multiple == 1) {
            return c.share(0, 0, &output);
        }
        // A repeated dimension becomes two: the repetitions and the dimension.
        let strides = row_major_strides(dims)?;
        let each = |d: usize| [(multiples[d], [0]), (dims[d], [strides[d]])];
        // SAFETY: the steps are those of the input, or 0 for repetitions.
        unsafe { write(c, &self.0, &output, Walk::new((0..dims.len()).flat_map(each))) }
    }
}

struct BroadcastTo(Reader);

impl Kernel for BroadcastTo {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(BroadcastTo(Reader::new(c)?))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        check_vector(c, 1, "shape")?;
        let (dims, shape) = (c.dims(0), c.integers(1)?);
        validate_dims(&shape)?;
        check_broadcast_to(dims, &shape)?;
        if dims == shape {
            return c.share(0, 0, &shape);
        }
        let (strides, missing) = (row_major_strides(dims)?, shape.len() - dims.len());
        let step = |d: usize| match d.checked_sub(missing) {
            Some(own) if dims[own] != 1 => strides[own],
            _ => 0,
        };
        let walk = Walk::new(shape.iter().enumerate().map(|(d, &extent)| (extent, [step(d)])));
        // SAFETY: the steps are those of the input, or 0 for repetitions of one element.
        unsafe { write(c, &self.0, &shape, walk) }
    }
}

register_kernel!("Tile" on "CUDA": Tile, types = ("T", JOINED), host_memory = &["multiples"],
    numerics = Numerics::EXACT);
register_kernel!("BroadcastTo" on "CUDA": BroadcastTo, types = ("T", NUMBERS),
    host_memory = &["shape"], numerics = Numerics::EXACT);
