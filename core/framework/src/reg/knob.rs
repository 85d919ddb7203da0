//! Registration of a knob.

use super::Site;
use tenon_abi::{Code, KnobDef, KnobKind, Registrar, RegistrarTable, Str};

/// A setting as `register_knob!` writes it.
#[derive(Clone, Copy)]
pub struct KnobReg {
    pub(crate) name: &'static str,
    pub(crate) kind: KnobKind,
    pub(crate) default: &'static str,
    pub(crate) help: &'static str,
    pub(crate) site: Site,
}

impl KnobReg {
    /// A knob; `default` is its value as text.
    pub const fn new(
        name: &'static str,
        kind: KnobKind,
        default: &'static str,
        help: &'static str,
        site: Site,
    ) -> KnobReg {
        KnobReg { name, kind, default, help, site }
    }

    /// Gives the knob to a registrar.
    pub(crate) unsafe fn submit(&self, to: *mut Registrar, table: &RegistrarTable) -> Code {
        let def = KnobDef {
            struct_size: size_of::<KnobDef>() as u32,
            kind: self.kind,
            name: Str::new(self.name),
            default_value: Str::new(self.default),
            help: Str::new(self.help),
            source: self.site.source(),
            ext: std::ptr::null(),
        };
        // SAFETY: the caller gives a registrar with its table; the host copies the definition.
        unsafe { table.knob.expect("the host fills every entry")(to, &def) }
    }
}
