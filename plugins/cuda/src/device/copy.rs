//! Copies between host and device memory.
//!
//! The GPU copies from and to pinned memory directly. Ordinary host memory goes through a pinned
//! staging buffer, so that the caller does not wait for the device: towards the device, the caller
//! fills the buffer and enqueues a copy; towards the host, the copy into the buffer is enqueued,
//! followed by a host function that copies the bytes to their destination. The driver copies a
//! block beyond the limit of the buffers: it stages the block itself while the caller waits.

use super::{
    Cuda,
    context::Context,
    peer,
    pinned::{Address, PinnedPool},
    stream::Stream,
};
use cudarc::driver::sys::{self, CUdeviceptr, CUstream};
use std::{ffi::c_void, ptr::NonNull, sync::Arc};
use tenon_sdk::{
    Code, KernelError,
    abi::MemoryKind,
    device::author::{Owner, Place, callbacks::Callback},
};

/// One end of a copy.
pub(super) enum End {
    /// Ordinary host memory.
    Host(*mut c_void),
    /// Pinned host memory.
    Pinned(*mut c_void),
    /// Memory of a GPU.
    Device(Arc<Context>, CUdeviceptr),
}

impl End {
    /// The memory of a place; `None` if no GPU can access it.
    pub fn of(place: &Place<'_, Cuda>) -> Option<End> {
        match place.owner {
            Owner::Device(device) if place.memory == MemoryKind::DEVICE => {
                Some(End::Device(Arc::clone(device.context()), place.data.addr() as CUdeviceptr))
            }
            Owner::Device(_) if place.memory == MemoryKind::PINNED => Some(End::Pinned(place.data)),
            Owner::Host if place.memory.is_host_address() => Some(End::Host(place.data)),
            _ => None,
        }
    }

    /// Whether a GPU is at one end.
    pub fn can_reach(&self, other: &End) -> bool {
        matches!((self, other), (End::Device(..), _) | (_, End::Device(..)))
    }
}

/// Copies `bytes` bytes; with a stream, enqueues the copy.
///
/// # Safety
/// - Both ends are valid for `bytes` bytes, without overlap, and stay so until the copy is done.
pub(super) unsafe fn copy(
    context: &Arc<Context>,
    pinned: &Arc<PinnedPool>,
    from: End,
    to: End,
    bytes: usize,
    stream: Option<&Stream>,
) -> Result<(), KernelError> {
    if bytes == 0 {
        return if context.is_lost() { Err(context.loss()) } else { Ok(()) };
    }
    let raw = stream.map_or(context.own_stream(), Stream::raw);
    // SAFETY: the caller guarantees that both ends are valid for `bytes` bytes until the copy is
    // done, which is what each case asks for.
    unsafe {
        match (from, to, stream) {
            (End::Host(from), End::Device(_, to), Some(stream))
                if bytes as u64 <= pinned.limit() =>
            {
                return stage_in(context, pinned, from, to, bytes, stream);
            }
            (End::Device(_, from), End::Host(to), Some(stream))
                if bytes as u64 <= pinned.limit() =>
            {
                return stage_out(context, pinned, from, to, bytes, stream);
            }
            (End::Host(from) | End::Pinned(from), End::Device(_, to), _) => {
                into_device(context, from, to, bytes, raw)?;
            }
            (End::Device(_, from), End::Host(to) | End::Pinned(to), _) => {
                out_of_device(context, from, to, bytes, raw)?;
            }
            (End::Device(source, from), End::Device(destination, to), _) => {
                between(context, (&source, from), (&destination, to), bytes, raw)?;
            }
            _ => return Err(KernelError::internal("a copy without an end on the device")),
        }
    }
    if stream.is_none() { context.synchronize_own() } else { Ok(()) }
}

/// Enqueues a copy from host memory to the device.
///
/// # Safety
/// - Both addresses are valid for `bytes` bytes until the copy is done.
unsafe fn into_device(
    context: &Context,
    from: *const c_void,
    to: CUdeviceptr,
    bytes: usize,
    stream: CUstream,
) -> Result<(), KernelError> {
    // SAFETY: the caller guarantees that both addresses are valid for `bytes` bytes until the copy
    // is done.
    let copy = || unsafe { sys::cuMemcpyHtoDAsync_v2(to, from, bytes, stream) };
    context.call("cuMemcpyHtoDAsync", copy)
}

