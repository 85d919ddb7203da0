//! Summaries as serialised messages: tensorflow/core/framework/summary.proto.
//!
//! `message` has the fields of the messages; `values` has scalars, histograms and merged summaries,
//! `tensors` tensors, and `audio` clips of sound.

mod audio;
mod histogram;
mod message;
mod tensors;
mod values;
