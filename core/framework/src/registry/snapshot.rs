//! The snapshot, and how one is built from what the plugins registered.

use super::{
    error::{RegistryError, Warning},
    fit,
    kernel_def::KernelDef,
    overlap::same_key,
    plugin::{DeviceTypeDef, PluginId, PluginInfo},
    transaction::{Transaction, commit_all},
    variant::VariantDef,
};
use crate::{
    fusion::FusionDef,
    knob::{KnobDef, KnobStore},
    op::OpDef,
    pass::PassDef,
};
use std::{collections::BTreeMap, sync::Arc};

/// What one plugin registered.
#[derive(Debug, Clone)]
pub(super) struct Collection {
    pub info: PluginInfo,
    pub ops: Vec<Arc<OpDef>>,
    pub kernels: Vec<Arc<KernelDef>>,
    pub device_types: Vec<Arc<DeviceTypeDef>>,
    pub knobs: Vec<Arc<KnobDef>>,
    pub fusions: Vec<Arc<FusionDef>>,
    pub passes: Vec<Arc<PassDef>>,
    pub variants: Vec<VariantDef>,
}

/// An immutable snapshot of all registrations.
#[derive(Debug, Clone, Default)]
pub struct Registry {
    pub(super) collections: Vec<Arc<Collection>>,
    pub(super) retired: Vec<PluginInfo>,
    ops: BTreeMap<String, Arc<OpDef>>,
    kernels: BTreeMap<String, Vec<Arc<KernelDef>>>,
    device_types: BTreeMap<String, Arc<DeviceTypeDef>>,
    knobs: KnobStore,
}

/// A new snapshot with its warnings, or all errors.
pub(super) type Built = Result<(Registry, Vec<Warning>), Vec<RegistryError>>;

impl Registry {
    /// A snapshot without registrations.
    pub fn new() -> Registry {
        Registry::default()
    }

    /// The op of this name.
    pub fn op(&self, name: &str) -> Option<&Arc<OpDef>> {
        self.ops.get(name)
    }

    /// All ops, in the order of their names.
    pub fn ops(&self) -> impl Iterator<Item = &Arc<OpDef>> {
        self.ops.values()
    }

    /// The kernels of an op, for all device types, by plugin order and then sorted.
    pub fn kernels_of(&self, op: &str) -> &[Arc<KernelDef>] {
        self.kernels.get(op).map_or(&[], Vec::as_slice)
    }

    /// All kernels, by op.
    pub fn kernels(&self) -> impl Iterator<Item = &Arc<KernelDef>> {
        self.kernels.values().flatten()
    }

    /// The device type of this name.
    pub fn device_type(&self, name: &str) -> Option<&Arc<DeviceTypeDef>> {
        self.device_types.get(name)
    }

    /// All device types, in the order of their names.
    pub fn device_types(&self) -> impl Iterator<Item = &Arc<DeviceTypeDef>> {
        self.device_types.values()
    }

    /// All fusions, by plugin order and then by their place in its source.
    pub fn fusions(&self) -> impl Iterator<Item = &Arc<FusionDef>> {
        self.collections.iter().flat_map(|collection| &collection.fusions)
    }

    /// All passes, by plugin order and then by name.
    pub fn passes(&self) -> impl Iterator<Item = &Arc<PassDef>> {
        self.collections.iter().flat_map(|collection| &collection.passes)
    }

    /// The type of variants of this name; of several that of the plugin which comes first.
    pub fn variant(&self, name: &str) -> Option<&VariantDef> {
        let mut variants = self.collections.iter().flat_map(|collection| &collection.variants);
        variants.find(|variant| variant.name == name)
    }

    /// The declared knobs.
    pub fn knobs(&self) -> &KnobStore {
        &self.knobs
    }

    /// All plugins: the active ones in declared order, then the retired ones.
    pub fn plugins(&self) -> impl Iterator<Item = &PluginInfo> {
        self.collections.iter().map(|collection| &collection.info).chain(&self.retired)
    }

    /// The plugin of this number, retired or not.
    pub fn plugin(&self, id: PluginId) -> Option<&PluginInfo> {
        self.plugins().find(|plugin| plugin.id == id)
    }

    /// A number that no plugin has had.
    pub fn next_plugin_id(&self) -> PluginId {
        PluginId(self.plugins().map(|plugin| plugin.id.0.saturating_add(1)).max().unwrap_or(0))
    }

    /// A snapshot in which `new` takes the place of plugin `old`, which is retired. `new` takes over the
    /// declared order.
    ///
    /// # Errors
    /// As [`commit_all`]; `old` is not active. `self` is as before.
    pub fn replace(&self, old: PluginId, mut new: Transaction) -> Built {
        let (without, order) = self.without(old)?;
        new.set_order(order);
        let (registry, mut warnings) = commit_all(&without, vec![new])?;
        warnings.extend(registry.newly_dormant(self));
        Ok((registry, warnings))
    }

    /// A snapshot without the registrations of plugin `id`. Kernels of other plugins whose op went with it are
    /// dormant until it comes back.
    ///
    /// # Errors
    /// `id` is not active. `self` is as before.
    pub fn retire(&self, id: PluginId) -> Built {
        let (registry, _) = self.without(id)?;
        let warnings = registry.newly_dormant(self);
        Ok((registry, warnings))
    }

