//! Passes over graphs with real kernels: random graphs give the same with all passes on, off, and one at a time.

mod differential;
mod generated;
mod knobs;
mod plugin;
mod random;
