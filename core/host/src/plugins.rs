//! The plugins of a runtime: which are in use, and how that changes.
//!
//! A change publishes a new snapshot of the registry, or has no effect. A snapshot stays valid for
//! its holders: kernels of a plugin that is replaced or retired run until the last plan that uses
//! them is dropped. Things are dropped in this order: a plan's kernels; the resources of its
//! session; the streams, events and buffers of a device, then the device; the snapshots that name
//! them. The library itself is never unloaded.
//!
//! # Invariants
//! - Changes are serialised; readers never wait. A subscriber may read, but must not make a change
//!   in its callback.
//! - A plugin's record exists before the snapshot that names the plugin is published.

mod knobs;
mod opened;

use crate::{
    context::PluginContext,
    entries::install,
    error::{LoadError, StartError, Step},
    isolation::{IsolatedCode, Isolation},
    loader::{
        self, Library, PluginFile, Policy, Source, failed,
        image::Image,
        probe::{When, wrong_knob},
    },
    report::{LoadReport, Superseded},
    search::{Candidate, SearchPath},
    settings::{Settings, of_the_host},
    statics,
};
use arc_swap::ArcSwap;
use opened::{Opened, PluginCode};
use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};
use tenon_framework::{
    knob::Knobs,
    registry::{
        PluginId, PluginInfo, Registry, RegistryError, RegistryEvent, RegistryHandle, Subscription,
        Transaction, Warning,
    },
    sync::{Mutex, Rank},
};

/// Outside the loader's lock: a change opens libraries.
const CHANGES: Rank = Rank(15);

/// The plugins in use, and the registry of their registrations.
pub struct Plugins {
    registry: Arc<RegistryHandle>,
    settings: ArcSwap<Settings>,
    knobs: ArcSwap<Knobs>,
    code: Mutex<BTreeMap<PluginId, PluginCode>>,
    /// The contexts that were requested, of plugins in use.
    contexts: Mutex<BTreeMap<PluginId, Arc<PluginContext>>>,
    changes: Mutex<()>,
    /// What isolates plugins, if the program can.
    isolation: Option<&'static dyn Isolation>,
    /// Number of threads on which kernels of an isolated plugin compute; 0 is one per core.
    threads: AtomicUsize,
}

/// A candidate whose library is open.
struct Ready {
    candidate: Candidate,
    opened: Opened,
}

/// The result of looking up a candidate's name.
enum Claim {
    /// The name is free.
    Free,
    /// This plugin, with this digest, has the name; `library` is `None` when it is linked into the
    /// host.
    Taken { path: Option<PathBuf>, digest: String, library: Option<&'static Library> },
}

impl Plugins {
    /// A registry of what is linked into the host, with this process's environment as settings.
    ///
    /// # Errors
    /// Linked registrations conflict; a setting of the host's own knobs is invalid.
    pub fn new() -> Result<Plugins, StartError> {
        Plugins::with_settings(Settings::of_process())
    }

    /// Like [`Plugins::new`], with these settings.
    ///
    /// # Errors
    /// As [`Plugins::new`].
    pub fn with_settings(settings: Settings) -> Result<Plugins, StartError> {
        install();
        let registry = Arc::new(RegistryHandle::new(Registry::new()));
        let first = registry.load().next_plugin_id();
        registry
            .commit(statics::transactions(first))
            .map_err(|errors| StartError::Linked { errors })?;
        let plugins = Plugins {
            registry,
            settings: ArcSwap::from_pointee(settings),
            knobs: ArcSwap::default(),
            code: Mutex::default(),
            contexts: Mutex::default(),
            changes: Mutex::ranked(CHANGES, ()),
            isolation: None,
            threads: AtomicUsize::new(0),
        };
        let wrong = plugins.refresh_knobs().into_iter().find(of_the_host);
        match wrong.or_else(|| wrong_knob(&plugins.knobs())) {
            Some(error) => Err(StartError::Knob(error)),
            None => {
                crate::memory::apply_limit(&plugins.knobs());
                Ok(plugins)
            }
        }
    }

    /// Sets what isolates plugins.
    #[must_use]
    pub fn with_isolation(self, isolation: &'static dyn Isolation) -> Plugins {
        Plugins { isolation: Some(isolation), ..self }
    }

    /// The current snapshot.
    pub fn registry(&self) -> Arc<Registry> {
        self.registry.load()
    }

