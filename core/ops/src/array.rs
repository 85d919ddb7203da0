//! Ops on tensors as arrays: sources, copies, shapes, joining and cutting.

mod format;
mod gather;
mod identity;
mod join;
mod part;
mod query;
mod repeat;
mod reshape;
mod reverse;
mod sequence;
mod slice;
mod source;
mod space;
mod split;
mod stitch;
mod unique;

pub(crate) use gather::check_updates;
pub(crate) use join::joined;
pub(crate) use reshape::reshape;

#[cfg(test)]
mod value_tests;
