//! Products of matrices.
//!
//! | file | what |
//! |---|---|
//! | `tiles.rs` | what a block computes: facts of the variants, and which one a product gets |
//! | `gemm.rs` | a product of any shape as a launch of `gemm.cu` |
//! | `epilogue.rs` | what follows a product, as defines and arguments of `epilogue.cuh` |
//! | `matmul.rs`, `batch_matmul.rs` | the ops, by these kernels |
//! | `cublaslt.rs` | the same ops by [`crate::cublaslt`]: label `cublaslt`, first where the library is there |
//! | `products.rs` | products by the library, and by the kernels here where it has no algorithm |
//! | `fused.rs` | which steps the library does within a product |
//! | `after.rs` | the other steps, behind a product that the library has written |
//!
//! Integers are multiplied here alone.

mod after;
mod batch_matmul;
mod cublaslt;
mod epilogue;
mod fused;
mod gemm;
mod matmul;
mod products;
mod tiles;

pub(super) use epilogue::Attributes;
pub(super) use fused::{Fused, does_all};

use crate::compile::Variant;
use tenon_sdk::DType;

pub(super) fn variants() -> Vec<Variant> {
    let plain = gemm::TYPES.iter().flat_map(|dtype| gemm::variants(*dtype, ""));
    // What follows a product is made for its node: all steps once, and the usual ones.
    let all = [DType::FLOAT, DType::DOUBLE, DType::HALF, DType::BFLOAT16]
        .into_iter()
        .flat_map(|dtype| gemm::variants(dtype, &epilogue::every_step()).into_iter().take(1));
    let usual = gemm::variants(DType::HALF, "STEP_BiasAdd(0) STEP_Relu(1)");
    plain.chain(all).chain(usual).chain(after::variants()).collect()
}
