//! Fourier transforms, and sound, on the CPU.
//!
//! What it is: a plugin with the kernels of `FFT`, `RFFT`, their inverses and their 2D forms
//! (`complex`, `real`) for device type `CPU`, through `rustfft` and `realfft`, and with those of sound (`audio`). `plans` keeps what
//! was computed for a length, and `columns` transforms the columns of two dimensions. It is a
//! plugin of its own so that a build without transforms does not compile these libraries.
//!
//! What it is not: the device type, which plugins/cpu brings, or the ops, which `core/ops` defines.
//!
//! # Invariants
//! - A kernel keeps a bounded number of plans, since a stream of new lengths must not fill the
//!   memory.
//! - The libraries run on one thread; rows are spread over the host's threads.
//! - Memory that a library allocates by itself is asked of the host's limit beforehand
//!   (`growth::foresee`).

mod audio;
mod columns;
mod complex;
mod plans;
mod real;

tenon_sdk::export_plugin!();
tenon_sdk::kernels_check_shapes!();