    fn without(&self, id: PluginId) -> Result<(Registry, u32), Vec<RegistryError>> {
        let at = self.collections.iter().position(|collection| collection.info.id == id);
        let at = at.ok_or_else(|| vec![RegistryError::UnknownPlugin { id }])?;
        let mut collections = self.collections.clone();
        let info = collections.remove(at).info.clone();
        let order = info.order;
        let mut retired = self.retired.clone();
        retired.push(PluginInfo { retired: true, ..info });
        let (registry, _) = Registry::build(collections, retired, &[])?;
        Ok((registry, order))
    }

    /// Builds a snapshot. Kernels of the plugins `new` must fit their ops, those of others may be dormant.
    pub(super) fn build(
        mut collections: Vec<Arc<Collection>>,
        retired: Vec<PluginInfo>,
        new: &[PluginId],
    ) -> Built {
        collections.sort_by_key(|collection| (collection.info.order, collection.info.id));
        let mut registry = Registry { retired, ..Registry::default() };
        let mut errors = Vec::new();
        let mut warnings = Vec::new();
        for collection in &collections {
            registry.add_ops(collection, &mut errors);
        }
        for collection in &collections {
            registry.add_device_types(collection, &mut errors);
            for knob in &collection.knobs {
                errors.extend(registry.knobs.declare(knob.clone()).err().map(RegistryError::from));
            }
        }
        for collection in &collections {
            let is_new = new.contains(&collection.info.id);
            registry.add_kernels(collection, is_new, &mut errors);
        }
        for kernels in registry.kernels.values() {
            check_keys(kernels, new, &mut errors, &mut warnings);
        }
        registry.collections = collections;
        if errors.is_empty() { Ok((registry, warnings)) } else { Err(errors) }
    }

    fn add_ops(&mut self, collection: &Collection, errors: &mut Vec<RegistryError>) {
        for op in &collection.ops {
            let first = self.ops.entry(op.name.clone()).or_insert_with(|| op.clone());
            if first.gradient.is_none() && op.gradient.is_some() {
                Arc::make_mut(first).gradient = op.gradient;
            }
            if let Some(difference) = first.difference(op) {
                errors.push(RegistryError::OpConflict {
                    op: op.name.clone(),
                    first: Box::new(first.source.clone()),
                    second: Box::new(op.source.clone()),
                    difference,
                });
            }
        }
    }

    fn add_device_types(&mut self, collection: &Collection, errors: &mut Vec<RegistryError>) {
        for def in &collection.device_types {
            let first = self.device_types.entry(def.name.clone()).or_insert_with(|| def.clone());
            if !(first.plugin == def.plugin && std::ptr::eq(first.table, def.table)) {
                errors.push(RegistryError::DeviceConflict {
                    name: def.name.clone(),
                    first: Box::new(first.source.clone()),
                    second: Box::new(def.source.clone()),
                });
            }
        }
    }

    fn add_kernels(
        &mut self,
        collection: &Collection,
        is_new: bool,
        errors: &mut Vec<RegistryError>,
    ) {
        for kernel in &collection.kernels {
            let problems = self.problems(kernel);
            if problems.is_empty() {
                self.kernels.entry(kernel.op.clone()).or_default().push(kernel.clone());
            } else if is_new {
                errors.extend(problems);
            }
        }
    }

    fn problems(&self, kernel: &KernelDef) -> Vec<RegistryError> {
        match self.ops.get(&kernel.op) {
            Some(op) => fit::problems(kernel, op),
            None => {
                vec![RegistryError::UnknownOp { kernel: kernel.to_string(), op: kernel.op.clone() }]
            }
        }
    }

    /// Kernels of active plugins that `before` offered and this snapshot does not.
    fn newly_dormant(&self, before: &Registry) -> Vec<Warning> {
        let offered = |registry: &Registry, kernel: &Arc<KernelDef>| {
            registry.kernels_of(&kernel.op).iter().any(|other| Arc::ptr_eq(other, kernel))
        };
        let kernels = self.collections.iter().flat_map(|collection| &collection.kernels);
        kernels
            .filter(|kernel| offered(before, kernel) && !offered(self, kernel))
            .filter_map(|kernel| {
                Some(Warning::Dormant {
                    kernel: kernel.to_string(),
                    plugin: kernel.plugin_name.to_string(),
                    reason: Box::new(self.problems(kernel).into_iter().next()?),
                })
            })
            .collect()
    }
}

/// Equal keys: an error inside a plugin, a warning between two of which one is new. The kernels of one op,
/// in declared order.
fn check_keys(
    kernels: &[Arc<KernelDef>],
    new: &[PluginId],
    errors: &mut Vec<RegistryError>,
    warnings: &mut Vec<Warning>,
) {
    for (at, first) in kernels.iter().enumerate() {
        for second in kernels[at + 1..].iter().filter(|second| same_key(first, second)) {
            let priority = first.priority;
            if first.plugin == second.plugin {
                let (first, second) = (first.to_string(), second.to_string());
                errors.push(RegistryError::SameKey { first, second, priority });
            } else if new.contains(&first.plugin) || new.contains(&second.plugin) {
                warnings.push(Warning::SameKey {
                    winner: first.to_string(),
                    winner_plugin: first.plugin_name.to_string(),
                    other: second.to_string(),
                    other_plugin: second.plugin_name.to_string(),
                    priority,
                });
            }
        }
    }
}
