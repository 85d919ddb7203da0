//! Decompositions, solvers and inverses of matrices on the CPU, as a separate plugin so that
//! programs without them do not compile `faer`.
//!
//! Its kernels are for device type `CPU`, which plugins/cpu registers. `scalar` defines the numbers
//! and the operations on their matrices, which `real` and `complex` implement; `range` scales
//! matrices into the range of these implementations; `batch` is the matrices of a tensor and the
//! loop over them; the other files are the ops. `faer` runs on one thread: matrices of a batch are
//! distributed over the host's threads, one large matrix is not.

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
