//! Descriptions of devices that tasks exchange.

use tenon_framework::device::base::{DeviceBase, DeviceInfo};
use tenon_framework::device::{DeviceName, DeviceNameError};

use crate::{DeviceAttributes, DeviceLocality};

/// The contents of a device's message, in framework types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceSummary {
    /// The name; a full name for an existing device.
    pub name: DeviceName,
    /// Type, such as `CPU`.
    pub device_type: String,
    /// Bytes that it may use; 0 when unknown.
    pub memory_limit: u64,
    /// NUMA node, where known.
    pub numa_node: Option<u32>,
    /// Bus, where known.
    pub bus_id: Option<u32>,
    /// Random number of this incarnation.
    pub incarnation: u64,
    /// Model and other details.
    pub description: String,
}

impl DeviceSummary {
    /// The summary of a device.
    #[must_use]
    pub fn of(device: &dyn DeviceBase) -> DeviceSummary {
        let info: &DeviceInfo = device.info();
        DeviceSummary {
            name: device.name().clone(),
            device_type: device.device_type().to_owned(),
            memory_limit: info.memory(info.ordinary_memory()).map_or(0, |memory| memory.limit),
            numa_node: info.numa_node,
            bus_id: info.bus_id,
            incarnation: device.incarnation(),
            description: info.description.clone(),
        }
    }
}

/// The message of a device. Limits that do not fit `i64` and numbers that do not fit `i32` are
/// written as the largest ones.
#[must_use]
pub fn device_to_proto(device: &DeviceSummary) -> DeviceAttributes {
    let number = |n: Option<u32>| i32::try_from(n.unwrap_or(0)).unwrap_or(i32::MAX);
    DeviceAttributes {
        name: device.name.to_string(),
        device_type: device.device_type.clone(),
        memory_limit: i64::try_from(device.memory_limit).unwrap_or(i64::MAX),
        locality: Some(DeviceLocality {
            bus_id: number(device.bus_id),
            numa_node: number(device.numa_node),
            links: None,
        }),
        incarnation: device.incarnation,
        physical_device_desc: device.description.clone(),
        xla_global_id: -1,
    }
}

/// The contents of a device's message. Negative numbers, and a bus of 0, count as unknown.
///
/// # Errors
/// The name is not a device name.
pub fn device_from_proto(proto: &DeviceAttributes) -> Result<DeviceSummary, DeviceNameError> {
    let locality = proto.locality.as_ref();
    Ok(DeviceSummary {
        name: DeviceName::parse(&proto.name)?,
        device_type: proto.device_type.clone(),
        memory_limit: u64::try_from(proto.memory_limit).unwrap_or(0),
        numa_node: locality.and_then(|locality| u32::try_from(locality.numa_node).ok()),
        bus_id: locality.and_then(|l| u32::try_from(l.bus_id).ok()).filter(|&bus| bus != 0),
        incarnation: proto.incarnation,
        description: proto.physical_device_desc.clone(),
    })
}
