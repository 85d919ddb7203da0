//! Devices: names, what their authors write ([`author`]), what the host knows of them ([`base`]).

pub mod author;
pub mod base;
mod entries;
pub mod name;

pub use name::{DeviceName, DeviceNameError};
