//! Fused ops: a product, its zero points, its bias and its way to the output's type in one call.

mod conv;
mod depthwise;
mod matmul;
mod parameters;
