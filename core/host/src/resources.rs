//! State that outlives a call: the resources of a worker.
//!
//! Each device of a worker has a [`ResourceManager`], which finds a resource by container, name and
//! type. All sessions of the worker share them. A resource lives as long as it is in the table or a
//! handle of it exists.
//!
//! **Containers.** An empty name means [`DEFAULT_CONTAINER`]. [`step_container`] is the container
//! of a step: its resources are removed at the end of the step.
//!
//! **Anonymous resources.** A resource without a name is in no table, and lives as long as its
//! handles.

mod foreign;
mod found;
mod handles;
mod manager;
mod variable;

use crate::collective::Collectives;
use arc_swap::ArcSwap;
use std::sync::{Arc, OnceLock};
use tenon_framework::{
    registry::{Registry, RegistryHandle},
    resource::{Resource, ResourceRef},
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
        rank,
    },
};

pub use foreign::{ForeignResource, ForeignType, foreign_type};
pub(crate) use found::Found;
pub use handles::{handles_in, tensor_of_handles};
pub use manager::{DEFAULT_CONTAINER, ResourceManager};
pub use tenon_framework::resource::step_container;
pub use variable::{
    Access, Few, LockedVariables, VARIABLE_TYPE, Variable, lock_variables, unlock_variables,
};

/// A resource in a table.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ResourceName {
    /// Full name of the device; empty for the host's own memory.
    pub device: String,
    /// Container.
    pub container: String,
    /// Name.
    pub name: String,
    /// Name of its type.
    pub kind: String,
}

type Managers = Vec<(Arc<str>, Arc<ResourceManager>)>;

/// The resources of a worker, by device.
pub struct Resources {
    /// Only grows.
    managers: ArcSwap<Managers>,
    adding: Mutex<()>,
    in_steps: Arc<AtomicU64>,
    collectives: OnceLock<Arc<Collectives>>,
    registry: Option<Arc<RegistryHandle>>,
}

impl Default for Resources {
    fn default() -> Resources {
        Resources::new()
    }
}

impl Resources {
    /// Managers without resources.
    pub fn new() -> Resources {
        Resources {
            managers: ArcSwap::default(),
            adding: Mutex::ranked(rank::RESOURCES, ()),
            in_steps: Arc::default(),
            collectives: OnceLock::new(),
            registry: None,
        }
    }

    /// Managers without resources, for steps whose kernels may make variants of the types in a
    /// registry from their encoded form.
    pub fn with_registry(registry: &Arc<RegistryHandle>) -> Resources {
        Resources { registry: Some(Arc::clone(registry)), ..Resources::new() }
    }

    /// The current registry, for steps of a worker.
    pub fn registry(&self) -> Option<Arc<Registry>> {
        self.registry.as_ref().map(|registry| registry.load())
    }

    /// The resources of the device with this full name; an empty name means the host's own memory.
    pub fn of(&self, device: &str) -> Arc<ResourceManager> {
        let find = |managers: &Managers| {
            managers.iter().find(|(name, _)| **name == *device).map(|(_, found)| Arc::clone(found))
        };
        if let Some(found) = find(&self.managers.load()) {
            return found;
        }
        let _adding = self.adding.lock();
        let managers = self.managers.load_full();
        find(&managers).unwrap_or_else(|| {
            let made = Arc::new(ResourceManager::new(&self.in_steps));
            let mut managers = (*managers).clone();
            managers.push((device.into(), Arc::clone(&made)));
            self.managers.store(Arc::new(managers));
            made
        })
    }

    /// The collective operations of the devices.
    pub fn collectives(&self) -> &Arc<Collectives> {
        self.collectives.get_or_init(|| Collectives::new(&self.in_steps))
    }

    /// Shares the collective operations of other resources. Only before the first one.
    pub fn share_collectives(&self, collectives: &Arc<Collectives>) {
        let _ = self.collectives.set(Arc::clone(collectives));
    }

    /// Removes all resources of a container on all devices; returns their number.
    pub fn clear(&self, container: &str) -> usize {
        self.managers.load().iter().map(|(_, manager)| manager.clear(container)).sum()
    }

    /// Removes all resources.
    pub fn clear_all(&self) {
        self.managers.load().iter().for_each(|(_, manager)| manager.clear_all());
    }

    /// Removes the resources of a step's container.
    #[inline(always)]
    pub fn end_step(&self, step: u64) {
        if self.in_steps.load(Ordering::Relaxed) > 0 {
            self.clear_step(step);
        }
    }

    #[cold]
    fn clear_step(&self, step: u64) {
        if let Some(collectives) = self.collectives.get() {
            collectives.end_step(step);
        }
        self.clear(&step_container(step));
    }

    /// All named resources, sorted.
    pub fn list(&self) -> Vec<ResourceName> {
        let managers = self.managers.load();
        let mut names: Vec<ResourceName> = (managers.iter())
            .flat_map(|(device, manager)| {
                let device = device.to_string();
                let named = move |(container, name, kind)| ResourceName {
                    device: device.clone(),
                    container,
                    name,
                    kind,
                };
                manager.list().into_iter().map(named)
            })
            .collect();
        names.sort();
        names
    }
}

/// A resource as a concrete type of the host's.
pub fn downcast<T: Resource>(resource: &ResourceRef) -> Option<&T> {
    resource.get().as_any().downcast_ref()
}

#[cfg(all(test, not(loom)))]
mod tests;
