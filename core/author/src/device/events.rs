//! Events of a device: [`DeviceEvents`].

use super::{
    DeviceStreams, device_of,
    entries::{code, device_and_stream, give, logged, take},
    roles::{NO_ENTRIES, Roles},
};
use tenon_abi::{Code, DeviceState, DeviceTable, Event, Sink, Stream};
use tenon_framework::KernelError;

/// A device type with points in a stream that other streams wait for. Without this trait the host uses one stream of a
/// device, because nothing would order one stream behind another.
///
/// Beside [`DeviceStreams`], this is all that is needed: a registration finds the implementation.
pub trait DeviceEvents: DeviceStreams {
    /// An event.
    type Event: Send + Sync + 'static;

    /// Makes an event. An event that was never recorded counts as happened.
    ///
    /// # Errors
    /// Whatever goes wrong.
    fn create_event(&self) -> Result<Self::Event, KernelError>;

    /// Destroys an event that no stream waits for.
    fn destroy_event(&self, event: Self::Event) {
        drop(event);
    }

    /// Records the event: it happens once all that was enqueued on the stream so far is done. A later
    /// recording replaces an earlier one.
    ///
    /// # Errors
    /// Whatever goes wrong; only the code reaches the host.
    fn record_event(&self, event: &Self::Event, stream: &Self::Stream) -> Result<(), KernelError>;

    /// Makes the stream wait for the event's last recording so far, without blocking the caller.
    ///
    /// # Errors
    /// Whatever goes wrong; only the code reaches the host.
    fn wait_event(&self, stream: &Self::Stream, event: &Self::Event) -> Result<(), KernelError>;

    /// Whether the event's last recording has happened.
    ///
    /// # Errors
    /// The first error of the stream before the recording; only the code reaches the host.
    fn query_event(&self, event: &Self::Event) -> Result<bool, KernelError>;
}

/// An event, as the host names it.
///
/// # Safety
/// `event` is one that the entry `create_event` or `create_timer` of `D` made, alive for `'a`.
pub(super) unsafe fn event_of<'a, D: DeviceEvents>(event: *mut Event) -> &'a D::Event {
    // SAFETY: both entries box a `D::Event`, and the caller keeps the event alive for `'a`.
    unsafe { &*event.cast_const().cast::<D::Event>() }
}

impl<D: DeviceEvents> Roles<D> {
    /// The entries for events.
    pub const EVENTS: DeviceTable = DeviceTable {
        create_event: Some(create_event::<D>),
        destroy_event: Some(destroy_event::<D>),
        record_event: Some(record_event::<D>),
        wait_event: Some(wait_event::<D>),
        query_event: Some(query_event::<D>),
        ..NO_ENTRIES
    };
}

unsafe extern "C" fn create_event<D: DeviceEvents>(
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

unsafe extern "C" fn destroy_event<D: DeviceEvents>(state: *mut DeviceState, event: *mut Event) {
    // SAFETY: the host gives the state, and back what `create_event` or `create_timer` gave.
    unsafe {
        let device = device_of::<D>(state);
        take::<D::Event, _>("destroy_event", event, |event| device.destroy_event(event));
    }
}

unsafe extern "C" fn record_event<D: DeviceEvents>(
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

unsafe extern "C" fn wait_event<D: DeviceEvents>(
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

unsafe extern "C" fn query_event<D: DeviceEvents>(
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
