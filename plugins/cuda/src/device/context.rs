//! The context of one GPU in this process: its properties, its health, and access to the driver.
//!
//! States: *open*, then possibly *lost*, which is final. A context is lost when any call returns a
//! sticky error ([`crate::fault::is_sticky`]); from then on every entry returns `UNAVAILABLE` and
//! nothing is enqueued.

use super::{library::Objects, peer, probe, spare::SpareStreams};
use crate::fault::{self, check};
use cudarc::driver::sys::{self, CUcontext, CUdevice, CUdevice_attribute, CUresult, CUstream};
use std::{
    ffi::{CStr, c_char, c_int},
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};
use tenon_sdk::{
    Code, KernelError,
    device::author::{
        DeviceHandle,
        callbacks::{self, CallbackQueue},
    },
};

/// Properties of a GPU, for kernels and messages.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// The driver's index of the GPU.
    pub ordinal: u32,
    /// Name of the model.
    pub name: String,
    /// Compute capability: 90 is 9.0.
    pub capability: u32,
    /// Number of multiprocessors.
    pub multiprocessors: u32,
    /// Bytes of memory.
    pub memory: u64,
    /// Bytes of the second-level cache.
    pub l2_bytes: u64,
    /// Most bytes of shared memory that a block can request.
    pub shared_bytes: u32,
    /// The nearest NUMA node of the host, where known.
    pub numa_node: Option<u32>,
    /// PCI bus, where known.
    pub bus_id: Option<u32>,
    /// The driver's version: 1000 times the major number and 10 times the minor one.
    pub driver: u32,
}

impl fmt::Display for Facts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}, compute capability {}.{}, {} multiprocessors, {} MiB, driver of CUDA {}",
            self.name,
            self.capability / 10,
            self.capability % 10,
            self.multiprocessors,
            self.memory >> 20,
            probe::version_text(self.driver as c_int)
        )
    }
}

/// A GPU that is open in this process.
pub struct Context {
    facts: Facts,
    device: CUdevice,
    raw: CUcontext,
    /// For allocations and copies that belong to none of the host's streams.
    own_stream: CUstream,
    handle: DeviceHandle,
    is_lost: AtomicBool,
    reason: OnceLock<String>,
    callbacks: Arc<CallbackQueue>,
    leave: peer::Leave,
    objects: Objects,
    spare: SpareStreams,
}

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for Context {}
// SAFETY: as for `Send`.
unsafe impl Sync for Context {}

