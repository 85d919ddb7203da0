//! Quantised kernels on the CPU, as gemmlowp stands for them: zero points, accumulators of 32 bits, output in
//! fixed point.
//!
//! Its kernels are for device type `CPU`, which plugins/cpu brings.

mod kernels;

tenon_sdk::export_plugin!();
