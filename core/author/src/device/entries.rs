//! The entries that every device has, around the methods of [`DeviceKind`], and what the entries of all roles share.
//! An entry is a plain function that the host calls.

use super::{DeviceHandle, DeviceInfo, DeviceKind, Registered, device_of};
use crate::Knobs;
use std::{
    any::TypeId,
    sync::{PoisonError, RwLock},
};
use tenon_abi::{
    Code, Device, DeviceAttributes, DeviceState, Host, LogLevel, MemoryInfo, PluginContext, Sink,
    Str, Stream,
};
use tenon_framework::{
    KernelError,
    plugin::{guard, log, report},
};

/// An open device, with what its attributes point to.
pub(super) struct Opened<D> {
    pub(super) device: D,
    attributes: DeviceAttributes,
    _description: String,
    _memories: Vec<MemoryInfo>,
}

/// Devices that this library has open, with their types: a pointer that the host gives for the other end
/// of a copy may belong to another plugin, and must not be followed then.
static OPEN: RwLock<Vec<(usize, TypeId)>> = RwLock::new(Vec::new());

/// The open device behind a pointer, when it is of type `D` and of this library.
///
/// # Safety
/// The device stays open for `'a`.
pub(super) unsafe fn find<'a, D: DeviceKind>(state: *mut DeviceState) -> Option<&'a D> {
    let wanted = (state as usize, TypeId::of::<D>());
    let open = OPEN.read().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: the list says that `create` made it for a `D`, and the caller that it is not destroyed.
    open.contains(&wanted).then(|| unsafe { device_of::<D>(state) })
}

/// A device and one of its streams, as the host names them.
///
/// # Safety
/// `state` is of an open device of type `D` and `stream` one of its streams; both live for `'a`.
pub(super) unsafe fn device_and_stream<'a, D: DeviceKind>(
    state: *mut DeviceState,
    stream: *mut Stream,
) -> (&'a D, &'a D::Stream) {
    // SAFETY: `create` and the entry `create_stream` of `D` made both, and the caller keeps them alive for `'a`.
    unsafe { (device_of::<D>(state), &*stream.cast_const().cast::<D::Stream>()) }
}

fn panicked(what: &str, message: &str) -> KernelError {
    KernelError::internal(format!("{what} of the device panicked: {message}"))
}

/// Runs a method; the message of its error goes to the sink.
pub(super) unsafe fn reported<R>(
    what: &str,
    sink: *mut Sink,
    body: impl FnOnce() -> Result<R, KernelError>,
) -> Result<R, Code> {
    let result = guard(body).unwrap_or_else(|message| Err(panicked(what, &message)));
    // SAFETY: the caller gives the sink that its call was lent.
    result.map_err(|error| unsafe { report(sink, &error) })
}

/// Runs a method of an entry without a sink: only the code of an error crosses, and a panic is logged.
pub(super) fn logged<R>(
    what: &str,
    body: impl FnOnce() -> Result<R, KernelError>,
) -> Result<R, Code> {
    match guard(body) {
        Ok(result) => result.map_err(|error| error.code),
        Err(message) => {
            let error = panicked(what, &message);
            log(LogLevel::ERROR, &error.message);
            Err(error.code)
        }
    }
}

pub(super) fn code(result: Result<(), Code>) -> Code {
    result.err().unwrap_or(Code::OK)
}

pub(super) unsafe extern "C" fn probe<D: DeviceKind>(
    _host: *const Host,
    context: *const PluginContext,
    sink: *mut Sink,
) -> u32 {
    // SAFETY: sink and context are lent for this call.
    unsafe { reported("probe", sink, || D::probe(Knobs::from_raw(context))) }.unwrap_or(0)
}

pub(super) unsafe extern "C" fn create<R: Registered>(
    _host: *const Host,
    context: *const PluginContext,
    ordinal: u32,
    device: *mut Device,
    result: *mut *mut DeviceState,
    sink: *mut Sink,
) -> Code {
    // SAFETY: sink and context are lent for this call.
    let opened = unsafe {
        let knobs = Knobs::from_raw(context);
        reported("open", sink, || open::<R>(ordinal, device, knobs))
    };
    match opened {
        Ok(opened) => {
            let state: *mut DeviceState = Box::into_raw(opened).cast();
            OPEN.write()
                .unwrap_or_else(PoisonError::into_inner)
                .push((state as usize, TypeId::of::<R::Device>()));
            // SAFETY: the host gives a place for the result.
            unsafe { *result = state };
            Code::OK
        }
        Err(code) => code,
    }
}

