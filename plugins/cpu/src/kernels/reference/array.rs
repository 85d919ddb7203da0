//! Ops that move elements.

use crate::kernels::array::{
    JOINED, NUMBERS, SLICED, Word, by_size,
    concat::{Pack as PackPlan, concat_plan},
    element_size,
    fill::fill_dims,
    pad::paddings,
    strided_slice::StridedSlice as Slicer,
    transpose::transpose_plan,
    words, words_mut,
};
use tenon_reference::array;
use tenon_sdk::{
    DType, KernelError, View,
    author::{ComputeContext, CreateContext, Kernel},
    geometry::{ConcatPlan, PadPlan, StridedSlice as Slice, TransposePlan},
    reg::Numerics,
    register_kernel,
};

fn is_strings(c: &ComputeContext<'_>, input: usize) -> Result<bool, KernelError> {
    Ok(c.slot(input)?.dtype == DType::STRING)
}

fn transpose_words<W: Word>(
    c: &ComputeContext<'_>,
    plan: &TransposePlan,
) -> Result<(), KernelError> {
    let x = words::<W>(c.input_bytes(0)?)?;
    array::transpose(plan, x, words_mut::<W>(c.output_bytes(0, plan.output_dims())?)?);
    Ok(())
}

fn transpose(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let plan = transpose_plan(c)?;
    if is_strings(c, 0)? {
        let x = c.strings(0)?;
        return c.fill_strings(0, plan.output_dims(), |y| array::transpose(&plan, &x, y));
    }
    by_size!(element_size(c, 0)?, transpose_words(c, &plan))
}

fn join_words<W: Word>(
    c: &ComputeContext<'_>,
    count: usize,
    plan: &ConcatPlan,
) -> Result<(), KernelError> {
    let views = (0..count)
        .map(|i| Ok(View { dims: c.dims(i), data: words::<W>(c.input_bytes(i)?)? }))
        .collect::<Result<Vec<_>, KernelError>>()?;
    array::concat(plan, &views, words_mut::<W>(c.output_bytes(0, &plan.output)?)?);
    Ok(())
}

fn join(c: &ComputeContext<'_>, count: usize, plan: &ConcatPlan) -> Result<(), KernelError> {
    if is_strings(c, 0)? {
        let values = (0..count).map(|i| c.strings(i)).collect::<Result<Vec<_>, _>>()?;
        let views: Vec<_> = values
            .iter()
            .enumerate()
            .map(|(i, data)| View { dims: c.dims(i), data: &data[..] })
            .collect();
        return c.fill_strings(0, &plan.output, |y| array::concat(plan, &views, y));
    }
    by_size!(element_size(c, 0)?, join_words(c, count, plan))
}

fn concat(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    join(c, c.input_count() - 1, &concat_plan(c)?)
}

struct Pack(PackPlan);

impl Kernel for Pack {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Pack(PackPlan::new(c)?))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        join(c, c.input_count(), &self.0.plan(c)?)
    }
}

fn slice_words<W: Word>(c: &ComputeContext<'_>, slice: &Slice) -> Result<(), KernelError> {
    let x = View { dims: c.dims(0), data: words::<W>(c.input_bytes(0)?)? };
    array::strided_slice(slice, x, words_mut::<W>(c.output_bytes(0, &slice.output)?)?);
    Ok(())
}

struct StridedSlice(Slicer);

impl Kernel for StridedSlice {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(StridedSlice(Slicer::new(c)?))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let slice = self.0.solve(c)?;
        if is_strings(c, 0)? {
            let x = c.strings(0)?;
            let x = View { dims: c.dims(0), data: &x[..] };
            return c.fill_strings(0, &slice.output, |y| array::strided_slice(&slice, x, y));
        }
        by_size!(element_size(c, 0)?, slice_words(c, &slice))
    }
}

fn pad_words<W: Word>(c: &ComputeContext<'_>, plan: &PadPlan) -> Result<(), KernelError> {
    let x = words::<W>(c.input_bytes(0)?)?;
    let y = words_mut::<W>(c.output_bytes(0, plan.output_dims())?)?;
    array::pad(plan, &W::default(), x, y);
    Ok(())
}

fn pad(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let plan = PadPlan::new(c.dims(0), &paddings(c)?)?;
    if is_strings(c, 0)? {
        let x = c.strings(0)?;
        return c.fill_strings(0, plan.output_dims(), |y| array::pad(&plan, &&b""[..], &x, y));
    }
    by_size!(element_size(c, 0)?, pad_words(c, &plan))
}

fn fill_words<W: Word>(c: &ComputeContext<'_>, dims: &[i64]) -> Result<(), KernelError> {
    let value = words::<W>(c.input_bytes(1)?)?[0];
    array::fill(&value, words_mut::<W>(c.output_bytes(0, dims)?)?);
    Ok(())
}

fn fill(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let dims = fill_dims(c)?;
    if is_strings(c, 1)? {
        let value = c.strings(1)?[0];
        return c.fill_strings(0, &dims, |y| array::fill(&value, y));
    }
    by_size!(element_size(c, 1)?, fill_words(c, &dims))
}

/// Registers a kernel for numbers, and for strings.
macro_rules! register {
    ($($op:literal: ($($kernel:tt)*) $types:ident $host_memory:expr;)*) => {$(
        register_kernel!($op on "CPU": $($kernel)*, types = ("T", $types), label = "reference",
            on_request = true, host_memory = $host_memory, numerics = Numerics::EXACT);
        register_kernel!($op on "CPU": $($kernel)*, types = ("T", &[DType::STRING]), label = "reference",
            on_request = true, host_memory = $host_memory, numerics = Numerics::EXACT);
    )*};
}

register! {
    "Transpose": (fn transpose) NUMBERS &["perm"];
    "ConcatV2": (fn concat) JOINED &["axis"];
    "Pack": (Pack) JOINED &[];
    "StridedSlice": (StridedSlice) SLICED &["begin", "end", "strides"];
    "Pad": (fn pad) SLICED &["paddings"];
    "Fill": (fn fill) JOINED &["dims"];
}
