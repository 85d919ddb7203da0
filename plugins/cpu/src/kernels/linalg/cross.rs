//! `Cross`.

use half::{bf16, f16};
use tenon_sdk::{
    Code, KernelError, author::ComputeContext, element::Number, reg::Numerics, register_kernel,
};

fn cross<T: Number>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let (a, b) = (c.input::<T>(0)?, c.input::<T>(1)?);
    if a.dims != b.dims || a.dims.is_empty() {
        return Err(KernelError::invalid_argument(format!(
            "a and b must be of one shape, with a last dimension, found {:?} and {:?}",
            a.dims, b.dims
        )));
    }
    if a.dims.last() != Some(&3) {
        let message = format!("the last dimension of a and b must be 3, found shape {:?}", a.dims);
        return Err(KernelError::new(Code::FAILED_PRECONDITION, message));
    }
    let y = c.output::<T>(0, a.dims)?.data;
    let vectors = a.data.as_chunks::<3>().0.iter().zip(b.data.as_chunks::<3>().0);
    for (y, (a, b)) in y.as_chunks_mut::<3>().0.iter_mut().zip(vectors) {
        let minor = |i: usize, j: usize| a[i].mul(b[j]).sub(a[j].mul(b[i]));
        *y = [minor(1, 2), minor(2, 0), minor(0, 1)];
    }
    Ok(())
}

register_kernel!("Cross" on "CPU": fn cross<T> for "T" in [i8, i16, i32, i64, u8, u16, u32, u64],
    numerics = Numerics::EXACT);
register_kernel!("Cross" on "CPU": fn cross<T> for "T" in [f16, bf16, f32, f64],
    numerics = Numerics::ulps(2.0));