impl Context {
    /// Opens GPU `ordinal`.
    ///
    /// # Errors
    /// The driver does not work; `NOT_FOUND` when `ordinal` is too large; the driver's error.
    pub fn open(ordinal: u32, handle: DeviceHandle) -> Result<Context, KernelError> {
        let count = probe::start()?;
        if ordinal >= count {
            let message = format!("CUDA:{ordinal}: expected a number below {count}");
            return Err(KernelError::new(Code::NOT_FOUND, message));
        }
        let (mut device, mut raw, mut own_stream): (CUdevice, CUcontext, CUstream) =
            (0, std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the result pointers are valid for writes; the primary context stays as long as
        // this object.
        unsafe {
            check(sys::cuDeviceGet(&mut device, ordinal as c_int), "cuDeviceGet")?;
            check(sys::cuDevicePrimaryCtxRetain(&mut raw, device), "cuDevicePrimaryCtxRetain")?;
        }
        let facts = Facts::of(device, ordinal);
        let made = facts.and_then(|facts| {
            // SAFETY: the context was just retained; the result pointer is valid for writes.
            unsafe {
                check(sys::cuCtxSetCurrent(raw), "cuCtxSetCurrent")?;
                let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
                check(sys::cuStreamCreate(&mut own_stream, flags), "cuStreamCreate")?;
            }
            Ok(facts)
        });
        let facts = made.inspect_err(|_| {
            // SAFETY: retained above, and not used.
            let _ = unsafe { sys::cuDevicePrimaryCtxRelease_v2(device) };
        })?;
        Ok(Context {
            facts,
            device,
            raw,
            own_stream,
            handle,
            is_lost: AtomicBool::new(false),
            reason: OnceLock::new(),
            callbacks: Arc::default(),
            leave: peer::Leave::default(),
            objects: Objects::default(),
            spare: SpareStreams::default(),
        })
    }

    /// Properties of the GPU.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The driver's context.
    pub fn raw(&self) -> CUcontext {
        self.raw
    }

    /// The driver's number of the device.
    pub fn device(&self) -> CUdevice {
        self.device
    }

    pub(super) fn own_stream(&self) -> CUstream {
        self.own_stream
    }

    pub(super) fn callbacks(&self) -> &Arc<CallbackQueue> {
        &self.callbacks
    }

    pub(super) fn leave(&self) -> &peer::Leave {
        &self.leave
    }

    pub(super) fn objects(&self) -> &Objects {
        &self.objects
    }

    pub(super) fn spare(&self) -> &SpareStreams {
        &self.spare
    }

    /// Whether the device is lost.
    pub fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Acquire)
    }

    /// The error of every call on a lost device.
    pub fn loss(&self) -> KernelError {
        let reason = self.reason.get().map_or("no reason was given", String::as_str);
        let what = format!("CUDA:{} is lost: {reason}", self.facts.ordinal);
        KernelError::new(Code::UNAVAILABLE, what)
    }

    /// Marks the device as lost and tells the host; only the first reason counts.
    pub fn lose(&self, reason: &str) {
        if self.reason.set(reason.to_owned()).is_ok() {
            // The host first: every later failure is an error that can give the reason.
            self.handle.lost(reason);
            self.is_lost.store(true, Ordering::Release);
            callbacks::complete_all(&self.callbacks);
        }
    }

    /// Turns a result of the driver into success or an error; a sticky error loses the device.
    ///
    /// # Errors
    /// The error of the result, with the name of the call.
    pub fn judge(&self, result: CUresult, call: &str) -> Result<(), KernelError> {
        if result == CUresult::CUDA_SUCCESS {
            return Ok(());
        }
        let error = fault::error(result, call);
        if fault::is_sticky(result) {
            self.lose(&error.message);
            return Err(self.loss());
        }
        Err(error)
    }

    /// Makes the context current on the thread and lets `run` call the driver. The context stays
    /// current: every entry sets it again.
    ///
    /// # Errors
    /// `UNAVAILABLE` on a lost device; the driver's error, with the name of the call.
    #[inline]
    pub fn call(&self, call: &str, run: impl FnOnce() -> CUresult) -> Result<(), KernelError> {
        self.enter()?;
        self.judge(run(), call)
    }

    /// Makes the context current on the thread.
    ///
    /// # Errors
    /// `UNAVAILABLE` on a lost device; the driver's error.
    #[inline]
    pub fn enter(&self) -> Result<(), KernelError> {
        if self.is_lost() {
            return Err(self.loss());
        }
        // SAFETY: a context that is retained as long as this object.
        self.judge(unsafe { sys::cuCtxSetCurrent(self.raw) }, "cuCtxSetCurrent")
    }

    /// Runs `release`, which frees resources, with the context current, even on a lost device. Its
    /// result is ignored, since nothing can be done about a failure.
    pub fn release(&self, release: impl FnOnce() -> CUresult) {
        // SAFETY: as in `enter`.
        let _ = unsafe { sys::cuCtxSetCurrent(self.raw) };
        let _ = release();
    }

    /// Waits until everything enqueued on the device is done.
    ///
    /// # Errors
    /// The device's error.
    pub fn synchronize(&self) -> Result<(), KernelError> {
        // SAFETY: the context is current.
        let waited = self.call("cuCtxSynchronize", || unsafe { sys::cuCtxSynchronize() });
        if self.is_lost() {
            self.callbacks.wait_until_empty();
        }
        waited
    }

    /// Waits for the device's own stream.
    ///
    /// # Errors
    /// As [`Context::synchronize`].
    pub(super) fn synchronize_own(&self) -> Result<(), KernelError> {
        self.wait_for(self.own_stream)
    }

    /// Waits until everything enqueued on a stream of this context is done, even after an error:
    /// when this returns, none of it accesses memory any more.
    ///
    /// # Errors
    /// As [`Context::synchronize`].
    pub(super) fn wait_for(&self, stream: CUstream) -> Result<(), KernelError> {
        // SAFETY: the caller's stream.
        let waited =
            self.call("cuStreamSynchronize", || unsafe { sys::cuStreamSynchronize(stream) });
        if self.is_lost() {
            // Commands have ended or never will. The driver reports that without waiting for its
            // host functions.
            self.callbacks.wait_until_empty();
        }
        waited
    }

    /// Polls the device for errors.
    pub(super) fn look(&self) {
        let query = || {
            // SAFETY: a stream of this context.
            match unsafe { sys::cuStreamQuery(self.own_stream) } {
                CUresult::CUDA_ERROR_NOT_READY => CUresult::CUDA_SUCCESS,
                result => result,
            }
        };
        // A sticky error has lost the device; the caller ignores any other.
        let _ = self.call("cuStreamQuery", query);
    }

    /// Bytes of memory that are free on the GPU, and bytes in total.
    ///
    /// # Errors
    /// The driver's error.
    pub fn free_memory(&self) -> Result<(u64, u64), KernelError> {
        let (mut free, mut total) = (0, 0);
        // SAFETY: the result pointers are valid for writes.
        self.call("cuMemGetInfo", || unsafe { sys::cuMemGetInfo_v2(&mut free, &mut total) })?;
        Ok((free as u64, total as u64))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        let mut objects = std::mem::take(&mut self.objects);
        self.release(|| {
            objects.clear();
            for stream in self.spare.clear() {
                // SAFETY: a stream of this context that is idle and has no owner.
                let _ = unsafe { sys::cuStreamDestroy_v2(stream.raw) };
            }
            // SAFETY: this object owns the stream; nothing uses it or the context any more.
            unsafe { sys::cuStreamDestroy_v2(self.own_stream) }
        });
        // SAFETY: retained once, by `open`.
        let _ = unsafe { sys::cuDevicePrimaryCtxRelease_v2(self.device) };
    }
}

