//! A device type whose devices use every clause of what a device gives: `ZOO`.
//!
//! It computes nothing worth computing. It has memory that the host cannot address and two kinds that it
//! can, a pool of its own, streams that are threads, events between them, copies that are enqueued, and it
//! can be lost. Which part uses which clause stands in `tests/zoo/README.md`.

mod device;
mod kernels;
mod memory;
mod stream;

pub use device::ZooDevice;

tenon_sdk::export_plugin!();
