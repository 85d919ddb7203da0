//! The host's record of a plugin: what lies behind the opaque `Plugin` of the boundary.

use crate::knob_scope::KnobScope;
use arc_swap::ArcSwap;
use std::{
    path::{Path, PathBuf},
    sync::{Arc, LazyLock},
};
use tenon_abi::{Plugin, Str};
use tenon_framework::knob::{KnobSetting, Knobs};

/// What a plugin's calls into the host are answered from. One for each library that was opened, one for all
/// that is linked into the host; they live as long as the process.
#[derive(Debug)]
pub struct PluginRecord {
    name: String,
    path: PathBuf,
    /// Scope of its knobs; `None` for what is linked into the host, which shares one record.
    scope: Option<String>,
    knobs: ArcSwap<Knobs>,
}

static LINKED: LazyLock<PluginRecord> = LazyLock::new(|| PluginRecord {
    name: "linked".to_owned(),
    path: PathBuf::new(),
    scope: None,
    knobs: ArcSwap::default(),
});

impl PluginRecord {
    /// The record of a library, for as long as the process lives.
    pub(crate) fn leak(name: &str, scope: &str, path: &Path) -> &'static PluginRecord {
        Box::leak(Box::new(PluginRecord {
            name: name.to_owned(),
            path: path.to_owned(),
            scope: Some(scope.to_owned()),
            knobs: ArcSwap::default(),
        }))
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
        // SAFETY: the caller's promise; records are never freed.
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

    /// Scope of its knobs; empty for what is linked into the host.
    pub(crate) fn scope(&self) -> &str {
        self.scope.as_deref().unwrap_or_default()
    }

    /// Its file; empty for what is linked into the host.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Path as the boundary has it.
    pub(crate) fn path_bytes(&'static self) -> Str {
        Str::from_bytes(self.path.as_os_str().as_encoded_bytes())
    }

    /// Gives it the values of all knobs, for reading outside a [`KnobScope`]. Where several runtimes of one process
    /// use a library, the last one to set them decides.
    pub(crate) fn set_knobs(&self, knobs: Arc<Knobs>) {
        self.knobs.store(knobs);
    }

    /// The value of one of its own knobs, in the [`KnobScope`] of this thread if there is one. Linked code has no scope of its own: a name that several linked
    /// scopes declare is found under none.
    pub(crate) fn knob(&self, name: &str) -> Option<KnobSetting> {
        let knobs = KnobScope::current().unwrap_or_else(|| self.knobs.load_full());
        match &self.scope {
            Some(scope) => knobs.get(scope, name).cloned(),
            None => {
                let mut found = knobs.iter().filter(|setting| setting.def.name == name);
                let first = found.next()?;
                found.next().is_none().then(|| first.clone())
            }
        }
    }
}