impl Facts {
    fn of(device: CUdevice, ordinal: u32) -> Result<Facts, KernelError> {
        use CUdevice_attribute::*;
        let get = |attribute| attribute_of(device, attribute);
        let mut memory = 0;
        // SAFETY: the result pointer is valid for writes.
        check(unsafe { sys::cuDeviceTotalMem_v2(&mut memory, device) }, "cuDeviceTotalMem")?;
        let capability = get(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)? * 10
            + get(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
        if capability < 75 {
            return Err(KernelError::new(
                Code::UNAVAILABLE,
                format!(
                    "CUDA:{ordinal} has compute capability {}.{}: expected 7.5 or more (Turing and later)",
                    capability / 10,
                    capability % 10
                ),
            ));
        }
        if get(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)? == 0 {
            let what = format!("CUDA:{ordinal} has no stream-ordered memory (memory pools)");
            return Err(KernelError::new(Code::UNAVAILABLE, what));
        }
        Ok(Facts {
            ordinal,
            name: name_of(device)?,
            capability,
            multiprocessors: get(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?.max(1),
            memory: memory as u64,
            l2_bytes: u64::from(get(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?),
            shared_bytes: get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
            // Drivers know the attribute from CUDA 12.2 on; it is -1 where the node is unknown.
            numa_node: signed_attribute(device, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID)
                .ok()
                .and_then(|node| u32::try_from(node).ok()),
            bus_id: get(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID).ok().filter(|bus| *bus != 0),
            driver: u32::try_from(probe::driver_version()?).unwrap_or(0),
        })
    }
}

fn signed_attribute(device: CUdevice, attribute: CUdevice_attribute) -> Result<c_int, KernelError> {
    let mut value: c_int = 0;
    // SAFETY: the result pointer is valid for writes.
    let result = unsafe { sys::cuDeviceGetAttribute(&mut value, attribute, device) };
    check(result, "cuDeviceGetAttribute")?;
    Ok(value)
}

fn attribute_of(device: CUdevice, attribute: CUdevice_attribute) -> Result<u32, KernelError> {
    let value = signed_attribute(device, attribute)?;
    u32::try_from(value).map_err(|_| {
        KernelError::internal(format!(
            "the driver says {value} for {attribute:?}, expected a count"
        ))
    })
}

fn name_of(device: CUdevice) -> Result<String, KernelError> {
    let mut text = [0 as c_char; 256];
    // SAFETY: the pointer is valid for writes of the given length.
    let result = unsafe { sys::cuDeviceGetName(text.as_mut_ptr(), text.len() as c_int, device) };
    check(result, "cuDeviceGetName")?;
    text[text.len() - 1] = 0;
    // SAFETY: the text ends with 0, at the latest in the last byte of the buffer.
    let name = unsafe { CStr::from_ptr(text.as_ptr()) };
    Ok(name.to_string_lossy().into_owned())
}
