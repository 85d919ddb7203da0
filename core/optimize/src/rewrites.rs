//! Rules that replace one op by others. They know ops by name, as `failures.rs` does.
//!
//! All other code uses an op's facts ([`OpFacts`](tenon_framework::op::OpFacts)), so that it works
//! for the ops of plugins as well.

mod arithmetic;
mod elementwise_fusion;
mod layout;
mod recompute;

pub(crate) use arithmetic::Arithmetic;
pub(crate) use elementwise_fusion::ElementwiseFusion;
pub(crate) use layout::Layout;
pub(crate) use recompute::Recompute;
