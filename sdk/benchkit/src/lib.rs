//! Timing of kernels.
//!
//! What it is: everything behind `tenon bench` but the printing. [`record`] is the form of what is measured.
//! What it is not: an oracle; whether a result is right is what tenon-testkit says, before anything is timed.

pub mod cost;
pub mod machine;
pub mod record;
pub mod roofline;
pub mod sampler;
pub mod stats;
pub mod wanted;
