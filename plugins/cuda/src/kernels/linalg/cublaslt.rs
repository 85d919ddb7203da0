//! Matrix product ops by cuBLASLt: label `cublaslt`.

use super::{
    batch_matmul::{adjoint, dtype_of},
    epilogue::{Arguments, Attributes},
    fused::{Ending, Fused},
    gemm::Product,
    matmul::{BFLOAT16, DOUBLE, FLOAT, FUSED, HALF, transposed},
    products::{Own, Products, Run},
};
use crate::{
    cublaslt,
    launch::{Launch, Operand},
    settings,
};
use tenon_sdk::{
    DType, KernelError,
    author::Supported,
    geometry::{BatchMatMulGeometry, MatMulGeometry, equal_batches},
    prelude::*,
};

/// Whether the library is installed.
fn supported() -> Supported {
    match cublaslt::require() {
        Ok(()) => Supported::Yes,
        Err(error) => Supported::No(error.message),
    }
}

/// `MatMul`, and `_FusedMatMul` with its steps.
struct MatMul {
    transposed: [bool; 2],
    fused: Fused,
    steps: Option<Attributes>,
}

impl Kernel for MatMul {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let (transposed, steps) = (transposed(c)?, Attributes::where_fused(c)?);
        let allow_tf32 = settings::allow_tf32(c.knobs())?;
        let fused = Fused::new(c, c.attr("T")?, transposed, allow_tf32, steps.as_ref())?;
        Ok(MatMul { transposed, fused, steps })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let [a, b] = self.transposed;
        let g = MatMulGeometry::new(c.dims(0), c.dims(1), a, b)?;
        let launch = Launch::new(c)?;
        let dims = [g.m as i64, g.n as i64];
        let arguments = match &self.steps {
            Some(steps) => steps.bind(c, &launch, &dims)?,
            None => Arguments::default(),
        };
        let y = launch.output(0, &dims)?;
        self.fused.run(&launch, &g, [launch.input(0)?, launch.input(1)?, y], arguments)
    }
}

impl Supports for MatMul {
    fn supports(_: &CreateContext<'_>) -> Supported {
        supported()
    }
}

struct BatchMatMul {
    adjoint: [bool; 2],
    equal: bool,
    products: Products,
    own: Own,
}

impl Kernel for BatchMatMul {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let (dtype, adjoint) = (dtype_of(c)?, adjoint(c)?);
        Ok(BatchMatMul {
            adjoint,
            equal: c.op() == "BatchMatMul",
            products: Products::new(c, dtype, adjoint, settings::allow_tf32(c.knobs())?)?,
            own: Own::new(dtype, adjoint, String::new()),
        })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        if self.equal {
            equal_batches(c.dims(0), c.dims(1))?;
        }
        let [x, y] = self.adjoint;
        let g = BatchMatMulGeometry::new(c.dims(0), c.dims(1), x, y)?;
        let launch = Launch::new(c)?;
        let z = launch.output(0, &g.output)?;
        let operands = [launch.input(0)?, launch.input(1)?, z];
        if z.elements == 0 || self.multiply(&launch, &g, operands)? {
            return Ok(());
        }
        self.own.run(&launch, &Product::batched(&g, x)?, operands, Arguments::default())
    }
}

impl Supports for BatchMatMul {
    fn supports(_: &CreateContext<'_>) -> Supported {
        supported()
    }
}

impl BatchMatMul {
    /// Computes the products by the library; false where it does not compute all of them.
    fn multiply(
        &self,
        launch: &Launch<'_>,
        g: &BatchMatMulGeometry,
        operands: [Operand; 3],
    ) -> Result<bool, KernelError> {
        let none = (Ending::NONE, &Arguments::default());
        if let Some(m) = one_matrix(g, self.adjoint[0]) {
            let matrix = MatMulGeometry { m, ..g.matrix };
            return self.products.run(launch, &matrix, &Run::ONE, operands, none);
        }
        let mut at = 0;
        for run in g.batch.runs() {
            let first = [run.offsets[0], run.offsets[1], at];
            at += run.len;
            let run = Run { first, strides: run.strides, count: run.len };
            if !self.products.run(launch, &g.matrix, &run, operands, none)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The rows of all left matrices together, where these are contiguous and a single right matrix
/// multiplies them all.
fn one_matrix(g: &BatchMatMulGeometry, transposed_a: bool) -> Option<usize> {
    match (g.batch.extents(), g.batch.strides(0), g.batch.strides(1)) {
        ([_], [1], [0]) if !transposed_a => g.batch.len().checked_mul(g.matrix.m),
        _ => None,
    }
}

macro_rules! products {
    ($($dtype:ident, $numerics:expr;)*) => {$(
        register_kernel!("MatMul" on "CUDA": MatMul, types = ("T", &[DType::$dtype]),
            label = "cublaslt", priority = 10, numerics = $numerics);
        register_kernel!("BatchMatMul" on "CUDA": BatchMatMul, types = ("T", &[DType::$dtype]),
            label = "cublaslt", priority = 10, numerics = $numerics);
        register_kernel!("BatchMatMulV2" on "CUDA": BatchMatMul, types = ("T", &[DType::$dtype]),
            label = "cublaslt", priority = 10, numerics = $numerics);
        register_kernel!("BatchMatMulV3" on "CUDA": BatchMatMul, types = ("Ta", &[DType::$dtype]),
            types = ("Tb", &[DType::$dtype]), types = ("Tout", &[DType::$dtype]),
            label = "cublaslt", priority = 10, numerics = $numerics);
    )*};
}

products! {
    FLOAT, FLOAT;
    DOUBLE, DOUBLE;
    HALF, HALF;
    BFLOAT16, BFLOAT16;
}

macro_rules! fused_products {
    ($($dtype:ident, $numerics:expr;)*) => {$(
        register_kernel!("_FusedMatMul" on "CUDA": MatMul, types = ("T", &[DType::$dtype]),
            label = "cublaslt", priority = 10, numerics = $numerics);
    )*};
}

fused_products! {
    FLOAT, FUSED[0];
    DOUBLE, FUSED[1];
    HALF, FUSED[2];
    BFLOAT16, FUSED[3];
}
