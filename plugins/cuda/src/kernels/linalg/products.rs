//! Products by cuBLASLt, or by the plugin's own kernel, compiled when needed, where the library has
//! no algorithm on this GPU.
//!
//! The library computes no products without terms: they become products with one term, which is 0.

use super::{
    epilogue::Arguments,
    fused::Ending,
    gemm::{Gemm, Product},
};
use crate::{
    cublaslt::{Addresses, Element, Handle, Problem},
    device::Library,
    launch::{Launch, Operand, device_for},
    settings,
};
use cudarc::driver::sys;
use std::sync::OnceLock;
use tenon_sdk::{DType, KernelError, author::CreateContext, geometry::MatMulGeometry};

fn element_of(dtype: DType, allow_tf32: bool) -> Result<Element, KernelError> {
    Ok(match dtype {
        DType::FLOAT if allow_tf32 => Element::Tf32,
        DType::FLOAT => Element::Float,
        DType::DOUBLE => Element::Double,
        DType::HALF => Element::Half,
        DType::BFLOAT16 => Element::Bfloat16,
        other => {
            return Err(KernelError::unimplemented(format!("cuBLASLt multiplies no {other}")));
        }
    })
}

/// Products of a node by the library.
pub(super) struct Products {
    handle: Library<Handle>,
    element: Element,
    transposed: [bool; 2],
    search: bool,
}

/// Products of matrices at equal distances.
pub(super) struct Run {
    /// Indices of the first matrices of both factors and of the product.
    pub first: [usize; 3],
    /// Distances between consecutive matrices of both factors, in matrices.
    pub strides: [usize; 2],
    /// Number of products.
    pub count: usize,
}

impl Run {
    /// One product.
    pub const ONE: Run = Run { first: [0; 3], strides: [0; 2], count: 1 };
}

impl Products {
    /// Products of this type, whose factors may be rounded to TF32 if `allow_tf32`.
    ///
    /// # Errors
    /// The library is missing; its error; a type that it does not multiply.
    pub fn new(
        c: &CreateContext<'_>,
        dtype: DType,
        transposed: [bool; 2],
        allow_tf32: bool,
    ) -> Result<Products, KernelError> {
        Ok(Products {
            handle: Handle::of(device_for(c)?.context())?,
            element: element_of(dtype, allow_tf32)?,
            transposed,
            search: settings::search_products(c.knobs())?,
        })
    }

    /// Enqueues a run of products of these sizes; false where the library does not compute them.
    ///
    /// # Errors
    /// Out of memory; the library's error.
    pub fn run(
        &self,
        launch: &Launch<'_>,
        g: &MatMulGeometry,
        run: &Run,
        operands: [Operand; 3],
        (ending, arguments): (Ending, &Arguments),
    ) -> Result<bool, KernelError> {
        if g.m == 0 || g.n == 0 || run.count == 0 {
            return Ok(true);
        }
        // The library takes no more than an i32.
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
        let Ending { epilogue, added, bias } = ending;
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
        // SAFETY: operands of this call, whose matrices have these sizes, as the geometry was
        // checked.
        unsafe { self.handle.multiply(launch.stream(), &problem, at, self.search, scratch) }
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

/// The plugin's own kernel for a node's products, compiled when first needed.
pub(super) struct Own {
    dtype: DType,
    transposed: [bool; 2],
    steps: String,
    gemm: OnceLock<Gemm>,
}

impl Own {
    /// A kernel with the given steps as its epilogue.
    pub fn new(dtype: DType, transposed: [bool; 2], steps: String) -> Own {
        Own { dtype, transposed, steps, gemm: OnceLock::new() }
    }

    /// Enqueues the product.
    ///
    /// # Errors
    /// `UNAVAILABLE` without a compiler; the compiler's error; as [`Gemm::run`].
    pub fn run(
        &self,
        launch: &Launch<'_>,
        product: &Product,
        operands: [Operand; 3],
        arguments: Arguments,
    ) -> Result<(), KernelError> {
        if self.gemm.get().is_none() {
            let made = Gemm::on(launch.device(), self.dtype, self.transposed, &self.steps)?;
            // If another thread was first, its result is equivalent.
            let _ = self.gemm.set(made);
        }
        let gemm = self.gemm.get().ok_or_else(|| KernelError::internal("no kernel of its own"))?;
        gemm.run(launch, product, operands, arguments)
    }
}
