//! Tenon's standard op set: definitions and shape functions, without kernels.
//!
//! There is one file or folder per family, each with op definitions, shape functions and tests, in
//! this order. Names, attributes, allowed types and defaults are TensorFlow's, so that its graphs
//! can be read unchanged; `testdata/standard_ops.json` has them as in TensorFlow 2.21.0, and a test
//! compares them. Shape functions check what TensorFlow's check; the arithmetic is in
//! `tenon_geometry`, which kernels use too.
//!
//! The definitions register themselves with the library that this crate is linked into. The linker
//! drops a crate that is never referred to, so a user of the definitions must call [`link`].
//!
//! ```
//! tenon_ops::link();
//! assert!(tenon_framework::reg::registrations().len() > 70);
//! ```

mod array;
mod control_flow;
mod fft;
mod fused;
mod image;
mod io;
mod linalg;
mod logging;
mod math_binary;
mod math_unary;
mod nn;
mod nn_grad;
mod quantization;
mod random;
mod reduction;
mod sendrecv;
mod shape;
mod string;
#[cfg(test)]
mod testing;

/// Refers to this crate, so that the linker keeps its registrations; it does nothing else.
pub fn link() {}

#[cfg(test)]
mod signatures;
