//! Devices: names, what their authors write ([`author`]), what the host knows of them ([`base`]),
//! and how it has them run again what was recorded ([`replay`]).

pub mod author;
pub mod base;
mod entries;
mod links;
pub mod name;
pub mod replay;

pub use name::{DeviceName, DeviceNameError};
