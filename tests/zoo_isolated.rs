//! Every clause of what a call carries, of plugins in processes of their own.
//!
//! The tests are those of `zoo_calls`, but for those of state, which cannot cross to another process.

/// Whether the plugins run in processes of their own.
const ISOLATED: bool = true;

mod zoo_calls {
    mod asynchronous;
    mod compute;
    mod create;
    mod elements;
    mod outputs;
    mod services;
    mod shapes;
}
