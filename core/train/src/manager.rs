//! How a session gets its graph and the values of its variables.

use crate::{
    GLOBAL_STEP, QueueRunner, Saver, SaverOptions, Target, TrainError, Variables, meta_graph,
};
use std::{
    path::PathBuf,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};
use tenon_framework::{Code, DType, Tensor};
use tenon_graph::GraphBuilder;
use tenon_proto::GraphDef;
use tenon_runtime::{AnySession, SessionError};

/// Whether a session with this error is lost, so that only a new one can go on: its server was started anew (`ABORTED`), or
/// is not there (`UNAVAILABLE`).
pub fn is_lost(code: Code) -> bool {
    matches!(code, Code::ABORTED | Code::UNAVAILABLE)
}

/// A graph that is ready to be trained, with the names of the nodes that a session needs first.
#[derive(Debug, Clone, Default)]
pub struct Scaffold {
    /// The graph.
    pub graph: GraphDef,
    /// The node that initialises all variables.
    pub init: Option<String>,
    /// What is fed to it.
    pub init_feeds: Vec<(String, Tensor)>,
    /// The node that initialises what belongs to this session alone, such as tables.
    pub local_init: Option<String>,
    /// For each variable its name, and the tensor that says whether it has a value.
    pub is_initialized: Vec<(String, String)>,
    /// A tensor with the names of what is not ready (TensorFlow's `ready_op`).
    pub ready: Option<String>,
    /// What saves and restores the variables.
    pub saver: Option<Arc<Saver>>,
    /// The tensor with the number of steps.
    pub global_step: Option<String>,
    /// What fills the graph's queues.
    pub queue_runners: Vec<QueueRunner>,
}

impl Scaffold {
    /// Adds what is missing to a graph: the node `init`, and a saver of all variables, which writes the graph beside each
    /// checkpoint. The variable `global_step`, if there is one, counts the steps. Nodes that are added later are not part
    /// of it.
    ///
    /// # Errors
    /// The graph refuses a node, for example since it has a node `init`.
    pub fn build(
        b: &mut GraphBuilder<'_>,
        variables: &Variables,
        saver: SaverOptions,
    ) -> Result<Scaffold, TrainError> {
        let init = variables.initializer(b, "init")?;
        let saver = match variables.all() {
            [] => None,
            all => {
                let saver = Saver::build(b, all, saver)?;
                let meta = meta_graph(b, variables, Some(saver.def()))?;
                Some(Arc::new(saver.with_meta_graph(&meta)?))
            }
        };
        let graph = b.graph();
        let is_initialized = variables
            .all()
            .iter()
            .map(|variable| (variable.name.clone(), graph.output_name(variable.is_initialized)));
        Ok(Scaffold {
            graph: graph.to_graph_def()?,
            init: Some(graph.node(init).name.clone()),
            is_initialized: is_initialized.collect(),
            saver,
            global_step: variables.find(GLOBAL_STEP).map(|step| graph.output_name(step.value)),
            ..Scaffold::default()
        })
    }

    /// The tensor with the number of steps, for one who cannot do without it.
    pub(crate) fn needs_global_step(&self, who: &str) -> Result<String, TrainError> {
        self.global_step.clone().ok_or_else(|| {
            let expected = format!("a variable '{GLOBAL_STEP}', which counts the steps");
            TrainError::argument(who, expected, "a graph without one: add it to the variables")
        })
    }

    /// The names of what has no value yet.
    ///
    /// # Errors
    /// The session is lost, or a tensor has another type.
    pub fn not_ready(&self, session: &dyn AnySession) -> Result<Vec<String>, TrainError> {
        let mut fetches: Vec<&str> =
            self.is_initialized.iter().map(|(_, tensor)| tensor.as_str()).collect();
        fetches.extend(self.ready.as_deref());
        if fetches.is_empty() {
            return Ok(Vec::new());
        }
        let fetched = session.run_step(&[], &fetches, &[], None)?;
        let mut missing = Vec::new();
        for ((name, _), value) in self.is_initialized.iter().zip(&fetched) {
            if value.as_slice::<bool>()? != [true] {
                missing.push(name.clone());
            }
        }
        if let (Some(_), Some(names)) = (&self.ready, fetched.last()) {
            let names = names.as_strings()?;
            missing.extend(names.iter().map(|name| String::from_utf8_lossy(name).into_owned()));
        }
        Ok(missing)
    }
}

/// The number of steps in a session.
///
/// # Errors
/// The step fails, or the tensor is not an int64 or int32.
pub fn read_step(session: &dyn AnySession, tensor: &str) -> Result<i64, TrainError> {
    let fetched = session.run_step(&[], &[tensor], &[], None)?;
    step_of(fetched.first(), tensor)
}

/// The number of steps in a fetched value.
pub(crate) fn step_of(value: Option<&Tensor>, tensor: &str) -> Result<i64, TrainError> {
    let number = value.and_then(|value| match value.dtype() {
        DType::INT64 => value.as_slice::<i64>().ok()?.first().copied(),
        DType::INT32 => value.as_slice::<i32>().ok()?.first().map(|step| i64::from(*step)),
        _ => None,
    });
    number.ok_or_else(|| {
        let found = value.map_or("nothing".to_owned(), |value| value.dtype().to_string());
        TrainError::argument(format!("the global step '{tensor}'"), "an int64 or int32", found)
    })
}

