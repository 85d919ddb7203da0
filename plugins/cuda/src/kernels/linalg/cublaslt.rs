//! The ops of products by cuBLASLt: label `cublaslt`.
//!
//! Products without terms are not the library's: they become products of one term, which is 0. Products for which it has
//! no algorithm on this GPU are the plugin's own, compiled then.

use super::{
    after::After,
    batch_matmul::{adjoint, dtype_of},
    epilogue::{Arguments, Attributes},
    gemm::{Gemm, Product},
    matmul::{BFLOAT16, DOUBLE, FLOAT, FUSED, HALF, transposed},
};
use crate::{
    cublaslt::{self, Addresses, Element, Epilogue, Handle, Problem},
    launch::{Launch, Operand, device_for},
    settings,
};
use cudarc::driver::sys;
use std::sync::{Arc, OnceLock};
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
    dtype: DType,
    element: Element,
    transposed: [bool; 2],
    ending: Ending,
    search: bool,
    /// The plugin's own kernel with all that follows, `steps`, once it was needed.
    own: OnceLock<Gemm>,
    steps: String,
}

/// What the library does behind a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ending {
    /// At the end.
    epilogue: Epilogue,
    /// The further input that is a matrix to add.
    added: Option<usize>,
    /// The further input that is a vector to add.
    bias: Option<usize>,
}

impl Ending {
    const NONE: Ending = Ending { epilogue: Epilogue::None, added: None, bias: None };
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
        ending: Ending,
        steps: String,
    ) -> Result<Products, KernelError> {
        Ok(Products {
            handle: Handle::of(device_for(c)?.context())?,
            dtype,
            element: element_of(dtype)?,
            transposed,
            ending,
            search: settings::search_products()?,
            own: OnceLock::new(),
            steps,
        })
    }

    /// Enqueues a run of products of these sizes; false where the library does not compute them.
    fn run(
        &self,
        launch: &Launch<'_>,
        g: &MatMulGeometry,
        run: &Run,
        operands: [Operand; 3],
        arguments: &Arguments,
    ) -> Result<bool, KernelError> {
        if g.m == 0 || g.n == 0 || run.count == 0 {
            return Ok(true);
        }
        // More are not the library's.
        let Ok(count) = i32::try_from(run.count) else { return Ok(false) };
        let size = self.element.size();
        let matrices = [[g.m, g.k], [g.k, g.n], [g.m, g.n]].map(|[y, x]| y as u64 * x as u64);
        let [mut a, mut b, result] =
            [0, 1, 2].map(|at| operands[at].address + run.first[at] as u64 * matrices[at] * size);
        let mut strides = [0, 1].map(|at| run.strides[at] as u64 * matrices[at]);
        if g.k == 0 {
            let zeros = zeros(launch, g.m.max(g.n) as u64 * size)?;
            (a, b, strides) = (zeros, zeros, [0, 0]);
        }
        let further = |input: Option<usize>| input.map_or(0, |input| arguments.at(input));
        let Ending { epilogue, added, bias } = self.ending;
        let at = Addresses { factors: [a, b], added: further(added), bias: further(bias), result };
        let problem = Problem {
            element: self.element,
            m: g.m as u64,
            n: g.n as u64,
            k: g.k.max(1) as u64,
            transposed: self.transposed,
            count: count.unsigned_abs(),
            strides: if run.count > 1 { strides } else { [0, 0] },
            adds: added.is_some(),
            epilogue,
            alignments: at.alignments(),
        };
        let scratch = |bytes| launch.scratch(bytes);
        // SAFETY: operands of this call, whose matrices have these sizes, as the geometry was checked.
        unsafe { self.handle.multiply(launch.stream(), &problem, at, self.search, scratch) }
    }

    /// Enqueues the plugin's own kernel, with all that follows.
    fn run_own(
        &self,
        launch: &Launch<'_>,
        product: &Product,
        operands: [Operand; 3],
        arguments: Arguments,
    ) -> Result<(), KernelError> {
        if self.own.get().is_none() {
            let made = Gemm::on(launch.device(), self.dtype, self.transposed, &self.steps)?;
            // Another thread's is as good.
            let _ = self.own.set(made);
        }
        let own = self.own.get().ok_or_else(|| KernelError::internal("no kernel of its own"))?;
        own.run(launch, product, operands, arguments)
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
        Products::new(c, c.attr("T")?, transposed(c)?, Ending::NONE, String::new()).map(MatMul)
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let [a, b] = self.0.transposed;
        let g = MatMulGeometry::new(c.dims(0), c.dims(1), a, b)?;
        let launch = Launch::new(c)?;
        let y = launch.output(0, &[g.m as i64, g.n as i64])?;
        let operands = [launch.input(0)?, launch.input(1)?, y];
        let none = Arguments::default();
        if self.0.run(&launch, &g, &ONE, operands, &none)? {
            return Ok(());
        }
        self.0.run_own(&launch, &Product::new(&g)?, operands, none)
    }
}

struct FusedMatMul {
    products: Products,
    epilogue: Attributes,
    rest: Option<After>,
}

