//! `BatchMatMul`, `BatchMatMulV2`, and `BatchMatMulV3` with a single type.

use super::{
    epilogue::Arguments,
    gemm::{Gemm, Product, TYPES},
    matmul::{BFLOAT16, DOUBLE, FLOAT, HALF},
};
use crate::launch::Launch;
use tenon_sdk::{
    DType, KernelError,
    geometry::{BatchMatMulGeometry, equal_batches},
    prelude::*,
    reg::Numerics,
};

/// Attributes `adj_x` and `adj_y`: for real numbers, transposition.
pub(super) fn adjoint(c: &CreateContext<'_>) -> Result<[bool; 2], KernelError> {
    Ok([c.attr("adj_x")?, c.attr("adj_y")?])
}

/// Attribute `T`, or the output's type attribute where there are three.
pub(super) fn dtype_of(c: &CreateContext<'_>) -> Result<DType, KernelError> {
    if c.op() == "BatchMatMulV3" { c.attr("Tout") } else { c.attr("T") }
}

struct BatchMatMul {
    adjoint: [bool; 2],
    equal: bool,
    gemm: Gemm,
}

impl Kernel for BatchMatMul {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let adjoint = adjoint(c)?;
        let gemm = Gemm::new(c, dtype_of(c)?, adjoint, "")?;
        Ok(BatchMatMul { adjoint, equal: c.op() == "BatchMatMul", gemm })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        if self.equal {
            equal_batches(c.dims(0), c.dims(1))?;
        }
        let [x, y] = self.adjoint;
        let g = BatchMatMulGeometry::new(c.dims(0), c.dims(1), x, y)?;
        let launch = Launch::new(c)?;
        let z = launch.output(0, &g.output)?;
        if z.elements == 0 {
            return Ok(());
        }
        let operands = [launch.input(0)?, launch.input(1)?, z];
        self.gemm.run(&launch, &Product::batched(&g, x)?, operands, Arguments::default())
    }
}

const INTEGERS: &[DType] = TYPES.split_at(4).1;

macro_rules! batch_products {
    ($($types:expr, $numerics:expr;)*) => {$(
        register_kernel!("BatchMatMul" on "CUDA": BatchMatMul, types = ("T", $types), numerics = $numerics);
        register_kernel!("BatchMatMulV2" on "CUDA": BatchMatMul, types = ("T", $types), numerics = $numerics);
    )*};
}

batch_products! {
    &[DType::FLOAT], FLOAT;
    &[DType::DOUBLE], DOUBLE;
    &[DType::HALF], HALF;
    &[DType::BFLOAT16], BFLOAT16;
    INTEGERS, Numerics::EXACT;
}

macro_rules! products_of_one_type {
    ($($dtype:ident, $numerics:expr;)*) => {$(
        register_kernel!("BatchMatMulV3" on "CUDA": BatchMatMul, types = ("Ta", &[DType::$dtype]),
            types = ("Tb", &[DType::$dtype]), types = ("Tout", &[DType::$dtype]), numerics = $numerics);
    )*};
}

products_of_one_type! {
    FLOAT, FLOAT;
    DOUBLE, DOUBLE;
    HALF, HALF;
    BFLOAT16, BFLOAT16;
    INT32, Numerics::EXACT;
    INT64, Numerics::EXACT;
}
