//! Fused ops: a product with its zero points, bias and output stage in one call; and 8-bit ops
//! between products.

mod add;
mod affine;
mod average;
mod conv;
mod depthwise;
mod lookup;
mod matmul;
mod mean;
mod parameters;
mod product;
mod scales;
