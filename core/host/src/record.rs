//! The host's record of a plugin: what lies behind the opaque `Plugin` of the boundary.

use std::{
    path::{Path, PathBuf},
    sync::LazyLock,
};
use tenon_abi::{Plugin, Str};

/// What the host knows of a plugin's code, whichever runtime uses it. One for each library that was opened, one for
/// all that is linked into the host; they live as long as the process.
#[derive(Debug)]
pub struct PluginRecord {
    name: String,
    path: PathBuf,
}

static LINKED: LazyLock<PluginRecord> =
    LazyLock::new(|| PluginRecord { name: "linked".to_owned(), path: PathBuf::new() });

impl PluginRecord {
    /// The record of a library, for as long as the process lives.
    pub(crate) fn leak(name: &str, path: &Path) -> &'static PluginRecord {
        Box::leak(Box::new(PluginRecord { name: name.to_owned(), path: path.to_owned() }))
    }

    /// The record of all that is linked into the host.
    pub fn linked() -> &'static PluginRecord {
        &LINKED
    }

    /// The record behind a pointer of the boundary; null is what is linked into the host.
    ///
    /// # Safety
    /// `plugin` is null or came from [`PluginRecord::as_plugin`].
    pub(crate) unsafe fn of(plugin: *const Plugin) -> &'static PluginRecord {
        // SAFETY: `plugin` is null or came from `as_plugin`, as the caller guarantees; records are never freed.
        unsafe { plugin.cast::<PluginRecord>().as_ref() }.unwrap_or_else(PluginRecord::linked)
    }

    /// What the plugin is given.
    pub fn as_plugin(&'static self) -> *const Plugin {
        (&raw const *self).cast()
    }

    /// Name, as its package has it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its file; empty for what is linked into the host.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Path as the boundary has it.
    pub(crate) fn path_bytes(&'static self) -> Str {
        Str::from_bytes(self.path.as_os_str().as_encoded_bytes())
    }
}
