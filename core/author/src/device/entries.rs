//! The entries of a device: plain functions that the host calls, each around one method of
//! [`DeviceKind`].

use super::{DeviceHandle, DeviceKind, NoStreams, Notification, Place, device_of, stream_of};
use crate::Knobs;
use std::{
    any::TypeId,
    ffi::c_void,
    marker::PhantomData,
    ptr::NonNull,
    sync::{PoisonError, RwLock},
};
use tenon_abi::{
    Code, CopyRequest, Device, DeviceAttributes, DeviceState, DeviceTable, Event, Host, LogLevel,
    MemoryInfo, MemoryKind, Notify, PluginContext, Sink, Str, Stream,
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
    // SAFETY: the list says that `create::<D>` made it, and the caller that it is not destroyed.
    open.contains(&wanted).then(|| unsafe { device_of::<D>(state) })
}

/// A device and one of its streams, as the host names them.
///
/// # Safety
/// The state that `create::<D>` made and a stream that `create_stream::<D>` made; both live for `'a`.
pub(super) unsafe fn device_and_stream<'a, D: DeviceKind>(
    state: *mut DeviceState,
    stream: *mut Stream,
) -> (&'a D, &'a D::Stream) {
    // SAFETY: `create::<D>` and `create_stream::<D>` made both, and the caller keeps them alive for `'a`.
    unsafe { (device_of::<D>(state), &*stream.cast_const().cast::<D::Stream>()) }
}

/// An event, as the host names it.
///
/// # Safety
/// One that `create_event::<D>` or `create_timer::<D>` made, alive for `'a`.
pub(super) unsafe fn event_of<'a, D: DeviceKind>(event: *mut Event) -> &'a D::Event {
    // SAFETY: `create_event::<D>` or `create_timer::<D>` made the event, and the caller keeps it alive for `'a`.
    unsafe { &*event.cast_const().cast::<D::Event>() }
}

/// The table of a device type.
pub(super) struct Table<D>(PhantomData<D>);

/// `Some(entry)` if the device has the ability that the entry is for.
macro_rules! entry {
    ($has:expr, $entry:expr) => {
        if $has { Some($entry) } else { None }
    };
}

impl<D: DeviceKind> Table<D> {
    /// The table.
    pub(super) const TABLE: &'static DeviceTable = &DeviceTable {
        struct_size: size_of::<DeviceTable>() as u32,
        reserved: 0,
        destroy: Some(destroy::<D>),
        attributes: Some(attributes::<D>),
        allocate: entry!(D::HAS_MEMORY, allocate::<D>),
        deallocate: entry!(D::HAS_MEMORY, deallocate::<D>),
        can_copy: entry!(D::HAS_MEMORY, can_copy::<D>),
        copy: entry!(D::HAS_MEMORY, copy::<D>),
        create_stream: entry!(D::HAS_STREAMS, create_stream::<D>),
        destroy_stream: entry!(D::HAS_STREAMS, destroy_stream::<D>),
        synchronize_stream: entry!(D::HAS_STREAMS, synchronize_stream::<D>),
        notify: entry!(D::HAS_STREAMS, notify::<D>),
        create_event: entry!(D::HAS_STREAMS, create_event::<D>),
        destroy_event: entry!(D::HAS_STREAMS, destroy_event::<D>),
        record_event: entry!(D::HAS_STREAMS, record_event::<D>),
        wait_event: entry!(D::HAS_STREAMS, wait_event::<D>),
        query_event: entry!(D::HAS_STREAMS, query_event::<D>),
        synchronize: entry!(D::HAS_STREAMS, synchronize::<D>),
        ext: super::links::Links::<D>::CHAIN,
    };
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
fn logged<R>(what: &str, body: impl FnOnce() -> Result<R, KernelError>) -> Result<R, Code> {
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

pub(super) unsafe extern "C" fn create<D: DeviceKind>(
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
        reported("open", sink, || open::<D>(ordinal, device, knobs))
    };
    match opened {
        Ok(opened) => {
            let state: *mut DeviceState = Box::into_raw(opened).cast();
            OPEN.write()
                .unwrap_or_else(PoisonError::into_inner)
                .push((state as usize, TypeId::of::<D>()));
            // SAFETY: the host gives a place for the result.
            unsafe { *result = state };
            Code::OK
        }
        Err(code) => code,
    }
}

