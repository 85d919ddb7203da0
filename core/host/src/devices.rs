//! Devices of this process: found, opened, adapted, and copied between.
//!
//! A device type comes from the registry. [`DeviceManager`] asks each how many devices there are, opens them,
//! and gives each a name, a number and an incarnation. [`PluginDevice`] is one of them as the host's
//! [`LocalDevice`](tenon_framework::device::base::LocalDevice).
//!
//! States of a device: *open* → *lost* (its plugin said so: subscribers are told once, and from then on every
//! operation fails with the same `UNAVAILABLE`) → *closed*; or *open* → *closed*. It is closed when its last
//! owner goes: the manager and sessions hold the adapter, buffers hold the memory they came from, and each
//! of these holds what is closed at the end ([`DeviceCore`]). Plans and streams go before; the plugin's
//! library stays mapped for as long as the process lives.

mod core;
mod links;
mod manager;
mod memory;
mod plugin_device;
mod transfer;

pub use core::{DeviceCore, device_lost_entry, device_of, name_of};
pub use links::NATIVE_OF;
pub use manager::{AbsentType, DeviceManager};
pub use memory::DeviceMemory;
pub use plugin_device::PluginDevice;
pub use transfer::{Route, copy_now, copy_tensor, location, route};

#[cfg(all(test, not(loom)))]
#[path = "devices/tests.rs"]
mod tests;
