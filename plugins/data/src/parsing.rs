//! Tensors from serialised messages, and from raw and compressed bytes.
//!
//! `example` reads the features of an example, `column` holds values of many examples, `features` says
//! what is wanted of each example and gives the outputs; `ops` has the kernels of examples, `sequence`
//! that of sequence examples, `json` makes examples of texts, `tensor` those of serialised tensors, `raw` those of raw and compressed bytes.

mod column;
mod example;
mod features;
mod json;
mod ops;
mod raw;
mod sequence;
pub mod tensor;
