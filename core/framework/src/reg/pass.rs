//! Registration of a pass.

use super::{ExtensionReg, Site};
use crate::{
    op::{RawError, SourceInfo, raw},
    pass::{PassDef, PassFn},
    registry::RegistryError,
};
use std::sync::Arc;
use tenon_abi::{Code, ExtHeader, ExtPass, Str, ext_tags, layout, layout::EXT_PASS};

/// A registration whose link `make` gives, as `register_pass!` writes it.
#[doc(hidden)]
pub const fn pass(
    make: fn(&mut dyn FnMut(*const ExtHeader) -> Code) -> Code,
    site: Site,
) -> ExtensionReg {
    ExtensionReg::new(ext_tags::PASS, make, site)
}

/// Makes the link of a pass and hands it over.
#[doc(hidden)]
pub fn give_pass(
    give: &mut dyn FnMut(*const ExtHeader) -> Code,
    name: &'static str,
    help: &'static str,
    run: PassFn,
    late: bool,
    site: Site,
) -> Code {
    let link = ExtPass {
        header: ExtHeader::new(ext_tags::PASS, 1, &EXT_PASS),
        name: Str::new(name),
        help: Str::new(help),
        run: Some(run),
        source: site.source(),
        late: u64::from(late),
    };
    give((&raw const link).cast())
}

impl PassDef {
    /// Copies and checks what a plugin handed over; `plugin` and `scope` are set by its transaction.
    ///
    /// # Errors
    /// A link of another layout, a missing entry, text that is not UTF-8.
    ///
    /// # Safety
    /// `link` is null or a live link with tag `PASS`, whose texts are readable and whose entry lives as long as
    /// the process.
    pub unsafe fn from_abi(link: *const ExtHeader) -> Result<PassDef, RegistryError> {
        const WHAT: &str = "pass link";
        // SAFETY: the caller gives null or a live link with tag `PASS` and readable texts. Nothing else is read below.
        unsafe {
            let found = raw::link::<ExtPass>(link, ext_tags::PASS, "pass", &layout::EXT_PASS);
            let named = |link| RegistryError::Link { kernel: "pass".to_owned(), link };
            let Some(found) = found.map_err(named)? else {
                return Err(RawError::NullStruct { what: WHAT }.into());
            };
            let run = found.run.ok_or(RawError::Null { what: WHAT, field: "run" })?;
            Ok(PassDef {
                name: raw::text(found.name, WHAT, "name")?,
                help: raw::text(found.help, WHAT, "help")?,
                late: found.late != 0,
                run,
                source: SourceInfo::from_abi(&found.source)?,
                plugin: Arc::from(""),
                scope: String::new(),
            })
        }
    }
}
