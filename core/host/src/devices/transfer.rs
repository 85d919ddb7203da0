//! Copies between places: host and device, or two devices.
//!
//! If the device at one end supports the pair (`can_copy`), it copies; else the host stages through
//! its own memory: source to host, host to destination.

use crate::{
    bools,
    memory::{HostMemory, copy_on_host},
};
use std::sync::Arc;
use tenon_abi::MemoryKind;
use tenon_framework::{
    KernelError, Tensor,
    device::base::{LocalDevice, Location},
    tensor::{Buffer, Memory},
};

/// How a copy is performed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// By the host, which addresses both ends.
    Host,
    /// By the device at the source.
    Source,
    /// By the device at the destination.
    Destination,
    /// Two copies, through host memory.
    Staged,
}

/// The location of a buffer; `device` owns its memory, `None` for the host's.
pub fn location<'a>(buffer: &Buffer, device: Option<&'a dyn LocalDevice>) -> Location<'a> {
    Location { data: buffer.data(), memory: buffer.kind(), device }
}

/// A place on the host that represents the staging buffer in a query.
fn host_place() -> Location<'static> {
    Location { data: std::ptr::null_mut(), memory: MemoryKind::HOST, device: None }
}

fn text(place: &Location<'_>) -> String {
    let device = place.device.map_or("the host".to_owned(), |device| device.name().to_string());
    format!("memory of kind {} of {device}", place.memory.0)
}

/// The route of a copy in one step; `None` if there is none.
fn direct(source: Location<'_>, destination: Location<'_>) -> Option<Route> {
    if source.device.is_some_and(|device| device.can_copy(source, destination)) {
        return Some(Route::Source);
    }
    if destination.device.is_some_and(|device| device.can_copy(source, destination)) {
        return Some(Route::Destination);
    }
    let addressed = source.memory.is_host_address() && destination.memory.is_host_address();
    addressed.then_some(Route::Host)
}

fn lost(place: &Location<'_>) -> Option<KernelError> {
    let device = place.device?;
    let reason = device.lost()?;
    let message = format!("{} is lost: {reason}", device.name());
    Some(KernelError::new(tenon_framework::Code::UNAVAILABLE, message))
}

/// The route of a copy between two places. Addresses are ignored.
///
/// # Errors
/// `UNAVAILABLE` when one end is lost; `UNIMPLEMENTED` when no device supports this pair or a
/// staged copy.
pub fn route(source: Location<'_>, destination: Location<'_>) -> Result<Route, KernelError> {
    if let Some(error) = lost(&source).or_else(|| lost(&destination)) {
        return Err(error);
    }
    if let Some(route) = direct(source, destination) {
        return Ok(route);
    }
    let staged =
        direct(source, host_place()).is_some() && direct(host_place(), destination).is_some();
    if staged {
        return Ok(Route::Staged);
    }
    Err(KernelError::unimplemented(format!(
        "no device copies from {} to {}, nor each from and to host memory",
        text(&source),
        text(&destination)
    )))
}

/// Copies `bytes` bytes and returns when they have arrived. It waits for no stream: writes to the
/// source must be complete.
///
/// # Errors
/// As [`route`]; a device's error; out of memory for a staging buffer.
///
/// # Safety
/// - Both places are valid for `bytes` bytes and do not overlap.
/// - Nothing writes the source or uses the destination during the call.
pub unsafe fn copy_now(
    source: Location<'_>,
    destination: Location<'_>,
    bytes: u64,
) -> Result<(), KernelError> {
    if bytes == 0 {
        return Ok(());
    }
    // SAFETY: the caller guarantees that both places are valid for `bytes` bytes without overlap,
    // and that nothing writes the source or uses the destination meanwhile; the staging buffer is
    // new host memory.
    unsafe {
        match (route(source, destination)?, source.device, destination.device) {
            (Route::Source, Some(device), _) | (Route::Destination, _, Some(device)) => {
                device.copy(source, destination, bytes, None)
            }
            (Route::Staged, ..) => {
                let memory: Arc<dyn Memory> = HostMemory::shared().clone();
                let count = bytes as usize;
                let stage = Buffer::allocate(&memory, tenon_abi::DType::UINT8, count, count)?;
                copy_now(source, location(&stage, None), bytes)?;
                copy_now(location(&stage, None), destination, bytes)
            }
            _ => {
                let (from, to) = (source.data.cast::<u8>(), destination.data.cast::<u8>());
                std::ptr::copy_nonoverlapping(from, to, bytes as usize);
                Ok(())
            }
        }
    }
}

/// Copies a tensor to `memory`; returns when the elements have arrived. `from` and `to` are the
/// devices of the source's and the destination's memory; `None` for the host's.
///
/// # Errors
/// As [`copy_now`]; `INVALID_ARGUMENT` for elements that can only be in host memory.
pub fn copy_tensor(
    tensor: &Tensor,
    from: Option<&dyn LocalDevice>,
    memory: &Arc<dyn Memory>,
    to: Option<&dyn LocalDevice>,
) -> Result<Tensor, KernelError> {
    if from.is_none() && to.is_none() {
        return copy_on_host(tensor, memory);
    }
    let copy = Tensor::allocate(memory, tensor.dtype(), *tensor.shape())?;
    if tensor.buffer().needs_drop() {
        return copy_on_host(tensor, memory);
    }
    let (source, destination) = (location(tensor.buffer(), from), location(copy.buffer(), to));
    // SAFETY: two buffers, one of them new, with at least as many bytes as the elements have.
    unsafe { copy_now(source, destination, tensor.byte_len() as u64)? };
    // SAFETY: the copy is complete, and nothing else has it; a device may write any bytes.
    unsafe { bools::normalise_tensor(&copy) };
    Ok(copy)
}

/// Formats the route for error messages and traces.
impl std::fmt::Display for Route {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Route::Host => "on the host",
            Route::Source => "by the source's device",
            Route::Destination => "by the destination's device",
            Route::Staged => "through host memory",
        })
    }
}
