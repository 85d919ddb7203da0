//! Fusions from their links.

use super::error::RegistryError;
use crate::{
    fusion::{FusionDef, parse_fusion},
    op::{RawError, SourceInfo, raw},
};
use tenon_abi::{ExtCases, ExtHeader, ext_tags, layout};

const WHAT: &str = "fusion link";
/// Texts before the conditions: name, pattern, result, crate, file, line.
const FIXED: usize = 6;

impl FusionDef {
    /// Copies and checks what a plugin handed over.
    ///
    /// # Errors
    /// A link of another layout, too few texts, text that is not UTF-8 or does not follow the grammar.
    ///
    /// # Safety
    /// `link` is null or a live link with tag `FUSION`, whose texts are readable.
    pub unsafe fn from_abi(link: *const ExtHeader) -> Result<FusionDef, RegistryError> {
        // SAFETY: `link` is null or a live link with tag `FUSION`, as the caller guarantees.
        let found =
            unsafe { raw::link::<ExtCases>(link, ext_tags::FUSION, "fusion", &layout::EXT_CASES) };
        let named = |link| RegistryError::Link { kernel: "fusion".to_owned(), link };
        let Some(found) = found.map_err(named)? else {
            return Err(RawError::NullStruct { what: WHAT }.into());
        };
        // SAFETY: the texts of the link are readable, as the caller guarantees.
        let texts = unsafe { raw::texts(found.cases, WHAT, "texts")? };
        let [name, pattern, result, krate, file, line, conditions @ ..] = &texts[..] else {
            let (expected, found) = (FIXED * 16, (texts.len() * 16) as u32);
            return Err(RawError::StructSize { what: WHAT, expected, found }.into());
        };
        let source = SourceInfo {
            krate: krate.clone(),
            file: file.clone(),
            line: line.parse().unwrap_or(0),
        };
        let conditions: Vec<&str> = conditions.iter().map(String::as_str).collect();
        Ok(parse_fusion(name, pattern, result, &conditions, source)?)
    }
}
