//! A simulated accelerator: the reference for a new device type.
//!
//! Device type `ACCEL` has memory that the host cannot address, streams on which kernels and copies are
//! enqueued, events between streams, and a thread of its own that works through the queue. It computes
//! with `tenon-reference`, so that its results are the specification's; nothing about it is fast. What it
//! is for: authors copy its structure, and tests order it to be slow, to reorder, to fail, to get lost.
//!
//! What an author of a real device replaces, and with what:
//!
//! | here | there |
//! |---|---|
//! | [`memory`]: a table from handles to blocks | the driver's allocator |
//! | [`queue`]: a thread that runs commands | the driver's queues |
//! | [`stream`], [`event`]: names of places in the queue | the driver's streams and events |
//! | [`device`]: the trait [`DeviceKind`](tenon_sdk::device::author::DeviceKind) over the three | the same |
//! | [`kernels`]: commands that capture handles and dimensions | launches of device code |
//! | [`faults`]: what goes wrong, and when | nothing; only what to do when the device is lost |
//!
//! The guide to all of it is `sdk/docs/device.md`.

pub mod device;
pub mod event;
pub mod faults;
pub mod kernels;
pub mod memory;
pub mod queue;
mod recording;
pub mod settings;
pub mod stream;
#[cfg(test)]
mod test_support;

pub use device::Accel;
pub use settings::Settings;

tenon_sdk::export_plugin!();
tenon_sdk::kernels_check_shapes!();