    /// The handle of the current snapshot, through which device managers publish their events.
    pub fn handle(&self) -> &Arc<RegistryHandle> {
        &self.registry
    }

    /// Calls `callback` for every change from now on.
    pub fn subscribe(
        &self,
        callback: impl Fn(&RegistryEvent) + Send + Sync + 'static,
    ) -> Subscription {
        self.registry.subscribe(callback)
    }

    /// All plugins: the active ones in declared order, then the retired ones.
    pub fn list(&self) -> Vec<PluginInfo> {
        self.registry.load().plugins().cloned().collect()
    }

    /// The opened library of a plugin; `None` when it is linked into the host, or isolated.
    pub fn library(&self, id: PluginId) -> Option<&'static Library> {
        self.code.lock().get(&id).and_then(PluginCode::library)
    }

    /// The isolated plugins in use.
    pub fn isolated(&self) -> Vec<Arc<dyn IsolatedCode>> {
        let code = self.code.lock();
        let isolated = code.values().filter_map(|code| match code {
            PluginCode::Isolated(code) => Some(Arc::clone(code)),
            PluginCode::InProcess(_) => None,
        });
        isolated.collect()
    }

    /// Sets the number of threads on which kernels of plugins compute that are isolated from now
    /// on; 0 is one per core.
    pub fn set_threads(&self, threads: usize) {
        self.threads.store(threads, Ordering::Relaxed);
    }

    fn threads(&self) -> usize {
        match self.threads.load(Ordering::Relaxed) {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            threads => threads,
        }
    }

    /// Loads these files. A bad file does not affect the others.
    pub fn load(&self, files: impl IntoIterator<Item = impl AsRef<Path>>) -> LoadReport {
        let files = files.into_iter().map(|file| file.as_ref().to_owned());
        self.load_search(&SearchPath::explicit(files))
    }

    /// Loads what a search finds: of several files of one plugin, the first that opens. Ops,
    /// devices and kernels of files found together are registered in that order, whatever the order
    /// of the files.
    pub fn load_search(&self, search: &SearchPath) -> LoadReport {
        let _turn = self.changes.lock();
        let policy = Policy::from_knobs(&self.knobs());
        let mut report = LoadReport::default();
        let mut ready: Vec<Ready> = Vec::new();
        let found = search.look();
        report.searched = found.looked;
        for (candidate, error) in found.unreadable {
            let error = failed(&candidate.path, &error, Step::Find);
            report.reject(candidate, error);
        }
        for candidate in found.candidates {
            match self.open(&candidate, &policy, &ready, &mut report) {
                Ok(Some(opened)) => ready.push(Ready { candidate, opened }),
                Ok(None) => {}
                Err(error) if !candidate.named && is_no_plugin(&error) => {
                    tracing::debug!(path = %candidate.path.display(), "passed over: {error}");
                }
                Err(error) => report.reject(candidate, error),
            }
        }
        self.commit_together(ready, &mut report);
        self.refresh_knobs();
        report
    }

    /// Opens a candidate, unless another file of its plugin has the name.
    fn open(
        &self,
        candidate: &Candidate,
        policy: &Policy,
        ready: &[Ready],
        report: &mut LoadReport,
    ) -> Result<Option<Opened>, LoadError> {
        let (file, image) = loader::examine(&candidate.path)?;
        let plugin = image.manifest.plugin.name.clone();
        let Claim::Taken { path, digest, library } = self.claim(&plugin, ready) else {
            if candidate.isolated {
                return self.open_isolated(file, image, policy).map(Some);
            }
            return Opened::in_process(file, image, policy, Source::File).map(Some);
        };
        // The same file, by any name, or another file with the same content. For a file that search
        // merely came across, the latter is not worth a digest.
        let same = library.is_some_and(|library| library.id == file.id) || candidate.named;
        if same && file.digest()? == digest {
            let active = find_active(&self.registry.load(), &plugin);
            let listed = report.present.iter().any(|info| info.name == plugin);
            report.present.extend(active.filter(|_| !listed));
        } else if candidate.named {
            return Err(LoadError::NameTaken { path: file.path, plugin, loaded: path });
        } else {
            let candidate = candidate.clone();
            report.superseded.push(Superseded { candidate, plugin, by: path });
        }
        Ok(None)
    }

