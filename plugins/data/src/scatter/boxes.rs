//! Ops that write a strided box of a variable.

use crate::update::check_there;
use std::marker::PhantomData;
use tenon_sdk::{
    author::VarGuard,
    geometry::{BroadcastPlan, SliceMasks, StridedSlice, StridedSliceSpec, element_count},
    growth,
    prelude::*,
};

/// For each element of the box its position in a variable of this shape, and that of the value's element, input 4,
/// which is broadcast to the box.
fn positions(
    c: &ComputeContext<'_>,
    masks: SliceMasks,
    dims: &[i64],
) -> Result<Vec<(usize, usize)>, KernelError> {
    for (input, name) in [(1, "begin"), (2, "end"), (3, "strides")] {
        if c.dims(input).len() != 1 {
            return Err(KernelError::invalid_argument(format!(
                "{name}: expected a vector, found shape {:?}",
                c.dims(input)
            )));
        }
    }
    let (begin, end, strides) = (c.integers(1)?, c.integers(2)?, c.integers(3)?);
    let spec = StridedSliceSpec { begin: Some(&begin), end: Some(&end), strides: &strides, masks };
    let slice = StridedSlice::new(dims, &spec)?;
    if slice.processing.contains(&0) {
        return Ok(Vec::new());
    }
    let plan = BroadcastPlan::new([c.dims(4), &slice.output])
        .ok()
        .filter(|plan| element_count(&slice.output) == Ok(plan.len()));
    let plan = plan.ok_or_else(|| {
        KernelError::invalid_argument(format!(
            "value: expected a shape that broadcasts to that of the box, {:?}, found {:?}",
            slice.output,
            c.dims(4)
        ))
    })?;
    let sources = plan
        .runs()
        .flat_map(|run| (0..run.len).map(move |at| run.offsets[0] + at * run.strides[0]));
    growth::collected(slice.offsets(dims).zip(sources))
}

fn write<T: Element>(
    c: &ComputeContext<'_>,
    masks: SliceMasks,
    locked: &mut VarGuard<'_>,
) -> Result<(), KernelError> {
    let value = c.input::<T>(4)?.data;
    let variable = locked.view_mut::<T>(0)?;
    let positions = positions(c, masks, variable.dims)?;
    positions.iter().for_each(|&(to, from)| variable.data[to] = value[from]);
    Ok(())
}

fn write_strings(
    c: &ComputeContext<'_>,
    masks: SliceMasks,
    locked: &mut VarGuard<'_>,
) -> Result<(), KernelError> {
    let value = c.strings(4)?;
    let positions = positions(c, masks, &locked.dims(0).unwrap_or_default())?;
    positions.iter().try_for_each(|&(to, from)| locked.set_string(0, to, value[from]))
}

/// How elements of a type are written.
trait Written {
    fn write(
        c: &ComputeContext<'_>,
        masks: SliceMasks,
        locked: &mut VarGuard<'_>,
    ) -> Result<(), KernelError>;
}

struct Fixed<T>(PhantomData<fn(T)>);
struct Text;

impl<T: Element> Written for Fixed<T> {
    fn write(
        c: &ComputeContext<'_>,
        masks: SliceMasks,
        locked: &mut VarGuard<'_>,
    ) -> Result<(), KernelError> {
        write::<T>(c, masks, locked)
    }
}

impl Written for Text {
    fn write(
        c: &ComputeContext<'_>,
        masks: SliceMasks,
        locked: &mut VarGuard<'_>,
    ) -> Result<(), KernelError> {
        write_strings(c, masks, locked)
    }
}

struct OfHandle<W>(SliceMasks, PhantomData<fn(W)>);

impl<W: Written + 'static> Kernel for OfHandle<W> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(OfHandle(SliceMasks::of(|name| c.attr(name))?, PhantomData))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let state = c.state();
        let variable = state.input_variable(0)?;
        let variables = [&variable];
        let mut locked = state.lock(&variables)?;
        check_there(locked.has_value(0))?;
        W::write(c, self.0, &mut locked)
    }
}

struct OfReference<W>(SliceMasks, PhantomData<fn(W)>);

impl<W: Written + 'static> Kernel for OfReference<W> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(OfReference(SliceMasks::of(|name| c.attr(name))?, PhantomData))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let state = c.state();
        let variable = state.input_ref(0)?;
        let variables = [&variable];
        let mut locked = state.lock(&variables)?;
        W::write(c, self.0, &mut locked)?;
        drop(locked);
        state.output_ref(&variable, 0)
    }
}

type HandleOf<T> = OfHandle<Fixed<T>>;
type ReferenceOf<T> = OfReference<Fixed<T>>;

register_kernel!("ResourceStridedSliceAssign" on "CPU": HandleOf<T> for "T" in
    [bool, f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, Complex32, Complex64]);
register_kernel!("StridedSliceAssign" on "CPU": ReferenceOf<T> for "T" in
    [bool, f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, Complex32, Complex64]);
register_kernel!("ResourceStridedSliceAssign" on "CPU": OfHandle<Text>,
    types = ("T", &[DType::STRING]));
register_kernel!("StridedSliceAssign" on "CPU": OfReference<Text>, types = ("T", &[DType::STRING]));
