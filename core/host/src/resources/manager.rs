//! The resources of one device, by (container, name, type).
//!
//! States of an entry: *making*, while one thread runs its factory (other threads wait, and a
//! factory that requests its own entry fails) → *present* → gone, when it is removed or its
//! container is cleared. A factory that fails leaves no entry. No lock is held while a factory or a
//! destructor runs. A resource that was removed from the table lives on with the holders of
//! references.

use super::{VARIABLE_TYPE, Variable};
use std::{
    collections::HashMap,
    sync::Arc,
    thread::{self, ThreadId},
};
use tenon_framework::{
    DType, KernelError,
    resource::{ResourcePlace, ResourceRef, STEP_CONTAINER},
    sync::{
        Condvar, Mutex,
        atomic::{AtomicU64, Ordering},
        rank,
    },
};

/// The container that an empty name means.
pub const DEFAULT_CONTAINER: &str = "localhost";

#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Key {
    container: String,
    name: String,
    kind: String,
}

impl Key {
    fn new(container: &str, name: &str, kind: &str) -> Key {
        let container = if container.is_empty() { DEFAULT_CONTAINER } else { container };
        Key { container: container.to_owned(), name: name.to_owned(), kind: kind.to_owned() }
    }

    fn is_of_a_step(&self) -> bool {
        self.container.starts_with(STEP_CONTAINER)
    }
}

enum Entry {
    Making(ThreadId),
    There(ResourceRef),
}

type Table = HashMap<Key, Entry>;

/// The resources of one device.
pub struct ResourceManager {
    table: Mutex<Table>,
    made: Condvar,
    /// Number of resources in containers of steps, on all devices of the worker.
    in_steps: Arc<AtomicU64>,
    /// Number of resources that were removed from the table; it changes under the lock.
    removals: AtomicU64,
}

/// Removes the entry if its factory fails or panics.
struct Making<'m> {
    manager: &'m ResourceManager,
    key: Key,
    made: Option<ResourceRef>,
}

impl Drop for Making<'_> {
    fn drop(&mut self) {
        let mut table = self.manager.table.lock();
        match self.made.take() {
            Some(resource) => {
                if self.key.is_of_a_step() {
                    self.manager.in_steps.fetch_add(1, Ordering::Relaxed);
                }
                table.insert(self.key.clone(), Entry::There(resource))
            }
            None => table.remove(&self.key),
        };
        drop(table);
        self.manager.made.notify_all();
    }
}

impl ResourceManager {
    /// A manager without resources; `in_steps` counts those in containers of steps.
    pub(super) fn new(in_steps: &Arc<AtomicU64>) -> ResourceManager {
        ResourceManager {
            table: Mutex::ranked(rank::RESOURCES, Table::default()),
            made: Condvar::new(),
            in_steps: Arc::clone(in_steps),
            removals: AtomicU64::new(0),
        }
    }

    /// The number of resources that were removed from the table so far: a resource that was found
    /// before is still found while the number is the same.
    pub(crate) fn removals(&self) -> u64 {
        self.removals.load(Ordering::Acquire)
    }

    fn count_removals(&self, removed: u64) {
        self.removals.fetch_add(removed, Ordering::Release);
    }

    /// The resource of this name and type, if it exists; an empty container means the default one.
    /// Waits while another thread creates it.
    pub fn find(&self, container: &str, name: &str, kind: &str) -> Option<ResourceRef> {
        let key = Key::new(container, name, kind);
        let mut table = self.table.lock();
        loop {
            match table.get(&key) {
                None => return None,
                Some(Entry::There(resource)) => return Some(resource.clone()),
                Some(Entry::Making(maker)) if *maker == thread::current().id() => return None,
                Some(Entry::Making(_)) => table = self.made.wait(table),
            }
        }
    }

