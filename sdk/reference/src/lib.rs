//! Plain kernels that specify the standard ops.
//!
//! What it is: short, pure functions without tricks, one file for each op family, with the stem of
//! the file that defines the ops. Fast kernels are compared with these and with the golden data,
//! never with each other.
//!
//! What it is not: a plugin. These functions register nothing: plugins/cpu registers them under the
//! label `reference`, and plugins/accel computes with them. They are not fast.
//!
//! # Invariants
//! - Inputs and outputs are dense row-major slices. Shapes and attributes come as the plans and
//!   geometries of [`tenon_geometry`], whose constructors do all the checking: a kernel trusts that
//!   the slices have the lengths that its geometry says. It returns no error, and panics only where
//!   that is broken.
//! - Integers wrap. Sums of floats, of whatever width, are kept in `f64` and rounded once at the
//!   end ([`Accumulate`]), and elementary functions are computed in `f64`: the results are as good
//!   as the output type can hold. TensorFlow keeps sums of `f32` in `f32`, and some of `half` in
//!   `half`, so it loses digits, and overflows, where this does not.
//! - NaN, infinities and empty inputs behave as in TensorFlow's own CPU kernels (without oneDNN);
//!   each function says how where that is not obvious. The sign of a zero that comes out of a
//!   comparison (`Relu`, `Maximum`) is not specified.
//!
//! ```
//! use tenon_geometry::BroadcastPlan;
//! use tenon_reference::math_binary::add;
//!
//! let plan = BroadcastPlan::new([&[2, 2], &[2]])?;
//! let mut z = [0.0f32; 4];
//! add(&plan, &[1.0, 2.0, 3.0, 4.0], &[10.0, 20.0], &mut z);
//! assert_eq!(z, [11.0, 22.0, 13.0, 24.0]);
//! # Ok::<(), tenon_geometry::GeometryError>(())
//! ```

mod accumulate;
pub mod array;
pub mod cast;
pub mod complex;
pub mod linalg;
pub mod math_binary;
pub mod math_unary;
pub mod nn;
pub mod reduction;
pub mod special;

pub use accumulate::{Accumulate, LowestFinite};