    fn open_isolated(
        &self,
        file: PluginFile,
        image: Image,
        policy: &Policy,
    ) -> Result<Opened, LoadError> {
        Opened::isolated(self.isolation, file, image, policy, &self.knobs(), self.threads())
    }

    fn claim(&self, plugin: &str, ready: &[Ready]) -> Claim {
        let mut opened = ready.iter().map(|ready| &ready.opened);
        if let Some(opened) = opened.find(|opened| opened.manifest().plugin.name == plugin) {
            let (path, digest) = (Some(opened.path.clone()), opened.digest().to_owned());
            return Claim::Taken { path, digest, library: opened.code.library() };
        }
        match find_active(&self.registry.load(), plugin) {
            Some(PluginInfo { id, path, digest, .. }) => {
                Claim::Taken { path, digest, library: self.library(id) }
            }
            None => Claim::Free,
        }
    }

    /// Commits all at once, since kernels of one plugin may compute ops of another. If that fails,
    /// commits one by one in rounds, until a round adds none: the rest are refused with their own
    /// errors.
    fn commit_together(&self, ready: Vec<Ready>, report: &mut LoadReport) {
        let mut batch = Vec::new();
        let mut pending = Vec::new();
        for entry in ready {
            let at = batch.len() as u32;
            match self.collect(&entry.opened, at) {
                Ok(transaction) => {
                    batch.push(transaction);
                    pending.push(entry);
                }
                Err(error) => report.reject(entry.candidate, error),
            }
        }
        let code: Vec<PluginCode> = pending.iter().map(|ready| ready.opened.code.clone()).collect();
        if pending.is_empty() || self.commit(batch, &code, report).is_ok() {
            return;
        }
        let mut refused: Vec<(Ready, LoadError)> = Vec::new();
        loop {
            let before = pending.len();
            refused.clear();
            for entry in pending.drain(..) {
                if let Err(error) = self.commit_one(&entry.opened, report) {
                    refused.push((entry, error));
                }
            }
            if refused.is_empty() || refused.len() == before {
                break;
            }
            pending.extend(refused.drain(..).map(|(entry, _)| entry));
        }
        refused.into_iter().for_each(|(entry, error)| report.reject(entry.candidate, error));
    }

    fn commit_one(&self, opened: &Opened, report: &mut LoadReport) -> Result<(), LoadError> {
        let transaction = self.collect(opened, 0)?;
        self.commit(vec![transaction], std::slice::from_ref(&opened.code), report)
            .map_err(|errors| opened.refused(errors))
    }

    fn commit(
        &self,
        transactions: Vec<Transaction>,
        code: &[PluginCode],
        report: &mut LoadReport,
    ) -> Result<(), Vec<RegistryError>> {
        let infos: Vec<PluginInfo> = transactions.iter().map(|t| t.info().clone()).collect();
        let ids = infos.iter().map(|info| info.id);
        self.code.lock().extend(ids.clone().zip(code.iter().cloned()));
        match self.registry.commit(transactions) {
            Ok(warnings) => {
                report.loaded.extend(infos);
                report.warnings.extend(noted(warnings));
                Ok(())
            }
            Err(errors) => {
                let mut known = self.code.lock();
                known.retain(|id, _| ids.clone().all(|new| new != *id));
                Err(errors)
            }
        }
    }

    /// Collects what a library registers, as the new plugin with index `at`. A plugin that is
    /// invalid by itself is refused here.
    fn collect(&self, opened: &Opened, at: u32) -> Result<Transaction, LoadError> {
        let registry = self.registry.load();
        let order = registry.plugins().map(|info| info.order + 1).max().unwrap_or(0);
        let info = opened.info(PluginId(registry.next_plugin_id().0 + at), order + at);
        let transaction = opened.collect(info)?;
        match transaction.errors() {
            [] => Ok(transaction),
            errors => Err(opened.refused(errors.to_vec())),
        }
    }

