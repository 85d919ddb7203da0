//! Every clause of what a call carries, of plugins in processes of their own.
//!
//! The tests are those of `zoo_calls`, but for those of state, which cannot cross to another process.

#[path = "../boundary/zoo_calls"]
mod zoo_calls {
    /// Whether the plugins run in processes of their own.
    const ISOLATED: bool = true;

    mod asynchronous;
    mod compute;
    mod create;
    mod elements;
    mod outputs;
    mod services;
    mod shapes;
}
