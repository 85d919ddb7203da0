//! The standard ops on quantised types, with TensorFlow's formulas: `range` has the formulas of
//! ranges and codes, `channels` the loops over elements, `products` the sums of products of codes.
//! The other files are ops.

pub mod channels;
mod concat;
mod conv;
mod dequantize;
mod elements;
mod fake;
mod matmul;
pub mod pairs;
pub mod pool;
mod products;
mod quantize;
pub mod range;
mod requantize;
mod requantize_channels;
mod round_trip;
mod round_trip_grad;
mod rounding;
