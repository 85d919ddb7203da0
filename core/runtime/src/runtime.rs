//! The runtime: plugins, devices and threads. Sessions are created on it.

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
    device::{DeviceName, base::LocalDevice},
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
    "Maximum number of streams that one step uses on a device; the device may set a lower limit."
);

register_knob!(
    "record_after": INT = "8",
    "Number of ordinary steps of a plan before its commands on a device are recorded and replayed, if possible; -1 is never."
);

register_knob!(
    "soft_placement": BOOL = "false",
    "Whether a node runs on another device if its own does not exist or has no kernel for it; otherwise that is an error."
);

register_knob!(
    "kernel_label": STRING = "",
    "Kernel label for every node that has a kernel with it, such as 'reference'. A node's own label takes precedence."
);

/// Options of a runtime.
#[derive(Debug, Clone)]
pub struct RuntimeOptions {
    /// The number of threads for kernels, including the caller's; `None` means one per core.
    pub threads: Option<usize>,
    /// The plugins to load by path.
    pub plugins: Vec<PathBuf>,
    /// The plugins to load by path before those, each in a process of its own (see
    /// [`tenon_isolate`]).
    pub isolate: Vec<PathBuf>,
    /// Whether to search the usual places for plugins too.
    pub search: bool,
    /// The settings of knobs.
    pub settings: Settings,
    /// The task whose devices this process has, in a cluster (see [`DeviceName::of_task`]).
    pub task: DeviceName,
}

impl Default for RuntimeOptions {
    fn default() -> RuntimeOptions {
        RuntimeOptions {
            threads: None,
            plugins: Vec::new(),
            isolate: Vec::new(),
            search: true,
            settings: Settings::of_process(),
            task: DeviceName::of_task("localhost", 0),
        }
    }
}

impl RuntimeOptions {
    /// Options that load these plugins and do not search for others.
    pub fn with_plugins(plugins: impl IntoIterator<Item = impl Into<PathBuf>>) -> RuntimeOptions {
        RuntimeOptions {
            plugins: plugins.into_iter().map(Into::into).collect(),
            search: false,
            ..RuntimeOptions::default()
        }
    }
}

/// The interface through which a runtime counts a session's steps.
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
    next_step: Arc<AtomicU64>,
    edges: Edges,
    ledger: Arc<Ledger>,
    /// The sessions that are open, and some that were.
    sessions: Mutex<Vec<Weak<dyn Steps>>>,
    /// The values that are dropped with the runtime.
    attached: Mutex<Vec<Box<dyn Any + Send>>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        // Threads of attached values, and the tuner, may still use plugins and devices; stop them
        // first.
        let attached = mem::take(&mut *self.attached.lock());
        drop(attached);
        self.tuner.join();
    }
}

/// Plugins, devices and threads. Clones are the same runtime.
#[derive(Clone)]
pub struct Runtime {
    inner: Arc<Inner>,
}

/// A reference to a runtime that does not keep it alive.
#[derive(Debug, Clone)]
pub struct WeakRuntime {
    inner: Weak<Inner>,
}

impl WeakRuntime {
    /// The runtime; `None` after its last [`Runtime`] was dropped.
    pub fn upgrade(&self) -> Option<Runtime> {
        Some(Runtime { inner: self.inner.upgrade()? })
    }
}

impl Runtime {
    /// Starts a runtime: registers linked plugins, loads others, opens devices. Refused plugins are
    /// listed in the report; the others still load.
    ///
    /// # Errors
    /// The linked plugins conflict, or a setting is invalid.
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
        let registry = Arc::clone(plugins.handle());
        let devices = DeviceManager::new(&HOST, options.task, registry, |id| plugins.context(id));
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
            next_step: Arc::new(AtomicU64::new(1)),
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

    /// The plugins; use it to load, replace and retire them.
    pub fn plugins(&self) -> &Arc<Plugins> {
        &self.inner.plugins
    }

    /// Loads further plugins and opens their devices.
    pub fn load(&self, files: impl IntoIterator<Item = impl AsRef<Path>>) -> LoadReport {
        let report = self.inner.plugins.load(files);
        self.inner.devices.refresh(|id| self.inner.plugins.context(id));
        report
    }

    /// Loads further plugins, each in a process of its own (see [`tenon_isolate`]).
    pub fn load_isolated(&self, files: impl IntoIterator<Item = impl AsRef<Path>>) -> LoadReport {
        let files = files.into_iter().map(|file| file.as_ref().to_owned());
        self.inner.plugins.load_search(&SearchPath::default().isolating(files))
    }

