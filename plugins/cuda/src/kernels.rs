//! The kernels.
//!
//! A family of kernels has a file or folder here, which registers, checks and launches, and a
//! source in `cu`, which computes. The family's `variants` lists what a source can be compiled to,
//! so that all of them can be compiled and inspected without a GPU ([`variants`]).

mod array;
mod divisor;
mod dtype;
mod elementwise;
mod fill;
mod linalg;
mod nn;
mod norm;
mod quantized;
mod reduction;
mod strided;
mod upload;

use crate::compile::Variant;

/// Every variant that kernels of this crate may request; examples represent the generated ones.
pub fn variants() -> Vec<Variant> {
    let mut all = Vec::new();
    all.extend(array::variants());
    all.extend(elementwise::variants());
    all.extend(fill::variants());
    all.extend(linalg::variants());
    all.extend(nn::variants());
    all.extend(norm::variants());
    all.extend(reduction::variants());
    all.extend(quantized::variants());
    all.extend(upload::variants());
    all
}
