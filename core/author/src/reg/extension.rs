//! Registrations of kinds that came after the first version of the tables: links of the typed chain.

use super::{
    Site,
    link::{ExtensionLink, Link},
};
use tenon_abi::{Code, ExtHeader, Registrar, RegistrarTable};

/// Makes the link and hands it to `give`, which keeps nothing of it.
pub type ExtensionFn = fn(give: &mut dyn FnMut(*const ExtHeader) -> Code) -> Code;

#[derive(Clone, Copy)]
enum Source {
    Made(ExtensionFn),
    There(Link),
}

/// A registration of another kind, by tag.
#[derive(Clone, Copy)]
pub struct ExtensionReg {
    pub(crate) tag: u32,
    source: Source,
    pub(crate) site: Site,
}

impl ExtensionReg {
    /// A registration whose link `make` makes.
    pub const fn new(tag: u32, make: ExtensionFn, site: Site) -> ExtensionReg {
        ExtensionReg { tag, source: Source::Made(make), site }
    }

    /// A registration of this link, as `register_extension!` writes it.
    pub const fn of<T: ExtensionLink>(link: &'static T, site: Site) -> ExtensionReg {
        ExtensionReg { tag: T::TAG, source: Source::There(Link::to(link)), site }
    }

    /// Gives the link to a registrar. A host that does not know the tag says `UNIMPLEMENTED`, which is not an
    /// error: the plugin goes on without it.
    pub(crate) unsafe fn submit(&self, to: *mut Registrar, table: &RegistrarTable) -> Code {
        let entry = table.extension.expect("the host fills every entry");
        // SAFETY: the caller gives a registrar with its table; the host copies what it keeps.
        let mut give = |link| unsafe { entry(to, link) };
        let code = match self.source {
            Source::Made(make) => make(&mut give),
            Source::There(link) => give(link.head()),
        };
        if code == Code::UNIMPLEMENTED { Code::OK } else { code }
    }
}
