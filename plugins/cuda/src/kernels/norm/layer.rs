//! `_FusedLayerNorm`, over the last dimension.

use super::rows::{FLOATS, RowEntries, lanes_of, module_of};
use crate::{
    compile::{Source, Variant},
    kernels::dtype::name_of,
    launch::Launch,
    source,
};
use tenon_sdk::{DType, KernelError, prelude::*, reg::Numerics};

static SOURCE: Source = source!("norm_layer.cu");

pub(super) fn variants() -> Vec<Variant> {
    FLOATS.iter().filter_map(|dtype| variant(*dtype).ok()).collect()
}

fn variant(dtype: DType) -> Result<Variant, KernelError> {
    Ok(Variant::new(&SOURCE).define("DTYPE", name_of(dtype)?))
}

/// `Norm` in `norm_layer.cu`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Norm {
    scale: u64,
    offset: u64,
    rows: u64,
    cols: u64,
    epsilon: f32,
    unused: u32,
}

struct LayerNorm {
    epsilon: f32,
    entries: RowEntries<(u64, u64, Norm)>,
}

impl Kernel for LayerNorm {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let dtype = c.input_types()[0];
        let module = module_of(c, variant(dtype))?;
        // SAFETY: these entries take two addresses and a `Norm`, whose layout a test compares.
        let entries = unsafe { RowEntries::new(&module, "norm", dtype)? };
        Ok(LayerNorm { epsilon: c.attr("epsilon")?, entries })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let Some(&len) = c.dims(0).last() else {
            return Err(KernelError::invalid_argument("x must have at least 1 dimensions, got 0"));
        };
        check_vector(c, 1, "scale", len)?;
        check_vector(c, 2, "offset", len)?;
        let launch = Launch::new(c)?;
        let inputs = [launch.input(0)?, launch.input(1)?, launch.input(2)?];
        let ([x, scale, offset], y) = (inputs, launch.output(0, c.dims(0))?);
        if x.elements == 0 {
            return Ok(());
        }
        let cols = len.unsigned_abs();
        let rows = x.elements / cols;
        let aligned = [x, scale, offset, y].iter().all(|operand| operand.is_aligned(16));
        let packed = aligned && cols.is_multiple_of(lanes_of(x.dtype));
        let (entry, grid) = self.entries.choose([rows, cols], packed, launch.facts());
        let (scale, offset) = (scale.address, offset.address);
        let norm = Norm { scale, offset, rows, cols, epsilon: self.epsilon, unused: 0 };
        // SAFETY: x and y have `rows * cols` elements, scale and offset `cols`.
        unsafe { launch.run(entry, grid, (y.address, x.address, norm)) }
    }
}

/// Checks that a scale or offset is as long as the last dimension.
fn check_vector(
    c: &ComputeContext<'_>,
    at: usize,
    name: &str,
    len: i64,
) -> Result<(), KernelError> {
    if c.dims(at) == [len] {
        return Ok(());
    }
    Err(KernelError::invalid_argument(format!(
        "{name} must have shape [{len}], a value for each position of the last dimension of x; found {:?}",
        c.dims(at)
    )))
}

register_kernel!("_FusedLayerNorm" on "CUDA": LayerNorm, types = ("T", &[DType::FLOAT]),
    numerics = Numerics::relative(2e-6, 1e-5).accumulation(DType::FLOAT));
register_kernel!("_FusedLayerNorm" on "CUDA": LayerNorm, types = ("T", &[DType::DOUBLE]),
    numerics = Numerics::relative(1e-14, 1e-13).accumulation(DType::DOUBLE));
register_kernel!("_FusedLayerNorm" on "CUDA": LayerNorm, types = ("T", &[DType::HALF]),
    numerics = Numerics::relative(1e-3, 2e-3).accumulation(DType::FLOAT));
register_kernel!("_FusedLayerNorm" on "CUDA": LayerNorm, types = ("T", &[DType::BFLOAT16]),
    numerics = Numerics::relative(1e-2, 1.6e-2).accumulation(DType::FLOAT));

#[cfg(test)]
mod tests {
    #[test]
    fn the_layout_is_that_of_the_source() {
        assert_eq!(size_of::<super::Norm>(), 40);
    }
}
