//! Packed forms of constants, shared between the instances that use them.

use crate::devices::PluginDevice;
use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};
use tenon_abi::{KernelTable, Packed};
use tenon_framework::{
    KernelError,
    sync::{Mutex, rank},
};

/// A packed form that a kernel made. The last instance that shares it releases it.
pub struct PackedForm {
    raw: *mut Packed,
    bytes: u64,
    release: unsafe extern "C" fn(packed: *mut Packed),
    /// Keeps the device open, whose memory may hold the form.
    _device: Option<Arc<PluginDevice>>,
}

// SAFETY: the contract of `prepack` says that states on any thread share the form.
unsafe impl Send for PackedForm {}
// SAFETY: as for `Send`.
unsafe impl Sync for PackedForm {}

impl PackedForm {
    /// Takes ownership of a form; `None` for null, by which a kernel declines.
    ///
    /// # Safety
    /// - `release` may be called with `raw` once, from any thread.
    pub(super) unsafe fn new(
        raw: *mut Packed,
        bytes: u64,
        release: unsafe extern "C" fn(packed: *mut Packed),
        device: Option<Arc<PluginDevice>>,
    ) -> Option<PackedForm> {
        // Created only for a form: dropping one releases it.
        (!raw.is_null()).then(|| PackedForm { raw, bytes, release, _device: device })
    }

    pub(super) fn as_raw(&self) -> *mut Packed {
        self.raw
    }

    /// Size in bytes, as reported by the kernel.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for PackedForm {
    fn drop(&mut self) {
        // SAFETY: the caller of `new` guarantees that `release` may be called with `raw` once, from
        // any thread.
        unsafe { (self.release)(self.raw) }
    }
}

/// Address of the kernel's table, input, and name of node and constant.
type Key = (usize, u32, String);

/// The packed forms of a session, as long as an instance uses them.
pub struct PackCache {
    forms: Mutex<Forms>,
}

#[derive(Default)]
struct Forms {
    by_key: HashMap<Key, Weak<PackedForm>>,
    /// Number of entries above which dead ones are removed.
    most: usize,
}

impl Forms {
    fn insert(&mut self, key: Key, form: Weak<PackedForm>) {
        if self.by_key.len() >= self.most {
            self.by_key.retain(|_, form| form.strong_count() > 0);
            // Twice the number that is left, so that each entry is examined only a few times in
            // total.
            self.most = 2 * self.by_key.len() + 16;
        }
        self.by_key.insert(key, form);
    }
}

impl Default for PackCache {
    fn default() -> PackCache {
        PackCache::new()
    }
}

impl PackCache {
    /// An empty cache.
    pub fn new() -> PackCache {
        PackCache { forms: Mutex::ranked(rank::SESSION, Forms::default()) }
    }

    /// Number of forms that are alive.
    pub fn len(&self) -> usize {
        self.forms.lock().by_key.values().filter(|form| form.strong_count() > 0).count()
    }

    /// Whether no form is alive.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The form with this key, made by `make` when there is none; `None` when `make` declines. Two
    /// threads that make one at the same time both do so, and the first form is shared.
    pub(super) fn find_or_make(
        &self,
        table: &'static KernelTable,
        input: u32,
        key: &str,
        make: impl FnOnce() -> Result<Option<PackedForm>, KernelError>,
    ) -> Result<Option<Arc<PackedForm>>, KernelError> {
        let key = (std::ptr::from_ref(table) as usize, input, key.to_owned());
        if let Some(form) = self.forms.lock().by_key.get(&key).and_then(Weak::upgrade) {
            return Ok(Some(form));
        }
        // Packing may take long and calls the plugin: it happens outside the lock.
        let Some(made) = make()? else { return Ok(None) };
        let mut forms = self.forms.lock();
        if let Some(form) = forms.by_key.get(&key).and_then(Weak::upgrade) {
            drop(forms);
            // A duplicate is dropped here, outside the lock.
            drop(made);
            return Ok(Some(form));
        }
        let made = Arc::new(made);
        forms.insert(key, Arc::downgrade(&made));
        Ok(Some(made))
    }
}
