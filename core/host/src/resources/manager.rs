//! The resources of one device, by (container, name, type).
//!
//! States of an entry: *making*, while one thread runs its factory (others wait, and a factory that asks for
//! its own entry is refused) → *there* → gone, when it is removed or its container is cleared. A factory
//! that fails leaves no entry. No lock is held while a factory or a destructor runs. What is gone from the
//! table lives on with whoever holds a reference.

use super::{VARIABLE_TYPE, Variable};
use std::{
    collections::HashMap,
    sync::Arc,
    thread::{self, ThreadId},
};
use tenon_framework::{
    DType, KernelError,
    resource::{ResourceRef, STEP_CONTAINER},
    sync::{
        Condvar, Mutex,
        atomic::{AtomicU64, Ordering},
        rank,
    },
};

/// The container that an empty name stands for.
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
    /// Resources in containers of steps, on all devices of the worker.
    in_steps: Arc<AtomicU64>,
}

/// Takes the entry back when its factory fails or panics.
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
    /// Without resources; `in_steps` counts those in containers of steps.
    pub(super) fn new(in_steps: &Arc<AtomicU64>) -> ResourceManager {
        ResourceManager {
            table: Mutex::ranked(rank::RESOURCES, Table::default()),
            made: Condvar::new(),
            in_steps: Arc::clone(in_steps),
        }
    }

    /// The resource of this name and type, when there is one; an empty container is the default one. Waits
    /// while another thread makes it.
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

    /// The resource of this name and type; made by `make`, once, when there is none. An empty name is that of no
    /// resource: what is made is anonymous, is never found again, and lives as long as its handles.
    ///
    /// # Errors
    /// What `make` says; `INTERNAL` when `make` asks for the same resource.
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
        making.made = Some(resource.clone());
        Ok(resource)
    }

    /// The variable of this name; made without a value when there is none.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when there is one of another element type.
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

    /// Removes a resource; whether there was one. Who holds it keeps it.
    pub fn remove(&self, container: &str, name: &str, kind: &str) -> bool {
        let key = Key::new(container, name, kind);
        let mut table = self.table.lock();
        let there = matches!(table.get(&key), Some(Entry::There(_)));
        let removed = if there { table.remove(&key) } else { None };
        drop(table);
        if removed.is_some() && key.is_of_a_step() {
            self.in_steps.fetch_sub(1, Ordering::Relaxed);
        }
        // The destructor runs here, outside the lock.
        removed.is_some()
    }

    /// Removes all resources of a container; how many there were.
    pub fn clear(&self, container: &str) -> usize {
        let wanted = Key::new(container, "", "").container;
        let mut removed = Vec::new();
        let mut table = self.table.lock();
        table.retain(|key, entry| match entry {
            Entry::There(resource) if key.container == wanted => {
                removed.push(resource.clone());
                false
            }
            _ => true,
        });
        drop(table);
        if wanted.starts_with(STEP_CONTAINER) {
            self.in_steps.fetch_sub(removed.len() as u64, Ordering::Relaxed);
        }
        removed.len()
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
