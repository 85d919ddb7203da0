//! Products of matrices.
//!
//! | file | what |
//! |---|---|
//! | `tiles.rs` | tiles of a block: their parameters, and the choice of one for a product |
//! | `gemm.rs` | a product of any shape as a launch of `gemm.cu` |
//! | `epilogue.rs` | the epilogue of a product, as defines and arguments of `epilogue.cuh` |
//! | `matmul.rs`, `batch_matmul.rs` | the ops, by these kernels |
//! | `cublaslt.rs` | the same ops by [`crate::cublaslt`]: label `cublaslt`, preferred where the library is installed |
//! | `products.rs` | products by the library, or by the kernels here where it has no algorithm |
//! | `fused.rs` | which steps the library performs as part of a product |
//! | `after.rs` | the other steps, after a product that the library has written |
//!
//! Only the kernels here multiply integers.

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
    // An epilogue is compiled for its node. The examples are all steps at once, and the usual ones.
    let all = [DType::FLOAT, DType::DOUBLE, DType::HALF, DType::BFLOAT16]
        .into_iter()
        .flat_map(|dtype| gemm::variants(dtype, &epilogue::every_step()).into_iter().take(1));
    let usual = gemm::variants(DType::HALF, "STEP_BiasAdd(0) STEP_Relu(1)");
    plain.chain(all).chain(usual).chain(after::variants()).collect()
}
