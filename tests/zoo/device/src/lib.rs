//! A device type whose devices use every clause of what a device gives: `ZOO`.
//!
//! What it is: a plugin with memory that the host cannot address and two kinds that it can, a pool
//! of its own, streams that are threads, events between them, and copies that are enqueued. A
//! device can be lost. `tests/zoo/README.md` lists which part uses which clause.
//!
//! What it is not: a device to copy, which is plugins/accel; its kernels compute nothing of use.
//!
//! # Invariants
//! - Every clause of devices in `tests/support/clauses.rs` is used here; `tests/zoo/c/device` does
//!   the same in C.

mod device;
mod kernels;
mod memory;
mod stream;

pub use device::ZooDevice;

tenon_sdk::export_plugin!();
