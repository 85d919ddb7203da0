//! Devices: names.

pub mod name;

pub use name::{DeviceName, DeviceNameError};
