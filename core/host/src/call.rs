//! Calls: the host's record of one call, the values that it reads and writes, and the services that
//! a kernel reaches through it.
//!
//! The executor keeps one [`CallFrame`] per node in its pooled step state, so that a step in steady
//! state creates none; [`crate::instance`] creates one for a single call. Both use the services
//! here.

mod collectives;
mod env;
mod frame;
mod functions;
mod handover;
mod services;
mod ticket;
mod value;

pub use crate::{cancel::Cancellation, clock::monotonic_ns};
pub use collectives::COLLECTIVES;
pub use env::{CopySpan, StepEnv, TraceSink};
pub use frame::{AreRead, CallFrame, Completion, NodeInfo, OutputSpec};
pub(crate) use functions::functions_of;
pub use functions::{
    CallableFunction, FUNCTIONS, FunctionCall, FunctionEnd, FunctionTable, NodeFunctions,
};
pub use handover::Handover;
pub use services::{CALL_SERVICES, LoopBody};
pub(crate) use services::{OVER, input, output};
pub use ticket::Watch;
pub use value::{KEEP_BYTES, Value, fill_slot, is_handle};