/// What the device says of itself, as far as its roles allow it.
///
/// # Errors
/// What is wrong with it, for the author.
pub(super) fn described<R: Registered>(device: &R::Device) -> Result<DeviceInfo, KernelError> {
    let mut info = device.info();
    info.streams = R::STREAMS.create_stream.is_some();
    info.validate()?;
    if info.stream_count > 1 && R::EVENTS.create_event.is_none() {
        let message = format!(
            "device: its stream_count is {}, but its type does not implement DeviceEvents, without which one stream is \
             used: implement it, or let stream_count be 1",
            info.stream_count
        );
        log(LogLevel::WARN, &message);
        info.stream_count = 1;
    }
    if R::MEMORY.allocate.is_none() && !info.host_memory {
        return Err(KernelError::internal(format!(
            "device: it describes memory of its own, of kind {}, but its type does not implement DeviceMemory: \
             implement it, or describe host memory by DeviceInfo::host",
            info.ordinary_memory().0
        )));
    }
    Ok(info)
}

fn open<R: Registered>(
    ordinal: u32,
    raw: *mut Device,
    knobs: Knobs<'_>,
) -> Result<Box<Opened<R::Device>>, KernelError> {
    let device = R::Device::open(ordinal, DeviceHandle::new(raw), knobs)?;
    let info = described::<R>(&device)?;
    // What the attributes point to is on the heap, so that moving the owners into the box moves none of it.
    let attributes = DeviceAttributes {
        struct_size: size_of::<DeviceAttributes>() as u32,
        flags: info.flags(),
        description: Str::new(&info.description),
        memories: info.memories.as_ptr(),
        memory_count: info.memories.len(),
        numa_node: info.numa_node.and_then(|node| i32::try_from(node).ok()).unwrap_or(-1),
        bus_id: info.bus_id.and_then(|bus| i32::try_from(bus).ok()).unwrap_or(0),
        stream_count: info.stream_count,
        reserved: 0,
        ext: std::ptr::null(),
    };
    let (_description, _memories) = (info.description, info.memories);
    Ok(Box::new(Opened { device, attributes, _description, _memories }))
}

pub(super) unsafe extern "C" fn destroy<D: DeviceKind>(state: *mut DeviceState) {
    OPEN.write()
        .unwrap_or_else(PoisonError::into_inner)
        .retain(|(open, _)| *open != state as usize);
    // SAFETY: the host gives back what `create` made, once.
    let opened = unsafe { Box::from_raw(state.cast::<Opened<D>>()) };
    // A device that panics while it closes is gone all the same, and the log says so.
    let _ = logged("closing", || {
        drop(opened);
        Ok(())
    });
}

pub(super) unsafe extern "C" fn attributes<D: DeviceKind>(
    state: *mut DeviceState,
    result: *mut DeviceAttributes,
) {
    // SAFETY: the state that `create` made, and a place for the result.
    unsafe { *result = (*state.cast_const().cast::<Opened<D>>()).attributes }
}

/// Makes a stream or an event and gives it away.
pub(super) unsafe fn give<T, Raw>(
    what: &str,
    result: *mut *mut Raw,
    sink: *mut Sink,
    make: impl FnOnce() -> Result<T, KernelError>,
) -> Code {
    // SAFETY: the caller gives a place and the sink of its call. The box of a type without size is still a
    // non-null pointer.
    unsafe {
        match reported(what, sink, make) {
            Ok(made) => {
                *result = Box::into_raw(Box::new(made)).cast();
                Code::OK
            }
            Err(code) => code,
        }
    }
}

/// Takes back what [`give`] gave away, and ends it. An error has nowhere to go: the log has the message of a panic.
///
/// # Safety
/// `raw` is what `give` made of a `T`, and is not used any more.
pub(super) unsafe fn take<T, Raw>(what: &str, raw: *mut Raw, end: impl FnOnce(T)) {
    // SAFETY: `give` boxed a `T`, which the caller gives back once.
    let taken = unsafe { Box::from_raw(raw.cast::<T>()) };
    let _ = logged(what, || {
        end(*taken);
        Ok(())
    });
}

#[cfg(test)]
#[path = "entries_tests.rs"]
mod tests;
