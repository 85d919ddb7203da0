//! Quantised kernels on the CPU, with gemmlowp's arithmetic: zero points, 32-bit accumulators,
//! fixed-point output. `docs/quantization.md` defines the arithmetic.
//!
//! A product has three stages. [`pack`] lays both factors out for the instructions of [`isa`] and
//! sums their rows and columns; [`accumulate`] multiplies the packed panels; [`output`] corrects
//! for the zero points, scales, and clamps. [`windows`] and [`depthwise`] feed convolutions to the
//! same stages. `kernels` has the registrations.
//!
//! Its kernels are for device type `CPU`, which plugins/cpu registers. `tenon quantize` quantises
//! graphs of floats; that is not part of this plugin.
//!
//! # Invariants
//! - Every instruction set yields the same bits: integer sums are exact, and `output` rounds as the
//!   reference does.
//! - An accumulator holds the largest sum of its depth; the kernel refuses shapes for which it
//!   could not.

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
