//! Commands that are recorded once and run again: [`DeviceCapture`].

use super::{
    DeviceStreams,
    entries::{code, device_and_stream, give, reported, take},
    roles::Roles,
};
use tenon_abi::{
    Code, CommandGraph, DeviceState, ExtCapture, ExtHeader, Sink, Stream, ext_tags,
    layout::EXT_CAPTURE,
};
use tenon_framework::KernelError;

/// A device type that records commands and runs them again ([`tenon_abi::ExtCapture`]). Without this trait the host
/// enqueues every command of every step.
///
/// Beside [`DeviceStreams`], this is all that is needed: a registration finds the implementation.
pub trait DeviceCapture: DeviceStreams {
    /// Commands that were recorded. They do not run when they are dropped.
    type Recorded: Send + Sync + 'static;

    /// Begins a recording: commands that are enqueued on the stream are recorded instead of run. So are commands on
    /// streams that wait for an event recorded on this stream in the meantime.
    ///
    /// # Errors
    /// Whatever goes wrong.
    fn begin_capture(&self, stream: &Self::Stream) -> Result<(), KernelError>;

    /// Ends the recording that `begin_capture` began, also after an error.
    ///
    /// # Errors
    /// The reason why nothing was recorded; nothing was run either.
    fn end_capture(&self, stream: &Self::Stream) -> Result<Self::Recorded, KernelError>;

    /// Enqueues all recorded commands.
    ///
    /// # Errors
    /// Whatever goes wrong.
    fn launch_recorded(
        &self,
        recorded: &Self::Recorded,
        stream: &Self::Stream,
    ) -> Result<(), KernelError>;
}

impl<D: DeviceCapture> Roles<D> {
    /// The link, without a next one.
    pub const CAPTURE: Option<ExtCapture> = Some(ExtCapture {
        header: ExtHeader::new(ext_tags::CAPTURE, 1, &EXT_CAPTURE),
        begin: Some(begin_capture::<D>),
        end: Some(end_capture::<D>),
        launch: Some(launch_recorded::<D>),
        destroy: Some(destroy_recorded::<D>),
    });
}

unsafe extern "C" fn begin_capture<D: DeviceCapture>(
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

unsafe extern "C" fn end_capture<D: DeviceCapture>(
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

unsafe extern "C" fn launch_recorded<D: DeviceCapture>(
    state: *mut DeviceState,
    graph: *mut CommandGraph,
    stream: *mut Stream,
    sink: *mut Sink,
) -> Code {
    // SAFETY: the host gives the state, what `end_capture` gave, a stream of the device and a sink.
    unsafe {
        let (device, stream) = device_and_stream::<D>(state, stream);
        let recorded = &*graph.cast_const().cast::<D::Recorded>();
        code(reported("launch_recorded", sink, || device.launch_recorded(recorded, stream)))
    }
}

unsafe extern "C" fn destroy_recorded<D: DeviceCapture>(
    _state: *mut DeviceState,
    graph: *mut CommandGraph,
) {
    // SAFETY: the host gives back what `end_capture` gave, once.
    unsafe { take::<D::Recorded, _>("destroy_recorded", graph, drop) }
}
