//! The current snapshot, and the subscribers that are notified of changes.
//!
//! States: the handle holds one snapshot at a time; a writer builds the next one from it and swaps. Writers
//! take turns; readers never wait. Subscribers are notified after the swap, outside all locks, so that they may
//! read, subscribe and write in turn; two writers' events may reach a subscriber in either order.

use super::{
    error::{RegistryError, Warning},
    plugin::PluginId,
    snapshot::{Built, Registry},
    transaction::{Transaction, commit_all},
};
use crate::{
    device::DeviceName,
    sync::{Mutex, rank},
};
use arc_swap::ArcSwap;
use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Weak},
};

/// What changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RegistryEvent {
    /// A plugin was committed.
    PluginAdded(PluginId),
    /// A plugin took the place of another.
    PluginReplaced {
        /// The one that is retired.
        old: PluginId,
        /// The one in its place.
        new: PluginId,
    },
    /// A plugin is out of use.
    PluginRetired(PluginId),
    /// A device was opened.
    DeviceAdded(DeviceName),
    /// A device is out of use.
    DeviceRetired(DeviceName),
    /// A device is lost: its steps fail with `UNAVAILABLE`.
    DeviceLost {
        /// The device.
        device: DeviceName,
        /// Why.
        reason: String,
    },
}

type Callback = Arc<dyn Fn(&RegistryEvent) + Send + Sync>;

#[derive(Default)]
struct Subscribers {
    next: u64,
    callbacks: BTreeMap<u64, Callback>,
}

/// Holds the current snapshot.
pub struct RegistryHandle {
    current: ArcSwap<Registry>,
    writer: Mutex<()>,
    subscribers: Arc<Mutex<Subscribers>>,
}

/// Keeps a callback subscribed until it is dropped. A call that runs on another thread at that time goes on.
#[must_use = "dropping it ends the subscription"]
pub struct Subscription {
    id: u64,
    subscribers: Weak<Mutex<Subscribers>>,
}

impl RegistryHandle {
    /// A handle that holds `registry`.
    pub fn new(registry: Registry) -> RegistryHandle {
        RegistryHandle {
            current: ArcSwap::from_pointee(registry),
            writer: Mutex::ranked(rank::REGISTRY, ()),
            subscribers: Arc::default(),
        }
    }

    /// The current snapshot.
    pub fn load(&self) -> Arc<Registry> {
        self.current.load_full()
    }

    /// Commits several plugins together and publishes the new snapshot.
    ///
    /// # Errors
    /// As [`commit_all`]; the current snapshot stays.
    pub fn commit(
        &self,
        transactions: Vec<Transaction>,
    ) -> Result<Vec<Warning>, Vec<RegistryError>> {
        let ids: Vec<PluginId> = transactions.iter().map(|t| t.info().id).collect();
        let warnings = self.update(|registry| commit_all(registry, transactions))?;
        ids.into_iter().for_each(|id| self.publish(&RegistryEvent::PluginAdded(id)));
        Ok(warnings)
    }

    /// Puts a plugin in the place of another and publishes the new snapshot.
    ///
    /// # Errors
    /// As [`Registry::replace`]; the current snapshot stays.
    pub fn replace(
        &self,
        old: PluginId,
        transaction: Transaction,
    ) -> Result<Vec<Warning>, Vec<RegistryError>> {
        let new = transaction.info().id;
        let warnings = self.update(|registry| registry.replace(old, transaction))?;
        self.publish(&RegistryEvent::PluginReplaced { old, new });
        Ok(warnings)
    }

    /// Takes a plugin out of use and publishes the new snapshot.
    ///
    /// # Errors
    /// As [`Registry::retire`].
    pub fn retire(&self, id: PluginId) -> Result<Vec<Warning>, Vec<RegistryError>> {
        let warnings = self.update(|registry| registry.retire(id))?;
        self.publish(&RegistryEvent::PluginRetired(id));
        Ok(warnings)
    }

    fn update(
        &self,
        change: impl FnOnce(&Registry) -> Built,
    ) -> Result<Vec<Warning>, Vec<RegistryError>> {
        let _turn = self.writer.lock();
        let (registry, warnings) = change(&self.current.load())?;
        self.current.store(Arc::new(registry));
        Ok(warnings)
    }

    /// Calls `callback` for every event from now on, on the thread that caused it.
    pub fn subscribe(
        &self,
        callback: impl Fn(&RegistryEvent) + Send + Sync + 'static,
    ) -> Subscription {
        let mut subscribers = self.subscribers.lock();
        let id = subscribers.next;
        subscribers.next += 1;
        subscribers.callbacks.insert(id, Arc::new(callback));
        Subscription { id, subscribers: Arc::downgrade(&self.subscribers) }
    }

    /// Notifies the subscribers; device managers use it for their devices.
    pub fn publish(&self, event: &RegistryEvent) {
        let callbacks: Vec<Callback> =
            self.subscribers.lock().callbacks.values().cloned().collect();
        callbacks.iter().for_each(|callback| callback(event));
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(subscribers) = self.subscribers.upgrade() {
            // The callback may own something that takes the lock again when it is dropped: the lock is released first.
            let callback = subscribers.lock().callbacks.remove(&self.id);
            drop(callback);
        }
    }
}

impl fmt::Debug for RegistryHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegistryHandle").field("current", &self.load()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription").field("id", &self.id).finish_non_exhaustive()
    }
}
