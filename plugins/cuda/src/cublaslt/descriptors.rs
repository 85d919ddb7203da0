//! The library's descriptions of problems.

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

/// A matrix, or several of the same form.
pub(super) struct Layout(cublasLtMatrixLayout_t);

// SAFETY: a description of the host, which is read only once it is made.
unsafe impl Send for Layout {}
// SAFETY: as above.
unsafe impl Sync for Layout {}

impl Layout {
    /// Of `rows` lines of `columns` neighbours each, in our order.
    fn new(
        problem: &Problem,
        [rows, columns]: [u64; 2],
        stride: u64,
    ) -> Result<Layout, KernelError> {
        let mut raw: cublasLtMatrixLayout_t = ptr::null_mut();
        // A line of no more than 2^31 elements, so that it is an i64.
        let line = columns as i64;
        // SAFETY: a place for the result.
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
        // SAFETY: a description that is there, a value of the size that is said.
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

    /// The library's own.
    pub fn raw(&self) -> cublasLtMatrixLayout_t {
        self.0
    }
}

impl Drop for Layout {
    fn drop(&mut self) {
        // SAFETY: made by this object.
        let _ = unsafe { sys::cublasLtMatrixLayoutDestroy(self.0) };
    }
}

/// Those of `A`, `B` and `C`.
pub(super) fn layouts(problem: &Problem) -> Result<[Layout; 3], KernelError> {
    let &Problem { m, n, k, transposed: [a, b], strides, .. } = problem;
    Ok([
        Layout::new(problem, if a { [k, m] } else { [m, k] }, strides[0])?,
        Layout::new(problem, if b { [n, k] } else { [k, n] }, strides[1])?,
        Layout::new(problem, [m, n], m * n)?,
    ])
}

/// A product.
pub(super) struct Operation(cublasLtMatmulDesc_t);

impl Operation {
    /// Of this problem, with the vector at `bias` where it has one.
    pub fn new(problem: &Problem, bias: u64) -> Result<Operation, KernelError> {
        use cublasLtMatmulDescAttributes_t::*;
        let (compute, scale) = problem.element.compute();
        let mut raw: cublasLtMatmulDesc_t = ptr::null_mut();
        // SAFETY: a place for the result.
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
        // SAFETY: a description that is there, a value of the size that is said.
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

    /// The library's own.
    pub fn raw(&self) -> cublasLtMatmulDesc_t {
        self.0
    }
}

impl Drop for Operation {
    fn drop(&mut self) {
        // SAFETY: made by this object.
        let _ = unsafe { sys::cublasLtMatmulDescDestroy(self.0) };
    }
}

/// How sums of parts may be added up: not by way of a type that is narrower than that of sums, as "in place" does too.
/// Where both are one type, in place is as good.
fn reductions(element: Element) -> u32 {
    match element {
        Element::Half | Element::Bfloat16 => REDUCTION_COMPUTE_TYPE,
        _ => REDUCTION_IN_PLACE | REDUCTION_COMPUTE_TYPE,
    }
}

/// Which algorithms are wanted.
pub(super) struct Preference(cublasLtMatmulPreference_t);

impl Preference {
    /// With so many bytes to work in at most; for the problem's addresses.
    pub fn new(problem: &Problem, workspace: u64) -> Result<Preference, KernelError> {
        use cublasLtMatmulPreferenceAttributes_t::*;
        let mut raw: cublasLtMatmulPreference_t = ptr::null_mut();
        // SAFETY: a place for the result.
        let status = unsafe { sys::cublasLtMatmulPreferenceCreate(&mut raw) };
        check(status, "cublasLtMatmulPreferenceCreate")?;
        let preference = Preference(raw);
        // That of the vector is seen by its address.
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
        // SAFETY: a description that is there, a value of the size that is said.
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

    /// The library's own.
    pub fn raw(&self) -> cublasLtMatmulPreference_t {
        self.0
    }
}

impl Drop for Preference {
    fn drop(&mut self) {
        // SAFETY: made by this object.
        let _ = unsafe { sys::cublasLtMatmulPreferenceDestroy(self.0) };
    }
}
