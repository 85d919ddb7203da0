//! What steps and kernels ask the system's allocator for, and what they do where it refuses.
//!
//! `malloc` and its kin are defined here, in the executable, so that they serve every library of the process: a Rust
//! global allocator never sees what a plugin allocates.

mod interpose;
mod large_allocations;
mod steady_state;
mod training;
