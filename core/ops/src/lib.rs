//! Tenon's standard op set: definitions and shape functions.
//!
//! What it is: one file or folder for each op family, in the order op definitions, shape functions,
//! tests. The definitions register themselves with the library that this crate is linked into.
//!
//! What it is not: code that computes. Kernels are in plugins, in a file of the same stem, and the
//! reference kernels in `tenon-reference`. The arithmetic of shapes is that of `tenon-geometry`,
//! which kernels use too.
//!
//! # Invariants
//! - The names, attributes, allowed types and defaults of standard ops are TensorFlow's, so that
//!   its graphs are read as they are. A test compares them with `testdata/standard_ops.json`, which
//!   has them as TensorFlow 2.21.0 gives them.
//! - A shape function checks what TensorFlow's checks.
//! - Each op states its facts in its registration; passes have no lists of op names.
//! - The linker drops a crate that nothing refers to, and its registrations with it. A program that
//!   relies on the standard ops calls [`link`].
//!
//! ```
//! tenon_ops::link();
//! assert!(tenon_author::reg::registrations().len() > 70);
//! ```

mod array;
mod audio;
mod checkpoint;
mod collective;
mod control_flow;
mod data_flow;
mod dataset;
mod fft;
mod functional;
mod fused;
mod gradients;
mod image;
mod io;
mod linalg;
mod logging;
mod math_binary;
mod math_unary;
mod nn;
mod nn_grad;
mod parsing;
mod quantization;
mod ragged;
mod random;
mod reader;
mod recurrent;
mod reduction;
mod sendrecv;
mod shape;
mod sparse;
mod speech;
mod state;
mod string;
mod summary;
mod table;
#[cfg(test)]
mod testing;
mod training;

/// Refers to this crate, so that the linker keeps its registrations; it does nothing else.
pub fn link() {}

#[cfg(test)]
mod signatures;
