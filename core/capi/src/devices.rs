//! Lists of devices.

use crate::{
    fail::Failure,
    raw::c_count,
    session::{Place, TF_Session, session},
    status::{TF_Status, c_text},
};
use std::ffi::{CString, c_char, c_int};
use tenon_proto::{
    DeviceAttributes,
    convert::{DeviceSummary, device_to_proto},
};

/// A device.
struct Device {
    name: CString,
    kind: CString,
    memory_bytes: i64,
    incarnation: u64,
}

/// The devices of a session.
pub struct TF_DeviceList(Vec<Device>);

fn device(found: &DeviceAttributes) -> Device {
    Device {
        name: c_text(&found.name),
        kind: c_text(&found.device_type),
        memory_bytes: found.memory_limit,
        incarnation: found.incarnation,
    }
}

fn list(found: &TF_Session) -> Result<TF_DeviceList, Failure> {
    let devices = match &found.place {
        Place::Here(_) => {
            let devices = found.graph.runtime()?.devices().devices();
            devices.iter().map(|device| device_to_proto(&DeviceSummary::of(&**device))).collect()
        }
        Place::Server(session) => session.devices()?,
    };
    Ok(TF_DeviceList(devices.iter().map(device).collect()))
}

/// The device number `index`.
fn at(list: Option<&TF_DeviceList>, index: c_int) -> Result<&Device, Failure> {
    let list = list.ok_or_else(|| Failure::null("the list of devices"))?;
    let found = usize::try_from(index).ok().and_then(|index| list.0.get(index));
    found.ok_or_else(|| {
        Failure::invalid(format!("the list has {} devices, asked for number {index}", list.0.len()))
    })
}

api! {
    /// The devices on which a session's steps run.
    fn TF_SessionListDevices(
        found: Option<&TF_Session>,
        status: Option<&mut TF_Status>,
    ) -> Option<Box<TF_DeviceList>> [status] {
        list(session(found)?).map(|list| Some(Box::new(list)))
    }

    /// Deletes a list.
    fn TF_DeleteDeviceList(list: Option<Box<TF_DeviceList>>) { drop(list) }

    /// The number of devices.
    fn TF_DeviceListCount(list: Option<&TF_DeviceList>) -> c_int {
        list.map_or(0, |list| c_count(list.0.len()))
    }

    /// The full name of a device, which stays as long as the list.
    fn TF_DeviceListName(
        list: Option<&TF_DeviceList>,
        index: c_int,
        status: Option<&mut TF_Status>,
    ) -> *const c_char [status] {
        at(list, index).map(|device| device.name.as_ptr())
    }

    /// The type of a device, such as `CPU`, which stays as long as the list.
    fn TF_DeviceListType(
        list: Option<&TF_DeviceList>,
        index: c_int,
        status: Option<&mut TF_Status>,
    ) -> *const c_char [status] {
        at(list, index).map(|device| device.kind.as_ptr())
    }

    /// The bytes that a device may use; 0 if it does not say.
    fn TF_DeviceListMemoryBytes(
        list: Option<&TF_DeviceList>,
        index: c_int,
        status: Option<&mut TF_Status>,
    ) -> i64 [status] {
        at(list, index).map(|device| device.memory_bytes)
    }

    /// The number of a device's incarnation, which a device that is opened again does not have.
    fn TF_DeviceListIncarnation(
        list: Option<&TF_DeviceList>,
        index: c_int,
        status: Option<&mut TF_Status>,
    ) -> u64 [status] {
        at(list, index).map(|device| device.incarnation)
    }
}