    /// Replaces a plugin by a new build; sessions use it after their `refresh`.
    ///
    /// # Errors
    /// The new build is refused; the old one then stays.
    pub fn replace(
        &self,
        file: impl AsRef<Path>,
    ) -> Result<(PluginInfo, Vec<Warning>), RuntimeError> {
        Ok(self.inner.plugins.replace(file)?)
    }

    /// The devices, and the reason why a device type has none.
    pub fn devices(&self) -> &DeviceManager {
        &self.inner.devices
    }

    /// The thread pool.
    pub fn pool(&self) -> &Arc<ThreadPool> {
        &self.inner.pool
    }

    /// The pooled host memory.
    pub fn host_memory(&self) -> &Arc<dyn Memory> {
        &self.inner.memory
    }

    /// Copies a tensor to pinned host memory of the first device that has any. A device reads such
    /// a feed directly, at the rate of its link, while it copies ordinary memory through a staging
    /// buffer first. The copy is valid wherever a tensor in host memory is. Pinned memory is scarce
    /// and slow to allocate: reuse the copy for many steps.
    ///
    /// # Errors
    /// No device has pinned memory, none is left (`RESOURCE_EXHAUSTED`), or the tensor is not in
    /// host memory.
    pub fn pinned(&self, tensor: &Tensor) -> Result<Tensor, RuntimeError> {
        let memory =
            self.inner.devices.devices().iter().find_map(|it| it.memory(MemoryKind::PINNED));
        let memory = memory.ok_or(RuntimeError::NoPinnedMemory)?;
        copy_on_host(tensor, &memory).map_err(|error| RuntimeError::PinnedMemory(Box::new(error)))
    }

    /// The current metrics of this runtime.
    pub fn metrics(&self) -> Metrics {
        figures::figures(self)
    }

    /// Keeps a value, such as a metrics server, and drops it with the runtime, before devices and
    /// plugins. If the value refers to the runtime, it must use a [`WeakRuntime`]: with a
    /// [`Runtime`], neither would ever be dropped.
    pub fn attach(&self, value: impl Send + 'static) {
        self.inner.attached.lock().push(Box::new(value));
    }

    /// Creates a reference that does not keep the runtime alive.
    pub fn downgrade(&self) -> WeakRuntime {
        WeakRuntime { inner: Arc::downgrade(&self.inner) }
    }

    pub(crate) fn started(&self) -> Instant {
        self.inner.started
    }

    /// The number for a step that starts; never 0.
    #[inline(always)]
    pub(crate) fn next_step(&self) -> u64 {
        self.inner.next_step.fetch_add(1, Ordering::Relaxed)
    }

    /// The number of the next step, for callers that start steps of their own.
    pub(crate) fn step_numbers(&self) -> &Arc<AtomicU64> {
        &self.inner.next_step
    }

    /// The edges between partitions of steps: whoever gives values to a step from outside, or takes some from it, names them by
    /// these.
    pub fn edges(&self) -> &Edges {
        &self.inner.edges
    }

    pub(crate) fn counts(&self) -> &Counts {
        &self.inner.counts
    }

    pub(crate) fn ledger(&self) -> &Arc<Ledger> {
        &self.inner.ledger
    }

    /// The places that were searched for plugins at the start.
    pub(crate) fn searched(&self) -> &[Looked] {
        &self.inner.searched
    }

    /// Registers a session that was opened.
    pub(crate) fn opened(&self, session: Weak<dyn Steps>) {
        let mut sessions = self.inner.sessions.lock();
        sessions.retain(|session| session.strong_count() > 0);
        sessions.push(session);
    }

    /// The number of steps in flight, in all sessions.
    pub(crate) fn active_steps(&self) -> u64 {
        let sessions: Vec<_> =
            self.inner.sessions.lock().iter().filter_map(Weak::upgrade).collect();
        sessions.iter().map(|session| session.active()).sum()
    }

    /// The measurements for policy `measured`.
    pub(crate) fn tuner(&self) -> &Arc<Tuner> {
        &self.inner.tuner
    }

    /// The choices of policy `measured` in this process, by node; see the knob `runtime.policy`.
    pub fn measured(&self) -> Vec<Decision> {
        self.inner.tuner.decisions()
    }

    /// The features of this CPU.
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
