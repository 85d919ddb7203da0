//! Ops: definitions, the texts they are written in, and what they say about one node.
//!
//! An [`OpDef`] has no code that computes. [`OpDef::from_spec`] and [`OpDef::from_abi`] read the texts that
//! `REGISTER_OP` takes; [`infer_attrs`], [`apply_defaults`] and [`check_attrs`] complete and check the
//! attributes of a node; [`Signature::resolve`] gives its flat inputs and outputs. A [`Case`] says what inputs
//! are valid where the signature does not; a [`Bench`] which calls are worth measuring, and their work; [`OpFacts`] what
//! passes, placement and execution must know of the op.

mod attrs;
mod bench;
mod cases;
mod def;
mod error;
mod facts;
mod gradient;
mod naming;
pub(crate) mod raw;
mod remote;
mod signature;
mod spec;
mod value;

pub use attrs::{apply_defaults, check_attrs, infer_attrs};
pub use bench::{Bench, Formula, MAX_CALLS, Tensors};
pub use cases::{
    AttrChoice, Case, InputCase, Item, SizeChoice, Sizes, TensorCase, Term, TermRange, Values,
};
pub use def::{Allowed, ArgDef, ArgType, AttrDef, OpDef, SourceInfo};
pub use error::OpError;
pub use facts::{GradientRule, OpFacts, OpRole, Passed, Refusal, Symmetry, ValueRule};
pub use gradient::GradientFn;
pub use raw::{LinkError, RawError};
pub use remote::RemoteShape;
pub use signature::{MAX_VALUES, Signature};

#[cfg(test)]
mod tests;
