//! Devices: names, what their authors write ([`author`]), what the host knows of them ([`base`]), and how it has them
//! run again what was recorded ([`replay`]).

pub use tenon_author::device as author;
pub use tenon_framework::device::{DeviceName, DeviceNameError, base, name, replay};
