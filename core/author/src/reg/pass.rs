//! Registration of a pass.

use super::{ExtensionReg, Site};
use tenon_abi::{Code, ExtHeader, ExtPass, Str, ext_tags, layout::EXT_PASS};
use tenon_framework::pass::PassFn;

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
