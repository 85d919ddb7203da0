//! The reference kernels, under the label `reference`, which run only if asked for. They are the
//! specification itself, with the dtypes of the fast kernels: they read attributes and shapes as
//! those do, and compute with `tenon-reference`.

mod array;
mod cast;
mod elementwise;
mod linalg;
mod nn;
mod reduction;

use tenon_sdk::{DType, reg::Numerics};

/// Sums and functions computed in double, and rounded once.
const ROUNDED: Numerics = Numerics::ulps(1.0).accumulation(DType::DOUBLE);
