//! `MatMul` and `_FusedMatMul`.

use super::{
    epilogue::{Arguments, Attributes},
    gemm::{Gemm, Product, TYPES},
};
use crate::launch::Launch;
use tenon_sdk::{DType, KernelError, geometry::MatMulGeometry, prelude::*, reg::Numerics};

/// The two attributes that say whether operands are transposed.
pub(super) fn transposed(c: &CreateContext<'_>) -> Result<[bool; 2], KernelError> {
    Ok([c.attr("transpose_a")?, c.attr("transpose_b")?])
}

struct MatMul {
    transposed: [bool; 2],
    gemm: Gemm,
}

impl Kernel for MatMul {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let transposed = transposed(c)?;
        Ok(MatMul { transposed, gemm: Gemm::new(c, c.attr("T")?, transposed, "")? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let [a, b] = self.transposed;
        let g = MatMulGeometry::new(c.dims(0), c.dims(1), a, b)?;
        let launch = Launch::new(c)?;
        let y = launch.output(0, &[g.m as i64, g.n as i64])?;
        let operands = [launch.input(0)?, launch.input(1)?, y];
        self.gemm.run(&launch, &Product::new(&g)?, operands, Arguments::default())
    }
}

struct FusedMatMul {
    product: MatMul,
    epilogue: Attributes,
}

impl Kernel for FusedMatMul {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let (transposed, epilogue) = (transposed(c)?, Attributes::new(c)?);
        let gemm = Gemm::new(c, c.attr("T")?, transposed, &epilogue.define(0))?;
        Ok(FusedMatMul { product: MatMul { transposed, gemm }, epilogue })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let [a, b] = self.product.transposed;
        let g = MatMulGeometry::new(c.dims(0), c.dims(1), a, b)?;
        let launch = Launch::new(c)?;
        let dims = [g.m as i64, g.n as i64];
        let arguments = self.epilogue.bind(c, &launch, &dims)?;
        let y = launch.output(0, &dims)?;
        let operands = [launch.input(0)?, launch.input(1)?, y];
        self.product.gemm.run(&launch, &Product::new(&g)?, operands, arguments)
    }
}

/// Bounds relative to the sum of the absolute terms.
pub(super) const FLOAT: Numerics = Numerics::relative(1e-30, 2e-6).accumulation(DType::FLOAT);
/// As [`FLOAT`].
pub(super) const DOUBLE: Numerics = Numerics::relative(1e-300, 4e-15).accumulation(DType::DOUBLE);
/// As [`FLOAT`].
pub(super) const HALF: Numerics = Numerics::relative(6e-8, 2e-3).accumulation(DType::FLOAT);
/// As [`FLOAT`].
pub(super) const BFLOAT16: Numerics = Numerics::relative(1e-30, 1.6e-2).accumulation(DType::FLOAT);

// Bounds of the product relative to the sum of its absolute terms, plus those of the functions that
// follow.
/// Bounds of products with an epilogue.
pub(super) const FUSED: [Numerics; 4] = [
    Numerics::relative(1e-6, 4e-6).accumulation(DType::FLOAT),
    Numerics::relative(1e-14, 8e-15).accumulation(DType::DOUBLE),
    Numerics::relative(1e-3, 4e-3).accumulation(DType::FLOAT),
    Numerics::relative(8e-3, 3.2e-2).accumulation(DType::FLOAT),
];

const INTEGERS: &[DType] = TYPES.split_at(4).1;

register_kernel!("MatMul" on "CUDA": MatMul, types = ("T", &[DType::FLOAT]), numerics = FLOAT);
register_kernel!("MatMul" on "CUDA": MatMul, types = ("T", &[DType::DOUBLE]), numerics = DOUBLE);
register_kernel!("MatMul" on "CUDA": MatMul, types = ("T", &[DType::HALF]), numerics = HALF);
register_kernel!("MatMul" on "CUDA": MatMul, types = ("T", &[DType::BFLOAT16]), numerics = BFLOAT16);
register_kernel!("MatMul" on "CUDA": MatMul, types = ("T", INTEGERS), numerics = Numerics::EXACT);
register_kernel!("_FusedMatMul" on "CUDA": FusedMatMul,
    types = ("T", &[DType::FLOAT]), numerics = FUSED[0]);
register_kernel!("_FusedMatMul" on "CUDA": FusedMatMul,
    types = ("T", &[DType::DOUBLE]), numerics = FUSED[1]);
register_kernel!("_FusedMatMul" on "CUDA": FusedMatMul,
    types = ("T", &[DType::HALF]), numerics = FUSED[2]);
register_kernel!("_FusedMatMul" on "CUDA": FusedMatMul,
    types = ("T", &[DType::BFLOAT16]), numerics = FUSED[3]);
