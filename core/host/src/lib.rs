//! Loads plugins, lends them services, and calls their kernels.

pub mod call;
pub mod fpu;
pub mod pool;
pub mod resources;
