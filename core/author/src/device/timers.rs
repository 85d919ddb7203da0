//! Events that note the time: [`DeviceTimers`].

use super::{
    DeviceEvents, device_of,
    entries::{code, give, reported},
    events::event_of,
    roles::Roles,
};
use tenon_abi::{
    Code, DeviceState, Event, ExtHeader, ExtTimers, Sink, ext_tags, layout::EXT_TIMERS,
};
use tenon_framework::KernelError;

/// A device type whose events can note when they happen. Traces then show when the device ran a command, and without
/// this trait when the host learned that it is done.
///
/// Beside [`DeviceEvents`], this is all that is needed: a registration finds the implementation.
pub trait DeviceTimers: DeviceEvents {
    /// Makes an event that notes when it happens; it is recorded and destroyed like others.
    ///
    /// # Errors
    /// Whatever goes wrong.
    fn create_timer(&self) -> Result<Self::Event, KernelError>;

    /// Nanoseconds from one such event to a later one; both have happened.
    ///
    /// # Errors
    /// Whatever goes wrong.
    fn elapsed_ns(&self, first: &Self::Event, last: &Self::Event) -> Result<u64, KernelError>;
}

impl<D: DeviceTimers> Roles<D> {
    /// The link, without a next one.
    pub const TIMERS: Option<ExtTimers> = Some(ExtTimers {
        header: ExtHeader::new(ext_tags::TIMERS, 1, &EXT_TIMERS),
        create: Some(create_timer::<D>),
        elapsed_ns: Some(elapsed_ns::<D>),
    });
}

unsafe extern "C" fn create_timer<D: DeviceTimers>(
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

unsafe extern "C" fn elapsed_ns<D: DeviceTimers>(
    state: *mut DeviceState,
    first: *mut Event,
    last: *mut Event,
    result: *mut u64,
    sink: *mut Sink,
) -> Code {
    // SAFETY: the host gives the state, two events of the device, a place and a sink.
    unsafe {
        let device = device_of::<D>(state);
        let (first, last) = (event_of::<D>(first), event_of::<D>(last));
        let elapsed = reported("elapsed_ns", sink, || device.elapsed_ns(first, last));
        code(elapsed.map(|ns| *result = ns))
    }
}
