//! The host's record of a plugin: the type behind the opaque `Plugin` of the boundary.

use std::{
    path::{Path, PathBuf},
    sync::LazyLock,
};
use tenon_abi::{Plugin, Str};

/// The host's record of a plugin's code, shared by all runtimes. There is one for each library that
/// was opened, and one for everything linked into the host; they live as long as the process.
#[derive(Debug)]
pub struct PluginRecord {
    name: String,
    path: PathBuf,
}

static LINKED: LazyLock<PluginRecord> =
    LazyLock::new(|| PluginRecord { name: "linked".to_owned(), path: PathBuf::new() });

impl PluginRecord {
    /// Creates the record of a library, for the life of the process.
    pub(crate) fn leak(name: &str, path: &Path) -> &'static PluginRecord {
        Box::leak(Box::new(PluginRecord { name: name.to_owned(), path: path.to_owned() }))
    }

    /// The record of everything linked into the host.
    pub fn linked() -> &'static PluginRecord {
        &LINKED
    }

    /// The record behind a pointer of the boundary; null means what is linked into the host.
    ///
    /// # Safety
    /// - `plugin` is null or came from [`PluginRecord::as_plugin`].
    pub(crate) unsafe fn of(plugin: *const Plugin) -> &'static PluginRecord {
        // SAFETY: the caller guarantees that `plugin` is null or came from `as_plugin`; records are
        // never freed.
        unsafe { plugin.cast::<PluginRecord>().as_ref() }.unwrap_or_else(PluginRecord::linked)
    }

    /// The pointer for the plugin.
    pub fn as_plugin(&'static self) -> *const Plugin {
        (&raw const *self).cast()
    }

    /// Name of the plugin's package.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its file; empty for what is linked into the host.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its path for the boundary.
    pub(crate) fn path_bytes(&'static self) -> Str {
        Str::from_bytes(self.path.as_os_str().as_encoded_bytes())
    }
}
