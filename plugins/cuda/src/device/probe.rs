//! Counts the GPUs, or says why there are none.

use crate::{
    fault::{check, code, text},
    libraries::{self, Library},
    settings,
};
use cudarc::driver::sys::{self, CUresult};
use std::ffi::c_int;
use tenon_sdk::{Code, KernelError, author::Knobs};

/// The oldest driver that has every entry in use: that of CUDA 12.0.
pub(super) const OLDEST_DRIVER: c_int = 12_000;

/// Number of GPUs that are devices, at most as many as the knob `devices` allows. The first call in
/// the process also takes the knob `library_path`, which says where libraries are looked for.
///
/// # Errors
/// As [`start`].
pub(super) fn count(knobs: Knobs<'_>) -> Result<u32, KernelError> {
    libraries::look_in_unless_told(|| knobs.text("library_path"))?;
    let there = start()?;
    match there.min(settings::device_limit(knobs)?) {
        0 => Err(unavailable("the knob devices is 0".to_owned())),
        count => Ok(count),
    }
}

/// Checks that the driver is loaded and recent enough, and initialises it; returns the number of
/// GPUs.
///
/// # Errors
/// `UNAVAILABLE`: the driver is missing, too old or does not work, or there is no GPU.
pub(super) fn start() -> Result<u32, KernelError> {
    libraries::require(Library::Driver)?;
    let version = driver_version()?;
    if version < OLDEST_DRIVER {
        return Err(unavailable(format!(
            "the driver is of CUDA {}: expected {} or later, install a newer driver",
            version_text(version),
            version_text(OLDEST_DRIVER)
        )));
    }
    // SAFETY: the driver is loaded; it may be initialised repeatedly.
    match unsafe { sys::cuInit(0) } {
        CUresult::CUDA_SUCCESS => {}
        CUresult::CUDA_ERROR_NO_DEVICE => return Err(no_device()),
        result => {
            let what = format!("the driver does not start: {}", text(result));
            let code =
                if code(result) == Code::INTERNAL { Code::UNAVAILABLE } else { code(result) };
            return Err(KernelError::new(code, what));
        }
    }
    let mut count: c_int = 0;
    // SAFETY: the result pointer is valid for writes.
    check(unsafe { sys::cuDeviceGetCount(&mut count) }, "cuDeviceGetCount")?;
    match u32::try_from(count) {
        Ok(count @ 1..) => Ok(count),
        _ => Err(no_device()),
    }
}

/// Version of the driver: 1000 times the major number and 10 times the minor one.
pub(super) fn driver_version() -> Result<c_int, KernelError> {
    let mut version: c_int = 0;
    // SAFETY: the result pointer is valid for writes; this entry needs no initialisation.
    check(unsafe { sys::cuDriverGetVersion(&mut version) }, "cuDriverGetVersion")?;
    Ok(version)
}

/// Formats a version, such as `12.4`.
pub(super) fn version_text(version: c_int) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

fn no_device() -> KernelError {
    unavailable("the driver finds no GPU, or CUDA_VISIBLE_DEVICES names none".to_owned())
}

fn unavailable(message: String) -> KernelError {
    KernelError::new(Code::UNAVAILABLE, message)
}
