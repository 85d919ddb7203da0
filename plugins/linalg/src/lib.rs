//! Decompositions, solvers and inverses of matrices on the CPU.
//!
//! What it is: a plugin with these kernels for device type `CPU`, through `faer`. `scalar` has the
//! number types and the operations on matrices of them, which `real` and `complex` implement, with
//! the loops of `plain` for triangles of complex and of small matrices, those of `few` for matrices
//! of few elements, on the stack, and those of `small` for small real ones; `range` brings matrices
//! into the range in which they work; `schur` has triangles that any square matrix is similar to;
//! `batch` loops over the matrices of a tensor; the other files are the ops. It is a plugin of its
//! own so that a build without decompositions does not compile `faer`.
//!
//! What it is not: products of matrices, diagonals and bands, which are in plugins/cpu, as is the
//! device type.
//!
//! # Invariants
//! - `faer` runs on one thread: the matrices of a batch are spread over the host's threads, one
//!   large matrix is not.
//! - A matrix is multiplied only by powers of two before it is decomposed, which rounds nothing.
//! - Complex triangles are solved by loops of this crate, since `faer`'s complex reciprocal is
//!   wrong for some numbers (core/docs/decisions/heavy-libraries-apart.md).

mod banded;
mod batch;
mod cholesky;
mod cholesky_grad;
mod complex;
mod eig;
mod eigen;
mod few;
mod functions;
mod least_squares;
mod lu;
mod plain;
mod qr;
mod range;
mod real;
mod scalar;
mod schur;
mod small;
mod svd;
#[cfg(test)]
mod tests;
mod triangular;
mod tridiagonal;

tenon_sdk::export_plugin!();
tenon_sdk::kernels_check_shapes!();
