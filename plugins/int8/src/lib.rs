//! Quantised kernels on the CPU, as gemmlowp stands for them: zero points, accumulators of 32 bits, output in
//! fixed point. The arithmetic is written down in `docs/quantization.md`.
//!
//! Its kernels are for device type `CPU`, which plugins/cpu brings.

pub mod accumulate;
mod constant;
mod convolution;
pub mod depthwise;
mod fused;
pub mod isa;
mod kept;
mod kernels;
pub mod output;
pub mod pack;
pub mod product;
pub mod residual;
mod spread;
pub mod vector;
pub mod windows;

tenon_sdk::export_plugin!();
tenon_sdk::kernels_check_shapes!();
