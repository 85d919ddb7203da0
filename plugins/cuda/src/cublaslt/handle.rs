//! The library on a device.
//!
//! A handle costs milliseconds and device memory, so that there is one for each device, as long as a kernel has it.
//! Algorithms are asked for once for each problem: the answer takes the library longer than a small product the GPU.

use super::{
    check,
    descriptors::{Layout, Operation, Preference, layouts},
    problem::{Element, Problem},
    require,
};
use crate::device::{Context, Stream};
use cudarc::cublaslt::sys::{
    self, cublasLtHandle_t, cublasLtMatmulAlgo_t, cublasLtMatmulHeuristicResult_t, cublasStatus_t,
};
use cudarc::driver::sys::CUresult;
use std::{
    collections::HashMap,
    ffi::{c_int, c_void},
    ptr,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};
use tenon_sdk::{Code, KernelError};

/// Bytes that an algorithm may work in: what NVIDIA recommends for Hopper, and more than others ask for.
const MOST_WORKSPACE: u64 = 32 << 20;

/// Algorithms that are asked for: the first that works is taken.
const ALGORITHMS: usize = 4;

/// The library's handle on a device.
pub struct Handle {
    context: Arc<Context>,
    raw: cublasLtHandle_t,
    plans: Mutex<HashMap<Problem, Arc<Plan>>>,
}

// SAFETY: the library's functions may be called with one handle from several threads at once (cuBLAS Library,
// "Thread Safety").
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

/// How a problem is solved.
struct Plan {
    layouts: [Layout; 3],
    algorithm: cublasLtMatmulAlgo_t,
    workspace: u64,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The handles that kernels have, by device.
static HANDLES: Mutex<Vec<Weak<Handle>>> = Mutex::new(Vec::new());

impl Handle {
    /// That of a device: the one there is, or a new one.
    ///
    /// # Errors
    /// As [`require`]; what the library says.
    pub fn of(context: &Arc<Context>) -> Result<Arc<Handle>, KernelError> {
        require()?;
        let mut handles = locked(&HANDLES);
        handles.retain(|handle| handle.strong_count() > 0);
        let is_own = |handle: &Arc<Handle>| Arc::ptr_eq(&handle.context, context);
        if let Some(handle) = handles.iter().filter_map(Weak::upgrade).find(is_own) {
            return Ok(handle);
        }
        let handle = Arc::new(Handle::new(context)?);
        handles.push(Arc::downgrade(&handle));
        Ok(handle)
    }

    fn new(context: &Arc<Context>) -> Result<Handle, KernelError> {
        context.enter()?;
        let mut raw: cublasLtHandle_t = ptr::null_mut();
        // SAFETY: a place for the result; the device's context is current.
        check(unsafe { sys::cublasLtCreate(&mut raw) }, "cublasLtCreate")?;
        Ok(Handle { context: Arc::clone(context), raw, plans: Mutex::default() })
    }

    fn plan(&self, problem: &Problem, bias: u64) -> Result<Arc<Plan>, KernelError> {
        if let Some(plan) = locked(&self.plans).get(problem) {
            return Ok(Arc::clone(plan));
        }
        let plan = Arc::new(self.ask(problem, bias)?);
        Ok(Arc::clone(locked(&self.plans).entry(*problem).or_insert(plan)))
    }

    /// Asks the library.
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
        // SAFETY: descriptions that are there, room for as many results as are asked for.
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
        check(status, "cublasLtMatmulAlgoGetHeuristic").map_err(|error| refused(problem, error))?;
        let found = results[..(count.max(0) as usize).min(ALGORITHMS)]
            .iter()
            .find(|result| result.state == cublasStatus_t::CUBLAS_STATUS_SUCCESS);
        let found = found.ok_or_else(|| {
            refused(problem, KernelError::unimplemented("cuBLASLt has no algorithm"))
        })?;
        let (algorithm, workspace) = (found.algo, found.workspaceSize as u64);
        Ok(Plan { layouts, algorithm, workspace })
    }

    /// Enqueues the products. `scratch` gives device memory for the time of the call.
    ///
    /// # Errors
    /// `UNIMPLEMENTED` where the library has no algorithm; no memory; what the library says.
    ///
    /// # Safety
    /// The addresses of `A`, `B`, `C`, and of the vector where there is one, are of this device, with the alignments
    /// and all the elements that the problem says, until what is enqueued is done.
    pub unsafe fn multiply(
        &self,
        stream: &Stream,
        problem: &Problem,
        [a, b, c]: [u64; 3],
        bias: u64,
        scratch: impl FnOnce(usize) -> Result<u64, KernelError>,
    ) -> Result<(), KernelError> {
        self.context.enter()?;
        let plan = self.plan(problem, bias)?;
        let operation = Operation::new(problem, bias)?;
        let bytes = usize::try_from(plan.workspace)
            .map_err(|_| KernelError::new(Code::RESOURCE_EXHAUSTED, "a workspace beyond memory"))?;
        let workspace = if bytes == 0 { 0 } else { scratch(bytes)? };
        let factors = Factors::of(problem.element);
        let [a_layout, b_layout, c_layout] = &plan.layouts;
        let mut status = cublasStatus_t::CUBLAS_STATUS_SUCCESS;
        let mut run = || {
            // SAFETY: a handle and descriptions that are there, an algorithm that the library gave for them, as much
            // memory as it asked for; factors are read during the call. The rest is the caller's promise.
            status = unsafe {
                sys::cublasLtMatmul(
                    self.raw,
                    operation.raw(),
                    factors.one(),
                    pointer(b),
                    b_layout.raw(),
                    pointer(a),
                    a_layout.raw(),
                    factors.zero(),
                    pointer(c),
                    c_layout.raw(),
                    pointer(c),
                    c_layout.raw(),
                    &plan.algorithm,
                    pointer(workspace),
                    bytes,
                    stream.raw().cast(),
                )
            };
            CUresult::CUDA_SUCCESS
        };
        self.context.call("cublasLtMatmul", &mut run)?;
        check(status, "cublasLtMatmul")
    }
}

/// An address on the device, as the library takes it.
fn pointer(address: u64) -> *mut c_void {
    ptr::without_provenance_mut(address as usize)
}

fn refused(problem: &Problem, error: KernelError) -> KernelError {
    KernelError::new(
        error.code,
        format!("{} for {problem:?}: ask for the kernel without a label", error.message),
    )
}

/// What a product and what stood there before are multiplied by, in the type of sums.
struct Factors {
    floats: [f32; 2],
    doubles: [f64; 2],
    is_double: bool,
}

impl Factors {
    fn of(element: Element) -> Factors {
        let is_double = element == Element::Double;
        Factors { floats: [1.0, 0.0], doubles: [1.0, 0.0], is_double }
    }

    fn at(&self, index: usize) -> *const c_void {
        match self.is_double {
            true => ptr::from_ref(&self.doubles[index]).cast(),
            false => ptr::from_ref(&self.floats[index]).cast(),
        }
    }

    fn one(&self) -> *const c_void {
        self.at(0)
    }

    fn zero(&self) -> *const c_void {
        self.at(1)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.context.release(|| {
            // SAFETY: made by this object; kernels that used it are gone, and what they enqueued is done.
            let _ = unsafe { sys::cublasLtDestroy(self.raw) };
            CUresult::CUDA_SUCCESS
        });
    }
}
