//! Registrations of kinds that came after the first version of the tables: links of the typed chain.

use super::Site;
use tenon_abi::{Code, ExtHeader, Registrar, RegistrarTable};

/// Makes the link and hands it to `give`, which keeps nothing of it.
pub type ExtensionFn = fn(give: &mut dyn FnMut(*const ExtHeader) -> Code) -> Code;

/// A registration of another kind, by tag.
#[derive(Clone, Copy)]
pub struct ExtensionReg {
    pub(crate) tag: u32,
    make: ExtensionFn,
    pub(crate) site: Site,
}

impl ExtensionReg {
    /// A registration whose link `make` makes.
    pub const fn new(tag: u32, make: ExtensionFn, site: Site) -> ExtensionReg {
        ExtensionReg { tag, make, site }
    }

    /// Gives the link to a registrar. A host that does not know the tag says `UNIMPLEMENTED`, which is no
    /// error: the plugin goes on without.
    pub(crate) unsafe fn submit(&self, to: *mut Registrar, table: &RegistrarTable) -> Code {
        let entry = table.extension.expect("the host fills every entry");
        // SAFETY: the caller gives a registrar with its table; the host copies what it keeps.
        let code = (self.make)(&mut |link| unsafe { entry(to, link) });
        if code == Code::UNIMPLEMENTED { Code::OK } else { code }
    }
}
