//! Every clause of what a call carries, of plugins in processes of their own.
//!
//! The tests are those of `zoo_calls`; what cannot cross to another process is not among them.

mod zoo_calls {
    mod asynchronous;
    mod compute;
    mod create;
    mod elements;
    mod outputs;
    mod services;
    mod shapes;
    mod state;
}
