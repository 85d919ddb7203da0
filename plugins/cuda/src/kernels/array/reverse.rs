//! `Reverse`, `ReverseV2`, `InvertPermutation`.

use super::{
    NUMBERS, check_vector,
    strided::{Box, Reader},
};
use crate::launch::Launch;
use tenon_sdk::{
    DType, KernelError,
    geometry::{AxisSet, row_major_strides},
    prelude::*,
    reg::Numerics,
};

fn write(
    c: &ComputeContext<'_>,
    reader: &Reader,
    is_reversed: impl Fn(usize) -> bool,
) -> Result<(), KernelError> {
    let dims = c.dims(0);
    if !(0..dims.len()).any(|d| is_reversed(d) && dims[d] > 1) {
        return c.share(0, 0, dims);
    }
    let (mut strides, mut base) = (row_major_strides(dims)?, 0i64);
    for d in (0..dims.len()).filter(|&d| is_reversed(d)) {
        base = base.wrapping_add((dims[d] - 1).wrapping_mul(strides[d]));
        strides[d] = strides[d].wrapping_neg();
    }
    let launch = Launch::new(c)?;
    let (x, y) = (launch.input(0)?, launch.output(0, dims)?);
    // SAFETY: a reversed dimension is read from its last element to its first, all within x.
    unsafe { reader.read(&launch, (&y, &x), &Box::new(dims, &strides, base)) }
}

struct ReverseV2(Reader);

impl Kernel for ReverseV2 {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(ReverseV2(Reader::new(c)?))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        check_vector(c, 1, "axis")?;
        let axes = AxisSet::new("axis", &c.integers(1)?, c.dims(0).len())?;
        write(c, &self.0, |d| axes.contains(d))
    }
}

struct Reverse(Reader);

impl Kernel for Reverse {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Reverse(Reader::new(c)?))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let flags = c.input::<bool>(1)?;
        if flags.dims != [c.dims(0).len() as i64] {
            return Err(KernelError::invalid_argument(format!(
                "dims must be a vector of {} flags, found shape {:?}",
                c.dims(0).len(),
                flags.dims
            )));
        }
        write(c, &self.0, |d| flags.data[d])
    }
}

/// Permutations are arguments of other ops, so they stay in host memory, as in TensorFlow.
fn invert_permutation(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    check_vector(c, 0, "x")?;
    let x = c.integers(0)?;
    let (len, mut y) = (x.len(), vec![-1; x.len()]);
    for (at, &place) in x.iter().enumerate() {
        let Some(slot) = usize::try_from(place).ok().and_then(|place| y.get_mut(place)) else {
            let message = format!("x[{at}] = {place} is not in [0, {len})");
            return Err(KernelError::invalid_argument(message));
        };
        if *slot != -1 {
            let message = format!("x holds {place} twice, at {slot} and at {at}");
            return Err(KernelError::invalid_argument(message));
        }
        *slot = at as i64;
    }
    if c.output_slot(0)?.dtype == DType::INT32 {
        let out = c.output::<i32>(0, c.dims(0))?;
        out.data.iter_mut().zip(y).for_each(|(out, place)| *out = place as i32);
    } else {
        c.output::<i64>(0, c.dims(0))?.data.copy_from_slice(&y);
    }
    Ok(())
}

register_kernel!("Reverse" on "CUDA": Reverse, types = ("T", NUMBERS), host_memory = &["dims"],
    numerics = Numerics::EXACT);
register_kernel!("ReverseV2" on "CUDA": ReverseV2, types = ("T", NUMBERS), host_memory = &["axis"],
    numerics = Numerics::EXACT);
register_kernel!("InvertPermutation" on "CUDA": fn invert_permutation, host_memory = &["x", "y"],
    numerics = Numerics::EXACT);