    /// Replaces the plugin of the same name with the one in this file, in one snapshot. It is
    /// opened from a private copy, so that the file may be overwritten for the next replacement.
    /// Identical content changes nothing.
    ///
    /// # Errors
    /// Errors of loading; no plugin of that name is in use, or it is linked into the host.
    pub fn replace(&self, file: impl AsRef<Path>) -> Result<(PluginInfo, Vec<Warning>), LoadError> {
        let _turn = self.changes.lock();
        let (file, image) = loader::examine(file.as_ref())?;
        let old = self.active(&image.manifest.plugin.name)?;
        let policy = Policy::from_knobs(&self.knobs());
        let opened = if old.isolated {
            self.open_isolated(file, image, &policy)?
        } else {
            Opened::in_process(file, image, &policy, Source::PrivateCopy)?
        };
        if opened.digest() == old.digest {
            return Ok((old, Vec::new()));
        }
        let transaction = self.collect(&opened, 0)?;
        let info = PluginInfo { order: old.order, ..transaction.info().clone() };
        self.code.lock().insert(info.id, opened.code.clone());
        match self.registry.replace(old.id, transaction) {
            Ok(warnings) => {
                self.forget(old.id);
                self.refresh_knobs();
                Ok((info, noted(warnings)))
            }
            Err(errors) => {
                self.forget(info.id);
                Err(opened.refused(errors))
            }
        }
    }

    /// Takes a plugin out of use. Kernels of other plugins for its ops become dormant.
    ///
    /// # Errors
    /// No plugin of that name is in use, or it is linked into the host.
    pub fn retire(&self, plugin: &str) -> Result<Vec<Warning>, LoadError> {
        let _turn = self.changes.lock();
        let info = self.active(plugin)?;
        let warnings = self
            .registry
            .retire(info.id)
            .map_err(|errors| LoadError::Retire { plugin: info.name, errors })?;
        self.forget(info.id);
        self.refresh_knobs();
        Ok(noted(warnings))
    }

    /// Releases a plugin's code. The process of an isolated plugin ends with the last plan that has
    /// its kernels.
    fn forget(&self, id: PluginId) {
        let code = self.code.lock().remove(&id);
        let context = self.contexts.lock().remove(&id);
        drop((code, context));
    }

    /// The active plugin of this name, if it comes from a file.
    fn active(&self, plugin: &str) -> Result<PluginInfo, LoadError> {
        let registry = self.registry.load();
        match find_active(&registry, plugin) {
            Some(info) if info.path.is_none() => {
                Err(LoadError::Linked { plugin: plugin.to_owned() })
            }
            Some(info) => Ok(info),
            None => {
                let files = registry.plugins().filter(|info| !info.retired && info.path.is_some());
                let loaded = files.map(|info| info.name.clone()).collect();
                Err(LoadError::NotLoaded { plugin: plugin.to_owned(), loaded })
            }
        }
    }

    /// The snapshot that would result from adding this library; does not publish it.
    pub(crate) fn rehearse(
        &self,
        file: PluginFile,
        image: Image,
    ) -> Result<(Registry, PluginId, &'static Library), LoadError> {
        let _turn = self.changes.lock();
        let mut policy = Policy::from_knobs(&self.knobs());
        if policy.probing.when == When::Unknown {
            // Inspecting a file is meant to show its current behaviour.
            policy.probing.when = When::Always;
        }
        let path = file.path.clone();
        let library = loader::open(file, image, &policy, Source::PrivateCopy)?;
        let opened = Opened { code: PluginCode::InProcess(library), path };
        let registry = self.registry.load();
        let old = find_active(&registry, &library.manifest.plugin.name);
        if let Some(old) = old.as_ref().filter(|old| old.digest == library.digest) {
            return Ok(((*registry).clone(), old.id, library));
        }
        let transaction = self.collect(&opened, 0)?;
        let id = transaction.info().id;
        let built = match old {
            Some(old) => registry.replace(old.id, transaction),
            None => transaction.commit(&registry),
        };
        let (next, _) = built.map_err(|errors| opened.refused(errors))?;
        Ok((next, id, library))
    }
}

impl fmt::Debug for Plugins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plugins").field("list", &self.list()).finish_non_exhaustive()
    }
}

fn find_active(registry: &Registry, plugin: &str) -> Option<PluginInfo> {
    registry.plugins().find(|info| !info.retired && info.name == plugin).cloned()
}

/// Whether a file that search found is not a plugin at all.
fn is_no_plugin(error: &LoadError) -> bool {
    matches!(
        error,
        LoadError::NotALibrary { .. }
            | LoadError::NotAPlugin { .. }
            | LoadError::NotAFile { .. }
            | LoadError::NoManifest { .. }
    )
}

fn noted(warnings: Vec<Warning>) -> Vec<Warning> {
    warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    warnings
}
