//! The zoo: ops that exist only to exercise the boundary, each one clause of "What a call carries".
//!
//! Which op uses which clause stands in `tests/zoo/README.md`. Every op has a twin in `tests/zoo/c`, under
//! the same name after the prefix `ZooC`, which does the same through door 2; one set of tests runs both.
//!
//! What it is not: useful. An op that a user may want belongs to `tenon-ops`.

mod asynchronous;
mod attributes;
mod compute;
mod create;
mod elements;
mod facts;
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
