//! `Slice`, and ops that write strided slices: `StridedSliceGrad`, `TensorStridedSliceUpdate`.

use super::{
    gather::gather,
    moves::{Item, Move, SLICED_TEXTS, check_vector, produce},
    strided_slice::masks_of,
};
use crate::lists;
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    geometry::{
        BroadcastPlan, SliceMasks, StridedSlice, StridedSliceSpec, check_broadcast_to,
        row_major_strides, slice_dims, validate_dims,
    },
    reg::Numerics,
    register_kernel,
};

/// A box of the input, from element `base` on.
struct Box<'a> {
    extents: &'a [i64],
    strides: &'a [i64],
    base: i64,
}

impl Move for Box<'_> {
    fn run<T: Item>(
        &self,
        _: &ComputeContext<'_>,
        x: &[&[T]],
        y: &mut [T],
    ) -> Result<(), KernelError> {
        gather(self.extents, self.strides, self.base, x[0], y)
    }
}

fn slice(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    check_vector(c, 1, "begin")?;
    check_vector(c, 2, "size")?;
    let (dims, begin) = (c.dims(0), lists::short(c, 1)?);
    let output = slice_dims(dims, &begin, &lists::short(c, 2)?)?;
    if output == *dims {
        return c.share(0, 0, &output);
    }
    let strides = row_major_strides(dims)?;
    let base = begin
        .iter()
        .zip(&*strides)
        .fold(0i64, |base, (&at, &stride)| base.wrapping_add(at.wrapping_mul(stride)));
    produce(c, &[0], &output, &Box { extents: &output, strides: &strides, base })
}

/// An op that writes a strided slice of its output.
struct Written {
    masks: SliceMasks,
}

impl Written {
    /// The slice of a tensor of these dimensions; inputs 1 to 3 specify it.
    fn solve(&self, c: &ComputeContext<'_>, dims: &[i64]) -> Result<StridedSlice, KernelError> {
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
        validate_dims(dims)?;
        Ok(StridedSlice::new(dims, &spec)?)
    }
}

/// Zeros, or the second input, with the first input repeated over a slice.
struct Overwrite<'a> {
    slice: &'a StridedSlice,
    dims: &'a [i64],
    value: BroadcastPlan<2>,
}

impl Move for Overwrite<'_> {
    fn run<T: Item>(
        &self,
        _: &ComputeContext<'_>,
        x: &[&[T]],
        y: &mut [T],
    ) -> Result<(), KernelError> {
        match x.get(1) {
            Some(whole) => y.copy_from_slice(whole),
            None => y.fill(T::default()),
        }
        let mut places = self.slice.offsets(self.dims);
        for run in self.value.runs() {
            let (first, step) = (run.offsets[0], run.strides[0]);
            for (at, place) in (0..run.len).zip(&mut places) {
                y[place] = x[0][first + at * step];
            }
        }
        Ok(())
    }
}

/// `StridedSliceGrad`.
struct StridedSliceGrad(Written);

impl Kernel for StridedSliceGrad {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(StridedSliceGrad(Written { masks: masks_of(c)? }))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        check_vector(c, 0, "shape")?;
        let dims = lists::short(c, 0)?;
        let slice = self.0.solve(c, &dims)?;
        if slice.output != *c.dims(4) {
            return Err(KernelError::invalid_argument(format!(
                "dy must have the shape of the slice, {:?}, found {:?}",
                slice.output,
                c.dims(4)
            )));
        }
        let value = BroadcastPlan::new([c.dims(4), c.dims(4)])?;
        produce(c, &[4], &dims, &Overwrite { slice: &slice, dims: &dims, value })
    }
}

/// `TensorStridedSliceUpdate`.
struct TensorStridedSliceUpdate(Written);

impl Kernel for TensorStridedSliceUpdate {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(TensorStridedSliceUpdate(Written { masks: masks_of(c)? }))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let dims = c.dims(0);
        let slice = self.0.solve(c, dims)?;
        check_broadcast_to(c.dims(4), &slice.output)?;
        let value = BroadcastPlan::new([c.dims(4), &slice.output])?;
        produce(c, &[4, 0], dims, &Overwrite { slice: &slice, dims, value })
    }
}

register_kernel!("Slice" on "CPU": fn slice, types = ("T", SLICED_TEXTS),
    host_memory = &["begin", "size"], numerics = Numerics::EXACT);
register_kernel!("StridedSliceGrad" on "CPU": StridedSliceGrad, types = ("T", SLICED_TEXTS),
    host_memory = &["shape", "begin", "end", "strides"], numerics = Numerics::EXACT);
register_kernel!("TensorStridedSliceUpdate" on "CPU": TensorStridedSliceUpdate,
    types = ("T", SLICED_TEXTS), host_memory = &["begin", "end", "strides"],
    numerics = Numerics::EXACT);
