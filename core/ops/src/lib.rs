//! Tenon's standard op set: definitions and shape functions, no code that computes.
//!
//! One file or folder per family, each in the order op definitions, shape functions, tests. Names, attributes,
//! allowed types and defaults are TensorFlow's, so that a graph of TensorFlow is read as it is;
//! `testdata/standard_ops.json` has them as TensorFlow 2.21.0 gives them, and a test compares. Shape
//! functions check what TensorFlow's check; the arithmetic is `tenon_geometry`'s, which kernels use
//! too.
//!
//! The definitions register themselves with the library that this crate is linked into. A linked crate that
//! nobody names contributes nothing: whoever relies on them calls [`link`].
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

/// Does nothing but name this crate, without which the linker would drop its registrations.
pub fn link() {}

#[cfg(test)]
mod signatures;