/// What a caller may choose for a [`SessionManager`].
#[derive(Debug, Clone)]
pub struct ManagerOptions {
    /// Whether this process initialises and restores variables; the others wait for it. `true` by default.
    pub is_chief: bool,
    /// The folder whose latest checkpoint is restored.
    pub checkpoint_folder: Option<PathBuf>,
    /// How long one waits between two looks at whether the variables are ready. 30 seconds by default.
    pub poll: Duration,
    /// How long one waits for the variables, or for a place that cannot be reached. 2 hours by default.
    pub patience: Duration,
}

impl Default for ManagerOptions {
    fn default() -> ManagerOptions {
        ManagerOptions {
            is_chief: true,
            checkpoint_folder: None,
            poll: Duration::from_secs(30),
            patience: Duration::from_secs(7200),
        }
    }
}

/// Opens sessions that are ready for steps.
pub struct SessionManager {
    target: Arc<dyn Target>,
    options: ManagerOptions,
}

impl SessionManager {
    /// Sessions at this place.
    pub fn new(target: Arc<dyn Target>, options: ManagerOptions) -> SessionManager {
        SessionManager { target, options }
    }

    /// What it was made with.
    pub fn options(&self) -> &ManagerOptions {
        &self.options
    }

    /// A session that is ready: prepared by the chief, waited for by others.
    ///
    /// # Errors
    /// As [`SessionManager::prepare`] and [`SessionManager::wait`].
    pub fn open(&self, scaffold: &Scaffold) -> Result<Arc<dyn AnySession>, TrainError> {
        if self.options.is_chief { self.prepare(scaffold) } else { self.wait(scaffold) }
    }

    /// Opens a session, restores the latest checkpoint or, if there is none, initialises the variables, and then
    /// initialises what is local.
    ///
    /// # Errors
    /// The place cannot be reached, the checkpoint cannot be restored, or a variable has no value after all
    /// (`FAILED_PRECONDITION`, with all their names).
    pub fn prepare(&self, scaffold: &Scaffold) -> Result<Arc<dyn AnySession>, TrainError> {
        let session = self.target.open(&scaffold.graph)?;
        if !self.restore(scaffold, &*session)?
            && let Some(init) = &scaffold.init
        {
            let feeds = scaffold.init_feeds.iter();
            let feeds: Vec<_> = feeds.map(|(name, value)| (name.as_str(), value.clone())).collect();
            session.run_step(&feeds, &[], &[init], None)?;
        }
        initialize_local(scaffold, &*session)?;
        match scaffold.not_ready(&*session)?.as_slice() {
            [] => Ok(session),
            missing => Err(SessionError::new(
                Code::FAILED_PRECONDITION,
                format!(
                    "expected every variable to have a value after the initialisation, found none for {}: add them to \
                     the node that initialises, or save them in checkpoints",
                    missing.join(", ")
                ),
            )
            .into()),
        }
    }

    /// Restores the latest checkpoint. Returns whether there was one.
    fn restore(&self, scaffold: &Scaffold, session: &dyn AnySession) -> Result<bool, TrainError> {
        let (Some(folder), Some(saver)) = (&self.options.checkpoint_folder, &scaffold.saver) else {
            return Ok(false);
        };
        // A save of a session that was lost may still complete the newest checkpoint. If it fails, another one is restored.
        if let Err(error) = saver.wait() {
            tracing::warn!("a save in the background failed: {error}");
        }
        let Some(checkpoint) = saver.latest(folder)? else { return Ok(false) };
        saver.restore(session, &checkpoint)?;
        saver.recover(folder)?;
        tracing::info!("restored checkpoint {}", checkpoint.display());
        Ok(true)
    }

    /// Waits until another process has prepared the variables, and opens a session then.
    ///
    /// # Errors
    /// `DEADLINE_EXCEEDED`, with the names of the variables that have no value, when the time is over; an error of the
    /// session other than that its place cannot be reached.
    pub fn wait(&self, scaffold: &Scaffold) -> Result<Arc<dyn AnySession>, TrainError> {
        let begin = Instant::now();
        loop {
            let missing = match self.look(scaffold) {
                Ok((session, missing)) if missing.is_empty() => {
                    initialize_local(scaffold, &*session)?;
                    return Ok(session);
                }
                Ok((_, missing)) => format!("these have no value: {}", missing.join(", ")),
                Err(error) if is_lost(error.code()) => error.to_string(),
                Err(error) => return Err(error),
            };
            let left = self.options.patience.saturating_sub(begin.elapsed());
            if left.is_zero() {
                let message = format!(
                    "expected the chief to prepare the variables within {:?}, found that {missing}",
                    self.options.patience
                );
                return Err(SessionError::new(Code::DEADLINE_EXCEEDED, message).into());
            }
            tracing::info!("waiting for the chief: {missing}");
            thread::sleep(self.options.poll.min(left));
        }
    }

    /// A new session, and what is not ready in it. Each look opens one, since a server that was started anew does not know
    /// the former one.
    fn look(&self, scaffold: &Scaffold) -> Result<(Arc<dyn AnySession>, Vec<String>), TrainError> {
        let session = self.target.open(&scaffold.graph)?;
        let missing = scaffold.not_ready(&*session)?;
        Ok((session, missing))
    }
}

fn initialize_local(scaffold: &Scaffold, session: &dyn AnySession) -> Result<(), TrainError> {
    if let Some(local_init) = &scaffold.local_init {
        session.run_step(&[], &[], &[local_init], None)?;
    }
    Ok(())
}
