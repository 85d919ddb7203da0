//! The ops of products by cuBLASLt: label `cublaslt`.
//!
//! Products without terms are not the library's: they become products of one term, which is 0.

use super::{
    after::After,
    batch_matmul::{adjoint, dtype_of},
    epilogue::Attributes,
    matmul::{BFLOAT16, DOUBLE, FLOAT, FUSED, HALF, transposed},
};
use crate::{
    cublaslt::{self, Element, Epilogue, Handle, Problem},
    launch::{Launch, Operand, device_for},
    settings,
};
use cudarc::driver::sys;
use std::sync::Arc;
use tenon_sdk::{
    DType, KernelError,
    author::Supported,
    fused::EpilogueStep,
    geometry::{BatchMatMulGeometry, MatMulGeometry, equal_batches},
    prelude::*,
};

/// Whether the library is there.
fn supported() -> Supported {
    match cublaslt::require() {
        Ok(()) => Supported::Yes,
        Err(error) => Supported::No(error.message),
    }
}

fn element_of(dtype: DType) -> Result<Element, KernelError> {
    Ok(match dtype {
        DType::FLOAT if settings::allow_tf32()? => Element::Tf32,
        DType::FLOAT => Element::Float,
        DType::DOUBLE => Element::Double,
        DType::HALF => Element::Half,
        DType::BFLOAT16 => Element::Bfloat16,
        other => {
            return Err(KernelError::unimplemented(format!("cuBLASLt multiplies no {other}")));
        }
    })
}

/// Products of a node.
struct Products {
    handle: Arc<Handle>,
    element: Element,
    transposed: [bool; 2],
    epilogue: Epilogue,
}

/// Products of matrices that lie at the same distances.
struct Run {
    /// Numbers of the first matrices of both factors and of the product.
    first: [usize; 3],
    /// Matrices from one to the next, of both factors.
    strides: [usize; 2],
    /// Products.
    count: usize,
}

impl Products {
    fn new(
        c: &CreateContext<'_>,
        dtype: DType,
        transposed: [bool; 2],
        epilogue: Epilogue,
    ) -> Result<Products, KernelError> {
        let handle = Handle::of(device_for(c)?.context())?;
        Ok(Products { handle, element: element_of(dtype)?, transposed, epilogue })
    }

    /// Enqueues a run of products of these sizes, with a vector at `bias` where one is added.
    fn run(
        &self,
        launch: &Launch<'_>,
        g: &MatMulGeometry,
        run: &Run,
        operands: [Operand; 3],
        bias: u64,
    ) -> Result<(), KernelError> {
        if g.m == 0 || g.n == 0 || run.count == 0 {
            return Ok(());
        }
        let size = self.element.size();
        let matrices = [[g.m, g.k], [g.k, g.n], [g.m, g.n]].map(|[y, x]| y as u64 * x as u64);
        let mut addresses =
            [0, 1, 2].map(|at| operands[at].address + run.first[at] as u64 * matrices[at] * size);
        let mut strides = [0, 1].map(|at| run.strides[at] as u64 * matrices[at]);
        if g.k == 0 {
            let zeros = zeros(launch, g.m.max(g.n) as u64 * size)?;
            (addresses[0], addresses[1], strides) = (zeros, zeros, [0, 0]);
        }
        let problem = Problem {
            element: self.element,
            m: g.m as u64,
            n: g.n as u64,
            k: g.k.max(1) as u64,
            transposed: self.transposed,
            count: run.count as u32,
            strides: if run.count > 1 { strides } else { [0, 0] },
            epilogue: self.epilogue,
            alignments: addresses.map(Problem::alignment),
        };
        // SAFETY: operands of this call, whose matrices have these sizes, as the geometry was checked.
        unsafe {
            self.handle
                .multiply(launch.stream(), &problem, addresses, bias, |bytes| launch.scratch(bytes))
        }
    }
}

/// Device memory of zeros for the launches of this call.
fn zeros(launch: &Launch<'_>, bytes: u64) -> Result<u64, KernelError> {
    let bytes = usize::try_from(bytes)
        .map_err(|_| KernelError::invalid_argument("a line beyond memory"))?;
    let zeros = launch.scratch(bytes)?;
    // SAFETY: scratch memory of this size.
    let clear = || unsafe { sys::cuMemsetD8Async(zeros, 0, bytes, launch.stream().raw()) };
    launch.device().context().call("cuMemsetD8Async", clear)?;
    Ok(zeros)
}

/// One product.
const ONE: Run = Run { first: [0; 3], strides: [0; 2], count: 1 };

struct MatMul(Products);

impl Kernel for MatMul {
    const HAS_SUPPORTS: bool = true;

    fn supports(_: &CreateContext<'_>) -> Supported {
        supported()
    }

    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Products::new(c, c.attr("T")?, transposed(c)?, Epilogue::None).map(MatMul)
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let [a, b] = self.0.transposed;
        let g = MatMulGeometry::new(c.dims(0), c.dims(1), a, b)?;
        let launch = Launch::new(c)?;
        let y = launch.output(0, &[g.m as i64, g.n as i64])?;
        self.0.run(&launch, &g, &ONE, [launch.input(0)?, launch.input(1)?, y], 0)
    }
}

