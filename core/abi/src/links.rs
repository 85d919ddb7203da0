//! Extension links: their versions, and whether the layout of a link is that of its version.

use crate::layout::{
    EXT_BENCH, EXT_CAPTURE, EXT_CASES, EXT_COLLECTIVES, EXT_COST, EXT_FACTS, EXT_FUNCTIONS,
    EXT_GRADIENT, EXT_HANDLES, EXT_NATIVE, EXT_NATIVE_OF, EXT_PASS, EXT_TIMERS, EXT_VARIANT,
    EXT_VARIANTS, StructLayout, ext_hash,
};
use crate::{ExtHeader, ext_tags};

/// An extension link that this crate knows.
#[derive(Debug, Clone, Copy)]
pub struct ExtLayout {
    /// Its tag.
    pub tag: u32,
    /// The layout of each of its versions, from version 1 on; the last one is the struct's own.
    pub versions: &'static [StructLayout],
}

/// Every extension link.
pub static EXTS: &[ExtLayout] = &[
    ExtLayout { tag: ext_tags::COST, versions: &[EXT_COST] },
    ExtLayout { tag: ext_tags::CASES, versions: &[EXT_CASES] },
    ExtLayout { tag: ext_tags::PASS, versions: &[EXT_PASS] },
    ExtLayout { tag: ext_tags::FUSION, versions: &[EXT_CASES] },
    ExtLayout { tag: ext_tags::NATIVE, versions: &[EXT_NATIVE] },
    ExtLayout { tag: ext_tags::NATIVE_OF, versions: &[EXT_NATIVE_OF] },
    ExtLayout { tag: ext_tags::TIMERS, versions: &[EXT_TIMERS] },
    ExtLayout { tag: ext_tags::CAPTURE, versions: &[EXT_CAPTURE] },
    ExtLayout { tag: ext_tags::BENCH, versions: &[EXT_BENCH] },
    ExtLayout { tag: ext_tags::FACTS, versions: &[EXT_FACTS] },
    ExtLayout { tag: ext_tags::FUNCTIONS, versions: &[EXT_FUNCTIONS] },
    ExtLayout { tag: ext_tags::HANDLES, versions: &[EXT_HANDLES] },
    ExtLayout { tag: ext_tags::VARIANTS, versions: &[EXT_VARIANTS] },
    ExtLayout { tag: ext_tags::GRADIENT, versions: &[EXT_GRADIENT] },
    ExtLayout { tag: ext_tags::COLLECTIVES, versions: &[EXT_COLLECTIVES] },
    ExtLayout { tag: ext_tags::VARIANT, versions: &[EXT_VARIANT] },
];

impl ExtLayout {
    /// Whether a link of this tag has the layout of its version. A link of a version that is not known yet
    /// has to be at least as large as the last known version.
    pub const fn agrees(&self, header: &ExtHeader) -> bool {
        let known = self.versions.len();
        if header.version == 0 || known == 0 {
            return false;
        }
        if header.version as usize > known {
            return header.size >= self.versions[known - 1].size as u64;
        }
        let layout = &self.versions[header.version as usize - 1];
        header.size == layout.size as u64 && header.layout_hash == ext_hash(layout)
    }
}

impl StructLayout {
    /// The layout of an earlier version of a link, which had the first `fields` of these and `size`
    /// bytes.
    pub const fn earlier(&self, fields: usize, size: usize) -> StructLayout {
        StructLayout { name: self.name, size, fields: self.fields.split_at(fields).0 }
    }
}

#[cfg(test)]
mod tests {
    use super::{EXTS, ExtLayout};
    use crate::layout::{EXT_COST, StructLayout, ext_hash};
    use crate::{ExtHeader, ext_tags, struct_layout};

    /// The cost link as a later version might have it.
    #[repr(C)]
    struct ExtCostGrown {
        header: ExtHeader,
        fixed_ns: f64,
        per_element_ns: f64,
        per_byte_ns: f64,
    }

    const GROWN: StructLayout =
        struct_layout!(ExtCostGrown { header, fixed_ns, per_element_ns, per_byte_ns });
    const BOTH: ExtLayout =
        ExtLayout { tag: ext_tags::COST, versions: &[GROWN.earlier(3, 48), GROWN] };

    fn now() -> &'static ExtLayout {
        EXTS.iter().find(|ext| ext.tag == ext_tags::COST).expect("the cost link is known")
    }

    #[test]
    fn an_earlier_version_keeps_its_hash() {
        assert_eq!(ext_hash(&BOTH.versions[0]), ext_hash(&EXT_COST));
        assert_ne!(ext_hash(&BOTH.versions[1]), ext_hash(&EXT_COST));
    }

    #[test]
    fn an_old_link_agrees_with_a_new_reader_and_the_other_way_round() {
        let old = ExtHeader::new(ext_tags::COST, 1, &EXT_COST);
        let new = ExtHeader::new(ext_tags::COST, 2, &GROWN);
        assert!(now().agrees(&old) && BOTH.agrees(&old));
        assert!(now().agrees(&new) && BOTH.agrees(&new));
    }

    #[test]
    fn a_link_that_is_not_what_its_version_says_does_not_agree() {
        let mislabelled = ExtHeader::new(ext_tags::COST, 1, &GROWN);
        let short = ExtHeader { size: 40, ..ExtHeader::new(ext_tags::COST, 2, &GROWN) };
        let other = ExtHeader { layout_hash: 1, ..ExtHeader::new(ext_tags::COST, 1, &EXT_COST) };
        let none = ExtHeader::new(ext_tags::COST, 0, &EXT_COST);
        for header in [mislabelled, short, other, none] {
            assert!(!now().agrees(&header), "version {} size {}", header.version, header.size);
        }
    }
}
