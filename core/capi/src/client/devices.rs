//! Lists of devices and their attributes.

use crate::{
    client::{
        handle::Handle,
        runtime::Runtime,
        session::Session,
        status::Status,
        versioned::{Filled, Versioned},
    },
    fail::Failure,
    raw::{Out, Text},
    session::Place,
    status::c_text,
};
use std::ffi::{CString, c_char, c_int};
use tenon_proto::{
    DeviceAttributes,
    convert::{DeviceSummary, device_to_proto},
};

/// A list of devices.
pub struct Devices(Vec<Device>);

kept! { Devices => "a list of devices" }

struct Device {
    name: CString,
    kind: CString,
    description: CString,
    memory_limit: i64,
    incarnation: u64,
    numa_node: i32,
    bus_id: i32,
}

/// What is known of a device. The texts stay until the list is deleted.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct DeviceInfo {
    /// sizeof(tn_device_info), which the caller sets.
    pub size: usize,
    /// The full name, such as "/job:localhost/replica:0/task:0/device:CPU:0".
    pub name: *const c_char,
    /// The type, such as "CPU".
    pub device_type: *const c_char,
    /// The model and other details, for people.
    pub description: *const c_char,
    /// The bytes that the device may use; 0 if it does not say.
    pub memory_limit: i64,
    /// A number that a device which is opened again does not have.
    pub incarnation: u64,
    /// The NUMA node; 0 if it is not known.
    pub numa_node: i32,
    /// The bus; 0 if it is not known.
    pub bus_id: i32,
}

// SAFETY: `repr(C)`, the size comes first, and zeros are null pointers and numbers.
unsafe impl Versioned for DeviceInfo {
    const NAME: &'static str = "tn_device_info";
}

fn device(found: &DeviceAttributes) -> Device {
    let locality = found.locality.clone().unwrap_or_default();
    Device {
        name: c_text(&found.name),
        kind: c_text(&found.device_type),
        description: c_text(&found.physical_device_desc),
        memory_limit: found.memory_limit,
        incarnation: found.incarnation,
        numa_node: locality.numa_node,
        bus_id: locality.bus_id,
    }
}

fn list(found: &[DeviceAttributes]) -> Handle<Devices> {
    Handle::new(Devices(found.iter().map(device).collect()))
}

fn of_runtime(runtime: &tenon_runtime::Runtime) -> Vec<DeviceAttributes> {
    let devices = runtime.devices().devices();
    devices.iter().map(|device| device_to_proto(&DeviceSummary::of(&**device))).collect()
}

api! {
    /// The devices of this process. The caller deletes the list.
    fn tn_runtime_devices(
        runtime: Handle<Runtime>,
        status: Option<&mut Status>,
    ) -> Handle<Devices> [status] {
        Ok(list(&of_runtime(&runtime.get()?.0)))
    }

    /// The devices on which the steps of a session run, in this process or on the servers of its target. The caller deletes the
    /// list.
    fn tn_session_devices(
        session: Handle<Session>,
        status: Option<&mut Status>,
    ) -> Handle<Devices> [status] {
        let session = session.get()?;
        session.check_open()?;
        Ok(match &session.inner.place {
            Place::Here(_) => list(&of_runtime(session.inner.graph.runtime()?)),
            Place::Server(server) => list(&server.devices()?),
        })
    }

    /// The number of devices; 0 for no list.
    fn tn_devices_count(devices: Handle<Devices>) -> usize {
        devices.get().map_or(0, |devices| devices.0.len())
    }

    /// Writes what is known of device number index.
    fn tn_devices_get(
        devices: Handle<Devices>,
        index: usize,
        info: Filled<'_, DeviceInfo>,
        status: Option<&mut Status>,
    ) -> bool [status] {
        let devices = devices.get()?;
        let found = devices.0.get(index).ok_or_else(|| {
            Failure::invalid(format!("the list has {} devices, asked for number {index}", devices.0.len()))
        })?;
        info.set(&DeviceInfo {
            name: found.name.as_ptr(),
            device_type: found.kind.as_ptr(),
            description: found.description.as_ptr(),
            memory_limit: found.memory_limit,
            incarnation: found.incarnation,
            numa_node: found.numa_node,
            bus_id: found.bus_id,
            ..DeviceInfo::defaults()
        })?;
        Ok(true)
    }

    /// Finds the device of this full name, and writes its number.
    fn tn_devices_find(
        devices: Handle<Devices>,
        name: Text<'_>,
        index: Out<'_, usize>,
        status: Option<&mut Status>,
    ) -> bool [status] {
        let (devices, name) = (devices.get()?, name.required("the name of a device")?);
        let at = devices.0.iter().position(|device| device.name.to_bytes() == name.as_bytes());
        let at = at.ok_or_else(|| {
            let known: Vec<_> = devices.0.iter().map(|it| it.name.to_string_lossy()).collect();
            Failure::new(
                tenon_framework::Code::NOT_FOUND,
                format!("there is no device '{name}'; there are {}", known.join(", ")),
            )
        })?;
        index.set(at);
        Ok(true)
    }

    /// Deletes a list of devices.
    fn tn_devices_delete(devices: Handle<Devices>) -> c_int { devices.delete() }
}
