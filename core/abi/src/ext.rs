//! Growth: the typed chain in which every table ends.

use crate::{Str, Strs};
use abi_stable::StableAbi;

/// Head of a link. Filled by the side that made the link; both sides skip tags that they do not know.
///
/// A link struct begins with this header. It is found by tag; a reader uses the fields that `size`
/// covers. `layout_hash` is computed from the size of the struct of the version named and from the names
/// and offsets of its fields, since the layout check of door 1 ends at the pointer. In C,
/// `TENON_EXT_*_HEADER` fills a header; in Rust, its constructor does.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct ExtHeader {
    /// One of [`ext_tags`].
    pub tag: u32,
    /// Version of the link's struct, from 1; a later one only appends fields.
    pub version: u32,
    /// Size of the struct in bytes, header included.
    pub size: u64,
    /// Hash of the struct's layout.
    pub layout_hash: u64,
    /// Next link; null at the end.
    pub next: *const ExtHeader,
}

// SAFETY: a link is immutable data that lives as long as its table.
unsafe impl Sync for ExtHeader {}
// SAFETY: as above.
unsafe impl Send for ExtHeader {}

/// Tags of links. Those with the bit [`ext_tags::PRIVATE`] are free for private use; the others belong
/// to Tenon.
pub mod ext_tags {
    /// The bit of tags that are free for private use.
    pub const PRIVATE: u32 = 0x8000_0000;
    /// On an op definition: its gradient ([`crate::ExtGradient`]).
    pub const GRADIENT: u32 = 1;
    /// As a registration: a graph pass ([`crate::ExtPass`]).
    pub const PASS: u32 = 2;
    /// As a registration: a declarative fusion pattern, in the texts of a [`super::ExtCases`]: name, pattern, result,
    /// crate, file, line, then conditions. The grammar is in tenon-framework, `fusion`. The host refuses a
    /// registration whose text does not follow it.
    pub const FUSION: u32 = 3;
    /// Reserved: claiming a subgraph and compiling it as one node.
    pub const SUBGRAPH: u32 = 4;
    /// On an op definition: cases that are valid ([`super::ExtCases`]).
    pub const CASES: u32 = 5;
    /// On a kernel definition: what a call costs ([`super::ExtCost`]).
    pub const COST: u32 = 6;
    /// On a device's table: the driver's handles ([`crate::ExtNative`]).
    pub const NATIVE: u32 = 7;
    /// On the host's table: the handles of a device of any plugin ([`crate::ExtNativeOf`]).
    pub const NATIVE_OF: u32 = 8;
    /// On a device's table: events that note the time ([`crate::ExtTimers`]).
    pub const TIMERS: u32 = 9;
    /// On a device's table: graphs of commands ([`crate::ExtCapture`]).
    pub const CAPTURE: u32 = 10;
    /// On an op definition: calls to measure, and the work of a call ([`super::ExtBench`]).
    pub const BENCH: u32 = 11;
    /// On an op definition: what passes, placement and execution must know of the op ([`crate::ExtFacts`]).
    pub const FACTS: u32 = 12;
    /// As a registration: a type of variants that can be decoded ([`crate::ExtVariant`]).
    pub const VARIANT: u32 = 13;
    /// On the host's table: calls of functions ([`crate::ExtFunctions`]).
    pub const FUNCTIONS: u32 = 14;
    /// On the host's table: resources by their handles ([`crate::ExtHandles`]).
    pub const HANDLES: u32 = 15;
    /// On the host's table: collective operations ([`crate::ExtCollectives`]).
    pub const COLLECTIVES: u32 = 16;
    /// On the host's table: variants as bytes and tensors ([`crate::ExtVariants`]).
    pub const VARIANTS: u32 = 17;
}

/// Link [`ext_tags::COST`] of a kernel definition: what the author expects a call to cost. The executor
/// starts from it until it has measured the kernel. Filled by the plugin.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct ExtCost {
    /// Head, with tag [`ext_tags::COST`].
    pub header: ExtHeader,
    /// Nanoseconds of a call on an empty tensor.
    pub fixed_ns: f64,
    /// Nanoseconds per element of the first output.
    pub per_element_ns: f64,
}

/// Link [`ext_tags::CASES`] of an op definition: valid cases, for an op whose signature does not say which
/// inputs are valid. A program that checks a kernel makes the inputs from the cases; without the link, it
/// makes them from the signature alone. Filled by the plugin; the host copies the texts.
///
/// A case is one text: its name, then attributes, sizes and inputs, as in
/// `"rows; axis = 0; k in 1..9; x: [n, 4] uniform(-1, 1); index: [k] integers(0..n)"`. The grammar is in
/// core/abi/docs/cases.md. The host refuses a registration whose text does not follow it.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct ExtCases {
    /// Head, with tag [`ext_tags::CASES`].
    pub header: ExtHeader,
    /// One text for each case.
    pub cases: Strs,
}

