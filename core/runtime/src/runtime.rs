//! The runtime: plugins, devices, threads. Sessions are made over it.

use crate::{
    error::RuntimeError,
    tuning::{Decision, Tuner},
};
use std::{path::PathBuf, sync::Arc};
use tenon_framework::{
    register_knob,
    registry::{FeatureSet, PluginId, PluginInfo, Registry, Warning},
    tensor::Memory,
};
use tenon_host::{
    LoadReport, Plugins, Settings, devices::DeviceManager, memory::HostMemory, pool::ThreadPool,
    search::SearchPath,
};

register_knob!(
    "streams_per_device": INT = "4",
    "Streams that one step uses on a device at most; never more than the device asks for."
);

register_knob!(
    "record_after": INT = "8",
    "Steps of a plan after which what it runs on a device is recorded and replayed, where that is possible; -1 is never."
);

register_knob!(
    "kernel_label": STRING = "",
    "Label of the kernel that a node gets where there is one: 'reference', say. A node's own label goes before."
);

/// How a runtime starts.
#[derive(Debug, Clone)]
pub struct RuntimeOptions {
    /// Threads that kernels compute on, the caller's included; `None` is one per core.
    pub threads: Option<usize>,
    /// Plugins that are loaded by path.
    pub plugins: Vec<PathBuf>,
    /// Plugins that are loaded by path before those, each into a process of its own (see
    /// [`tenon_host::isolate`]).
    pub isolate: Vec<PathBuf>,
    /// Whether plugins are searched for in the usual places too.
    pub search: bool,
    /// Settings of knobs.
    pub settings: Settings,
}

impl Default for RuntimeOptions {
    fn default() -> RuntimeOptions {
        RuntimeOptions {
            threads: None,
            plugins: Vec::new(),
            isolate: Vec::new(),
            search: true,
            settings: Settings::of_process(),
        }
    }
}

impl RuntimeOptions {
    /// Loads these plugins and searches for no others.
    pub fn with_plugins(plugins: impl IntoIterator<Item = impl Into<PathBuf>>) -> RuntimeOptions {
        RuntimeOptions {
            plugins: plugins.into_iter().map(Into::into).collect(),
            search: false,
            ..RuntimeOptions::default()
        }
    }
}

/// The host's record of a plugin, for the entries of its device types.
fn record(plugins: &Plugins, id: PluginId) -> *const tenon_abi::Plugin {
    plugins.record(id).as_plugin()
}

struct Inner {
    devices: DeviceManager,
    plugins: Arc<Plugins>,
    pool: Arc<ThreadPool>,
    memory: Arc<dyn Memory>,
    features: FeatureSet,
    tuner: Arc<Tuner>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        // They use the devices.
        self.tuner.join();
    }
}

/// Plugins, devices and threads; clones are the same runtime.
#[derive(Clone)]
pub struct Runtime {
    inner: Arc<Inner>,
}

impl Runtime {
    /// Starts: collects what is linked in, loads plugins, opens devices. A plugin that is refused is in the
    /// report and hinders nothing else.
    ///
    /// # Errors
    /// What is linked in does not go together, or a setting is wrong.
    pub fn new(options: RuntimeOptions) -> Result<(Runtime, LoadReport), RuntimeError> {
        tenon_ops::link();
        let plugins = Arc::new(Plugins::with_settings(options.settings.clone())?);
        plugins.set_threads(options.threads.unwrap_or(0));
        let named = options.plugins.iter().cloned();
        let search = match options.search {
            true => SearchPath::of_process(named),
            false => SearchPath::explicit(named),
        };
        let report = plugins.load_search(&search.isolating(options.isolate.iter().cloned()));
        if let Some(error) = plugins.settings_errors().into_iter().next() {
            return Err(RuntimeError::Setting(error));
        }
        let pool = match options.threads {
            Some(threads) => ThreadPool::new(threads),
            None => ThreadPool::with_all_cores(),
        };
        let devices = DeviceManager::new(Arc::clone(plugins.handle()), |id| record(&plugins, id));
        let memory: Arc<dyn Memory> = HostMemory::shared().clone();
        let features = FeatureSet::of_this_cpu();
        let (pool, tuner) = (Arc::new(pool), Arc::default());
        let inner = Inner { devices, plugins, pool, memory, features, tuner };
        Ok((Runtime { inner: Arc::new(inner) }, report))
    }

    /// The current registry.
    pub fn registry(&self) -> Arc<Registry> {
        self.inner.plugins.registry()
    }

    /// The plugins, to load, replace and retire.
    pub fn plugins(&self) -> &Arc<Plugins> {
        &self.inner.plugins
    }

    /// Loads further plugins, and opens the devices that they bring.
    pub fn load(&self, files: impl IntoIterator<Item = PathBuf>) -> LoadReport {
        let report = self.inner.plugins.load(files);
        self.inner.devices.refresh(|id| record(&self.inner.plugins, id));
        report
    }

    /// Loads further plugins, each into a process of its own (see [`tenon_host::isolate`]).
    pub fn load_isolated(&self, files: impl IntoIterator<Item = PathBuf>) -> LoadReport {
        self.inner.plugins.load_search(&SearchPath::default().isolating(files))
    }

    /// Replaces a plugin by a new build: sessions see it after their `refresh`.
    ///
    /// # Errors
    /// The new build is refused; then the old one stays.
    pub fn replace(
        &self,
        file: &std::path::Path,
    ) -> Result<(PluginInfo, Vec<Warning>), RuntimeError> {
        Ok(self.inner.plugins.replace(file)?)
    }

    /// The devices, and why a type has none.
    pub fn devices(&self) -> &DeviceManager {
        &self.inner.devices
    }

    /// The threads.
    pub fn pool(&self) -> &Arc<ThreadPool> {
        &self.inner.pool
    }

    /// Pooled host memory.
    pub fn host_memory(&self) -> &Arc<dyn Memory> {
        &self.inner.memory
    }

    /// What policy `measured` knows.
    pub(crate) fn tuner(&self) -> &Arc<Tuner> {
        &self.inner.tuner
    }

    /// What policy `measured` has chosen in this process, by node; see the knob `runtime.policy`.
    pub fn measured(&self) -> Vec<Decision> {
        self.inner.tuner.decisions()
    }

    /// Features of this CPU.
    pub fn features(&self) -> &FeatureSet {
        &self.inner.features
    }
}

impl std::fmt::Debug for Runtime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<String> =
            self.devices().devices().iter().map(|device| device.full_name().to_owned()).collect();
        write!(f, "Runtime({})", names.join(", "))
    }
}