struct FusedMatMul {
    products: Products,
    epilogue: Attributes,
    rest: Option<After>,
}

/// The steps that the library does at the end of a product, which are the first ones, and how many they are.
///
/// ReLU is not among them: ours keeps NaN, the library promises the greater one of a number and 0. In double it promises
/// nothing that follows a product.
fn epilogue_of(steps: &[EpilogueStep], dtype: DType) -> (Epilogue, usize) {
    use EpilogueStep::{BiasAdd, GeluApproximate};
    match steps {
        _ if dtype == DType::DOUBLE => (Epilogue::None, 0),
        [GeluApproximate, ..] => (Epilogue::GeluByTanh, 1),
        [BiasAdd, GeluApproximate, ..] => (Epilogue::BiasGeluByTanh, 2),
        [BiasAdd, ..] => (Epilogue::Bias, 1),
        _ => (Epilogue::None, 0),
    }
}

impl Kernel for FusedMatMul {
    const HAS_SUPPORTS: bool = true;

    fn supports(_: &CreateContext<'_>) -> Supported {
        supported()
    }

    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let (epilogue, dtype) = (Attributes::new(c)?, c.attr("T")?);
        let (steps, done) = epilogue_of(epilogue.steps(), dtype);
        let products = Products::new(c, dtype, transposed(c)?, steps)?;
        let rest = epilogue.define(done);
        let rest = if rest.is_empty() { None } else { Some(After::new(c, dtype, &rest)?) };
        Ok(FusedMatMul { products, epilogue, rest })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let [a, b] = self.products.transposed;
        let g = MatMulGeometry::new(c.dims(0), c.dims(1), a, b)?;
        let launch = Launch::new(c)?;
        let dims = [g.m as i64, g.n as i64];
        let arguments = self.epilogue.bind(c, &launch, &dims)?;
        let y = launch.output(0, &dims)?;
        let operands = [launch.input(0)?, launch.input(1)?, y];
        self.products.run(&launch, &g, &ONE, operands, arguments.first())?;
        match &self.rest {
            Some(rest) => rest.run(&launch, y, g.n, arguments),
            None => Ok(()),
        }
    }
}

struct BatchMatMul {
    products: Products,
    equal: bool,
}

impl Kernel for BatchMatMul {
    const HAS_SUPPORTS: bool = true;

    fn supports(_: &CreateContext<'_>) -> Supported {
        supported()
    }

    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let products = Products::new(c, dtype_of(c)?, adjoint(c)?, Epilogue::None)?;
        Ok(BatchMatMul { products, equal: c.op() == "BatchMatMul" })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        if self.equal {
            equal_batches(c.dims(0), c.dims(1))?;
        }
        let [x, y] = self.products.transposed;
        let g = BatchMatMulGeometry::new(c.dims(0), c.dims(1), x, y)?;
        let launch = Launch::new(c)?;
        let z = launch.output(0, &g.output)?;
        let operands = [launch.input(0)?, launch.input(1)?, z];
        if z.elements == 0 {
            return Ok(());
        }
        if let Some(m) = one_matrix(&g, x) {
            let matrix = MatMulGeometry { m, ..g.matrix };
            return self.products.run(&launch, &matrix, &ONE, operands, 0);
        }
        let mut at = 0;
        for run in g.batch.runs() {
            let first = [run.offsets[0], run.offsets[1], at];
            at += run.len;
            let run = Run { first, strides: run.strides, count: run.len };
            self.products.run(&launch, &g.matrix, &run, operands, 0)?;
        }
        Ok(())
    }
}

/// The rows of all left matrices, where one matrix multiplies them from the right and they follow each other.
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
        register_kernel!("_FusedMatMul" on "CUDA": FusedMatMul, types = ("T", &[DType::$dtype]),
            label = "cublaslt", priority = 10, numerics = $numerics);
    )*};
}

fused_products! {
    FLOAT, FUSED[0];
    DOUBLE, FUSED[1];
    HALF, FUSED[2];
    BFLOAT16, FUSED[3];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_does_a_bias_and_the_approximation_of_gelu_and_nothing_else() {
        use EpilogueStep::*;
        let of = |steps: &[EpilogueStep]| epilogue_of(steps, DType::HALF);
        assert_eq!(of(&[BiasAdd, GeluApproximate]), (Epilogue::BiasGeluByTanh, 2));
        assert_eq!(of(&[BiasAdd, GeluExact]), (Epilogue::Bias, 1));
        assert_eq!(of(&[BiasAdd, Relu]), (Epilogue::Bias, 1));
        assert_eq!(of(&[Relu, BiasAdd]), (Epilogue::None, 0));
        assert_eq!(epilogue_of(&[BiasAdd], DType::DOUBLE), (Epilogue::None, 0));
    }
}