/// Link [`ext_tags::BENCH`] of an op definition: calls that show how fast a kernel is, and the work of a call. Without
/// the link, a benchmark chooses calls itself, and knows only how many bytes they move. Filled by the plugin; the host
/// copies the texts.
///
/// A call is a text in the grammar of [`ExtCases`] that describes every input and gives every size a value; several
/// values of a size are several calls: `"rows; n in {64, 4096}; x: [n, 768]; weight: [768]"`. Operations and bytes are
/// formulas over arguments and attributes, such as `"2*y*a[-1]"`. The grammar is in core/abi/docs/bench.md. The host
/// refuses a registration whose text does not follow it.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct ExtBench {
    /// Head, with tag [`ext_tags::BENCH`].
    pub header: ExtHeader,
    /// One text for each call, or for each family of calls.
    pub calls: Strs,
    /// Operations of a call; empty if they are not known.
    pub flops: Str,
    /// Bytes that a call moves; empty if it moves all inputs and outputs once.
    pub bytes: Str,
}

/// Longest chain that a reader follows; a longer one is taken for a cycle.
pub const MAX_LINKS: usize = 64;

/// The link with `tag` that covers at least `min_size` bytes, or null.
///
/// # Safety
/// `chain` is null or the head of a chain of live headers.
pub unsafe fn find_ext(chain: *const ExtHeader, tag: u32, min_size: usize) -> *const ExtHeader {
    let mut link = chain;
    for _ in 0..MAX_LINKS {
        if link.is_null() {
            break;
        }
        // SAFETY: the caller promises that every link is live.
        let header = unsafe { &*link };
        if header.tag == tag && header.size >= min_size as u64 {
            return link;
        }
        link = header.next;
    }
    core::ptr::null()
}

#[cfg(test)]
mod tests {
    use super::{ExtCost, ExtHeader, MAX_LINKS, ext_tags, find_ext};
    use crate::layout::{EXT_COST, FieldLayout, StructLayout, ext_hash};
    use core::{mem, ptr};

    const UNKNOWN: u32 = 0x8000_0001;

    fn link(tag: u32, size: u64, next: *const ExtHeader) -> ExtHeader {
        ExtHeader { tag, version: 1, size, layout_hash: 0, next }
    }

    fn find(chain: *const ExtHeader, min_size: usize) -> *const ExtHeader {
        // SAFETY: the tests' chains are of live headers.
        unsafe { find_ext(chain, ext_tags::COST, min_size) }
    }

    #[test]
    fn no_chain_has_no_link() {
        assert!(find(ptr::null(), 0).is_null());
    }

    #[test]
    fn an_unknown_tag_is_skipped() {
        let cost = link(ext_tags::COST, 48, ptr::null());
        let chain = link(UNKNOWN, 4096, &cost);
        assert!(ptr::eq(find(&chain, 48), &cost));
    }

    #[test]
    fn a_link_that_is_too_small_is_skipped() {
        let full = link(ext_tags::COST, 48, ptr::null());
        let short = link(ext_tags::COST, 40, &full);
        assert!(ptr::eq(find(&short, 40), &short));
        assert!(ptr::eq(find(&short, 48), &full));
        assert!(find(&short, 49).is_null());
    }

    #[test]
    fn a_cycle_ends() {
        let mut ring = link(UNKNOWN, 32, ptr::null());
        let head: *mut ExtHeader = &mut ring;
        // SAFETY: `head` points to `ring`, which is not used otherwise from here on.
        unsafe { (*head).next = head };
        assert!(find(head, 0).is_null());
    }

    #[test]
    fn the_last_link_within_the_limit_is_found() {
        let cost = link(ext_tags::COST, 48, ptr::null());
        let mut chain = vec![link(UNKNOWN, 32, ptr::null()); MAX_LINKS];
        let first = chain.as_mut_ptr();
        for at in 0..MAX_LINKS {
            let last = at + 1 == MAX_LINKS;
            // SAFETY: both positions are in `chain`, which is only used through `first`.
            unsafe { (*first.add(at)).next = if last { &cost } else { first.add(at + 1) } };
        }
        assert!(find(first, 0).is_null());
        // SAFETY: the second position is in `chain`.
        assert!(ptr::eq(find(unsafe { first.add(1) }, 0), &cost));
    }

    #[test]
    fn a_header_carries_size_and_hash_of_its_struct() {
        let header = ExtHeader::new(ext_tags::COST, 1, &EXT_COST);
        assert_eq!(header.size, mem::size_of::<ExtCost>() as u64);
        assert_eq!(header.layout_hash, ext_hash(&EXT_COST));
        assert!(header.next.is_null());
    }

    #[test]
    fn the_hash_sees_a_rename_a_resize_and_a_move() {
        const FIELDS: &[FieldLayout] =
            &[FieldLayout { name: "ab", offset: 0 }, FieldLayout { name: "c", offset: 8 }];
        const RENAMED: &[FieldLayout] =
            &[FieldLayout { name: "a", offset: 0 }, FieldLayout { name: "bc", offset: 8 }];
        const MOVED: &[FieldLayout] =
            &[FieldLayout { name: "ab", offset: 0 }, FieldLayout { name: "c", offset: 12 }];
        let hash = |size, fields| ext_hash(&StructLayout { name: "X", size, fields });
        let original = hash(16, FIELDS);
        assert_eq!(original, hash(16, FIELDS));
        assert_ne!(original, hash(24, FIELDS), "resize");
        assert_ne!(original, hash(16, RENAMED), "rename");
        assert_ne!(original, hash(16, MOVED), "move");
        assert_ne!(original, hash(16, &FIELDS[..1]), "a field less");
    }
}
