//! Functions of one number.

mod complex;
mod elementary;
mod functions;
mod periodic;
mod rounding;

pub use elementary::{Exp, Log, Neg, Rsqrt, Sigmoid, Sqrt, Square, Tanh};
pub use rounding::{Signed, Whole};
