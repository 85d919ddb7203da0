//! Devices of this process: discovery, opening, adapters, and copies between them.
//!
//! A device type comes from the registry. [`DeviceManager`] asks each type for its number of
//! devices, opens them, and gives each a name, a number and an incarnation. [`PluginDevice`]
//! presents one of them as a [`LocalDevice`](tenon_framework::device::base::LocalDevice) of the
//! host.
//!
//! States of a device: *open* → *lost* (reported by its plugin: subscribers are notified once, and
//! from then on every operation fails with the same `UNAVAILABLE`) → *closed*; or *open* →
//! *closed*. It is closed when its last owner is dropped: the manager and sessions own the adapter,
//! buffers own their memory, and adapter and memory own the core, which closes the device
//! ([`DeviceCore`]). Plans and streams are dropped before; the plugin's library stays mapped as
//! long as the process lives.

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
