//! The host device and its kernels.
//!
//! Device type `CPU` computes in the host's memory, on the host's threads. Its kernels are the fast
//! ones of the standard ops, one file per op family, and the reference kernels under the label
//! `reference`, which run only if asked for. [`arch`] compiles each loop for AVX2 and AVX-512;
//! [`lane`] computes with 16-bit floats; `split` and `panels` divide work and memory among threads.
//!
//! Ops that only return, rename or describe a tensor (`Identity`, `Reshape`, `Shape`, ...) are not
//! here: the host offers them for every device type.

pub mod arch;
mod device;
pub mod kernels;
pub mod lane;
mod panels;
mod side;
mod split;
mod stream;
#[cfg(test)]
mod testing;
pub mod vector;

pub use device::Cpu;

tenon_sdk::export_plugin!();
tenon_sdk::kernels_check_shapes!();
