//! Fourier transforms on the CPU, as a separate plugin so that programs without them do not compile
//! `rustfft`.
//!
//! Its kernels are for device type `CPU`, which plugins/cpu registers. `plans` caches plans by
//! length; `columns` transforms along columns, for two dimensions; `complex` and `real` are the
//! ops.

mod columns;
mod complex;
mod plans;
mod real;

tenon_sdk::export_plugin!();
tenon_sdk::kernels_check_shapes!();
