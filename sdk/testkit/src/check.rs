//! Conformance of a plugin, from its binary alone.
//!
//! What it is: everything that a plugin registers becomes a [`Subject`] (a kernel with element types, or a
//! device type); cases are generated for it, run through the loaded library in a separate process, and
//! judged clause by clause. Nothing escapes: an op for which no case is accepted, and a kernel whose results
//! nothing independent can judge, are findings themselves. What it is not: a proof; the cases are a sample,
//! the same one for the same seed.
//!
//! ```text
//! registry ── subject ── generate ──> CheckCase ── oracle ──> expected
//!                                         │
//!                 driver ── worker ── examine (guarded memory) ──> Finding ──> report
//! ```
//!
//! # Invariants
//! - A kernel is never its own oracle.
//! - The list of subjects and cases is a function of registry, seed and budget: a worker that was lost is
//!   followed by one that goes on where it stopped.
//! - Each [`Clause`] is judged or skipped for a reason that the report prints.

mod case;
mod clause;
mod device;
pub mod driver;
mod examine;
pub mod exceptions;
mod expectation;
mod fault;
mod fill;
pub mod generate;
mod heap;
pub mod json;
pub mod oracle;
mod progress;
pub mod protocol;
pub mod report;
pub mod reproducer;
mod shrink;
mod subject;
mod tolerance;
pub mod worker;

pub use case::{Argument, CheckCase, Fill, Tag};
pub use clause::{Clause, Finding, Verdict};
pub use device::{DEVICE_CLAUSES, examine_device, examine_device_clause};
pub use examine::{Effort, Examiner, Expect, KERNEL_CLAUSES, examine_plugin};
pub use expectation::Expectation;
pub use fault::{FaultAccess, FaultRecord, install as install_fault_handler};
pub(crate) use fill::{Listed, Random, listed, seed_of};
pub use generate::{
    Budget, Generated, Generator, Goldens, beyond, described, far, generate, huge, subjects,
};
pub use oracle::{IS_REFERENCE, Oracle};
pub use progress::Progress;
pub use subject::Subject;
