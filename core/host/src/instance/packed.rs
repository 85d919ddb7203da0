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

/// A packed form that a kernel made. The last instance that has it gives it back.
pub struct PackedForm {
    raw: *mut Packed,
    bytes: u64,
    release: unsafe extern "C" fn(packed: *mut Packed),
    /// The form may lie in its memory.
    _device: Option<Arc<PluginDevice>>,
}

// SAFETY: the contract of `prepack` says that states on any thread share the form.
unsafe impl Send for PackedForm {}
// SAFETY: as above.
unsafe impl Sync for PackedForm {}

impl PackedForm {
    /// Takes a form over; `None` for null, which declines.
    ///
    /// # Safety
    /// `release` takes `raw` once, from any thread.
    pub(super) unsafe fn new(
        raw: *mut Packed,
        bytes: u64,
        release: unsafe extern "C" fn(packed: *mut Packed),
        device: Option<Arc<PluginDevice>>,
    ) -> Option<PackedForm> {
        // Made only where there is a form: dropping one releases it.
        (!raw.is_null()).then(|| PackedForm { raw, bytes, release, _device: device })
    }

    pub(super) fn as_raw(&self) -> *mut Packed {
        self.raw
    }

    /// Bytes that the kernel says it takes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for PackedForm {
    fn drop(&mut self) {
        // SAFETY: the promise of `new`.
        unsafe { (self.release)(self.raw) }
    }
}

/// Table of the kernel, input, name of node and constant.
type Key = (usize, u32, String);

/// The packed forms of a session, as long as some instance has them.
pub struct PackCache {
    forms: Mutex<Forms>,
}

#[derive(Default)]
struct Forms {
    by_key: HashMap<Key, Weak<PackedForm>>,
    /// With more than these, those that are not alive any more are looked for.
    most: usize,
}

impl Forms {
    fn insert(&mut self, key: Key, form: Weak<PackedForm>) {
        if self.by_key.len() >= self.most {
            self.by_key.retain(|_, form| form.strong_count() > 0);
            // As often again as there are now: each form is looked at a few times in all.
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
    /// Without forms.
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

    /// The form of this key, made by `make` when there is none; `None` when `make` declines. Two that make
    /// one at the same time both do, and the first is shared.
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
        // Packing may take long and calls the plugin: not under the lock.
        let Some(made) = make()? else { return Ok(None) };
        let mut forms = self.forms.lock();
        if let Some(form) = forms.by_key.get(&key).and_then(Weak::upgrade) {
            drop(forms);
            // The one just made goes here, outside the lock.
            drop(made);
            return Ok(Some(form));
        }
        let made = Arc::new(made);
        forms.insert(key, Arc::downgrade(&made));
        Ok(Some(made))
    }
}
