//! The kernels that a call can be measured with.

use crate::record::{Problem, ProblemKind, Variant};
use std::{path::PathBuf, sync::Arc};
use tenon_framework::{
    device::base::DeviceBase,
    registry::{Candidate, KernelDef, KernelQuery, Registry, Removal, SupportAnswer, candidates},
};
use tenon_runtime::{
    Runtime,
    host::{call::StepEnv, devices::PluginDevice, resources::Resources},
};
use tenon_testkit::{
    TestkitError,
    check::{Oracle, Subject},
    node::Node,
};

/// A runtime whose kernels are measured. A second build of a plugin has its own runtime: two plugins of one
/// name do not go into one.
pub struct Host {
    /// The runtime.
    pub runtime: Runtime,
    /// What its calls run in.
    pub env: StepEnv,
    /// What is right.
    pub oracle: Oracle,
    /// Where only the kernels of one plugin count: its file.
    pub only: Option<PathBuf>,
}

impl Host {
    /// All kernels of a runtime, or those of one plugin.
    ///
    /// # Errors
    /// There is no oracle.
    pub fn new(runtime: Runtime, only: Option<PathBuf>) -> Result<Host, TestkitError> {
        // As the loader has it: without links.
        let only = only.map(|file| file.canonicalize().unwrap_or(file));
        let env = StepEnv::new(Arc::clone(runtime.pool()), Arc::new(Resources::new()));
        let oracle = Oracle::new(&runtime, None)?;
        Ok(Host { runtime, env, oracle, only })
    }
}

/// Which variants are wanted; an empty list is all of them.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Labels; the empty one is the ordinary kernel.
    pub labels: Vec<String>,
    /// Types of devices.
    pub devices: Vec<String>,
    /// Types of devices that take part though they are used only when named, such as those that [`brought`] finds.
    pub named: Vec<String>,
}

impl Filter {
    /// Whether a kernel on a device of this type is wanted.
    pub fn wants(&self, kernel: &KernelDef, device_type: &str) -> bool {
        let listed =
            |list: &[String], word: &str| list.is_empty() || list.iter().any(|w| w == word);
        listed(&self.labels, &kernel.label) && listed(&self.devices, device_type)
    }

    /// Whether a device of this type takes part. One of negative priority, as a simulator has, is used only when it is
    /// named: it would take most of the time, and its noise says nothing.
    fn admits(&self, registry: &Registry, device_type: &str) -> bool {
        let only_named = registry.device_type(device_type).is_some_and(|of| of.priority < 0);
        !only_named || self.devices.iter().chain(&self.named).any(|name| name == device_type)
    }
}

/// A kernel on a device.
#[derive(Clone)]
pub struct Choice {
    /// Place of its host.
    pub host: usize,
    /// The device.
    pub device: Arc<PluginDevice>,
    /// The kernel.
    pub def: Arc<KernelDef>,
    /// As a record has it.
    pub variant: Variant,
}

impl Choice {
    /// The kernel as a check sees it.
    pub fn subject(&self, node: &Node) -> Subject {
        let types = node.attrs.attrs().iter().filter(|(_, value)| value.as_type().is_some());
        let types = types.map(|(name, value)| (name.clone(), value.clone())).collect();
        Subject { op: Arc::clone(&node.op), kernel: Arc::clone(&self.def), types }
    }
}

/// The first device of each type that takes part.
pub fn devices(runtime: &Runtime, filter: &Filter) -> Vec<Arc<PluginDevice>> {
    let registry = runtime.registry();
    let mut first: Vec<Arc<PluginDevice>> = Vec::new();
    for device in runtime.devices().devices() {
        let known = first.iter().any(|known| known.device_type() == device.device_type());
        if !known && filter.admits(&registry, device.device_type()) {
            first.push(device);
        }
    }
    first
}

/// The types of devices that these files of plugins bring: a file that is named names its device.
pub fn brought(runtime: &Runtime, files: &[PathBuf]) -> Vec<String> {
    let registry = runtime.registry();
    let canonical = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
    let files: Vec<PathBuf> = files.iter().map(canonical).collect();
    let is_given = |plugin| {
        let path = registry.plugin(plugin).and_then(|plugin| plugin.path.as_ref());
        path.is_some_and(|path| files.contains(&canonical(path)))
    };
    let types = registry.device_types().filter(|of| is_given(of.plugin));
    types.map(|of| of.name.clone()).collect()
}

