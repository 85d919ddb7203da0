//! Models in a session, and their signatures as functions.

use crate::{
    ImportError, MetaGraph, SignatureInfo,
    ops::Needs,
    start::{Stage, Start},
};
use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    path::Path,
    sync::Arc,
    time::Duration,
};
use tenon_framework::{Tensor, registry::Registry, sync::Mutex};
use tenon_proto::MetaGraphDef;
use tenon_runtime::{
    Callable, CallableOptions, RunOptions, Runtime, RuntimeError, Session, SessionError,
    SessionOptions, Worker,
};

/// Options of loading a model.
#[derive(Clone, Default)]
pub struct LoadOptions {
    /// Options of the session.
    pub session: SessionOptions,
    /// The worker that has the variables; `None` for one that no other session has.
    pub worker: Option<Worker>,
    /// The time limit of each of the steps that start the model.
    pub deadline: Option<Duration>,
    /// Is called when a stage begins.
    pub progress: Option<Arc<dyn Fn(Stage) + Send + Sync>>,
}

impl fmt::Debug for LoadOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadOptions").field("session", &self.session).finish_non_exhaustive()
    }
}

/// A model that is ready to run. Several threads may use it at once.
pub struct LoadedModel {
    runtime: Runtime,
    session: Arc<Session>,
    signatures: BTreeMap<String, Arc<SignatureInfo>>,
    /// All ops of the graph and its functions that were not registered when the model was loaded.
    missing: Vec<String>,
    made: Mutex<HashMap<String, Arc<Signature>>>,
}

/// A signature of a loaded model, as a function: its step is compiled once. It keeps the session.
pub struct Signature {
    info: Arc<SignatureInfo>,
    callable: Callable,
    _session: Arc<Session>,
}

/// See [`crate::SavedModel::load`].
pub(crate) fn load(
    folder: &Path,
    mut def: MetaGraphDef,
    runtime: &Runtime,
    options: &LoadOptions,
) -> Result<LoadedModel, ImportError> {
    let progress = |stage| {
        if let Some(progress) = &options.progress {
            progress(stage);
        }
    };
    let meta_graph = MetaGraph { folder, def: &def };
    let start = Start::new(meta_graph)?;
    let registry = runtime.registry();
    let missing = meta_graph.missing_ops(&registry);
    check_start(meta_graph, &start, &registry)?;
    let signatures = meta_graph.signatures()?.into_iter();
    let signatures = signatures.map(|info| (info.key.clone(), Arc::new(info))).collect();
    // A model without a graph was refused above.
    let graph = def.graph_def.take().unwrap_or_default();
    drop(def);
    progress(Stage::Import);
    let session = match &options.worker {
        Some(worker) => Session::on(worker, options.session.clone())?,
        None => Session::new(runtime, options.session.clone())?,
    };
    let failed = |error: RuntimeError| ImportError::Stage {
        stage: Stage::Import,
        source: SessionError::from(error),
    };
    session.extend_owned(graph).map_err(failed)?;
    start.run(&session, options.deadline, &progress)?;
    Ok(LoadedModel {
        runtime: runtime.clone(),
        session: Arc::new(session),
        signatures,
        missing,
        made: Mutex::new(HashMap::new()),
    })
}

/// Fails where ops are missing that the start of the model needs.
fn check_start(
    model: MetaGraph<'_>,
    start: &Start,
    registry: &Registry,
) -> Result<(), ImportError> {
    let ops = Needs::new(model.graph()?).missing(&start.targets(), registry);
    if ops.is_empty() {
        return Ok(());
    }
    let what = format!("{}: the start of the model", model.folder.display());
    Err(ImportError::MissingOps { what, ops })
}

impl LoadedModel {
    /// The session with the model's graph and variables.
    pub fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// The signatures, in the order of their keys.
    pub fn signatures(&self) -> impl ExactSizeIterator<Item = &SignatureInfo> {
        self.signatures.values().map(|info| &**info)
    }

    fn declared(&self, key: &str) -> Result<&Arc<SignatureInfo>, ImportError> {
        self.signatures.get(key).ok_or_else(|| {
            let have = self.signatures.keys().cloned().collect();
            ImportError::NoSignature { key: key.to_owned(), have }
        })
    }

