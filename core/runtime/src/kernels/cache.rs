//! Kernel objects that outlive a plan.

use std::{collections::HashMap, sync::Arc};
use tenon_framework::{
    KernelError,
    registry::KernelDef,
    sync::{Mutex, rank},
};
use tenon_host::instance::{KernelInstance, PackCache};

/// The kernel objects that live as long as the session: those of stateful nodes.
pub(crate) struct KernelCache {
    /// By node, device and kernel, since the choice between several kernels may depend on shapes.
    stateful: Mutex<HashMap<(String, String, usize), Arc<KernelInstance>>>,
    pub packed: PackCache,
}

impl Default for KernelCache {
    fn default() -> KernelCache {
        KernelCache {
            stateful: Mutex::ranked(rank::LEAF, HashMap::new()),
            packed: PackCache::new(),
        }
    }
}

impl KernelCache {
    /// Removes all objects; plans that use them keep theirs.
    pub fn clear(&self) {
        let gone = std::mem::take(&mut *self.stateful.lock());
        // Dropping may run plugin code, so the lock is not held.
        drop(gone);
    }

    /// The object of a stateful node for this kernel, created by `make` if there is none.
    pub fn stateful(
        &self,
        node: &str,
        device: &str,
        kernel: &Arc<KernelDef>,
        make: impl FnOnce() -> Result<Arc<KernelInstance>, KernelError>,
    ) -> Result<Arc<KernelInstance>, KernelError> {
        let key = (node.to_owned(), device.to_owned(), Arc::as_ptr(kernel) as usize);
        if let Some(instance) = self.stateful.lock().get(&key) {
            return Ok(Arc::clone(instance));
        }
        // The object keeps its kernel alive, so no other kernel can have the address in the key.
        let made = make()?;
        // If two threads created one, the first is kept; the other is dropped without the lock.
        let kept = Arc::clone(self.stateful.lock().entry(key).or_insert_with(|| Arc::clone(&made)));
        drop(made);
        Ok(kept)
    }
}
