//! Registration of a type of variants.

use super::{ExtensionReg, Site};
use crate::{VariantValue, variant_table};
use tenon_abi::{Code, ExtHeader, ExtVariant, ext_tags, layout::EXT_VARIANT};

/// A registration whose link `make` gives, as `register_variant!` writes it.
#[doc(hidden)]
pub const fn variant(
    make: fn(&mut dyn FnMut(*const ExtHeader) -> Code) -> Code,
    site: Site,
) -> ExtensionReg {
    ExtensionReg::new(ext_tags::VARIANT, make, site)
}

/// Makes the link of a type and hands it over.
#[doc(hidden)]
pub fn give_variant<T: VariantValue>(
    give: &mut dyn FnMut(*const ExtHeader) -> Code,
    site: Site,
) -> Code {
    let link = ExtVariant {
        header: ExtHeader::new(ext_tags::VARIANT, 1, &EXT_VARIANT),
        table: variant_table::<T>(),
        source: site.source(),
    };
    give((&raw const link).cast())
}
