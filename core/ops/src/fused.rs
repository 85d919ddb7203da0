//! Ops that fusion creates from several ops: definitions and shape functions. They are not meant to
//! be written in a graph by hand; the pass `remapping` inserts them if a device has a kernel for
//! them.
//!
//! Names and attributes are TensorFlow's if it has the op (`_FusedMatMul`, `_FusedConv2D`,
//! `_FusedDepthwiseConv2dNative`). `tenon_geometry::fused` parses the attributes `fused_ops` and
//! `program`.
//!
//! **Results.** A fused op gives the results of its single ops in sequence. In between, it may keep
//! a type wider than the element type and round once at the end: its kernels state the tolerance.
//! Only `_FusedElementwise` rounds after each instruction. NaN and infinities propagate as in the
//! single ops.

mod attention;
mod conv;
mod descent;
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
