//! The reference kernels under the label `reference`, for who asks for them: the specification itself, with the
//! dtypes of the fast kernels. They read attributes and shapes as those do, and compute as `tenon-reference`.

mod array;
mod cast;
mod elementwise;
mod linalg;
mod nn;
mod reduction;

use tenon_sdk::{DType, reg::Numerics};

/// Sums and functions in double, rounded once.
const ROUNDED: Numerics = Numerics::ulps(1.0).accumulation(DType::DOUBLE);
