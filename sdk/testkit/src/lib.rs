//! Conformance of kernels: golden data, comparison, the harness, and everything behind `tenon
//! check` but the printing.
//!
//! What it is: [`golden`] and [`graphs`] read what TensorFlow computed, and
//! [`compare`](mod@compare) says whether a result is right and where it is not. [`Harness`] runs a
//! case through a kernel of a loaded plugin in every way in which a session may call it, and
//! [`run_op`] makes an [`OpReport`] of the cases of an op, with [`Exceptions`] that each have a
//! reason. [`check`] examines a plugin from its binary alone, [`fuzz`] makes hostile calls, and
//! [`npy`] and [`npz`] read and write NumPy's files.
//!
//! What it is not: an oracle. The expected values come from golden data and from
//! reference kernels (`tenon-reference`, or those that a plugin registers). Times are measured by
//! `tenon-benchkit`.
//!
//! # Invariants
//! - A case counts once: as passed, as failed, or as skipped for a reason that the report prints.
//! - An expected failure that passes is a failure, and so is an exception that no case needs.
//! - A kernel is never its own oracle.
//!
//! ```
//! use tenon_framework::Tensor;
//! use tenon_testkit::compare::{Rule, compare};
//!
//! let expected = Tensor::from_slice(&[2], &[1.0f32, 2.0])?;
//! let got = Tensor::from_slice(&[2], &[1.0f32, 2.0000002])?;
//! assert!(compare(&got, &expected, &Rule::Ulp(1)).is_ok());
//! assert!(compare(&got, &expected, &Rule::Exact).is_err());
//! # Ok::<(), tenon_framework::tensor::TensorError>(())
//! ```

pub mod archive;
pub mod attrs;
pub mod check;
pub mod compare;
mod error;
pub mod exceptions;
pub mod float;
pub mod fuzz;
pub mod golden;
pub mod graphs;
pub mod harness;
pub mod host;
pub mod node;
pub mod npy;
pub mod npz;
pub mod report;
mod suite;
mod text;

pub use error::TestkitError;
pub use exceptions::{Exception, Exceptions};
pub use golden::GoldenCase;
pub use harness::{Failure, Form, Harness, Outcome};
pub use node::Stage;
pub use report::OpReport;
pub use suite::{FolderReport, WithoutKernel, run_folder, run_op, run_refused_with_shapes};
