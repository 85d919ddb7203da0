//! One CUDA kernel for the device type `CUDA`, in a plugin of its own.
//!
//! What it is: an example to copy, which sdk/docs/cuda.md explains. This file has what the kernel
//! computes, and `module.rs` how it gets onto the GPU. The driver's handles come with each call,
//! and the kernel talks to the driver itself.
//!
//! What it is not: a part of plugins/cuda, of which it knows nothing.

mod module;

use cudarc::driver::{result::launch_kernel, sys::CUstream};
use module::{Entry, driver_error};
use std::{
    ffi::{CStr, c_void},
    ptr,
    sync::OnceLock,
};
use tenon_sdk::{abi::Slot, prelude::*};

tenon_sdk::export_plugin!();

register_op!(
    "ZooScaleShift",
    inputs = &["x: T"],
    outputs = &["y: T"],
    attrs = &["T: {float, double}", "scale: float = 1.0", "shift: float = 0.0"],
    shape = |c: &ShapeContext<'_>| c.set_output(0, c.input(0)),
    summary = "y = x * scale + shift.",
);

/// What is compiled: an entry point for each type.
const SOURCE: &CStr = cr#"
template <class T>
__device__ void scale_shift(T* y, const T* x, T scale, T shift, unsigned long long n) {
    unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * scale + shift;
}
extern "C" __global__ void scale_shift_float(float* y, const float* x, float scale, float shift, unsigned long long n) {
    scale_shift(y, x, scale, shift, n);
}
extern "C" __global__ void scale_shift_double(double* y, const double* x, double scale, double shift, unsigned long long n) {
    scale_shift(y, x, scale, shift, n);
}
"#;

/// A type with an entry point in [`SOURCE`].
trait Real: Float + From<f32> {
    const ENTRY: &'static CStr;
}

impl Real for f32 {
    const ENTRY: &'static CStr = c"scale_shift_float";
}

impl Real for f64 {
    const ENTRY: &'static CStr = c"scale_shift_double";
}

/// Threads of a block.
const THREADS: u32 = 256;

struct ScaleShift<T> {
    scale: T,
    shift: T,
    /// Found by the first call: only a call has the driver's handles.
    entry: OnceLock<Entry>,
}

impl<T: Real> Kernel for ScaleShift<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let number = |name: &str| c.attr::<f32>(name).map(T::from);
        Ok(ScaleShift { scale: number("scale")?, shift: number("shift")?, entry: OnceLock::new() })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let native = c.native()?;
        if native.api() != "cuda" {
            return Err(KernelError::unimplemented(format!(
                "expected a device that is driven by cuda, found one that is driven by {}",
                native.api()
            )));
        }
        let (x, y) = (c.slot(0)?, c.prepare(0, c.dims(0))?);
        let (x, y, n) = (address(x)?, address(y)?, x.elements);
        if n == 0 {
            return Ok(());
        }
        let entry = match self.entry.get() {
            Some(entry) => entry,
            None => {
                let found = Entry::find(native.device().cast(), SOURCE, T::ENTRY)?;
                self.entry.get_or_init(|| found)
            }
        };
        entry.enter()?;
        // SAFETY: the entry point takes two addresses, two numbers and a count, and stays within as many elements.
        unsafe { self.launch(entry, native.stream().cast(), (y, x, n)) }
    }
}

impl<T: Real> ScaleShift<T> {
    /// Enqueues the launch; nothing waits for it. The host keeps both buffers until the stream has passed it.
    ///
    /// # Safety
    /// The entry is that of `T`; the addresses are of so many elements, on the device of the stream.
    unsafe fn launch(
        &self,
        entry: &Entry,
        stream: CUstream,
        (mut y, mut x, mut n): (u64, u64, u64),
    ) -> Result<(), KernelError> {
        let (mut scale, mut shift) = (self.scale, self.shift);
        // A grid has at most 2^31 - 1 blocks.
        let blocks = i32::try_from(n.div_ceil(u64::from(THREADS)))
            .map_err(|_| KernelError::invalid_argument(format!("x: {n} elements are too many")))?;
        // One pointer for each parameter, in order; the driver reads them during the call.
        let mut parameters: [*mut c_void; 5] = [
            ptr::from_mut(&mut y).cast(),
            ptr::from_mut(&mut x).cast(),
            ptr::from_mut(&mut scale).cast(),
            ptr::from_mut(&mut shift).cast(),
            ptr::from_mut(&mut n).cast(),
        ];
        let (grid, block) = ((blocks.unsigned_abs(), 1, 1), (THREADS, 1, 1));
        // SAFETY: a function that is loaded, a stream of its context; the rest is the caller's promise.
        unsafe { launch_kernel(entry.function(), grid, block, 0, stream, &mut parameters) }
            .map_err(|error| driver_error("cuLaunchKernel", error))
    }
}

/// The address of a tensor on the GPU: in memory kind `DEVICE` the data pointer is a `CUdeviceptr`.
fn address(slot: &Slot) -> Result<u64, KernelError> {
    match slot.memory {
        MemoryKind::DEVICE => Ok(slot.data.addr() as u64),
        MemoryKind(kind) => Err(KernelError::internal(format!(
            "expected a tensor in the device's memory, found one in memory kind {kind}"
        ))),
    }
}

register_kernel!("ZooScaleShift" on "CUDA": ScaleShift<T> for "T" in [f32, f64]);

/// What is right, in three lines on the CPU: `tenon check` judges the other by it.
struct Plain<T> {
    scale: T,
    shift: T,
}

impl<T: Real> Kernel for Plain<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let number = |name: &str| c.attr::<f32>(name).map(T::from);
        Ok(Plain { scale: number("scale")?, shift: number("shift")? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let x = c.input::<T>(0)?;
        let y = c.output::<T>(0, x.dims)?;
        y.data.iter_mut().zip(x.data).for_each(|(y, x)| *y = x.mul(self.scale).add(self.shift));
        Ok(())
    }
}

register_kernel!("ZooScaleShift" on "CPU": Plain<T> for "T" in [f32, f64],
    label = "reference", on_request = true);

// A device of the zoo, whose plugin gives no handles: for the test of what the kernel says there.
register_kernel!("ZooScaleShift" on "ZOO": ScaleShift<T> for "T" in [f32, f64]);
