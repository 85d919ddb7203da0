//! The zoo through loaded libraries: every op in both languages, so that each clause of "What a call carries"
//! is used through both doors with the same result.

/// Whether the plugins run in processes of their own, as in `zoo_isolated`.
const ISOLATED: bool = false;

mod asynchronous;
mod compute;
mod create;
mod elements;
mod outputs;
mod registration;
mod services;
mod shapes;
mod state;
mod table;
