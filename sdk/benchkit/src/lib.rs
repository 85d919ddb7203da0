//! Timing of kernels: everything behind `tenon bench` but the printing.
//!
//! From a wish to a record: [`wanted`] says what is asked for, [`calls`] makes the calls of an op from it, [`variants`] the
//! kernels that can take each call. [`measure`] times them and [`step`] whole graphs, both by [`sampler`], in turns, so
//! that a machine that slows down slows all of them. [`roofline`] measures the machine's limits, [`cost`] counts the work of
//! a call, [`counters`] reads the processor's. [`stats`] has intervals and tests, [`compare`] the verdicts. [`record`] is
//! the form of what was measured, [`export`] and [`html`] show it.
//!
//! What it is not: an oracle. Whether a result is right is what tenon-testkit says, before anything is timed.
//!
//! # Invariants
//! - Subjects take turns, sample by sample: what disturbs the machine disturbs all of them.
//! - A verdict on two sides has a threshold of its own, from what each side differs from itself by.
//! - A difference between runs that other work on the machine explains ([`clocks`]) is not judged.
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
