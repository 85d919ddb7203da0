//! Loops for the CPU: compiled for several instruction sets, spread over threads.
//!
//! What it is: what plugins with kernels for device type `CPU` share. [`arch`] compiles one loop for
//! AVX2 and AVX-512, [`vector`] has vectors of floats for loops that the compiler would not
//! vectorise well, [`narrow`] converts 16-bit floats, and [`split`] spreads work over the host's
//! threads.
//!
//! What it is not: a plugin. It registers nothing.
//!
//! # Invariants
//! - A loop compiled for some instructions runs only where the CPU has them.
//! - Threads that write one output write disjoint parts of it.

pub mod arch;
pub mod narrow;
pub mod split;
pub mod vector;
