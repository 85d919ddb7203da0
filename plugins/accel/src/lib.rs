//! A simulated accelerator: the reference for a new device type.
//!
//! Device type `ACCEL` has memory that the host cannot address, streams on which kernels and copies
//! are enqueued, events between streams, and a thread of its own that works through the queue. It
//! computes with `tenon-reference`, so that its results are the specification's; nothing about it
//! is fast. It is a template for authors of devices, and tests can make it delay, reorder or fail
//! commands, or lose the device.
//!
//! Parts that an author of a real device replaces:
//!
//! | here | in a real device |
//! |---|---|
//! | [`memory`]: a table from handles to blocks | the driver's allocator |
//! | [`queue`]: a thread that runs commands | the driver's queues |
//! | [`stream`], [`event`]: names of positions in the queue | the driver's streams and events |
//! | [`device`]: the trait [`DeviceKind`](tenon_sdk::device::author::DeviceKind) over the three | the same |
//! | [`kernels`]: commands that capture handles and dimensions | launches of device code |
//! | [`faults`]: simulated faults | only the handling of a lost device |
//!
//! `sdk/docs/device.md` is the guide to all of it.

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