    /// What the signature with this key is; nothing is compiled.
    ///
    /// # Errors
    /// No signature has the key.
    pub fn info(&self, key: &str) -> Result<&SignatureInfo, ImportError> {
        Ok(self.declared(key)?)
    }

    /// Whether all ops are registered that a signature needs.
    ///
    /// # Errors
    /// No signature has the key; ops are missing, of which all are named.
    pub fn check_ops(&self, key: &str) -> Result<(), ImportError> {
        let info = self.declared(key)?;
        // Plugins may have been loaded since.
        let registry = self.runtime.registry();
        if self.missing.iter().all(|op| registry.op(op).is_some()) {
            return Ok(());
        }
        // The graph is walked only here: a model may have many signatures over one large graph.
        let graph = self.session.graph().to_graph_def().map_err(RuntimeError::from)?;
        let tensors: Vec<&str> = info.outputs.iter().map(|it| it.tensor.as_str()).collect();
        let ops = Needs::new(&graph).missing(&tensors, &registry);
        if ops.is_empty() {
            return Ok(());
        }
        Err(ImportError::MissingOps { what: format!("signature '{key}'"), ops })
    }

    /// The signature with this key. Its step is prepared at the first call; later calls give the same signature.
    ///
    /// # Errors
    /// No signature has the key; it needs ops that are not registered, of which all are named; its tensors are not in the graph, or
    /// its step cannot be compiled.
    pub fn signature(&self, key: &str) -> Result<Arc<Signature>, ImportError> {
        if let Some(made) = self.made.lock().get(key) {
            return Ok(Arc::clone(made));
        }
        self.check_ops(key)?;
        let made = Signature::new(&self.session, self.declared(key)?)?;
        // The step was compiled without the lock; another thread may have been faster.
        let mut all = self.made.lock();
        Ok(Arc::clone(all.entry(key.to_owned()).or_insert_with(|| Arc::new(made))))
    }
}

impl fmt::Debug for LoadedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<&str> = self.signatures.keys().map(String::as_str).collect();
        f.debug_struct("LoadedModel").field("signatures", &keys).finish_non_exhaustive()
    }
}

impl Signature {
    fn new(session: &Arc<Session>, info: &Arc<SignatureInfo>) -> Result<Signature, ImportError> {
        let names = |arguments: &[crate::Argument]| {
            arguments.iter().map(|argument| argument.tensor.clone()).collect()
        };
        let options = CallableOptions {
            feeds: names(&info.inputs),
            fetches: names(&info.outputs),
            targets: Vec::new(),
            ..CallableOptions::default()
        };
        let callable = session.callable(options)?;
        Ok(Signature { info: Arc::clone(info), callable, _session: Arc::clone(session) })
    }

    /// What the signature is.
    pub fn info(&self) -> &SignatureInfo {
        &self.info
    }

    /// Runs the signature. Inputs are given by name, in any order; one that has a default may be left out. Returns the results
    /// by name.
    ///
    /// # Errors
    /// An input is unknown, given twice, or missing; it has another type or shape; the step fails.
    pub fn run(&self, inputs: &[(&str, Tensor)]) -> Result<BTreeMap<String, Tensor>, ImportError> {
        self.run_with(inputs, &RunOptions::default())
    }

    /// As [`Signature::run`], with a deadline, a token or a trace.
    ///
    /// # Errors
    /// As [`Signature::run`].
    pub fn run_with(
        &self,
        inputs: &[(&str, Tensor)],
        options: &RunOptions,
    ) -> Result<BTreeMap<String, Tensor>, ImportError> {
        let mut fetched = Vec::with_capacity(self.info.outputs.len());
        self.callable.run_with(&self.info.complete(inputs)?, &mut fetched, options)?;
        let names = self.info.outputs.iter().map(|output| output.name.clone());
        Ok(names.zip(fetched).collect())
    }

    /// The prepared step, which takes the inputs and gives the results in the order of [`Signature::info`], without names.
    pub fn callable(&self) -> &Callable {
        &self.callable
    }
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signature").field("key", &self.info.key).finish_non_exhaustive()
    }
}
