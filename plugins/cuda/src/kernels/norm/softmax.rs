//! `Softmax`, `LogSoftmax`, over the last dimension.

use super::rows::{FLOATS, RowEntries, lanes_of, module_of};
use crate::{
    compile::{Source, Variant},
    kernels::dtype::name_of,
    launch::Launch,
    source,
};
use tenon_sdk::{DType, KernelError, prelude::*, reg::Numerics};

static SOURCE: Source = source!("softmax.cu");

pub(super) fn variants() -> Vec<Variant> {
    let both = FLOATS.iter().flat_map(|dtype| [variant(*dtype, false), variant(*dtype, true)]);
    both.filter_map(Result::ok).collect()
}

fn variant(dtype: DType, log: bool) -> Result<Variant, KernelError> {
    Ok(Variant::new(&SOURCE).define("DTYPE", name_of(dtype)?).define("LOG", u8::from(log)))
}

/// Softmax of the rows of the last dimension.
struct Softmax(RowEntries<(u64, u64, u64, u64)>);

impl Kernel for Softmax {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let dtype = c.input_types()[0];
        let module = module_of(c, variant(dtype, c.op() == "LogSoftmax"))?;
        // SAFETY: these entries take two addresses and two counts.
        Ok(Softmax(unsafe { RowEntries::new(&module, "softmax", dtype)? }))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let Some(&cols) = c.dims(0).last() else {
            return Err(KernelError::invalid_argument(
                "logits must have at least 1 dimension, found a scalar",
            ));
        };
        let launch = Launch::new(c)?;
        let (x, y) = (launch.input(0)?, launch.output(0, c.dims(0))?);
        if x.elements == 0 {
            return Ok(());
        }
        let cols = cols.unsigned_abs();
        let rows = x.elements / cols;
        let packed = cols.is_multiple_of(lanes_of(x.dtype)) && x.is_aligned(16) && y.is_aligned(16);
        let (entry, grid) = self.0.choose([rows, cols], packed, launch.facts());
        // SAFETY: both operands have `rows * cols` elements.
        unsafe { launch.run(entry, grid, (y.address, x.address, rows, cols)) }
    }
}

register_kernel!("LogSoftmax" on "CUDA": Softmax, types = ("T", &[DType::FLOAT]), in_place = &[(0, 0)],
    numerics = Numerics::relative(1e-6, 1e-5).accumulation(DType::FLOAT));
register_kernel!("LogSoftmax" on "CUDA": Softmax, types = ("T", &[DType::DOUBLE]), in_place = &[(0, 0)],
    numerics = Numerics::relative(1e-15, 1e-13).accumulation(DType::DOUBLE));
register_kernel!("LogSoftmax" on "CUDA": Softmax, types = ("T", &[DType::HALF]), in_place = &[(0, 0)],
    numerics = Numerics::relative(1e-3, 2e-3).accumulation(DType::FLOAT));
register_kernel!("LogSoftmax" on "CUDA": Softmax, types = ("T", &[DType::BFLOAT16]), in_place = &[(0, 0)],
    numerics = Numerics::relative(1e-2, 1.6e-2).accumulation(DType::FLOAT));
register_kernel!("Softmax" on "CUDA": Softmax, types = ("T", &[DType::FLOAT]), in_place = &[(0, 0)],
    numerics = Numerics::relative(1e-37, 1e-5).accumulation(DType::FLOAT));
register_kernel!("Softmax" on "CUDA": Softmax, types = ("T", &[DType::DOUBLE]), in_place = &[(0, 0)],
    numerics = Numerics::relative(1e-300, 1e-13).accumulation(DType::DOUBLE));
register_kernel!("Softmax" on "CUDA": Softmax, types = ("T", &[DType::HALF]), in_place = &[(0, 0)],
    numerics = Numerics::relative(6e-8, 2e-3).accumulation(DType::FLOAT));
register_kernel!("Softmax" on "CUDA": Softmax, types = ("T", &[DType::BFLOAT16]), in_place = &[(0, 0)],
    numerics = Numerics::relative(1e-37, 1.6e-2).accumulation(DType::FLOAT));
