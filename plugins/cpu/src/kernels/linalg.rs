//! Matrix products ([`product`] is the algorithm, [`matmul`] and [`batch_matmul`] are ops), and
//! diagonals. Ops that need a decomposition are in plugins/linalg.

pub mod batch_matmul;
#[cfg(target_arch = "x86_64")]
pub mod bf16_dot;
mod cross;
mod diag;
mod einsum;
pub mod gemm;
pub mod matmul;
pub mod product;
mod tile;