/// Enqueues a copy from the device to host memory.
///
/// # Safety
/// - Both addresses are valid for `bytes` bytes until the copy is done.
unsafe fn out_of_device(
    context: &Context,
    from: CUdeviceptr,
    to: *mut c_void,
    bytes: usize,
    stream: CUstream,
) -> Result<(), KernelError> {
    // SAFETY: the caller guarantees that both addresses are valid for `bytes` bytes until the copy
    // is done.
    let copy = || unsafe { sys::cuMemcpyDtoHAsync_v2(to, from, bytes, stream) };
    context.call("cuMemcpyDtoHAsync", copy)
}

/// Enqueues a copy within a device, or between two devices.
///
/// # Safety
/// - Both addresses are valid for `bytes` bytes, without overlap, until the copy is done.
unsafe fn between(
    context: &Arc<Context>,
    (source, from): (&Arc<Context>, CUdeviceptr),
    (destination, to): (&Arc<Context>, CUdeviceptr),
    bytes: usize,
    stream: CUstream,
) -> Result<(), KernelError> {
    if Arc::ptr_eq(source, destination) {
        // SAFETY: the caller guarantees that both addresses are valid for `bytes` bytes until the
        // copy is done.
        let copy = || unsafe { sys::cuMemcpyDtoDAsync_v2(to, from, bytes, stream) };
        return context.call("cuMemcpyDtoDAsync", copy);
    }
    let other = if Arc::ptr_eq(source, context) { destination } else { source };
    if other.is_lost() {
        return Err(other.loss());
    }
    peer::connect(source, destination)?;
    // SAFETY: the caller guarantees that both addresses are valid for `bytes` bytes until the copy
    // is done; both contexts are open.
    let copy = || unsafe {
        sys::cuMemcpyPeerAsync(to, destination.raw(), from, source.raw(), bytes, stream)
    };
    context.call("cuMemcpyPeerAsync", copy)
}

/// Copies ordinary host memory to the device through a staging buffer.
///
/// # Safety
/// - `from` is valid for `bytes` bytes during the call.
/// - `to` is valid for `bytes` bytes until the copy is done.
unsafe fn stage_in(
    context: &Arc<Context>,
    pinned: &Arc<PinnedPool>,
    from: *const c_void,
    to: CUdeviceptr,
    bytes: usize,
    stream: &Stream,
) -> Result<(), KernelError> {
    stream.refuse_recording("a copy of ordinary host memory")?;
    let stage = pinned.allocate(bytes as u64, 1)?;
    // SAFETY: the staging buffer has `bytes` bytes and belongs to this copy; the caller guarantees
    // that source and destination are valid for them.
    let enqueued = unsafe {
        std::ptr::copy_nonoverlapping(from.cast::<u8>(), stage.as_ptr().cast(), bytes);
        into_device(context, stage.as_ptr(), to, bytes, stream.raw())
    };
    let (pinned, stage) = (Arc::clone(pinned), Address(stage));
    let back = move |_| pinned.keep(stage.get(), bytes as u64);
    match enqueued {
        Ok(()) => stream.when_done(Callback::Memory(Box::new(back))),
        Err(_) => back(Code::OK),
    }
    enqueued
}

/// Copies device memory to ordinary host memory through a staging buffer.
///
/// # Safety
/// - Both addresses are valid for `bytes` bytes until the copy is done.
unsafe fn stage_out(
    context: &Arc<Context>,
    pinned: &Arc<PinnedPool>,
    from: CUdeviceptr,
    to: *mut c_void,
    bytes: usize,
    stream: &Stream,
) -> Result<(), KernelError> {
    stream.refuse_recording("a copy of ordinary host memory")?;
    let stage = pinned.allocate(bytes as u64, 1)?;
    // SAFETY: the staging buffer has `bytes` bytes and belongs to this copy; the caller guarantees
    // that the source is valid for them until the copy is done.
    let enqueued = unsafe { out_of_device(context, from, stage.as_ptr(), bytes, stream.raw()) };
    if enqueued.is_err() {
        pinned.give_back(stage, bytes as u64);
        return enqueued;
    }
    let target = Address(NonNull::new(to).unwrap_or(NonNull::dangling()));
    let (pinned, stage) = (Arc::clone(pinned), Address(stage));
    let carry = move |code: Code| {
        let (source, target) = (stage.get(), target.get());
        if code.is_ok() {
            // SAFETY: the staging buffer is filled; the caller keeps the destination valid until
            // the copy is done.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    source.as_ptr().cast::<u8>(),
                    target.as_ptr().cast(),
                    bytes,
                );
            }
        }
        pinned.keep(source, bytes as u64);
    };
    stream.when_done(Callback::Memory(Box::new(carry)));
    Ok(())
}
