//! CUDA graphs: commands recorded once, and run again with one call.
//!
//! What may not be recorded is refused while a stream records: waiting, by the driver; what the host does behind a
//! command (notifications, the stages of ordinary host memory), by this plugin. The step then goes on as ever. Memory that is allocated and freed on a recording stream becomes part of the graph.

use super::{context::Context, foreign, stream::Stream};
use cudarc::driver::sys::{self, CUgraph, CUgraphExec, CUresult, CUstreamCaptureMode};
use std::sync::Arc;
use tenon_sdk::KernelError;

/// A graph that is ready to run.
pub(super) struct Graph {
    context: Arc<Context>,
    raw: CUgraphExec,
}

// SAFETY: the driver's handles may be used from any thread; the host runs a graph once at a time.
unsafe impl Send for Graph {}
// SAFETY: as above.
unsafe impl Sync for Graph {}

/// Begins to record. Other threads may go on with whatever they do, other streams too.
pub(super) fn begin(stream: &Stream) -> Result<(), KernelError> {
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    // SAFETY: a stream of this context.
    let begin = || unsafe { sys::cuStreamBeginCapture_v2(stream.raw(), mode) };
    stream.context().call("cuStreamBeginCapture", begin)
}

/// Ends it, and makes what was recorded ready to run.
pub(super) fn end(stream: &Stream) -> Result<Graph, KernelError> {
    let context = stream.context();
    let mut recorded: CUgraph = std::ptr::null_mut();
    // SAFETY: a stream of this context, a place for the result.
    let end = || unsafe { sys::cuStreamEndCapture(stream.raw(), &mut recorded) };
    context.call("cuStreamEndCapture", end)?;
    if recorded.is_null() {
        return Err(KernelError::internal("cuStreamEndCapture: the driver recorded nothing"));
    }
    let mut raw: CUgraphExec = std::ptr::null_mut();
    // SAFETY: a graph that was just recorded, a place for the result.
    let make = || unsafe { sys::cuGraphInstantiateWithFlags(&mut raw, recorded, 0) };
    let made = context.call("cuGraphInstantiate", make);
    // SAFETY: the ready graph is a copy; nobody else knows this one.
    context.release(|| unsafe { sys::cuGraphDestroy(recorded) });
    made.map(|()| Graph { context: Arc::clone(context), raw })
}

impl Graph {
    /// Enqueues all of it.
    pub fn launch(&self, stream: &Stream) -> Result<(), KernelError> {
        if !Arc::ptr_eq(&self.context, stream.context()) {
            return Err(foreign("a stream"));
        }
        // SAFETY: a graph and a stream of this context; who launches answers for the addresses.
        let launch = || unsafe { sys::cuGraphLaunch(self.raw, stream.raw()) };
        self.context.call("cuGraphLaunch", launch)
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        self.context.release(|| match self.raw.is_null() {
            true => CUresult::CUDA_SUCCESS,
            // SAFETY: a graph of this object that does not run.
            false => unsafe { sys::cuGraphExecDestroy(self.raw) },
        });
    }
}
