//! Types of variants whose values can be decoded.

use super::error::RegistryError;
use crate::op::{RawError, SourceInfo, raw};
use std::{fmt, sync::Arc};
use tenon_abi::{ExtHeader, ExtVariant, VariantTable, ext_tags, layout};

/// A type of variants whose values can be decoded, by its name.
#[derive(Clone)]
pub struct VariantDef {
    /// Name of the type.
    pub name: String,
    /// Entries of its values; `decode` is there.
    pub table: &'static VariantTable,
    /// Where it is registered.
    pub source: SourceInfo,
    /// Name of the plugin that registered it.
    pub plugin: Arc<str>,
}

impl VariantDef {
    /// Copies and checks what a plugin handed over; `plugin` is set by its transaction.
    ///
    /// # Errors
    /// A link of another layout, a missing table or entry, a name that is empty or not UTF-8.
    ///
    /// # Safety
    /// `link` is null or a live link with tag `VARIANT`, whose texts are readable and whose table lives as long as
    /// the process.
    pub unsafe fn from_abi(link: *const ExtHeader) -> Result<VariantDef, RegistryError> {
        const WHAT: &str = "variant link";
        // SAFETY: `link` is null or a live link with tag `VARIANT`, with readable texts and a table that lives as long
        // as the process, as the caller guarantees. Nothing else is read below.
        unsafe {
            let found =
                raw::link::<ExtVariant>(link, ext_tags::VARIANT, "variant", &layout::EXT_VARIANT);
            let named = |link| RegistryError::Link { kernel: "variant".to_owned(), link };
            let Some(found) = found.map_err(named)? else {
                return Err(RawError::NullStruct { what: WHAT }.into());
            };
            let table: &'static VariantTable = raw::sized(found.table, "table of a variant")?;
            let missing = |field| RawError::Null { what: "table of a variant", field };
            for (there, field) in [
                (table.clone.is_some(), "clone"),
                (table.destroy.is_some(), "destroy"),
                (table.encode.is_some(), "encode"),
                (table.decode.is_some(), "decode"),
            ] {
                if !there {
                    return Err(missing(field).into());
                }
            }
            let name = raw::text(table.type_name, "table of a variant", "type_name")?;
            if name.is_empty() {
                return Err(missing("type_name").into());
            }
            let source = SourceInfo::from_abi(&found.source)?;
            Ok(VariantDef { name, table, source, plugin: Arc::from("") })
        }
    }
}

impl fmt::Debug for VariantDef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VariantDef")
            .field("name", &self.name)
            .field("plugin", &self.plugin)
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}
