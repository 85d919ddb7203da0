//! CUDA graphs: commands recorded once, and replayed with one call.
//!
//! What must not be recorded is refused while a stream records: the driver refuses waits; this
//! plugin refuses work of the host that follows a command (notifications, staging of ordinary host
//! memory). The step then runs without a recording. Memory that is allocated and freed on a
//! recording stream becomes part of the graph.

use super::{context::Context, foreign, stream::Stream};
use cudarc::driver::sys::{self, CUgraph, CUgraphExec, CUresult, CUstreamCaptureMode};
use std::sync::Arc;
use tenon_sdk::KernelError;

/// An executable graph: commands that were recorded.
pub struct Graph {
    context: Arc<Context>,
    raw: CUgraphExec,
}

// SAFETY: the driver's handles may be used from any thread; the host does not run a graph
// concurrently with itself.
unsafe impl Send for Graph {}
// SAFETY: as for `Send`.
unsafe impl Sync for Graph {}

/// Starts recording. Other threads and other streams are unaffected.
pub(super) fn begin(stream: &Stream) -> Result<(), KernelError> {
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    // SAFETY: a stream of this context.
    let begin = || unsafe { sys::cuStreamBeginCapture_v2(stream.raw(), mode) };
    stream.context().call("cuStreamBeginCapture", begin)
}

/// Ends the recording, and instantiates the recorded graph.
pub(super) fn end(stream: &Stream) -> Result<Graph, KernelError> {
    let context = stream.context();
    let mut recorded: CUgraph = std::ptr::null_mut();
    // SAFETY: a stream of this context; the result pointer is valid for writes.
    let end = || unsafe { sys::cuStreamEndCapture(stream.raw(), &mut recorded) };
    context.call("cuStreamEndCapture", end)?;
    if recorded.is_null() {
        return Err(KernelError::internal("cuStreamEndCapture: the driver recorded nothing"));
    }
    let mut raw: CUgraphExec = std::ptr::null_mut();
    // SAFETY: the graph was just recorded; the result pointer is valid for writes.
    let make = || unsafe { sys::cuGraphInstantiateWithFlags(&mut raw, recorded, 0) };
    let made = context.call("cuGraphInstantiate", make);
    // SAFETY: the executable graph is a copy; nothing else refers to the recorded one.
    context.release(|| unsafe { sys::cuGraphDestroy(recorded) });
    made.map(|()| Graph { context: Arc::clone(context), raw })
}

impl Graph {
    /// Enqueues the whole graph.
    pub(super) fn launch(&self, stream: &Stream) -> Result<(), KernelError> {
        if !Arc::ptr_eq(&self.context, stream.context()) {
            return Err(foreign("a stream"));
        }
        // SAFETY: graph and stream are of this context; the host keeps the recorded addresses
        // valid.
        let launch = || unsafe { sys::cuGraphLaunch(self.raw, stream.raw()) };
        self.context.call("cuGraphLaunch", launch)
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        self.context.release(|| match self.raw.is_null() {
            true => CUresult::CUDA_SUCCESS,
            // SAFETY: this object owns the graph, and it does not run.
            false => unsafe { sys::cuGraphExecDestroy(self.raw) },
        });
    }
}
