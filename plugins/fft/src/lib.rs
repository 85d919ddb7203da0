//! Fourier transforms on the CPU: a plugin of its own, so that who needs none does not compile `rustfft`.
//!
//! Its kernels are for device type `CPU`, which plugins/cpu brings. `plans` keeps what was computed for a
//! length; `columns` is what two dimensions need besides rows; `complex` and `real` are the ops.

mod columns;
mod complex;
mod plans;
mod real;

tenon_sdk::export_plugin!();
tenon_sdk::kernels_check_shapes!();
