//! Quantised kernels on the CPU, in gemmlowp's arithmetic: zero points, accumulators of 32 bits, output in
//! fixed point. The arithmetic is written down in `docs/quantization.md`.
//!
//! A product has three stages. [`pack`] lays both factors out for the instructions of [`isa`] and sums their rows and
//! columns; [`accumulate`] multiplies the packed panels; [`output`] subtracts what the zero points add, scales, and clamps.
//! [`windows`] and [`depthwise`] feed convolutions to the same stages. `kernels` are the registrations.
//!
//! Its kernels are for device type `CPU`, which plugins/cpu brings. What is not here: quantising a graph of floats, which is
//! `tenon quantize`.
//!
//! # Invariants
//! - Every instruction set gives the same bits: sums of integers are exact, and `output` rounds as the reference does.
//! - An accumulator holds the largest sum of its depth; where it could not, the kernel refuses the shape.

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
