//! Door 1: the `abi_stable` root module around [`PluginV1`].
//!
//! A Rust plugin exports one static, a [`LibHeader`], under a symbol of its own
//! (`tenon_root_<package>_<version>`), so that several plugins can be linked into one binary. The loader
//! reads that symbol as [`AbiHeaderRef`] and hands it to [`open`], which compares the layout of every type
//! reachable from the table.

use crate::{PluginV1, refusal};
use abi_stable::{
    StableAbi,
    library::{__call_root_module_loader, LibraryError, RootModule, RootModuleResult},
    package_version_strings,
    prefix_type::WithMetadata,
    sabi_types::VersionStrings,
};

pub use abi_stable::library::{AbiHeaderRef, CheckTypeLayout, LibHeader};

/// Prefix of the exported symbol of door 1.
pub const ROOT_PREFIX: &str = "tenon_root_";
/// Exported symbol of door 2.
pub const C_SYMBOL: &str = "tenon_plugin_v1";

/// Root module: it always has exactly one field. Another major ABI has another root under another symbol.
#[repr(C)]
#[derive(StableAbi)]
#[sabi(kind(Prefix(prefix_ref = RootRef, prefix_fields = RootPrefix)))]
#[sabi(missing_field(panic))]
pub struct Root {
    /// The plugin's table.
    #[sabi(last_prefix_field)]
    pub v1: &'static PluginV1,
}

impl RootModule for RootRef {
    abi_stable::declare_root_module_statics! {RootRef}
    const BASE_NAME: &'static str = "tenon";
    const NAME: &'static str = "tenon";
    const VERSION_STRINGS: VersionStrings = package_version_strings!();
}

/// A type that represents a plugin. `export_plugin!` implements it.
pub trait PluginDef: 'static {
    /// Its table.
    const TABLE: &'static PluginV1;
}

struct Holder<P>(P);

impl<P: PluginDef> Holder<P> {
    abi_stable::staticref! {
        const ROOT: WithMetadata<Root> = WithMetadata::new(Root { v1: P::TABLE })
    }
}

fn root<P: PluginDef>() -> RootRef {
    RootRef(Holder::<P>::ROOT.as_prefix())
}

extern "C" fn erased<P: PluginDef>() -> RootModuleResult {
    __call_root_module_loader(root::<P>)
}

/// The static that a plugin exports.
pub const fn lib_header<P: PluginDef>() -> LibHeader {
    // SAFETY: `erased` returns the root module of type `RootRef`, whose layout is checked.
    unsafe { LibHeader::from_constructor::<RootRef>(erased::<P>, CheckTypeLayout::Yes) }
}

/// Why door 1 refused a library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The library was made by another version of `abi_stable`.
    AbiStable {
        /// What `abi_stable` says.
        detail: String,
    },
    /// A shared type has another layout.
    Layout {
        /// The way through the fields to the first difference, in one line.
        path: String,
        /// The whole report, for the log.
        report: String,
    },
    /// The root module could not be read.
    Root {
        /// What `abi_stable` says.
        detail: String,
    },
}

/// Checks the layout and returns the plugin's table.
///
/// # Errors
/// [`Refusal`]: the library was made by another `abi_stable`, or a shared type has another layout.
pub fn open(header: AbiHeaderRef) -> Result<&'static PluginV1, Refusal> {
    let header = header.upgrade().map_err(|e| Refusal::AbiStable { detail: e.to_string() })?;
    match header.init_root_module::<RootRef>() {
        Ok(root) => Ok(root.v1()),
        Err(LibraryError::AbiInstability(e)) => {
            let report = format!("{e:?}");
            Err(Refusal::Layout { path: refusal::layout_path(&report), report })
        }
        Err(e) => Err(Refusal::Root { detail: e.to_string() }),
    }
}
