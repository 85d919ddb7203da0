//! Timing of kernels and graphs: everything behind `tenon bench` but the printing.
//!
//! What it is, from the words of a command line to a record:
//!
//! | step | modules |
//! |---|---|
//! | what is asked for | [`wanted`], [`feeds`] |
//! | the calls of an op, and the kernels that can take each call | [`calls`], [`variants`] |
//! | timing of calls and of whole graphs, in turns | [`measure`], [`step`], [`sampler`], [`cold`] |
//! | the machine: its limits, its counters, what disturbs it | [`roofline`], [`counters`], [`machine`], [`clocks`] |
//! | the work of a call | [`cost`] |
//! | intervals, tests and verdicts | [`stats`], [`compare`] |
//! | what was measured, and how it is shown | [`record`], [`export`], [`html`], [`words`] |
//!
//! What it is not: an oracle. `tenon-testkit` decides whether a result is right, before anything is
//! timed. The benchmarks of this repository are in `benches`.
//!
//! # Invariants
//! - Subjects take turns, sample by sample, so that a disturbance of the machine slows all of them.
//! - A verdict on two subjects has its own threshold, from how far samples of each one differ
//!   among themselves.
//! - A difference between runs that other work on the machine explains ([`clocks`]) is not judged.
//! - A result is checked before its kernel is timed; a kernel that is wrong has no record of times.
//!
//! ```
//! use tenon_benchkit::stats::describe::median;
//!
//! assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
//! assert!(median(&[]).is_nan());
//! ```

pub mod calls;
pub mod clocks;
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
