//! Passes of libraries from their links.

use super::error::RegistryError;
use crate::{
    op::{RawError, SourceInfo, raw},
    pass::PassDef,
};
use std::sync::Arc;
use tenon_abi::{ExtHeader, ExtPass, ext_tags, layout};

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
