//! The list of this library's registrations.

use super::{DeviceReg, ExtensionReg, KernelReg, KnobReg, OpReg, Site};
use tenon_abi::{Code, Registrar, RegistrarTable, kernel_def_flags};
use tenon_framework::linked::{Entry, Source, submit};

/// One entry of the list.
#[allow(clippy::large_enum_variant, reason = "entries are constants in static memory")]
#[derive(Clone, Copy)]
pub enum Registration {
    /// An op.
    Op(OpReg),
    /// A kernel.
    Kernel(KernelReg),
    /// A device type.
    Device(DeviceReg),
    /// A knob.
    Knob(KnobReg),
    /// Anything else, by tag.
    Extension(ExtensionReg),
}

inventory::collect!(Registration);

// The host finds what is linked into it in the list of tenon-framework.
inventory::submit! {
    Source(|| registrations().into_iter().map(|entry| entry as &dyn Entry).collect())
}

/// A crate all of whose kernels check their shapes, as [`kernels_check_shapes!`](crate::kernels_check_shapes) states.
#[derive(Debug, Clone, Copy)]
pub struct CheckingCrate(pub &'static str);

inventory::collect!(CheckingCrate);

impl CheckingCrate {
    /// The flags that it adds to a kernel of this crate.
    pub(super) fn flags(krate: &str) -> u32 {
        let says_so = inventory::iter::<CheckingCrate>().any(|one| one.0 == krate);
        if says_so { kernel_def_flags::CHECKS_SHAPES } else { 0 }
    }
}

impl Registration {
    /// Its place in the source.
    pub const fn site(&self) -> &Site {
        match self {
            Registration::Op(op) => &op.site,
            Registration::Kernel(kernel) => &kernel.site,
            Registration::Device(device) => &device.site,
            Registration::Knob(knob) => knob.site(),
            Registration::Extension(extension) => &extension.site,
        }
    }

    /// The registration in one line: its kind, its name, and the label and types of a kernel. A plugin's test
    /// compares the lines of [`registrations`] with a file, so that whatever the linker drops is noticed.
    pub fn line(&self) -> String {
        match self {
            Registration::Op(op) => format!("op {}", op.name),
            Registration::Kernel(kernel) => kernel.line(),
            Registration::Device(device) => format!("device {}", device.name),
            Registration::Knob(knob) => format!("knob {}", knob.name()),
            Registration::Extension(extension) => format!("extension {}", extension.site.file),
        }
    }
}

impl Entry for Registration {
    fn site(&self) -> &Site {
        Registration::site(self)
    }

    unsafe fn submit(&self, to: *mut Registrar, table: &RegistrarTable) -> Code {
        // SAFETY: the caller gives the registrar and the table that the host gave to this plugin's `register`.
        unsafe {
            match self {
                Registration::Op(op) => op.submit(to, table),
                Registration::Kernel(kernel) => kernel.submit(to, table),
                Registration::Device(device) => device.submit(to, table),
                Registration::Knob(knob) => knob.submit(to, table),
                Registration::Extension(extension) => extension.submit(to, table),
            }
        }
    }
}

/// This library's registrations, in an order that link order does not change.
pub fn registrations() -> Vec<&'static Registration> {
    let mut all: Vec<&Registration> = inventory::iter::<Registration>().collect();
    all.sort_by_key(|entry| (entry.site().krate, entry.site().file, entry.site().line));
    all
}

/// Gives this library's registrations that `wanted` accepts to a registrar; the first code that is an
/// error ends it.
///
/// # Safety
/// `to` and `table` are what the host gives to a plugin's `register`.
pub unsafe fn submit_all(
    to: *mut Registrar,
    table: *const RegistrarTable,
    wanted: impl Fn(&Registration) -> bool,
) -> Code {
    let own = registrations().into_iter().filter(|entry| wanted(entry));
    // SAFETY: the host gives `register` a registrar with its table, which lives through the call and which no other
    // thread uses, and the caller passes them on.
    unsafe { submit(own.map(|entry| entry as &dyn Entry), to, table) }
}
