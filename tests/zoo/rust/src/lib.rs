//! The zoo: ops that exist only to exercise the boundary, each one clause of "What a call carries".
//!
//! What it is: a plugin in Rust whose ops each use one clause. `tests/zoo/README.md` lists which op
//! uses which. Every op has a twin in `tests/zoo/c`, under the same name after the prefix `ZooC`,
//! which does the same through door 2; one set of tests runs both.
//!
//! What it is not: useful. An op that a user may want belongs to `tenon-ops`.
//!
//! # Invariants
//! - Every clause of `tests/support/clauses.rs` has an op here, apart from those that C alone can
//!   use; a test compares the lists.
//! - An op and its twin in C give the same results and the same errors.

mod asynchronous;
mod attributes;
mod compute;
mod create;
mod elements;
mod facts;
mod functions;
mod gradients;
mod kept;
mod outputs;
mod references;
mod resources;
mod selection;
mod services;
mod shapes;
mod shared;
mod variables;
mod variants;

tenon_sdk::export_plugin!();
