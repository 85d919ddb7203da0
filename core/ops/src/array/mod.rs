//! Tensors as arrays: sources, copies, shapes, joining and cutting.

mod identity;
mod join;
mod part;
mod query;
mod reshape;
mod source;

#[cfg(test)]
mod value_tests;