    /// The resource of this name and type; created by `make`, once, if it does not exist. With an
    /// empty name the resource is anonymous: it is never found again, and lives as long as its
    /// handles.
    ///
    /// # Errors
    /// The error of `make`; `INTERNAL` when `make` requests the same resource.
    pub fn find_or_make(
        &self,
        container: &str,
        name: &str,
        kind: &str,
        make: impl FnOnce() -> Result<ResourceRef, KernelError>,
    ) -> Result<ResourceRef, KernelError> {
        if name.is_empty() {
            return make();
        }
        let key = Key::new(container, name, kind);
        let mut table = self.table.lock();
        loop {
            match table.get(&key) {
                Some(Entry::There(resource)) => return Ok(resource.clone()),
                Some(Entry::Making(maker)) if *maker == thread::current().id() => {
                    return Err(KernelError::internal(format!(
                        "resource '{name}' of type {kind}: its factory asks for the resource itself"
                    )));
                }
                Some(Entry::Making(_)) => table = self.made.wait(table),
                None => break,
            }
        }
        table.insert(key.clone(), Entry::Making(thread::current().id()));
        drop(table);
        let mut making = Making { manager: self, key, made: None };
        let resource = make()?;
        let place =
            ResourcePlace { container: making.key.container.clone(), name: name.to_owned() };
        resource.set_place(place);
        making.made = Some(resource.clone());
        Ok(resource)
    }

    /// The variable of this name; created without a value if it does not exist.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if it exists with another element type.
    pub fn variable(
        &self,
        container: &str,
        name: &str,
        dtype: DType,
    ) -> Result<ResourceRef, KernelError> {
        let dtype = dtype.base();
        let resource = self.find_or_make(container, name, VARIABLE_TYPE, || {
            Ok(ResourceRef::new(Variable::new(name, dtype)))
        })?;
        match Variable::of(&resource) {
            Some(variable) if variable.dtype() == dtype => Ok(resource),
            Some(variable) => Err(KernelError::invalid_argument(format!(
                "variable '{name}' holds {}, asked for as {dtype}: use another name or the same type",
                variable.dtype()
            ))),
            None => Err(KernelError::internal(format!("resource '{name}' is not a variable"))),
        }
    }

    /// Removes a resource; returns whether it existed. Holders of references keep it.
    pub fn remove(&self, container: &str, name: &str, kind: &str) -> bool {
        self.remove_if(&Key::new(container, name, kind), |_| true)
    }

    /// Removes this resource; returns whether it was at its place.
    pub fn remove_exactly(&self, place: &ResourcePlace, resource: &ResourceRef) -> bool {
        let key = Key::new(&place.container, &place.name, resource.get().type_name());
        self.remove_if(&key, |found| found.is(resource))
    }

    fn remove_if(&self, key: &Key, wanted: impl Fn(&ResourceRef) -> bool) -> bool {
        let mut table = self.table.lock();
        let there = matches!(table.get(key), Some(Entry::There(found)) if wanted(found));
        let removed = if there { table.remove(key) } else { None };
        self.count_removals(u64::from(removed.is_some()));
        drop(table);
        if removed.is_some() && key.is_of_a_step() {
            self.in_steps.fetch_sub(1, Ordering::Relaxed);
        }
        // The destructor runs here, outside the lock.
        removed.is_some()
    }

    /// Removes all resources of a container; returns their number.
    pub fn clear(&self, container: &str) -> usize {
        let wanted = Key::new(container, "", "").container;
        self.take(|key| key.container == wanted).len()
    }

    /// Removes all resources.
    pub fn clear_all(&self) {
        self.take(|_| true);
    }

    /// Takes the resources under these keys out of the table. They are dropped without its lock.
    fn take(&self, wanted: impl Fn(&Key) -> bool) -> Vec<ResourceRef> {
        let (mut taken, mut of_steps) = (Vec::new(), 0);
        let mut table = self.table.lock();
        table.retain(|key, entry| match entry {
            Entry::There(resource) if wanted(key) => {
                taken.push(resource.clone());
                of_steps += u64::from(key.is_of_a_step());
                false
            }
            _ => true,
        });
        self.count_removals(taken.len() as u64);
        drop(table);
        self.in_steps.fetch_sub(of_steps, Ordering::Relaxed);
        taken
    }

    /// Names of all resources as (container, name, type), sorted.
    pub fn list(&self) -> Vec<(String, String, String)> {
        let table = self.table.lock();
        let there = table.iter().filter(|(_, entry)| matches!(entry, Entry::There(_)));
        let mut keys: Vec<Key> = there.map(|(key, _)| key.clone()).collect();
        drop(table);
        keys.sort();
        keys.into_iter().map(|key| (key.container, key.name, key.kind)).collect()
    }
}
