//! Summaries as serialised messages: tensorflow/core/framework/summary.proto.
//!
//! `message` has the fields of the messages; `values` has scalars, histograms and merged summaries,
//! `tensors` tensors, `images` images, and `audio` clips of sound. `file` has event files as resources, and `write` the
//! ops that write events to them.

mod audio;
mod file;
mod histogram;
mod images;
mod message;
mod tensors;
mod values;
mod write;
