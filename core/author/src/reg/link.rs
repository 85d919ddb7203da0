//! Extension links of an author's own: on the definition of an op or a kernel, or registered alone.

use std::ptr;
use tenon_abi::{ExtCost, ExtHeader, ext_tags};

/// A link of the typed chain: a struct that begins with its [`ExtHeader`]. [`extension_link!`] declares one.
///
/// # Safety
/// The type is `#[repr(C)]` and begins with an [`ExtHeader`], which says its size; it is plain data.
///
/// [`extension_link!`]: crate::extension_link
pub unsafe trait ExtensionLink: Copy + Send + Sync + 'static {
    /// Tag of the link.
    const TAG: u32;
}

// SAFETY: a struct of the boundary.
unsafe impl ExtensionLink for ExtCost {
    const TAG: u32 = ext_tags::COST;
}

/// A link in static memory, for a registration.
#[derive(Clone, Copy)]
pub(crate) struct Link(*const ExtHeader);

// SAFETY: links are immutable data in static memory.
unsafe impl Send for Link {}
// SAFETY: as above.
unsafe impl Sync for Link {}

impl Link {
    /// No link.
    pub const NONE: Link = Link(ptr::null());

    /// A link, with those behind it.
    pub const fn to<T: ExtensionLink>(link: &'static T) -> Link {
        Link(ptr::from_ref(link).cast())
    }

    /// The head of the chain; null without links.
    pub const fn head(self) -> *const ExtHeader {
        self.0
    }
}

/// Declares a link of the author's own, which a tool or a host of the author reads from an op's or a kernel's
/// definition, or from a registration of its own. Hosts that do not know the tag skip it.
///
/// The tag has its highest bit set (the others are Tenon's); the version is raised when fields are appended.
/// Fields are plain data, without padding between or behind them. The macro makes the struct with its header,
/// `new` with a parameter for each field, and `before`, which puts it in front of another link.
///
/// ```
/// use tenon_author::{ComputeContext, register_kernel};
/// use tenon_framework::KernelError;
///
/// tenon_author::extension_link! {
///     /// How well the kernel was tuned.
///     pub struct Tuning(tag = 0x8000_0101, version = 1) {
///         /// Share of the machine's peak.
///         pub share: f64,
///         /// Rounds of the tuner.
///         pub rounds: u64,
///     }
/// }
///
/// static TUNED: Tuning = Tuning::new(0.82, 40);
///
/// fn twice(c: &ComputeContext<'_>) -> Result<(), KernelError> {
///     let x = c.input::<f32>(0)?;
///     let y = c.output::<f32>(0, x.dims)?;
///     y.data.iter_mut().zip(x.data).for_each(|(y, x)| *y = x + x);
///     Ok(())
/// }
///
/// register_kernel!("Twice" on "CPU": fn twice, ext = &TUNED);
/// // And for the library as a whole:
/// tenon_author::register_extension!(TUNED: Tuning);
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! extension_link {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident (tag = $tag:expr, version = $version:literal) {
            $($(#[$field_meta:meta])* $field_vis:vis $field:ident : $ty:ty),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        #[repr(C)]
        #[derive(Clone, Copy)]
        $vis struct $name {
            header: $crate::abi::ExtHeader,
            $($(#[$field_meta])* $field_vis $field: $ty),+
        }

        impl $name {
            /// The link, with its header filled.
            $vis const fn new($($field: $ty),+) -> $name {
                const LAYOUT: $crate::abi::layout::StructLayout =
                    $crate::abi::struct_layout!($name { header, $($field),+ });
                const {
                    let fields = size_of::<$crate::abi::ExtHeader>() $(+ size_of::<$ty>())+;
                    assert!(size_of::<$name>() == fields, "a link has no padding: add a field");
                    assert!($tag & $crate::abi::ext_tags::PRIVATE != 0, "an author's tag has its highest bit set");
                }
                $name { header: $crate::abi::ExtHeader::new($tag, $version, &LAYOUT), $($field),+ }
            }

            /// The same link, in front of another one.
            #[allow(dead_code, reason = "for links that are part of a chain")]
            $vis const fn before<T: $crate::reg::ExtensionLink>(mut self, next: &'static T) -> $name {
                self.header.next = ::core::ptr::from_ref(next).cast();
                self
            }
        }

        // SAFETY: `repr(C)`, the header first, filled by `new` alone; `Copy` fields.
        unsafe impl $crate::reg::ExtensionLink for $name {
            const TAG: u32 = $tag;
        }
    };
}
