//! Code that knows ops by name: rules that replace one op by others, and knowledge about when an op
//! fails beyond what it declares.
//!
//! All other code uses an op's facts ([`OpFacts`](tenon_framework::op::OpFacts)), so that it works
//! for the ops of plugins as well.

mod arithmetic;
mod elementwise_fusion;
mod failures;
mod layout;

pub(super) use arithmetic::Arithmetic;
pub(super) use elementwise_fusion::ElementwiseFusion;
pub(super) use failures::never_fails;
pub(super) use layout::Layout;
