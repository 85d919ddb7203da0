//! `Betainc`.

use crate::{lane::Compute, split::for_parts};
use tenon_reference::special::betainc;
use tenon_sdk::{KernelError, author::ComputeContext, reg::Numerics, register_kernel};

/// Approximate nanoseconds of a value.
const COST_NS: f64 = 300.0;

fn compute<T: Compute>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let inputs = [c.input::<T>(0)?, c.input::<T>(1)?, c.input::<T>(2)?];
    let dims = inputs.iter().map(|x| x.dims).find(|dims| !dims.is_empty()).unwrap_or(&[]);
    if let Some(x) = inputs.iter().find(|x| !x.dims.is_empty() && x.dims != dims) {
        return Err(KernelError::invalid_argument(format!(
            "a, b and x: expected one shape, or scalars, found {dims:?} and {:?}",
            x.dims
        )));
    }
    let y = c.output::<T>(0, dims)?.data;
    for_parts(c, y, COST_NS, |start, y| {
        for (at, y) in y.iter_mut().enumerate() {
            let [a, b, x] = inputs.map(|x| {
                let at = if x.dims.is_empty() { 0 } else { start + at };
                x.data[at].to_f64()
            });
            *y = T::from_f64(betainc(a, b, x));
        }
    })
}

register_kernel!("Betainc" on "CPU": fn compute<T> for "T" in [f32, f64],
    numerics = Numerics::relative(1e-12, 1e-11));
