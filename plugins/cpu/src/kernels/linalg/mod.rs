//! Matrix products: [`product`] is the algorithm, [`matmul`] and [`batch_matmul`] are ops; and diagonals. What needs
//! a decomposition is in plugins/linalg.

pub mod batch_matmul;
mod cross;
mod diag;
mod einsum;
pub mod gemm;
pub mod matmul;
pub mod product;
mod tile;
