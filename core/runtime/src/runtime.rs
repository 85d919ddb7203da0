//! The runtime: plugins, devices, threads. Sessions are made over it.

mod figures;

use crate::{
    error::RuntimeError,
    isolate,
    metrics::{Counts, Ledger, Metrics},
    rendezvous::Edges,
    tuning::{Decision, Tuner},
};
use std::{
    any::Any,
    mem,
    path::{Path, PathBuf},
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};
use tenon_abi::MemoryKind;
use tenon_framework::{
    Tensor,
    device::base::LocalDevice,
    register_knob,
    registry::{FeatureSet, PluginInfo, Registry, Warning},
    sync::Mutex,
    tensor::Memory,
};
use tenon_host::{
    HOST, LoadReport, Plugins, Settings,
    devices::DeviceManager,
    memory::{HostMemory, copy_on_host},
    pool::ThreadPool,
    search::{Looked, SearchPath},
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
    "soft_placement": BOOL = "false",
    "Whether a node whose device is not there, or has no kernel for it, runs on another one; else that is an error."
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
    /// [`tenon_isolate`]).
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

/// A session, as its runtime counts it.
pub(crate) trait Steps: Send + Sync {
    /// Steps in flight.
    fn active(&self) -> u64;
}

struct Inner {
    devices: DeviceManager,
    searched: Vec<Looked>,
    plugins: Arc<Plugins>,
    pool: Arc<ThreadPool>,
    memory: Arc<dyn Memory>,
    features: FeatureSet,
    tuner: Arc<Tuner>,
    started: Instant,
    counts: Counts,
    /// The number of the next step.
    next_step: AtomicU64,
    edges: Edges,
    ledger: Arc<Ledger>,
    /// Those that are open, or were.
    sessions: Mutex<Vec<Weak<dyn Steps>>>,
    /// Values that are dropped with the runtime.
    attached: Mutex<Vec<Box<dyn Any + Send>>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        // Threads of what is attached may use plugins and devices, and the tuner does: they end first.
        let attached = mem::take(&mut *self.attached.lock());
        drop(attached);
        self.tuner.join();
    }
}

/// Plugins, devices and threads; clones are the same runtime.
#[derive(Clone)]
pub struct Runtime {
    inner: Arc<Inner>,
}

/// A handle of a runtime that does not keep it alive.
#[derive(Debug, Clone)]
pub struct WeakRuntime {
    inner: Weak<Inner>,
}

impl WeakRuntime {
    /// The runtime; `None` once its last [`Runtime`] is dropped.
    pub fn upgrade(&self) -> Option<Runtime> {
        Some(Runtime { inner: self.inner.upgrade()? })
    }
}

impl Runtime {
    /// Starts: collects what is linked in, loads plugins, opens devices. A plugin that is refused is in the
    /// report and hinders nothing else.
    ///
    /// # Errors
    /// What is linked in does not go together, or a setting is wrong.
    pub fn new(options: RuntimeOptions) -> Result<(Runtime, LoadReport), RuntimeError> {
        tenon_ops::link();
        let plugins =
            Arc::new(isolate::with_isolation(Plugins::with_settings(options.settings.clone())?));
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
        let devices =
            DeviceManager::new(&HOST, Arc::clone(plugins.handle()), |id| plugins.context(id));
        let memory: Arc<dyn Memory> = HostMemory::shared().clone();
        let features = FeatureSet::of_this_cpu();
        let (pool, tuner) = (Arc::new(pool), Arc::default());
        let inner = Inner {
            devices,
            searched: report.searched.clone(),
            plugins,
            pool,
            memory,
            features,
            tuner,
            started: Instant::now(),
            counts: Counts::default(),
            next_step: AtomicU64::new(1),
            edges: Edges::default(),
            ledger: Arc::default(),
            sessions: Mutex::default(),
            attached: Mutex::default(),
        };
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
    pub fn load(&self, files: impl IntoIterator<Item = impl AsRef<Path>>) -> LoadReport {
        let report = self.inner.plugins.load(files);
        self.inner.devices.refresh(|id| self.inner.plugins.context(id));
        report
    }

    /// Loads further plugins, each into a process of its own (see [`tenon_isolate`]).
    pub fn load_isolated(&self, files: impl IntoIterator<Item = impl AsRef<Path>>) -> LoadReport {
        let files = files.into_iter().map(|file| file.as_ref().to_owned());
        self.inner.plugins.load_search(&SearchPath::default().isolating(files))
    }

    /// Replaces a plugin by a new build: sessions see it after their `refresh`.
    ///
    /// # Errors
    /// The new build is refused; then the old one stays.
    pub fn replace(
        &self,
        file: impl AsRef<Path>,
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

    /// A copy of a tensor in pinned host memory of the first device that has such: a feed that the device reads by
    /// itself, at the rate of its link, where ordinary memory goes through a stage of the device's. Everything that
    /// takes a tensor in host memory takes it. Pinned memory is scarce, and costly to get: keep it for many steps.
    ///
    /// # Errors
    /// No device has pinned memory; none is left (`RESOURCE_EXHAUSTED`); the tensor does not lie in host memory.
    pub fn pinned(&self, tensor: &Tensor) -> Result<Tensor, RuntimeError> {
        let memory =
            self.inner.devices.devices().iter().find_map(|it| it.memory(MemoryKind::PINNED));
        let memory = memory.ok_or(RuntimeError::NoPinnedMemory)?;
        copy_on_host(tensor, &memory).map_err(|error| RuntimeError::PinnedMemory(Box::new(error)))
    }

    /// The figures of this runtime now.
    pub fn metrics(&self) -> Metrics {
        figures::figures(self)
    }

    /// Keeps a value, such as a server of its figures, and drops it with the runtime, before devices and plugins. The
    /// value holds a [`WeakRuntime`] where it needs the runtime: with a [`Runtime`] in it, neither would ever be dropped.
    pub fn attach(&self, value: impl Send + 'static) {
        self.inner.attached.lock().push(Box::new(value));
    }

    /// A handle that does not keep the runtime alive.
    pub fn downgrade(&self) -> WeakRuntime {
        WeakRuntime { inner: Arc::downgrade(&self.inner) }
    }

    pub(crate) fn started(&self) -> Instant {
        self.inner.started
    }

    /// The number of a step that begins; never 0.
    #[inline(always)]
    pub(crate) fn next_step(&self) -> u64 {
        self.inner.next_step.fetch_add(1, Ordering::Relaxed)
    }

    /// The edges between partitions of its sessions' steps.
    pub(crate) fn edges(&self) -> &Edges {
        &self.inner.edges
    }

    pub(crate) fn counts(&self) -> &Counts {
        &self.inner.counts
    }

    pub(crate) fn ledger(&self) -> &Arc<Ledger> {
        &self.inner.ledger
    }

    /// Where plugins were looked for at the start.
    pub(crate) fn searched(&self) -> &[Looked] {
        &self.inner.searched
    }

    /// Notes a session that is opened.
    pub(crate) fn opened(&self, session: Weak<dyn Steps>) {
        let mut sessions = self.inner.sessions.lock();
        sessions.retain(|session| session.strong_count() > 0);
        sessions.push(session);
    }

    /// Steps in flight, of all sessions.
    pub(crate) fn active_steps(&self) -> u64 {
        let sessions: Vec<_> =
            self.inner.sessions.lock().iter().filter_map(Weak::upgrade).collect();
        sessions.iter().map(|session| session.active()).sum()
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
