//! A simulated accelerator: the reference for a new device type.
//!
//! What it is: device type `ACCEL`, which has memory that the host cannot address, streams on which
//! kernels and copies are enqueued, events between streams, and a thread of its own that works
//! through the queue. It computes with `tenon-reference`, so that its results are the
//! specification's. Authors copy its structure, and tests order it to be slow, to reorder, to fail,
//! or to be lost.
//!
//! The author of a real device replaces:
//!
//! | here | in a real device |
//! |---|---|
//! | [`memory`]: a table from handles to blocks | the driver's allocator |
//! | [`queue`]: a thread that runs commands | the driver's queues |
//! | [`stream`], [`event`]: names of positions in the queue | the driver's streams and events |
//! | [`device`]: [the traits of a device](tenon_sdk::device::author) over the three | the same |
//! | [`kernels`]: commands that capture handles and dimensions | launches of device code |
//! | [`faults`]: what goes wrong, and when | only the handling of a device that is lost |
//!
//! What it is not: fast, or a choice for real work. Its priority is -100, so that no node is placed
//! on it unless the graph or the user names it.
//!
//! # Invariants
//! - Commands of one stream run in order, and one command runs at a time.
//! - Every notification runs exactly once, even if the device is lost or closed meanwhile.
//! - Once the device is lost, no command begins; one that runs is waited for before its memory is
//!   given back.
//! - Faults happen only where a setting orders them.
//!
//! The guide to device types is `sdk/docs/device.md`.

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
