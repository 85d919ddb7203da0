//! Registration of a device type.

use super::Site;
use crate::device::{DeviceEntries, Registered};
use tenon_abi::{Code, DeviceTypeDef, Registrar, RegistrarTable, Str};

/// A device type as `register_device!` writes it.
#[derive(Clone, Copy)]
pub struct DeviceReg {
    pub(crate) name: &'static str,
    pub(crate) priority: i32,
    entries: DeviceEntries,
    pub(crate) site: Site,
}

impl DeviceReg {
    /// A device type, with the roles that `register_device!` found.
    #[doc(hidden)]
    #[track_caller]
    pub const fn of<R: Registered>(name: &'static str, site: Site) -> DeviceReg {
        DeviceReg { name, priority: 0, entries: DeviceEntries::of::<R>(), site }
    }

    /// Placement prefers the type with the higher figure.
    pub const fn priority(mut self, priority: i32) -> DeviceReg {
        self.priority = priority;
        self
    }

    /// Gives the device type to a registrar.
    pub(crate) unsafe fn submit(&self, to: *mut Registrar, table: &RegistrarTable) -> Code {
        let def = DeviceTypeDef {
            struct_size: size_of::<DeviceTypeDef>() as u32,
            priority: self.priority,
            name: Str::new(self.name),
            probe: self.entries.probe,
            create: self.entries.create,
            table: self.entries.table,
            source: self.site.source(),
            ext: std::ptr::null(),
        };
        // SAFETY: the caller gives a registrar with its table; the host copies the definition.
        unsafe { table.device_type.expect("the host fills every entry")(to, &def) }
    }
}
