//! Services that plugins reach through the host's table: strings, kept tensors, state.

pub mod buffers;
pub mod state;
pub mod strings;
