//! Kernels by op family, with the stems of the files that define the ops.

pub mod array;
pub mod cast;
pub mod elementary;
pub mod elementwise;
mod fused;
pub mod linalg;
pub mod math_binary;
pub mod math_unary;
pub mod nn;
mod random;
mod recurrent;
pub mod reduction;
mod reference;
mod speech;
