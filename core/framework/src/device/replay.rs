//! Optional abilities of local devices: they note when commands ran, and run recorded commands again.
//!
//! [`LocalDevice::timers`](super::base::LocalDevice::timers) and
//! [`LocalDevice::replay`](super::base::LocalDevice::replay) lead here.

use super::base::{EventId, StreamId};
use crate::KernelError;
use std::ptr::NonNull;
use tenon_abi::CommandGraph;

/// Events that note the time.
pub trait Timers: Send + Sync {
    /// Makes one; the caller owns it. It is recorded and destroyed as other events are.
    ///
    /// # Errors
    /// What the plugin says.
    fn create_timer(&self) -> Result<EventId, KernelError>;

    /// Nanoseconds from one to a later one; both were made here and have happened.
    ///
    /// # Errors
    /// What the plugin says.
    fn elapsed_ns(&self, first: EventId, last: EventId) -> Result<u64, KernelError>;
}

/// Commands of a device that were recorded. A plain name: the owner destroys the thing once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GraphId {
    device: u64,
    raw: NonNull<CommandGraph>,
}

// SAFETY: a name of a thing that devices let any thread use.
unsafe impl Send for GraphId {}
// SAFETY: as above.
unsafe impl Sync for GraphId {}

impl GraphId {
    /// Names a graph of the device with this number.
    ///
    /// # Safety
    /// `raw` came from the device's `end`, and lives until the owner destroys it.
    pub unsafe fn new(device: u64, raw: NonNull<CommandGraph>) -> GraphId {
        GraphId { device, raw }
    }

    /// [`LocalDevice::number`](super::base::LocalDevice::number) of its device.
    pub fn device(self) -> u64 {
        self.device
    }

    /// The plugin's pointer.
    pub fn as_raw(self) -> *mut CommandGraph {
        self.raw.as_ptr()
    }
}

/// Commands that are recorded once and run again with one call.
///
/// # Invariants
/// - Between [`Replay::begin_capture`] and [`Replay::end_capture`], no command that is enqueued on the stream runs, and no
///   code waits for the stream or queries its events.
/// - Recorded commands use addresses and arguments as they were: code that runs them again makes sure that these
///   still have the same meaning.
pub trait Replay: Send + Sync {
    /// Begins a recording: commands that are enqueued on the stream are recorded instead of run. So are commands on
    /// streams that wait for an event recorded on this stream in the meantime; these are joined again before the end.
    ///
    /// # Errors
    /// What the plugin says.
    fn begin_capture(&self, stream: StreamId) -> Result<(), KernelError>;

    /// Ends the recording; the caller owns the graph.
    ///
    /// # Errors
    /// The reason why nothing was recorded; nothing was run either, and the stream is as before.
    fn end_capture(&self, stream: StreamId) -> Result<GraphId, KernelError>;

    /// Enqueues all recorded commands.
    ///
    /// # Errors
    /// What the plugin says.
    ///
    /// # Safety
    /// Addresses that were recorded are valid for what was recorded with them, and stay so until it is done.
    unsafe fn launch(&self, graph: GraphId, stream: StreamId) -> Result<(), KernelError>;

    /// Destroys a graph.
    ///
    /// # Safety
    /// It does not run, and no copy of `graph` is used from here on.
    unsafe fn destroy_graph(&self, graph: GraphId);
}
