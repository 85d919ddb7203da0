//! Sessions, which run a graph as it grows.
//!
//! A session sends the nodes that its graph has gained since to where the steps run: to a session of the runtime, or to a server.
//! It does so before a step, and compares one number where there are none.

use crate::{
    fail::Failure,
    graph::{Shared, State, TF_Graph, shared},
    partial::PartialRuns,
    run::Prepared,
    session_options::TF_SessionOptions,
    status::TF_Status,
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};
use tenon_framework::{
    Code,
    sync::{Mutex, rank},
};
use tenon_graph::NodeId;
use tenon_proto::{FunctionLibrary, GraphDef};
use tenon_runtime::AnySession;

/// Where the steps of a session run.
pub(crate) enum Place {
    Here(tenon_runtime::Session),
    Server(Box<tenon_cluster::Session>),
}

/// What of the graph was sent already.
#[derive(Default)]
struct Sent {
    nodes: usize,
    library: Option<Arc<FunctionLibrary>>,
    versions: bool,
}

/// A session.
pub struct TF_Session {
    pub(crate) graph: Arc<Shared>,
    pub(crate) place: Place,
    /// The time limit of steps that have none of their own.
    pub(crate) timeout: Option<Duration>,
    pub(crate) prepared: Mutex<Prepared>,
    pub(crate) partial: PartialRuns,
    closed: AtomicBool,
    /// The version of the graph that was sent.
    version: AtomicU64,
    sent: Mutex<Sent>,
}

impl Place {
    pub(crate) fn session(&self) -> &dyn AnySession {
        match self {
            Place::Here(session) => session,
            Place::Server(session) => &**session,
        }
    }

    fn open(
        graph: &Shared,
        options: &TF_SessionOptions,
    ) -> Result<(Place, Option<Duration>), Failure> {
        let (session, timeout) = tenon_cluster::session_options(&options.config)?;
        let place = match options.target.as_str() {
            "" => Place::Here(tenon_runtime::Session::new(graph.runtime()?, session)?),
            target if target.starts_with("grpc://") => {
                Place::Server(Box::new(tenon_cluster::Session::connect_with(
                    target,
                    GraphDef::default(),
                    options.config.clone(),
                )?))
            }
            other => {
                return Err(Failure::new(
                    Code::NOT_FOUND,
                    format!("target '{other}': expected an empty one or grpc://host:port"),
                ));
            }
        };
        Ok((place, timeout))
    }
}

impl TF_Session {
    /// Opens a session over a graph.
    ///
    /// # Errors
    /// Null; a target or options that make no sense.
    pub(crate) fn new(
        graph: Option<&TF_Graph>,
        options: Option<&TF_SessionOptions>,
    ) -> Result<TF_Session, Failure> {
        let graph = shared(graph)?;
        let options = options.ok_or_else(|| Failure::null("the session's options"))?;
        TF_Session::over(graph, options)
    }

    /// Opens a session over a graph.
    ///
    /// # Errors
    /// A target or options that make no sense; the server cannot be reached.
    pub(crate) fn over(
        graph: &Arc<Shared>,
        options: &TF_SessionOptions,
    ) -> Result<TF_Session, Failure> {
        let graph = Arc::clone(graph);
        let (place, timeout) = Place::open(&graph, options)?;
        Ok(TF_Session {
            graph,
            place,
            timeout,
            prepared: Mutex::ranked(rank::LEAF, Prepared::default()),
            partial: PartialRuns::default(),
            closed: AtomicBool::new(false),
            version: AtomicU64::new(u64::MAX),
            sent: Mutex::ranked(rank::LEAF, Sent::default()),
        })
    }

    /// Sends what the graph has gained.
    ///
    /// # Errors
    /// The session is closed, or does not take a node; all of it is sent again before the next step.
    #[inline]
    pub(crate) fn follow(&self) -> Result<(), Failure> {
        if self.closed.load(Ordering::Relaxed) {
            return Err(Failure::new(Code::CANCELLED, "the session was closed: open another one"));
        }
        if self.version.load(Ordering::Acquire) == self.graph.version() {
            return Ok(());
        }
        self.send()
    }

    #[cold]
    fn send(&self) -> Result<(), Failure> {
        // The lock of the graph is kept, so that no other thread sends the same nodes.
        let state = self.graph.lock();
        let version = self.graph.version();
        if self.version.load(Ordering::Acquire) == version {
            return Ok(());
        }
        let (def, sent) = self.news(&state)?;
        if let Some(def) = def {
            self.place.session().add_nodes(&def)?;
        }
        *self.sent.lock() = sent;
        self.version.store(version, Ordering::Release);
        Ok(())
    }

    /// The message of what was not sent yet, if there is anything, and what was sent after it.
    fn news(&self, state: &State) -> Result<(Option<GraphDef>, Sent), Failure> {
        let before = self.sent.lock();
        let graph = &state.graph;
        let nodes = before.nodes..graph.len();
        let node = nodes.map(|at| graph.to_node_def(NodeId(at as u32)));
        let node = node.collect::<Result<Vec<_>, _>>()?;
        let library = graph.shared_library();
        let is_same = match (library, &before.library) {
            (Some(now), Some(then)) => Arc::ptr_eq(now, then),
            (now, then) => now.is_none() && then.is_none(),
        };
        let after = Sent { nodes: graph.len(), library: library.cloned(), versions: true };
        if node.is_empty() && is_same {
            return Ok((None, Sent { versions: before.versions, ..after }));
        }
        let def = GraphDef {
            node,
            library: if is_same { None } else { graph.library().cloned() },
            versions: if before.versions { None } else { graph.versions().cloned() },
            ..GraphDef::default()
        };
        Ok((Some(def), after))
    }

    /// Whether it was closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Cancels the steps in flight and refuses new ones.
    pub(crate) fn close(&self) -> Result<(), Failure> {
        self.closed.store(true, Ordering::Relaxed);
        self.partial.clear();
        Ok(self.place.session().close_session()?)
    }
}

/// The session.
///
/// # Errors
/// Null.
pub(crate) fn session(session: Option<&TF_Session>) -> Result<&TF_Session, Failure> {
    session.ok_or_else(|| Failure::null("the session"))
}

api! {
    /// Opens a session over a graph, which may grow while the session lives.
    fn TF_NewSession(
        graph: Option<&TF_Graph>,
        options: Option<&TF_SessionOptions>,
        status: Option<&mut TF_Status>,
    ) -> Option<Box<TF_Session>> [status] {
        TF_Session::new(graph, options).map(|session| Some(Box::new(session)))
    }

    /// Closes a session: its steps are cancelled, and it refuses new ones.
    fn TF_CloseSession(found: Option<&TF_Session>, status: Option<&mut TF_Status>) [status] {
        session(found)?.close()
    }

    /// Closes and deletes a session.
    fn TF_DeleteSession(session: Option<Box<TF_Session>>, status: Option<&mut TF_Status>) [status] {
        session.map_or(Ok(()), |session| session.close())
    }
}
