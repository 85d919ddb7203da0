//! The host device and its kernels.
//!
//! What it is: device type `CPU`, which computes in the host's memory, on the host's threads, and
//! the fast kernels of the standard ops, one file for each op family in [`kernels`]. The reference
//! kernels are registered too, under the label `reference`. plugins/vectors compiles each loop for
//! AVX2 and AVX-512 and spreads it over threads, [`lane`] computes with 16-bit floats, and `panels`
//! shares memory among threads.
//!
//! What it is not: ops that only pass on, rename or describe a tensor (`Identity`, `Reshape`,
//! `Shape`, ...), which the host offers for every device type. Kernels for `CPU` that need heavy
//! libraries are plugins of their own: plugins/linalg, plugins/fft, plugins/text, plugins/image;
//! quantised kernels are in plugins/int8. Op definitions are in `core/ops`.
//!
//! # Invariants
//! - A kernel agrees with the golden data and with its reference kernel within its numerics
//!   contract, on every instruction set of this CPU.
//! - The number of threads does not change the result of a product or a fold of elements.
//! - A kernel labelled `reference` runs only when that label is asked for.
//! - Every kernel refuses the shapes that its op's shape function refuses.
//! - Threads that write one output write disjoint parts of it, which `split` hands out.

mod device;
pub mod kernels;
pub mod lane;
mod lists;
mod panels;
mod side;
mod stream;
#[cfg(test)]
mod testing;

pub use device::Cpu;
use tenon_vectors::split;
pub use tenon_vectors::{arch, vector};

tenon_sdk::export_plugin!();
tenon_sdk::kernels_check_shapes!();
