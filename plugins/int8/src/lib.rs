//! Quantised kernels on the CPU, in gemmlowp's arithmetic: zero points, 32-bit accumulators,
//! fixed-point output.
//!
//! What it is: a plugin with the kernels of quantised ops for device type `CPU`. A product has
//! three stages. [`pack`] lays both factors out for the instructions of [`isa`] and sums their rows
//! and columns; [`accumulate`] multiplies the packed panels; [`output`] subtracts the terms of the
//! zero points, scales, and clamps. [`windows`] and [`depthwise`] feed convolutions to the same
//! stages. The registrations are in `kernels`, and the arithmetic is written down in
//! `docs/quantization.md`.
//!
//! What it is not: the device type, which plugins/cpu brings, or the quantising of a graph of
//! floats, which `tenon-quantize` does. The formulas of the output stages are in
//! `tenon_sdk::fixed_point`, for other plugins too.
//!
//! # Invariants
//! - Every instruction set gives the same bits: sums of integers are exact, and `output` rounds as
//!   the reference does.
//! - An accumulator can hold the largest sum of its depth; a kernel refuses a shape for which it
//!   could not.
//! - The number of threads does not change a result.
//! - Code of an instruction set runs only after this CPU was found to have it.

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