/// What the library does of these steps, which are the first ones, and how many they are: perhaps a vector and then a
/// matrix to add, or the matrix alone, and then perhaps a function.
///
/// A ReLU is among them where `relu` says so: ours keeps NaN, the library promises the greater one of a number and 0. In
/// double it promises nothing but the addition of a matrix.
fn ending_of(steps: &[EpilogueStep], dtype: DType, relu: bool) -> (Ending, usize) {
    use EpilogueStep::{Add, BiasAdd, GeluApproximate, Relu};
    let is_double = dtype == DType::DOUBLE;
    let (bias, added) = match steps {
        [Add, ..] => (None, Some(0)),
        _ if is_double => (None, None),
        [BiasAdd, Add, ..] => (Some(0), Some(1)),
        [BiasAdd, ..] => (Some(0), None),
        _ => (None, None),
    };
    let done = usize::from(bias.is_some()) + usize::from(added.is_some());
    let (epilogue, more) = match (steps.get(done), bias.is_some()) {
        (Some(GeluApproximate), true) if !is_double => (Epilogue::BiasGeluByTanh, 1),
        (Some(GeluApproximate), false) if !is_double => (Epilogue::GeluByTanh, 1),
        (Some(Relu), true) if relu && !is_double => (Epilogue::BiasRelu, 1),
        (Some(Relu), false) if relu && !is_double => (Epilogue::Relu, 1),
        (_, true) => (Epilogue::Bias, 0),
        (_, false) => (Epilogue::None, 0),
    };
    (Ending { epilogue, added, bias }, done + more)
}

impl Kernel for FusedMatMul {
    const HAS_SUPPORTS: bool = true;

    fn supports(_: &CreateContext<'_>) -> Supported {
        supported()
    }

    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let (epilogue, dtype) = (Attributes::new(c)?, c.attr("T")?);
        let (ending, done) = ending_of(epilogue.steps(), dtype, settings::fuse_relu()?);
        let products = Products::new(c, dtype, transposed(c)?, ending, epilogue.define(0))?;
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
        if !self.products.run(&launch, &g, &ONE, operands, &arguments)? {
            return self.products.run_own(&launch, &Product::new(&g)?, operands, arguments);
        }
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
        let products = Products::new(c, dtype_of(c)?, adjoint(c)?, Ending::NONE, String::new())?;
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
        if self.multiply(&launch, &g, operands)? {
            return Ok(());
        }
        let product = Product::batched(&g, x)?;
        self.products.run_own(&launch, &product, operands, Arguments::default())
    }
}

impl BatchMatMul {
    /// By the library; false where it does not compute all of them.
    fn multiply(
        &self,
        launch: &Launch<'_>,
        g: &BatchMatMulGeometry,
        operands: [Operand; 3],
    ) -> Result<bool, KernelError> {
        let none = Arguments::default();
        if let Some(m) = one_matrix(g, self.products.transposed[0]) {
            let matrix = MatMulGeometry { m, ..g.matrix };
            return self.products.run(launch, &matrix, &ONE, operands, &none);
        }
        let mut at = 0;
        for run in g.batch.runs() {
            let first = [run.offsets[0], run.offsets[1], at];
            at += run.len;
            let run = Run { first, strides: run.strides, count: run.len };
            if !self.products.run(launch, &g.matrix, &run, operands, &none)? {
                return Ok(false);
            }
        }
        Ok(true)
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
    fn the_library_adds_and_does_the_approximation_of_gelu_and_nothing_else() {
        use EpilogueStep::*;
        let ending = |epilogue, bias, added| Ending { epilogue, added, bias };
        let of = |steps: &[EpilogueStep]| ending_of(steps, DType::HALF, false);
        let gelu = Epilogue::BiasGeluByTanh;
        assert_eq!(of(&[BiasAdd, GeluApproximate]), (ending(gelu, Some(0), None), 2));
        assert_eq!(of(&[BiasAdd, GeluExact]), (ending(Epilogue::Bias, Some(0), None), 1));
        assert_eq!(of(&[BiasAdd, Relu]), (ending(Epilogue::Bias, Some(0), None), 1));
        assert_eq!(of(&[BiasAdd, Add, Relu]), (ending(Epilogue::Bias, Some(0), Some(1)), 2));
        assert_eq!(of(&[Add, BiasAdd]), (ending(Epilogue::None, None, Some(0)), 1));
        assert_eq!(of(&[Relu, BiasAdd]), (Ending::NONE, 0));
        assert_eq!(ending_of(&[BiasAdd, Add], DType::DOUBLE, true), (Ending::NONE, 0));
        let added = (ending(Epilogue::None, None, Some(0)), 1);
        assert_eq!(ending_of(&[Add, Relu], DType::DOUBLE, true), added);
    }

    #[test]
    fn a_relu_is_the_librarys_where_that_is_asked_for() {
        use EpilogueStep::*;
        let of = |steps: &[EpilogueStep]| {
            let (ending, done) = ending_of(steps, DType::FLOAT, true);
            (ending.epilogue, done)
        };
        assert_eq!(of(&[BiasAdd, Relu]), (Epilogue::BiasRelu, 2));
        assert_eq!(of(&[BiasAdd, Add, Relu, Tanh]), (Epilogue::BiasRelu, 3));
        assert_eq!(of(&[Relu]), (Epilogue::Relu, 1));
        assert_eq!(of(&[BiasAdd, Relu6]), (Epilogue::Bias, 1));
    }
}
