//! The driver's handles of a device, for kernels of other plugins: [`DeviceNative`].

use super::{
    DeviceStreams, device_of,
    entries::{device_and_stream, logged},
    roles::Roles,
};
use std::{ffi::c_void, ptr};
use tenon_abi::{DeviceState, ExtHeader, ExtNative, Str, Stream, ext_tags, layout::EXT_NATIVE};

/// A device type whose driver has handles that kernels of other plugins may use. Without this trait a kernel that asks for
/// them gets `UNIMPLEMENTED`.
///
/// Beside [`DeviceStreams`], this is all that is needed: a registration finds the implementation.
pub trait DeviceNative: DeviceStreams {
    /// Name of the driver's interface, which says what the handles are, such as `cuda` ([`tenon_abi::ExtNative`]).
    const API: &'static str;

    /// The driver's handle of the device.
    fn native_device(&self) -> *mut c_void;

    /// The driver's handle of a stream.
    fn native_stream(&self, stream: &Self::Stream) -> *mut c_void;
}

impl<D: DeviceNative> Roles<D> {
    /// The link, without a next one.
    pub const NATIVE: Option<ExtNative> = {
        assert!(!D::API.is_empty(), "`DeviceNative::API` is empty: name the driver's interface");
        Some(ExtNative {
            header: ExtHeader::new(ext_tags::NATIVE, 1, &EXT_NATIVE),
            api: Str::new(D::API),
            device: Some(native_device::<D>),
            stream: Some(native_stream::<D>),
        })
    };
}

unsafe extern "C" fn native_device<D: DeviceNative>(state: *mut DeviceState) -> *mut c_void {
    // SAFETY: the host gives the state.
    let device = unsafe { device_of::<D>(state) };
    logged("native_device", || Ok(device.native_device())).unwrap_or(ptr::null_mut())
}

unsafe extern "C" fn native_stream<D: DeviceNative>(
    state: *mut DeviceState,
    stream: *mut Stream,
) -> *mut c_void {
    // SAFETY: the host gives the state and a stream of the device.
    let (device, stream) = unsafe { device_and_stream::<D>(state, stream) };
    logged("native_stream", || Ok(device.native_stream(stream))).unwrap_or(ptr::null_mut())
}
