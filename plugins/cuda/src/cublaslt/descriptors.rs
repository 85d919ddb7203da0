//! The library's descriptors of problems.

use super::{
    check,
    numbers::{OPERATION_NONE, OPERATION_TRANSPOSE, REDUCTION_COMPUTE_TYPE, REDUCTION_IN_PLACE},
    problem::{Element, Epilogue, Problem},
};
use cudarc::cublaslt::sys::{
    self, cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t, cublasLtMatmulPreference_t,
    cublasLtMatmulPreferenceAttributes_t, cublasLtMatrixLayout_t, cublasLtMatrixLayoutAttribute_t,
};
use std::ptr;
use tenon_sdk::KernelError;

/// Descriptor of a matrix, or of several of the same form.
pub(super) struct Layout(cublasLtMatrixLayout_t);

// SAFETY: a description of the host, which is read only once it is made.
unsafe impl Send for Layout {}
// SAFETY: as for `Send`.
unsafe impl Sync for Layout {}

impl Layout {
    /// A row-major matrix of `rows` rows with `columns` elements each.
    fn new(
        problem: &Problem,
        [rows, columns]: [u64; 2],
        stride: u64,
    ) -> Result<Layout, KernelError> {
        let mut raw: cublasLtMatrixLayout_t = ptr::null_mut();
        // A row has at most 2^31 elements, so that it is an i64.
        let line = columns as i64;
        // SAFETY: the result pointer is valid for writes.
        let status = unsafe {
            sys::cublasLtMatrixLayoutCreate(&mut raw, problem.element.data(), columns, rows, line)
        };
        check(status, "cublasLtMatrixLayoutCreate")?;
        let layout = Layout(raw);
        if problem.count > 1 {
            use cublasLtMatrixLayoutAttribute_t::*;
            layout.set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &(problem.count as i32))?;
            layout.set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &(stride as i64))?;
        }
        Ok(layout)
    }

    fn set<V>(&self, what: cublasLtMatrixLayoutAttribute_t, value: &V) -> Result<(), KernelError> {
        // SAFETY: the descriptor exists, and the value has the given size.
        let status = unsafe {
            sys::cublasLtMatrixLayoutSetAttribute(
                self.0,
                what,
                ptr::from_ref(value).cast(),
                size_of::<V>(),
            )
        };
        check(status, "cublasLtMatrixLayoutSetAttribute")
    }

    /// The library's pointer.
    pub fn raw(&self) -> cublasLtMatrixLayout_t {
        self.0
    }
}

impl Drop for Layout {
    fn drop(&mut self) {
        // SAFETY: this object created it, and nothing uses it any more.
        let _ = unsafe { sys::cublasLtMatrixLayoutDestroy(self.0) };
    }
}

/// The layouts of `A`, `B` and `C`.
pub(super) fn layouts(problem: &Problem) -> Result<[Layout; 3], KernelError> {
    let &Problem { m, n, k, transposed: [a, b], strides, .. } = problem;
    Ok([
        Layout::new(problem, if a { [k, m] } else { [m, k] }, strides[0])?,
        Layout::new(problem, if b { [n, k] } else { [k, n] }, strides[1])?,
        Layout::new(problem, [m, n], m * n)?,
    ])
}

/// Descriptor of a product.
pub(super) struct Operation(cublasLtMatmulDesc_t);

impl Operation {
    /// Descriptor of this problem, with the vector at `bias` if the problem has one.
    pub fn new(problem: &Problem, bias: u64) -> Result<Operation, KernelError> {
        use cublasLtMatmulDescAttributes_t::*;
        let (compute, scale) = problem.element.compute();
        let mut raw: cublasLtMatmulDesc_t = ptr::null_mut();
        // SAFETY: the result pointer is valid for writes.
        let status = unsafe { sys::cublasLtMatmulDescCreate(&mut raw, compute, scale) };
        check(status, "cublasLtMatmulDescCreate")?;
        let operation = Operation(raw);
        let turned = |is: bool| if is { OPERATION_TRANSPOSE } else { OPERATION_NONE };
        // The library's first factor is our second.
        let [a, b] = problem.transposed;
        operation.set(CUBLASLT_MATMUL_DESC_TRANSA, &turned(b))?;
        operation.set(CUBLASLT_MATMUL_DESC_TRANSB, &turned(a))?;
        if problem.epilogue != Epilogue::None {
            operation.set(CUBLASLT_MATMUL_DESC_EPILOGUE, &problem.epilogue.raw())?;
        }
        if problem.epilogue.has_bias() {
            operation.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias)?;
        }
        Ok(operation)
    }

    fn set<V>(&self, what: cublasLtMatmulDescAttributes_t, value: &V) -> Result<(), KernelError> {
        // SAFETY: the descriptor exists, and the value has the given size.
        let status = unsafe {
            sys::cublasLtMatmulDescSetAttribute(
                self.0,
                what,
                ptr::from_ref(value).cast(),
                size_of::<V>(),
            )
        };
        check(status, "cublasLtMatmulDescSetAttribute")
    }

    /// The library's pointer.
    pub fn raw(&self) -> cublasLtMatmulDesc_t {
        self.0
    }
}

impl Drop for Operation {
    fn drop(&mut self) {
        // SAFETY: this object created it, and nothing uses it any more.
        let _ = unsafe { sys::cublasLtMatmulDescDestroy(self.0) };
    }
}

/// How partial sums may be added: not in a type narrower than that of sums, which "in place" does
/// too. Where both types are the same, in place is as good.
fn reductions(element: Element) -> u32 {
    match element {
        Element::Half | Element::Bfloat16 => REDUCTION_COMPUTE_TYPE,
        _ => REDUCTION_IN_PLACE | REDUCTION_COMPUTE_TYPE,
    }
}

/// Preferences in the choice of algorithms.
pub(super) struct Preference(cublasLtMatmulPreference_t);

impl Preference {
    /// Algorithms for the problem's alignments with at most `workspace` bytes of workspace.
    pub fn new(problem: &Problem, workspace: u64) -> Result<Preference, KernelError> {
        use cublasLtMatmulPreferenceAttributes_t::*;
        let mut raw: cublasLtMatmulPreference_t = ptr::null_mut();
        // SAFETY: the result pointer is valid for writes.
        let status = unsafe { sys::cublasLtMatmulPreferenceCreate(&mut raw) };
        check(status, "cublasLtMatmulPreferenceCreate")?;
        let preference = Preference(raw);
        // The library sees the vector's alignment by its address.
        let [a, b, c, added, _] = problem.alignments;
        preference.set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace)?;
        preference.set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reductions(problem.element))?;
        preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &b)?;
        preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &a)?;
        preference.set(
            CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
            &if problem.adds { added } else { c },
        )?;
        preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &c)?;
        Ok(preference)
    }

    fn set<V>(
        &self,
        what: cublasLtMatmulPreferenceAttributes_t,
        value: &V,
    ) -> Result<(), KernelError> {
        // SAFETY: the descriptor exists, and the value has the given size.
        let status = unsafe {
            sys::cublasLtMatmulPreferenceSetAttribute(
                self.0,
                what,
                ptr::from_ref(value).cast(),
                size_of::<V>(),
            )
        };
        check(status, "cublasLtMatmulPreferenceSetAttribute")
    }

    /// The library's pointer.
    pub fn raw(&self) -> cublasLtMatmulPreference_t {
        self.0
    }
}

impl Drop for Preference {
    fn drop(&mut self) {
        // SAFETY: this object created it, and nothing uses it any more.
        let _ = unsafe { sys::cublasLtMatmulPreferenceDestroy(self.0) };
    }
}