/// The kernels of a host that are wanted for a node. Those that do not take it for another reason than its element
/// types are problems; `case` names the call in them.
pub fn choices(
    host: &Host,
    place: usize,
    node: &Node,
    filter: &Filter,
    case: &str,
) -> (Vec<Choice>, Vec<Problem>) {
    let registry = host.runtime.registry();
    let (mut found, mut problems) = (Vec::new(), Vec::new());
    for device in devices(&host.runtime, filter) {
        let by_policy = examined(host, &registry, node, &device, None);
        let chosen = by_policy.iter().find(|candidate| candidate.removed.is_none());
        for candidate in of_every_label(host, &registry, node, &device) {
            let kernel = &candidate.kernel;
            if !filter.wants(kernel, device.device_type()) || !host.counts(&registry, kernel) {
                continue;
            }
            let is_chosen = chosen.is_some_and(|chosen| Arc::ptr_eq(&chosen.kernel, kernel));
            let variant = variant(&registry, kernel, device.device_type(), is_chosen);
            match &candidate.removed {
                None
                | Some(
                    Removal::LowerPriority { .. }
                    | Removal::LessSpecific { .. }
                    | Removal::DeclaredLater { .. },
                ) => {
                    let (device, def) = (Arc::clone(&device), Arc::clone(kernel));
                    found.push(Choice { host: place, device, def, variant });
                }
                Some(Removal::DType { .. } | Removal::MissingAttr { .. }) => {}
                Some(reason) => problems.push(Problem {
                    kind: ProblemKind::Refused,
                    case: case.to_owned(),
                    variant: variant.to_string(),
                    message: reason.to_string(),
                }),
            }
        }
    }
    (found, problems)
}

impl Host {
    /// Digest of the only plugin that counts; `None` where all do.
    pub fn digest(&self) -> Option<String> {
        let only = self.only.as_ref()?;
        let registry = self.runtime.registry();
        let is_it = |path: &PathBuf| path.canonicalize().as_ref().unwrap_or(path) == only;
        let plugin = registry.plugins().find(|info| info.path.as_ref().is_some_and(is_it))?;
        Some(plugin.digest.clone())
    }

    fn counts(&self, registry: &Registry, kernel: &KernelDef) -> bool {
        let Some(only) = &self.only else { return true };
        let path = registry.plugin(kernel.plugin).and_then(|plugin| plugin.path.as_ref());
        path.is_some_and(|path| path.canonicalize().as_ref().unwrap_or(path) == only)
    }
}

/// The kernels of the op for a device, each as if its label were asked for.
fn of_every_label(
    host: &Host,
    registry: &Registry,
    node: &Node,
    device: &Arc<PluginDevice>,
) -> Vec<Candidate> {
    let here = registry.kernels_of(&node.op.name).iter();
    let here = here.filter(|kernel| kernel.serves(device.device_type()));
    let mut labels: Vec<&str> = here.map(|kernel| kernel.label.as_str()).collect();
    labels.sort_unstable();
    labels.dedup();
    let of_label = |label: &str| {
        let all = examined(host, registry, node, device, Some(label));
        all.into_iter()
            .filter(|candidate| {
                candidate.kernel.label == label && candidate.kernel.serves(device.device_type())
            })
            .collect::<Vec<_>>()
    };
    labels.into_iter().flat_map(of_label).collect()
}

fn examined(
    host: &Host,
    registry: &Registry,
    node: &Node,
    device: &Arc<PluginDevice>,
    label: Option<&str>,
) -> Vec<Candidate> {
    let query = KernelQuery {
        op: &node.op.name,
        device_type: device.device_type(),
        attrs: node.attrs.attrs(),
        features: host.runtime.features(),
        label,
    };
    let knobs = host.runtime.plugins().knobs();
    let mut supports = |kernel: &KernelDef| {
        let def = Arc::new(kernel.clone());
        let answer = node.spec(&def, Some(device), &knobs).supports();
        answer.unwrap_or_else(|error| SupportAnswer::No(error.message))
    };
    candidates(registry, &query, &mut supports).candidates
}

fn variant(registry: &Registry, kernel: &KernelDef, device: &str, chosen: bool) -> Variant {
    let plugin = registry.plugin(kernel.plugin);
    Variant {
        device: device.to_owned(),
        label: kernel.label.clone(),
        plugin: kernel.plugin_name.to_string(),
        plugin_version: plugin.map(|plugin| plugin.version.clone()).unwrap_or_default(),
        digest: plugin.map(|plugin| plugin.digest.clone()).unwrap_or_default(),
        source: kernel.source.to_string(),
        chosen,
    }
}

/// The element types for which an op has a kernel that is wanted.
pub fn kernels(host: &Host, op: &str, filter: &Filter) -> Vec<Arc<KernelDef>> {
    let registry = host.runtime.registry();
    let devices = devices(&host.runtime, filter);
    let wanted = |kernel: &&Arc<KernelDef>| {
        host.counts(&registry, kernel)
            && devices.iter().any(|device| {
                kernel.serves(device.device_type()) && filter.wants(kernel, device.device_type())
            })
    };
    registry.kernels_of(op).iter().filter(wanted).cloned().collect()
}
