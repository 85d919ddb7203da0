//! The driver's own handles, for kernels that another plugin's device runs.

use crate::{compute::ComputeContext, links::host_link};
use std::{ffi::c_void, marker::PhantomData};
use tenon_abi::{Code, ExtNativeOf, NativeHandles, Str, ext_tags, layout::EXT_NATIVE_OF};
use tenon_framework::KernelError;

/// What the driver calls the device and the stream of a call.
///
/// A kernel for a device type of another plugin knows nothing of that plugin's types; with these it talks to the
/// driver itself. [`Native::api`] says which driver the handles belong to: a kernel checks it first.
pub struct Native<'a> {
    handles: NativeHandles,
    call: PhantomData<&'a ()>,
}

impl Native<'_> {
    /// The driver's interface: with `cuda` the device is a `CUcontext`, the stream a `CUstream`, and the data
    /// pointers of slots in memory kind `DEVICE` are `CUdeviceptr`.
    pub fn api(&self) -> &str {
        // SAFETY: text that is valid during the call.
        unsafe { self.handles.api.text() }.unwrap_or("")
    }

    /// The driver's handle of the device.
    pub fn device(&self) -> *mut c_void {
        self.handles.device
    }

    /// The driver's handle of the stream that the kernel enqueues on.
    pub fn stream(&self) -> *mut c_void {
        self.handles.stream
    }
}

impl<'a> ComputeContext<'a> {
    /// The driver's handles of the device and the stream of this call.
    ///
    /// # Errors
    /// `UNIMPLEMENTED` when the device's plugin gives none, or the host knows of none.
    pub fn native(&self) -> Result<Native<'a>, KernelError> {
        let none = || {
            KernelError::unimplemented(
                "the device gives no handles of its driver: expected a device type whose plugin does",
            )
        };
        let link: &ExtNativeOf =
            host_link(ext_tags::NATIVE_OF, &EXT_NATIVE_OF, "handles of drivers")?;
        let entry = link.native.ok_or_else(none)?;
        let mut handles = NativeHandles {
            api: Str::EMPTY,
            device: std::ptr::null_mut(),
            stream: std::ptr::null_mut(),
        };
        let call = self.raw();
        if call.device.is_null() {
            return Err(none());
        }
        // SAFETY: device and stream of the call, which is under way; a place for the result.
        match unsafe { entry(call.device, call.stream, &mut handles) } {
            Code::OK => Ok(Native { handles, call: PhantomData }),
            Code::UNIMPLEMENTED => Err(none()),
            code => Err(KernelError::new(code, "the host gives no handles of the device's driver")),
        }
    }
}