fn open<D: DeviceKind>(
    ordinal: u32,
    raw: *mut Device,
    knobs: Knobs<'_>,
) -> Result<Box<Opened<D>>, KernelError> {
    let device = D::open(ordinal, DeviceHandle::new(raw), knobs)?;
    let mut info = device.info();
    info.streams = D::HAS_STREAMS;
    info.validate()?;
    if TypeId::of::<D::Event>() == TypeId::of::<NoStreams>() {
        // Nothing would order one stream behind another.
        info.stream_count = 1;
    }
    if !D::HAS_MEMORY && !info.host_memory {
        return Err(KernelError::internal(
            "device: it declares memory of its own, but HAS_MEMORY is false: set it and write allocate and \
             deallocate",
        ));
    }
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

unsafe extern "C" fn destroy<D: DeviceKind>(state: *mut DeviceState) {
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

unsafe extern "C" fn attributes<D: DeviceKind>(
    state: *mut DeviceState,
    result: *mut DeviceAttributes,
) {
    // SAFETY: the state that `create` made, and a place for the result.
    unsafe { *result = (*state.cast_const().cast::<Opened<D>>()).attributes }
}

unsafe extern "C" fn allocate<D: DeviceKind>(
    state: *mut DeviceState,
    bytes: u64,
    align: u64,
    memory: MemoryKind,
    stream: *mut Stream,
    result: *mut *mut c_void,
    sink: *mut Sink,
) -> Code {
    // SAFETY: the host gives the state, a stream of the device or null, a place and a sink.
    unsafe {
        let (device, stream) = (device_of::<D>(state), stream_of::<D>(stream));
        match reported("allocate", sink, || device.allocate(bytes, align, memory, stream)) {
            Ok(data) => {
                *result = data.as_ptr();
                Code::OK
            }
            Err(code) => code,
        }
    }
}

unsafe extern "C" fn deallocate<D: DeviceKind>(
    state: *mut DeviceState,
    data: *mut c_void,
    bytes: u64,
    memory: MemoryKind,
    stream: *mut Stream,
) {
    let Some(data) = NonNull::new(data) else { return };
    // SAFETY: the host gives the state, a stream of the device or null, and back what `allocate` gave. The
    // log has the message of a panic; the memory is lost then.
    let _ = unsafe {
        let (device, stream) = (device_of::<D>(state), stream_of::<D>(stream));
        logged("deallocate", || {
            device.deallocate(data, bytes, memory, stream);
            Ok(())
        })
    };
}

unsafe extern "C" fn can_copy<D: DeviceKind>(
    state: *mut DeviceState,
    request: *const CopyRequest,
) -> u32 {
    // SAFETY: the host gives the state and a filled request.
    unsafe {
        let device = device_of::<D>(state);
        let (source, destination) = Place::pair(&*request);
        logged("can_copy", || Ok(device.can_copy(&source, &destination))).unwrap_or(false).into()
    }
}

unsafe extern "C" fn copy<D: DeviceKind>(
    state: *mut DeviceState,
    request: *const CopyRequest,
    stream: *mut Stream,
    sink: *mut Sink,
) -> Code {
    // SAFETY: the host gives the state, a filled request whose places are valid until the copy is done, a
    // stream of the device or null, and a sink.
    unsafe {
        let (device, stream) = (device_of::<D>(state), stream_of::<D>(stream));
        let (source, destination) = Place::pair(&*request);
        let bytes = (*request).bytes;
        code(reported("copy", sink, || device.copy(&source, &destination, bytes, stream)))
    }
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

unsafe extern "C" fn create_stream<D: DeviceKind>(
    state: *mut DeviceState,
    result: *mut *mut Stream,
    sink: *mut Sink,
) -> Code {
    // SAFETY: the host gives the state, a place and a sink.
    unsafe {
        let device = device_of::<D>(state);
        give("create_stream", result, sink, || device.create_stream())
    }
}

unsafe extern "C" fn destroy_stream<D: DeviceKind>(state: *mut DeviceState, stream: *mut Stream) {
    // SAFETY: the host gives the state, and back what `create_stream` gave. The log has what goes wrong.
    let _ = unsafe {
        let (device, stream) = (device_of::<D>(state), Box::from_raw(stream.cast::<D::Stream>()));
        logged("destroy_stream", || {
            device.destroy_stream(*stream);
            Ok(())
        })
    };
}

unsafe extern "C" fn synchronize_stream<D: DeviceKind>(
    state: *mut DeviceState,
    stream: *mut Stream,
    sink: *mut Sink,
) -> Code {
    // SAFETY: the host gives the state, a stream of the device and a sink.
    unsafe {
        let (device, stream) = device_and_stream::<D>(state, stream);
        code(reported("synchronize_stream", sink, || device.synchronize_stream(stream)))
    }
}

unsafe extern "C" fn notify<D: DeviceKind>(
    state: *mut DeviceState,
    stream: *mut Stream,
    notify: Notify,
    data: *mut c_void,
) -> Code {
    // SAFETY: the host gives the state, a stream of the device, and a call that it takes from any thread. When
    // the method panics, unwinding drops the notification, which runs it.
    let _ = unsafe {
        let (device, stream) = device_and_stream::<D>(state, stream);
        let done = Notification::new(notify, data);
        logged("notify", || {
            device.notify(stream, done);
            Ok(())
        })
    };
    Code::OK
}

unsafe extern "C" fn create_event<D: DeviceKind>(
    state: *mut DeviceState,
    result: *mut *mut Event,
    sink: *mut Sink,
) -> Code {
    // SAFETY: the host gives the state, a place and a sink.
    unsafe {
        let device = device_of::<D>(state);
        give("create_event", result, sink, || device.create_event())
    }
}

unsafe extern "C" fn destroy_event<D: DeviceKind>(state: *mut DeviceState, event: *mut Event) {
    // SAFETY: the host gives the state, and back what `create_event` gave. The log has what goes wrong.
    let _ = unsafe {
        let (device, event) = (device_of::<D>(state), Box::from_raw(event.cast::<D::Event>()));
        logged("destroy_event", || {
            device.destroy_event(*event);
            Ok(())
        })
    };
}

unsafe extern "C" fn record_event<D: DeviceKind>(
    state: *mut DeviceState,
    event: *mut Event,
    stream: *mut Stream,
) -> Code {
    // SAFETY: the host gives the state, and an event and a stream of the device.
    unsafe {
        let (device, stream) = device_and_stream::<D>(state, stream);
        let event = event_of::<D>(event);
        code(logged("record_event", || device.record_event(event, stream)))
    }
}

unsafe extern "C" fn wait_event<D: DeviceKind>(
    state: *mut DeviceState,
    stream: *mut Stream,
    event: *mut Event,
) -> Code {
    // SAFETY: the host gives the state, and a stream and an event of the device.
    unsafe {
        let (device, stream) = device_and_stream::<D>(state, stream);
        let event = event_of::<D>(event);
        code(logged("wait_event", || device.wait_event(stream, event)))
    }
}

unsafe extern "C" fn query_event<D: DeviceKind>(
    state: *mut DeviceState,
    event: *mut Event,
) -> Code {
    // SAFETY: the host gives the state and an event of the device.
    unsafe {
        let device = device_of::<D>(state);
        let event = event_of::<D>(event);
        match logged("query_event", || device.query_event(event)) {
            Ok(true) => Code::OK,
            Ok(false) => Code::PENDING,
            Err(code) => code,
        }
    }
}

unsafe extern "C" fn synchronize<D: DeviceKind>(state: *mut DeviceState, sink: *mut Sink) -> Code {
    // SAFETY: the host gives the state and a sink.
    unsafe {
        let device = device_of::<D>(state);
        code(reported("synchronize", sink, || device.synchronize()))
    }
}

#[cfg(test)]
#[path = "entries_tests.rs"]
mod tests;
