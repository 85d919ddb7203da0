//! Ops that fusion makes of several: definitions and shape functions. Nobody writes them into a graph by hand;
//! the pass `remapping` puts them where a device has a kernel for them.
//!
//! Names and attributes are TensorFlow's where it has the op (`_FusedMatMul`, `_FusedConv2D`,
//! `_FusedDepthwiseConv2dNative`). What the attributes `fused_ops` and `program` say is read by
//! `tenon_geometry::fused`.
//!
//! **Results.** A fused op gives what the ops that it stands for give one after the other. Between them it may
//! keep a wider type than the element type and round once at the end: its kernels state the tolerance. Only
//! `_FusedElementwise` rounds after each instruction. NaN and infinities go the same way as through the single
//! ops.

mod attention;
mod conv;
mod elementwise;
mod epilogue;
mod matmul;
mod norm;
mod patterns;
mod quantized;
mod quantized_between;
mod quantized_conv;

#[cfg(test)]
mod tests;
