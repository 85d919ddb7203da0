//! The library's handle on a device.
//!
//! A device has one handle, as long as its context exists. Algorithms are requested once for each
//! problem: the answer takes the library longer than a small product takes the GPU.

use super::{
    check,
    descriptors::{Layout, Operation, Preference, layouts},
    problem::{Element, Problem},
    require,
};
use crate::{
    arguments::{Factors, pointer},
    device::{Context, Library, LibraryObject, Stream},
    search,
};
use cudarc::cublaslt::sys::{
    self, cublasLtHandle_t, cublasLtMatmulAlgo_t, cublasLtMatmulHeuristicResult_t, cublasStatus_t,
};
use cudarc::driver::sys::CUresult;
use std::{
    collections::HashMap,
    ffi::c_int,
    ptr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tenon_sdk::{Code, KernelError};

/// Most bytes of workspace for an algorithm: NVIDIA's recommendation for Hopper, more than for
/// other GPUs.
const MOST_WORKSPACE: u64 = 32 << 20;

/// Number of algorithms requested; without a search the first that works is used.
const ALGORITHMS: usize = 8;

/// Most problems remembered: enough for a model with several batch sizes.
const MOST_PLANS: usize = 1024;

/// The library's handle on a device.
pub struct Handle {
    raw: cublasLtHandle_t,
    /// Plans by problem. `None`: the library has no algorithm.
    plans: Mutex<HashMap<Problem, Option<Arc<Plan>>>>,
}

// SAFETY: the library's functions may be called with one handle from several threads at once
// (cuBLAS Library, "Thread Safety").
unsafe impl Send for Handle {}
// SAFETY: as for `Send`.
unsafe impl Sync for Handle {}

/// An algorithm for a problem.
#[derive(Clone, Copy)]
struct Algorithm {
    raw: cublasLtMatmulAlgo_t,
    /// Bytes of workspace that it needs.
    workspace: usize,
}

/// The algorithms and layouts of a problem.
struct Plan {
    layouts: [Layout; 3],
    /// Algorithms as the library ranks them; after a search only the fastest.
    algorithms: Vec<Algorithm>,
}

impl Plan {
    /// Bytes of workspace that suffice for each of its algorithms.
    fn workspace(&self) -> usize {
        self.algorithms.iter().map(|one| one.workspace).max().unwrap_or(0)
    }
}

/// Device addresses of the operands; 0 for an absent operand.
#[derive(Debug, Clone, Copy)]
pub struct Addresses {
    /// The factors `A` and `B`.
    pub factors: [u64; 2],
    /// The matrix that is added.
    pub added: u64,
    /// The vector that is added.
    pub bias: u64,
    /// The result.
    pub result: u64,
}

impl Addresses {
    /// Alignments of the addresses, for [`Problem::alignments`].
    pub fn alignments(&self) -> [u32; 5] {
        let [a, b] = self.factors;
        [a, b, self.result, self.added, self.bias].map(Problem::alignment)
    }
}

/// A product that is about to be enqueued.
struct Product<'a> {
    stream: &'a Stream,
    plan: &'a Plan,
    operation: Operation,
    factors: Factors,
    at: Addresses,
    workspace: u64,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Handle {
    /// The handle of a device, created on first use.
    ///
    /// # Errors
    /// As [`require`]; the library's error.
    pub fn of(context: &Arc<Context>) -> Result<Library<Handle>, KernelError> {
        require()?;
        context.library(Handle::new)
    }

    /// Creates a handle; the device's context must be current.
    fn new() -> Result<Handle, KernelError> {
        let mut raw: cublasLtHandle_t = ptr::null_mut();
        // SAFETY: the result pointer is valid for writes; the device's context is current.
        check(unsafe { sys::cublasLtCreate(&mut raw) }, "cublasLtCreate")?;
        Ok(Handle { raw, plans: Mutex::default() })
    }

    fn plan(&self, problem: &Problem, bias: u64) -> Result<Option<Arc<Plan>>, KernelError> {
        if let Some(plan) = locked(&self.plans).get(problem) {
            return Ok(plan.clone());
        }
        let plan = match self.ask(problem, bias) {
            Ok(plan) => Some(Arc::new(plan)),
            Err(error) if error.code == Code::UNIMPLEMENTED => None,
            Err(error) => return Err(error),
        };
        self.keep(problem, plan.clone());
        Ok(plan)
    }

    /// Remembers the plan of a problem.
    fn keep(&self, problem: &Problem, plan: Option<Arc<Plan>>) {
        let mut plans = locked(&self.plans);
        if plans.len() >= MOST_PLANS && !plans.contains_key(problem) {
            plans.clear();
        }
        plans.insert(*problem, plan);
    }

    /// Asks the library for algorithms.
    fn ask(&self, problem: &Problem, bias: u64) -> Result<Plan, KernelError> {
        let layouts = layouts(problem)?;
        let operation = Operation::new(problem, bias)?;
        let preference = Preference::new(problem, MOST_WORKSPACE)?;
        let empty = cublasLtMatmulHeuristicResult_t {
            algo: cublasLtMatmulAlgo_t { data: [0; 8] },
            workspaceSize: 0,
            state: cublasStatus_t::CUBLAS_STATUS_NOT_SUPPORTED,
            wavesCount: 0.0,
            reserved: [0; 4],
        };
        let (mut results, mut count) = ([empty; ALGORITHMS], 0 as c_int);
        let [a, b, c] = &layouts;
        // SAFETY: the descriptors exist, and there is room for the results requested.
        let status = unsafe {
            sys::cublasLtMatmulAlgoGetHeuristic(
                self.raw,
                operation.raw(),
                b.raw(),
                a.raw(),
                c.raw(),
                c.raw(),
                preference.raw(),
                ALGORITHMS as c_int,
                results.as_mut_ptr(),
                &mut count,
            )
        };
        check(status, "cublasLtMatmulAlgoGetHeuristic")?;
        let algorithms: Vec<Algorithm> = results[..(count.max(0) as usize).min(ALGORITHMS)]
            .iter()
            .filter(|result| result.state == cublasStatus_t::CUBLAS_STATUS_SUCCESS)
            .map(|result| Algorithm { raw: result.algo, workspace: result.workspaceSize })
            .collect();
        if algorithms.is_empty() {
            return Err(KernelError::unimplemented("cuBLASLt has no algorithm"));
        }
        Ok(Plan { layouts, algorithms })
    }

    /// Enqueues the products; false where the library has no algorithm for them. `scratch` provides
    /// device memory for the duration of the call. With `search` the first call of a large problem
    /// waits for the device to find the fastest algorithm, except while the stream records.
    ///
    /// # Errors
    /// Out of memory; the library's error.
    ///
    /// # Safety
    /// - The addresses are of this device and have the problem's alignments.
    /// - They stay valid for all the elements that the problem names until the enqueued work is
    ///   done.
    pub unsafe fn multiply(
        &self,
        stream: &Stream,
        problem: &Problem,
        at: Addresses,
        search: bool,
        scratch: impl FnOnce(usize) -> Result<u64, KernelError>,
    ) -> Result<bool, KernelError> {
        stream.context().enter()?;
        let Some(plan) = self.plan(problem, at.bias)? else { return Ok(false) };
        let searches =
            search && plan.algorithms.len() > 1 && problem.is_large() && !stream.is_recording()?;
        let bytes = if searches { plan.workspace() } else { plan.algorithms[0].workspace };
        let product = Product {
            stream,
            plan: &plan,
            operation: Operation::new(problem, at.bias)?,
            factors: Factors::new(problem.element == Element::Double),
            at,
            workspace: if bytes == 0 { 0 } else { scratch(bytes)? },
        };
        // SAFETY: the caller guarantees that the addresses are of this device, and as the problem
        // says, until the products are done; there is as much memory as is asked for.
        match unsafe { self.solve(problem, &product, searches) } {
            // None of the ranked algorithms runs after all.
            Err(error) if error.code == Code::UNIMPLEMENTED => {
                self.keep(problem, None);
                Ok(false)
            }
            result => result.map(|()| true),
        }
    }

    /// Enqueues a product by the first algorithm of its plan; a search picks the fastest and makes
    /// it the plan.
    ///
    /// # Safety
    /// - The caller upholds what [`Handle::multiply`] requires.
    /// - The workspace is large enough; in a search, for any of the algorithms.
    unsafe fn solve(
        &self,
        problem: &Problem,
        product: &Product<'_>,
        searches: bool,
    ) -> Result<(), KernelError> {
        let algorithms = &product.plan.algorithms;
        let mut chosen = algorithms[0];
        if searches {
            // SAFETY: the caller guarantees that the addresses are as the problem says, and that
            // the workspace is enough for any algorithm.
            let run = |at: usize| unsafe { self.enqueue(product, &algorithms[at]) };
            chosen = algorithms
                [search::fastest(product.stream.context(), product.stream, algorithms.len(), run)?];
            // Later calls of the problem need nothing else.
            let plan = Plan { layouts: layouts(problem)?, algorithms: vec![chosen] };
            self.keep(problem, Some(Arc::new(plan)));
        }
        // SAFETY: the caller guarantees that the addresses are as the problem says, and that the
        // workspace is enough for this algorithm.
        unsafe { self.enqueue(product, &chosen) }
    }

    /// # Safety
    /// - The caller upholds what [`Handle::multiply`] requires.
    /// - The workspace is as large as the algorithm asks for.
    unsafe fn enqueue(&self, product: &Product<'_>, one: &Algorithm) -> Result<(), KernelError> {
        let Product { stream, plan, operation, factors, at, workspace } = product;
        let [a_layout, b_layout, c_layout] = &plan.layouts;
        let [a, b] = at.factors;
        // An absent matrix is multiplied by 0, and then not read.
        let (added, factor) = match at.added {
            0 => (at.result, factors.zero()),
            added => (added, factors.one()),
        };
        let mut status = cublasStatus_t::CUBLAS_STATUS_SUCCESS;
        let mut run = || {
            // SAFETY: handle and descriptors exist, the library gave the algorithm for them, and
            // the workspace is as large as it asked for; factors are read during the call. The
            // caller guarantees that the addresses are valid as [`Handle::multiply`] requires.
            status = unsafe {
                sys::cublasLtMatmul(
                    self.raw,
                    operation.raw(),
                    factors.one(),
                    pointer(b),
                    b_layout.raw(),
                    pointer(a),
                    a_layout.raw(),
                    factor,
                    pointer(added),
                    c_layout.raw(),
                    pointer(at.result),
                    c_layout.raw(),
                    &one.raw,
                    pointer(*workspace),
                    one.workspace,
                    stream.raw().cast(),
                )
            };
            CUresult::CUDA_SUCCESS
        };
        stream.context().call("cublasLtMatmul", &mut run)?;
        check(status, "cublasLtMatmul")
    }
}

impl LibraryObject for Handle {}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: made by this object; kernels that used it are gone, and what they enqueued is
        // done. The context is current, as it drops its objects.
        let _ = unsafe { sys::cublasLtDestroy(self.raw) };
    }
}
