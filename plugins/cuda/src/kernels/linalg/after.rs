//! Steps that follow a product which a library has written: `gemm_after.cu`.

use super::epilogue::{Arguments, every_step};
use crate::{
    compile::{Entry, Source, Variant},
    device::Cuda,
    kernels::dtype::name_of,
    launch::{Grid, Launch, Operand},
    source,
};
use tenon_sdk::{DType, KernelError};

static SOURCE: Source = source!("gemm_after.cu");

/// A variant with every step, for each type.
pub(super) fn variants() -> Vec<Variant> {
    [DType::FLOAT, DType::DOUBLE, DType::HALF, DType::BFLOAT16]
        .into_iter()
        .filter_map(|dtype| variant(dtype, &every_step()).ok())
        .collect()
}

fn variant(dtype: DType, steps: &str) -> Result<Variant, KernelError> {
    Ok(Variant::new(&SOURCE).define("T", name_of(dtype)?).define("EPILOGUE", steps))
}

/// Steps on all elements of a product, in place.
pub(super) struct After(Entry<(u64, u64, u32, u32, Arguments)>);

impl After {
    /// Compiles the steps for a device.
    ///
    /// # Errors
    /// `UNAVAILABLE` without a compiler; the compiler's error.
    pub fn on(device: &Cuda, dtype: DType, steps: &str) -> Result<After, KernelError> {
        let module = device.modules().get(&variant(dtype, steps)?)?;
        // SAFETY: `gemm_after` takes an address, a count, two numbers and the arguments.
        Ok(After(unsafe { module.entry("gemm_after")? }))
    }

    /// Enqueues the steps.
    ///
    /// # Errors
    /// The driver's error.
    pub fn run(
        &self,
        launch: &Launch<'_>,
        c: Operand,
        columns: usize,
        arguments: Arguments,
    ) -> Result<(), KernelError> {
        let columns = u32::try_from(columns)
            .map_err(|_| KernelError::unimplemented("rows of 2^32 elements and more"))?;
        let whole = u32::from(c.is_aligned(16));
        let grid = Grid::stride(c.elements.div_ceil(4), launch.facts());
        // SAFETY: the entry reads and writes `elements` of C, and reads the arguments, whose shapes
        // were checked.
        unsafe { launch.run(&self.0, grid, (c.address, c.elements, columns, whole, arguments)) }
    }
}
