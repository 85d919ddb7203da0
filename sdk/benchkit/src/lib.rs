//! Timing of kernels.
//!
//! What it is: everything behind `tenon bench` but the printing. [`record`] is the form of what is measured.
//! What it is not: an oracle; whether a result is right is what tenon-testkit says, before anything is timed.

pub mod calls;
pub mod cold;
pub mod compare;
pub mod cost;
pub mod counters;
mod error;
pub mod export;
pub mod feeds;
pub mod html;
pub mod machine;
pub mod measure;
pub mod record;
pub mod roofline;
pub mod run;
pub mod sampler;
pub mod stats;
pub mod step;
pub mod variants;
pub mod wanted;
pub mod words;

pub use error::BenchError;
