//! Extensions of a device's table that the host knows.

use super::{core::device_of, plugin_device::PluginDevice};
use std::ptr::NonNull;
use tenon_abi::{
    Code, Device, DeviceTable, ExtCapture, ExtHeader, ExtNative, ExtNativeOf, ExtTimers,
    NativeHandles, Stream, ext_tags,
    layout::{EXT_CAPTURE, EXT_NATIVE, EXT_NATIVE_OF, EXT_TIMERS, StructLayout, ext_hash},
};
use tenon_framework::{
    KernelError,
    device::{
        base::{EventId, LocalDevice, StreamId},
        replay::{GraphId, Replay, Timers},
    },
};

/// The extension links of a table. A link that does not match its tag, or lacks an entry, counts as
/// absent.
#[derive(Clone, Copy, Default)]
pub(super) struct DeviceLinks {
    native: Option<&'static ExtNative>,
    timers: Option<&'static ExtTimers>,
    capture: Option<&'static ExtCapture>,
}

impl DeviceLinks {
    pub fn of(table: &'static DeviceTable) -> DeviceLinks {
        // SAFETY: a table's chain lives as long as the table; the structs are those of the tags.
        unsafe {
            DeviceLinks {
                native: link::<ExtNative>(table.ext, ext_tags::NATIVE, &EXT_NATIVE)
                    .filter(|it| it.device.is_some() && it.stream.is_some()),
                timers: link::<ExtTimers>(table.ext, ext_tags::TIMERS, &EXT_TIMERS)
                    .filter(|it| it.create.is_some() && it.elapsed_ns.is_some()),
                capture: link::<ExtCapture>(table.ext, ext_tags::CAPTURE, &EXT_CAPTURE).filter(
                    |it| {
                        it.begin.is_some()
                            && it.end.is_some()
                            && it.launch.is_some()
                            && it.destroy.is_some()
                    },
                ),
            }
        }
    }

    pub fn has_timers(&self) -> bool {
        self.timers.is_some()
    }

    pub fn has_capture(&self) -> bool {
        self.capture.is_some()
    }
}

/// # Safety
/// - `chain` is null or the head of a chain of links that live for the whole process.
/// - `T` is the struct of `tag`, whose first version has this layout.
unsafe fn link<T>(chain: *const ExtHeader, tag: u32, layout: &StructLayout) -> Option<&'static T> {
    // SAFETY: `chain` is null or the head of a chain of links that live for good, as the caller
    // guarantees.
    let header = unsafe { tenon_abi::find_ext(chain, tag, layout.size).as_ref() }?;
    let agrees =
        header.version > 1 || (header.version == 1 && header.layout_hash == ext_hash(layout));
    // SAFETY: the link has this tag and at least this size.
    agrees.then(|| unsafe { &*std::ptr::from_ref(header).cast::<T>() })
}

/// Calls an entry of a link that [`DeviceLinks::of`] has found complete.
macro_rules! linked {
    ($self:ident, $link:ident, $entry:ident, |$function:ident, $sink:ident| $call:expr) => {{
        let entry = $self.links().$link.and_then(|link| link.$entry);
        let $function = entry.ok_or_else(|| $self.core().has_no(stringify!($entry)))?;
        // SAFETY: an open device with its own streams, events and graphs, valid result pointers and
        // a live sink.
        $self.core().operation(stringify!($entry), |$sink| unsafe { $call })
    }};
}

impl Timers for PluginDevice {
    fn create_timer(&self) -> Result<EventId, KernelError> {
        let mut raw = std::ptr::null_mut();
        linked!(self, timers, create, |entry, sink| entry(self.state(), &mut raw, sink.as_sink()))?;
        let raw = NonNull::new(raw).ok_or_else(|| KernelError::internal("no event was given"))?;
        // SAFETY: this device just created it, and the caller destroys it.
        Ok(unsafe { EventId::new(self.number(), raw) })
    }

    fn elapsed_ns(&self, first: EventId, last: EventId) -> Result<u64, KernelError> {
        self.own_event(first)?;
        self.own_event(last)?;
        let mut ns = 0;
        linked!(self, timers, elapsed_ns, |entry, sink| entry(
            self.state(),
            first.as_raw(),
            last.as_raw(),
            &mut ns,
            sink.as_sink()
        ))?;
        Ok(ns)
    }
}

impl Replay for PluginDevice {
    fn begin_capture(&self, stream: StreamId) -> Result<(), KernelError> {
        self.own_stream(stream)?;
        linked!(self, capture, begin, |entry, sink| entry(
            self.state(),
            stream.as_raw(),
            sink.as_sink()
        ))
    }

    fn end_capture(&self, stream: StreamId) -> Result<GraphId, KernelError> {
        self.own_stream(stream)?;
        let mut raw = std::ptr::null_mut();
        linked!(self, capture, end, |entry, sink| entry(
            self.state(),
            stream.as_raw(),
            &mut raw,
            sink.as_sink()
        ))?;
        let raw = NonNull::new(raw).ok_or_else(|| KernelError::internal("no graph was given"))?;
        // SAFETY: this device just created it, and the caller destroys it.
        Ok(unsafe { GraphId::new(self.number(), raw) })
    }

    unsafe fn launch(&self, graph: GraphId, stream: StreamId) -> Result<(), KernelError> {
        self.own_stream(stream)?;
        self.own("graph", graph.device())?;
        linked!(self, capture, launch, |entry, sink| entry(
            self.state(),
            graph.as_raw(),
            stream.as_raw(),
            sink.as_sink()
        ))
    }

    unsafe fn destroy_graph(&self, graph: GraphId) {
        let entry = self.links().capture.and_then(|capture| capture.destroy);
        if let (Ok(()), Some(entry)) = (self.own("graph", graph.device()), entry) {
            // SAFETY: the graph is this device's, does not run, and the caller uses it no more.
            unsafe { entry(self.state(), graph.as_raw()) }
        }
    }
}

/// The host's link to the driver's handles of any device.
pub const NATIVE_OF: ExtNativeOf = ExtNativeOf {
    header: ExtHeader::new(ext_tags::NATIVE_OF, 1, &EXT_NATIVE_OF),
    native: Some(native_entry),
};

/// # Safety
/// - `device` is null or the record of a device that is not closed.
/// - `stream` is null or one of its streams.
/// - `result` is valid for writes.
unsafe extern "C" fn native_entry(
    device: *mut Device,
    stream: *mut Stream,
    result: *mut NativeHandles,
) -> Code {
    // SAFETY: the kernel passes null or the record of a device that is not closed.
    let Some(device) = (unsafe { device_of(device) }) else { return Code::UNIMPLEMENTED };
    let Some(native) = device.links().native else { return Code::UNIMPLEMENTED };
    let (Some(device_entry), Some(stream_entry)) = (native.device, native.stream) else {
        return Code::UNIMPLEMENTED;
    };
    let mut handles = NativeHandles {
        api: native.api,
        device: std::ptr::null_mut(),
        stream: std::ptr::null_mut(),
    };
    // SAFETY: `device` keeps the device open; the kernel passes null or one of its streams, and a
    // valid `result`.
    unsafe {
        handles.device = device_entry(device.state());
        if !stream.is_null() {
            handles.stream = stream_entry(device.state(), stream);
        }
        *result = handles;
    }
    Code::OK
}
