//! `Slice` and `StridedSlice`.

use super::{
    SLICED, check_vector,
    strided::{Box, Reader},
};
use crate::launch::Launch;
use tenon_sdk::{
    KernelError,
    geometry::{
        SliceMasks, StridedSlice as Geometry, StridedSliceSpec, row_major_strides, slice_dims,
    },
    prelude::*,
    reg::Numerics,
};

/// Writes a box of input 0.
///
/// # Safety
/// - The box is within input 0.
/// - The box has as many elements as the output.
unsafe fn write(
    c: &ComputeContext<'_>,
    reader: &Reader,
    output: &[i64],
    wanted: &Box,
) -> Result<(), KernelError> {
    let launch = Launch::new(c)?;
    let (x, y) = (launch.input(0)?, launch.output(0, output)?);
    // SAFETY: the caller guarantees that the box is within input 0, and that it has as many
    // elements as the output.
    unsafe { reader.read(&launch, (&y, &x), wanted) }
}

struct Slice(Reader);

impl Kernel for Slice {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Slice(Reader::new(c)?))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        check_vector(c, 1, "begin")?;
        check_vector(c, 2, "size")?;
        let (dims, begin) = (c.dims(0), c.integers(1)?);
        let output = slice_dims(dims, &begin, &c.integers(2)?)?;
        if output == *dims {
            return c.share(0, 0, &output);
        }
        let strides = row_major_strides(dims)?;
        let base = offset(&begin, &strides);
        // SAFETY: the geometry has checked begin and size against the input.
        unsafe { write(c, &self.0, &output, &Box::new(&output, &strides, base)) }
    }
}

/// Offset of an element at this place. For an empty tensor the strides and the sum are meaningless.
fn offset(place: &[i64], strides: &[i64]) -> i64 {
    let products = place.iter().zip(strides).map(|(&at, &stride)| at.wrapping_mul(stride));
    products.fold(0, i64::wrapping_add)
}

struct StridedSlice {
    masks: SliceMasks,
    reader: Reader,
}

impl StridedSlice {
    fn solve(&self, c: &ComputeContext<'_>) -> Result<Geometry, KernelError> {
        for (input, name) in [(1, "begin"), (2, "end"), (3, "strides")] {
            check_vector(c, input, name)?;
        }
        let (begin, end, strides) = (c.integers(1)?, c.integers(2)?, c.integers(3)?);
        let spec = StridedSliceSpec {
            begin: Some(&begin),
            end: Some(&end),
            strides: &strides,
            masks: self.masks,
        };
        Ok(Geometry::new(c.dims(0), &spec)?)
    }
}

impl Kernel for StridedSlice {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let masks = SliceMasks::of(|name| c.attr(name))?;
        Ok(StridedSlice { masks, reader: Reader::new(c)? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let slice = self.solve(c)?;
        if slice.is_identity {
            return c.share(0, 0, &slice.output);
        }
        let mut strides = row_major_strides(c.dims(0))?;
        let base = offset(&slice.begin, &strides);
        for (stride, step) in strides.iter_mut().zip(&*slice.strides) {
            *stride = stride.wrapping_mul(*step);
        }
        // SAFETY: the geometry has clamped every index to the input.
        unsafe {
            write(c, &self.reader, &slice.output, &Box::new(&slice.processing, &strides, base))
        }
    }
}

register_kernel!("Slice" on "CUDA": Slice, types = ("T", SLICED), host_memory = &["begin", "size"],
    numerics = Numerics::EXACT);
register_kernel!("StridedSlice" on "CUDA": StridedSlice, types = ("T", SLICED),
    host_memory = &["begin", "end", "strides"], numerics = Numerics::EXACT);
