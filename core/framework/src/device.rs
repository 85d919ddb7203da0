//! Devices: names, what the host knows of them ([`base`]), and commands that are recorded and run again
//! ([`replay`]). The traits that the author of a device implements are in `tenon-author`.

pub mod base;
pub mod name;
pub mod replay;

pub use name::{DeviceName, DeviceNameError};
