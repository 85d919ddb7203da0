//! Registration of a fusion.

use super::{ExtensionReg, Site, strs};
use tenon_abi::{Code, ExtCases, ExtHeader, Str, Strs, ext_tags, layout::EXT_CASES};

/// A registration whose link `make` gives, as `register_fusion!` writes it.
#[doc(hidden)]
pub const fn fusion(
    make: fn(&mut dyn FnMut(*const ExtHeader) -> Code) -> Code,
    site: Site,
) -> ExtensionReg {
    ExtensionReg::new(ext_tags::FUSION, make, site)
}

/// Makes the link of a fusion and hands it over.
#[doc(hidden)]
pub fn give_fusion(
    give: &mut dyn FnMut(*const ExtHeader) -> Code,
    texts: [&'static str; 3],
    conditions: &[&'static str],
    site: Site,
) -> Code {
    let line = site.line.to_string();
    let mut all = strs(&texts);
    all.extend([Str::new(site.krate), Str::new(site.file), Str::new(&line)]);
    all.extend(strs(conditions));
    let link = ExtCases {
        header: ExtHeader::new(ext_tags::FUSION, 1, &EXT_CASES),
        cases: Strs::new(&all),
    };
    give((&raw const link).cast())
}
