//! Fused ops: a product, its zero points, its bias and its way to the output's type in one call; and what stands
//! between products without leaving 8 bits.

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
