//! Decompositions, solvers and inverses of matrices on the CPU: a plugin of its own, so that who needs none
//! does not compile `faer`.
//!
//! Its kernels are for device type `CPU`, which plugins/cpu brings. `scalar` is the numbers and what is done with
//! matrices of them, `real` and `complex` do it, and `range` brings matrices into the range where they can; `batch` is
//! the matrices of a tensor and the loop over them; the other files are the ops. `faer` runs on one thread: matrices of a batch are spread over the host's threads, one
//! large matrix is not.

mod batch;
mod cholesky;
mod complex;
mod eigen;
mod lu;
mod qr;
mod range;
mod real;
mod scalar;
mod svd;
#[cfg(test)]
mod tests;
mod triangular;

tenon_sdk::export_plugin!();
tenon_sdk::kernels_check_shapes!();
