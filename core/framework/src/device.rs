//! Devices: names, what the host knows of them ([`base`]), and how it has them run again what was recorded
//! ([`replay`]). What the author of a device writes is in `tenon-author`.

pub mod base;
pub mod name;
pub mod replay;

pub use name::{DeviceName, DeviceNameError};
