//! What knows an op by its name: rules that put one op in the place of others, and what is known of when an op fails
//! beyond what its facts say.
//!
//! Everything outside this folder asks for an op's facts ([`OpFacts`](tenon_framework::op::OpFacts)), so that it
//! serves the ops of plugins as well.

mod arithmetic;
mod elementwise_fusion;
mod failures;
mod layout;

pub(super) use arithmetic::Arithmetic;
pub(super) use elementwise_fusion::ElementwiseFusion;
pub(super) use failures::never_fails;
pub(super) use layout::Layout;
