//! Streams of a device: [`DeviceStreams`].

use super::{
    DeviceKind, device_of,
    entries::{code, device_and_stream, give, logged, reported, take},
    roles::{NO_ENTRIES, Roles},
};
use std::ffi::c_void;
use tenon_abi::{Code, DeviceState, DeviceTable, Notify, Sink, Stream};
use tenon_framework::KernelError;

/// A device type whose kernels and copies are enqueued on streams. Without this trait each of them is done when it
/// returns.
///
/// Beside [`DeviceKind`], this is all that is needed: a registration finds the implementation.
pub trait DeviceStreams: DeviceKind {
    /// Makes a stream.
    ///
    /// # Errors
    /// Whatever goes wrong.
    fn create_stream(&self) -> Result<Self::Stream, KernelError>;

    /// Destroys a stream that has nothing enqueued.
    fn destroy_stream(&self, stream: Self::Stream) {
        drop(stream);
    }

    /// Waits until all commands that were enqueued on the stream are done. On a lost device, waits only for commands
    /// that have begun; the host calls this before it gives back memory that they use.
    ///
    /// # Errors
    /// The stream's first error, which stays until the stream is destroyed; `UNAVAILABLE` on a lost device.
    fn synchronize_stream(&self, stream: &Self::Stream) -> Result<(), KernelError>;

    /// Has `done` run, with the stream's first error or `OK`, once all that was enqueued so far is done;
    /// does not block. A notification that is dropped without it runs with `INTERNAL`.
    fn notify(&self, stream: &Self::Stream, done: Notification);

    /// Waits until the whole device is idle.
    ///
    /// # Errors
    /// The first error of any stream.
    fn synchronize(&self) -> Result<(), KernelError>;
}

/// A call that the device has to make to the host exactly once. If it is dropped unused, it is made with `INTERNAL`.
#[derive(Debug)]
pub struct Notification {
    run: Option<unsafe extern "C" fn(data: *mut c_void, code: Code)>,
    data: *mut c_void,
}

// SAFETY: the host takes the call from any thread.
unsafe impl Send for Notification {}

impl Notification {
    /// Wraps what the host gave.
    ///
    /// # Safety
    /// `notify` may be called once with `data`, from any thread, at any later time.
    pub unsafe fn new(notify: Notify, data: *mut c_void) -> Notification {
        Notification { run: notify.run, data }
    }

    /// Reports to the host that all commands enqueued before are done, or that one failed with this code.
    pub fn run(mut self, code: Code) {
        self.tell(code);
    }

    fn tell(&mut self, code: Code) {
        if let Some(run) = self.run.take() {
            // SAFETY: the promise of `new`; `take` makes it once.
            unsafe { run(self.data, code) }
        }
    }
}

impl Drop for Notification {
    fn drop(&mut self) {
        self.tell(Code::INTERNAL);
    }
}

impl<D: DeviceStreams> Roles<D> {
    /// The entries for streams.
    pub const STREAMS: DeviceTable = DeviceTable {
        create_stream: Some(create_stream::<D>),
        destroy_stream: Some(destroy_stream::<D>),
        synchronize_stream: Some(synchronize_stream::<D>),
        notify: Some(notify::<D>),
        synchronize: Some(synchronize::<D>),
        ..NO_ENTRIES
    };
}

unsafe extern "C" fn create_stream<D: DeviceStreams>(
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

unsafe extern "C" fn destroy_stream<D: DeviceStreams>(
    state: *mut DeviceState,
    stream: *mut Stream,
) {
    // SAFETY: the host gives the state, and back what `create_stream` gave.
    unsafe {
        let device = device_of::<D>(state);
        take::<D::Stream, _>("destroy_stream", stream, |stream| device.destroy_stream(stream));
    }
}

unsafe extern "C" fn synchronize_stream<D: DeviceStreams>(
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

unsafe extern "C" fn notify<D: DeviceStreams>(
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

unsafe extern "C" fn synchronize<D: DeviceStreams>(
    state: *mut DeviceState,
    sink: *mut Sink,
) -> Code {
    // SAFETY: the host gives the state and a sink.
    unsafe {
        let device = device_of::<D>(state);
        code(reported("synchronize", sink, || device.synchronize()))
    }
}
