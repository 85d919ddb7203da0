//! Ops of any type on variants: sums and zeros, which gradients of lists and maps need, and tensors
//! of several.

use crate::tensors::count_of;
use tenon_sdk::prelude::*;

fn check_scalars(c: &ComputeContext<'_>, op: &str) -> Result<(), KernelError> {
    match (0..c.input_count()).find(|&at| !c.dims(at).is_empty()) {
        None => Ok(()),
        Some(at) => Err(KernelError::invalid_argument(format!(
            "input {at}: {op} takes variants that are scalars, found shape {:?}",
            c.dims(at)
        ))),
    }
}

fn the_one<'c>(c: &ComputeContext<'c>, input: usize) -> Result<VariantRef<'c>, KernelError> {
    c.variants(input)?.first().copied().ok_or_else(|| {
        KernelError::invalid_argument(format!("input {input}: expected a variant, found none"))
    })
}

fn add_n(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    check_scalars(c, "AddN")?;
    let mut sum = the_one(c, 0)?.to_owned()?;
    for input in 1..c.input_count() {
        let next = the_one(c, input)?;
        if next.type_name() != sum.get_ref().type_name() {
            // TensorFlow has this code for it.
            return Err(KernelError::internal(format!(
                "input {input}: {sum:?} and {next:?} are not added"
            )));
        }
        sum = sum.get_ref().add(&next)?;
    }
    c.set_variant(0, sum)
}

register_kernel!("AddN" on "CPU": fn add_n, types = ("T", &[DType::VARIANT]));

fn zeros_like(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    check_scalars(c, "ZerosLike")?;
    let zeros = the_one(c, 0)?.zeros_like()?;
    c.set_variant(0, zeros)
}

register_kernel!("ZerosLike" on "CPU": fn zeros_like, types = ("T", &[DType::VARIANT]));

/// A position among `count`; a negative one counts from the end.
fn position(axis: i64, count: usize) -> Result<usize, KernelError> {
    let at = if axis < 0 { axis + count as i64 } else { axis };
    usize::try_from(at).ok().filter(|&at| at < count).ok_or_else(|| {
        KernelError::invalid_argument(format!(
            "axis: expected at least -{count} and less than {count}, found {axis}"
        ))
    })
}

fn owned(variant: VariantRef<'_>) -> Result<Option<Variant>, KernelError> {
    if variant.is_none() { Ok(None) } else { variant.to_owned().map(Some) }
}

struct Pack {
    axis: i64,
}

impl Kernel for Pack {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Pack { axis: c.attr("axis")? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (count, one) = (c.input_count(), c.dims(0));
        if let Some(at) = (1..count).find(|&at| c.dims(at) != one) {
            return Err(KernelError::invalid_argument(format!(
                "input {at}: expected the shape of the first one, {one:?}, found {:?}",
                c.dims(at)
            )));
        }
        let axis = position(self.axis, one.len() + 1)?;
        let inner = count_of(&one[axis..])? as usize;
        let mut dims = one.to_vec();
        dims.insert(axis, count as i64);
        let inputs = (0..count).map(|at| c.variants(at)).collect::<Result<Vec<_>, _>>()?;
        c.make_variants(0, &dims, |at| {
            let (row, within) = (at / inner, at % inner);
            owned(inputs[row % count][row / count * inner + within])
        })
    }
}

register_kernel!("Pack" on "CPU": Pack, types = ("T", &[DType::VARIANT]));

struct Unpack {
    axis: i64,
}

impl Kernel for Unpack {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Unpack { axis: c.attr("axis")? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (whole, count) = (c.dims(0), c.output_count());
        let axis = position(self.axis, whole.len())?;
        if whole[axis] != count as i64 {
            return Err(KernelError::invalid_argument(format!(
                "value: expected size {count} of dimension {axis}, found shape {whole:?}"
            )));
        }
        let inner = count_of(&whole[axis + 1..])? as usize;
        let mut dims = whole.to_vec();
        dims.remove(axis);
        let values = c.variants(0)?;
        (0..count).try_for_each(|output| {
            c.make_variants(output, &dims, |at| {
                let (row, within) = (at / inner, at % inner);
                owned(values[(row * count + output) * inner + within])
            })
        })
    }
}

register_kernel!("Unpack" on "CPU": Unpack, types = ("T", &[DType::VARIANT]));
