//! The links of a device's table: entries around what [`DeviceKind`] offers beyond the table.

use super::{
    DeviceKind, Recorded, device_of,
    entries::{code, device_and_stream, event_of, give, reported},
};
use std::{ffi::c_void, marker::PhantomData, ptr};
use tenon_abi::{
    Code, CommandGraph, DeviceState, Event, ExtCapture, ExtHeader, ExtNative, ExtTimers, Sink, Str,
    Stream, ext_tags,
    layout::{EXT_CAPTURE, EXT_NATIVE, EXT_TIMERS},
};

/// The chain of a device type.
pub(super) struct Links<D>(PhantomData<D>);

const fn behind(header: ExtHeader, next: *const ExtHeader) -> ExtHeader {
    ExtHeader { next, ..header }
}

impl<D: DeviceKind> Links<D> {
    const NATIVE: &'static ExtNative = &ExtNative {
        header: ExtHeader::new(ext_tags::NATIVE, 1, &EXT_NATIVE),
        api: Str::new(D::NATIVE_API),
        device: Some(native_device::<D>),
        stream: Some(native_stream::<D>),
    };

    const FROM_NATIVE: *const ExtHeader = match D::NATIVE_API.is_empty() {
        true => ptr::null(),
        false => ptr::from_ref(Self::NATIVE).cast(),
    };

    const TIMERS: &'static ExtTimers = &ExtTimers {
        header: behind(ExtHeader::new(ext_tags::TIMERS, 1, &EXT_TIMERS), Self::FROM_NATIVE),
        create: Some(create_timer::<D>),
        elapsed_ns: Some(elapsed_ns::<D>),
    };

    const FROM_TIMERS: *const ExtHeader = match D::HAS_TIMERS {
        true => ptr::from_ref(Self::TIMERS).cast(),
        false => Self::FROM_NATIVE,
    };

    const CAPTURE: &'static ExtCapture = &ExtCapture {
        header: behind(ExtHeader::new(ext_tags::CAPTURE, 1, &EXT_CAPTURE), Self::FROM_TIMERS),
        begin: Some(begin_capture::<D>),
        end: Some(end_capture::<D>),
        launch: Some(launch_recorded::<D>),
        destroy: Some(destroy_recorded),
    };

    /// Its head; null without links.
    pub(super) const CHAIN: *const ExtHeader = match D::HAS_CAPTURE {
        true => ptr::from_ref(Self::CAPTURE).cast(),
        false => Self::FROM_TIMERS,
    };
}

unsafe extern "C" fn native_device<D: DeviceKind>(state: *mut DeviceState) -> *mut c_void {
    // SAFETY: the host gives the state.
    unsafe { device_of::<D>(state) }.native_device()
}

unsafe extern "C" fn native_stream<D: DeviceKind>(
    state: *mut DeviceState,
    stream: *mut Stream,
) -> *mut c_void {
    // SAFETY: the host gives the state and a stream of the device.
    unsafe {
        let (device, stream) = device_and_stream::<D>(state, stream);
        device.native_stream(stream)
    }
}

unsafe extern "C" fn create_timer<D: DeviceKind>(
    state: *mut DeviceState,
    result: *mut *mut Event,
    sink: *mut Sink,
) -> Code {
    // SAFETY: the host gives the state, a place and a sink.
    unsafe {
        let device = device_of::<D>(state);
        give("create_timer", result, sink, || device.create_timer())
    }
}

unsafe extern "C" fn elapsed_ns<D: DeviceKind>(
    state: *mut DeviceState,
    first: *mut Event,
    last: *mut Event,
    result: *mut u64,
    sink: *mut Sink,
) -> Code {
    // SAFETY: the host gives the state, two events of the device, a place and a sink.
    unsafe {
        let device = device_of::<D>(state);
        let event = |raw: *mut Event| event_of::<D>(raw);
        let elapsed = reported("elapsed_ns", sink, || device.elapsed_ns(event(first), event(last)));
        code(elapsed.map(|ns| *result = ns))
    }
}

unsafe extern "C" fn begin_capture<D: DeviceKind>(
    state: *mut DeviceState,
    stream: *mut Stream,
    sink: *mut Sink,
) -> Code {
    // SAFETY: the host gives the state, a stream of the device and a sink.
    unsafe {
        let (device, stream) = device_and_stream::<D>(state, stream);
        code(reported("begin_capture", sink, || device.begin_capture(stream)))
    }
}

unsafe extern "C" fn end_capture<D: DeviceKind>(
    state: *mut DeviceState,
    stream: *mut Stream,
    result: *mut *mut CommandGraph,
    sink: *mut Sink,
) -> Code {
    // SAFETY: the host gives the state, a stream of the device, a place and a sink.
    unsafe {
        let (device, stream) = device_and_stream::<D>(state, stream);
        give("end_capture", result, sink, || device.end_capture(stream))
    }
}

unsafe extern "C" fn launch_recorded<D: DeviceKind>(
    state: *mut DeviceState,
    graph: *mut CommandGraph,
    stream: *mut Stream,
    sink: *mut Sink,
) -> Code {
    // SAFETY: the host gives the state, what `end_capture` gave, a stream of the device and a sink.
    unsafe {
        let (device, stream) = device_and_stream::<D>(state, stream);
        let recorded = &*graph.cast_const().cast::<Recorded>();
        code(reported("launch_recorded", sink, || device.launch_recorded(recorded, stream)))
    }
}

unsafe extern "C" fn destroy_recorded(_state: *mut DeviceState, graph: *mut CommandGraph) {
    // SAFETY: the host gives back what `end_capture` gave, once.
    drop(unsafe { Box::from_raw(graph.cast::<Recorded>()) });
}
