//! Sessions: in this process, or on a server.

use crate::{
    attrs::shape_object,
    blocking::{blocking, check_fork, end},
    callable::{Prepared, PyCallable},
    dtypes::dtype_object,
    fail::Fail,
    graph::PyGraph,
    partial::PyPartialRun,
    runtime::runtime,
};
use pyo3::{prelude::*, types::PyDict};
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};
use tenon_framework::DType;
use tenon_graph::{Graph, NodeId};
use tenon_proto::{ConfigProto, GraphDef, NodeDef};
use tenon_runtime::{AnySession, CallableOptions, Session, SessionOptions};

/// Where steps run.
#[derive(Clone)]
pub(crate) enum Place {
    Here(Arc<Session>),
    Server(Arc<tenon_cluster::Session>),
}

impl Place {
    /// The session, for code that serves both kinds.
    pub fn any(&self) -> Arc<dyn AnySession> {
        match self {
            Place::Here(session) => session.clone(),
            Place::Server(session) => session.clone(),
        }
    }
}

/// What of the graph the session has.
struct Taken {
    nodes: usize,
    functions: usize,
    changes: u64,
}

/// A session of this process or of a server. `tenon.Session` is the class for programs.
#[pyclass(frozen, name = "Session", module = "tenon._native")]
pub(crate) struct PySession {
    place: Mutex<Option<Place>>,
    graph: Py<PyGraph>,
    taken: Mutex<Taken>,
    closed: AtomicBool,
}

/// The nodes that a graph has beyond the first ones.
fn new_nodes(graph: &Graph, from: usize) -> Result<GraphDef, Fail> {
    let ids = from as u32..graph.len() as u32;
    let nodes: Vec<NodeDef> =
        ids.map(|at| Ok(graph.to_node_def(NodeId(at))?)).collect::<Result<_, Fail>>()?;
    Ok(GraphDef {
        node: nodes,
        library: graph.library().cloned(),
        versions: graph.versions().cloned(),
        ..GraphDef::default()
    })
}

fn functions(graph: &Graph) -> usize {
    graph.library().map_or(0, |library| library.function.len() + library.gradient.len())
}

impl PySession {
    /// Where steps run.
    ///
    /// # Errors
    /// The session is closed, or the process was forked.
    pub fn place(&self) -> Result<Place, Fail> {
        check_fork()?;
        let place = self.place.lock().unwrap_or_else(PoisonError::into_inner).clone();
        place.ok_or_else(|| Fail::precondition("the session is closed: open another one"))
    }

    /// Gives the session the nodes that were added to the graph since.
    ///
    /// # Errors
    /// A node that the session has was changed, or the session refuses a new one.
    pub fn follow(&self, py: Python<'_>) -> Result<Place, Fail> {
        let place = self.place()?;
        let graph = self.graph.get();
        blocking(py, || {
            let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
            let (def, nodes, functions) = {
                let state = graph.lock()?;
                if state.changes != taken.changes {
                    return Err(Fail::precondition(
                        "nodes that the session has were changed in the graph since, by gradients of loops or branches: open \
                         another session",
                    ));
                }
                let (nodes, functions) = (state.graph.len(), functions(&state.graph));
                if nodes == taken.nodes && functions == taken.functions {
                    return Ok(());
                }
                (new_nodes(&state.graph, taken.nodes)?, nodes, functions)
            };
            match &place {
                Place::Here(session) => session.extend_owned(def)?,
                Place::Server(session) => session.extend(def)?,
            }
            (taken.nodes, taken.functions) = (nodes, functions);
            Ok(())
        })?;
        Ok(place)
    }

    /// The types of tensors of the graph.
    fn dtypes(&self, names: &[String]) -> Result<Vec<DType>, Fail> {
        let state = self.graph.get().lock()?;
        let dtype = |name: &String| Ok(state.graph.dtype(state.graph.tensor(name)?).base());
        names.iter().map(dtype).collect()
    }
}

fn options(
    device: Option<String>,
    soft_placement: Option<bool>,
    keep_denormals: bool,
    knobs: BTreeMap<String, String>,
) -> SessionOptions {
    SessionOptions { device, soft_placement, keep_denormals, knobs, ..SessionOptions::default() }
}

#[pymethods]
impl PySession {
    #[new]
    #[pyo3(signature = (target, graph, *, device=None, soft_placement=None, keep_denormals=false, knobs=BTreeMap::new()))]
    fn new(
        py: Python<'_>,
        target: Option<String>,
        graph: Py<PyGraph>,
        device: Option<String>,
        soft_placement: Option<bool>,
        keep_denormals: bool,
        knobs: BTreeMap<String, String>,
    ) -> Result<PySession, Fail> {
        let runtime = runtime(py)?;
        let own = graph.get();
        let (place, taken) = blocking(py, || {
            let (def, taken) = {
                let state = own.lock()?;
                let taken = Taken {
                    nodes: state.graph.len(),
                    functions: functions(&state.graph),
                    changes: state.changes,
                };
                (state.graph.to_graph_def()?, taken)
            };
            let place = match target {
                None => {
                    let options = options(device, soft_placement, keep_denormals, knobs);
                    let session = Session::new(runtime, options)?;
                    session.extend_owned(def)?;
                    Place::Here(Arc::new(session))
                }
                Some(target) => {
                    let config = ConfigProto {
                        allow_soft_placement: soft_placement.unwrap_or(false),
                        ..ConfigProto::default()
                    };
                    let session = tenon_cluster::Session::connect_with(&target, def, config)?;
                    Place::Server(Arc::new(session))
                }
            };
            Ok((place, taken))
        })?;
        let (place, taken) = (Mutex::new(Some(place)), Mutex::new(taken));
        Ok(PySession { place, graph, taken, closed: AtomicBool::new(false) })
    }

    /// Prepares a step. `single` makes the callable return the only fetch itself.
    #[pyo3(signature = (feeds, fetches, targets=vec![], *, single=false, raw=false))]
    fn prepare(
        slf: &Bound<'_, Self>,
        py: Python<'_>,
        feeds: Vec<String>,
        fetches: Vec<String>,
        targets: Vec<String>,
        single: bool,
        raw: bool,
    ) -> Result<PyCallable, Fail> {
        let session = slf.get();
        let place = session.follow(py)?;
        let dtypes = session.dtypes(&feeds)?;
        let names = CallableOptions { feeds, fetches, targets, ..CallableOptions::default() };
        let prepared = blocking(py, || Prepared::new(&place, names))?;
        Ok(PyCallable::new(prepared, dtypes, slf.clone().unbind(), single, raw))
    }

    /// Begins a step that is fed and fetched in parts.
    #[pyo3(signature = (feeds, fetches, targets=vec![]))]
    fn partial_run(
        &self,
        py: Python<'_>,
        feeds: Vec<String>,
        fetches: Vec<String>,
        targets: Vec<String>,
    ) -> Result<PyPartialRun, Fail> {
        let place = self.follow(py)?;
        let dtypes = self.dtypes(&feeds)?;
        let Place::Here(session) = place else {
            return Err(Fail::new(
                tenon_framework::Code::UNIMPLEMENTED,
                "partial runs are for sessions in this process",
            ));
        };
        let names = CallableOptions { feeds, fetches, targets, ..CallableOptions::default() };
        let run = blocking(py, || Ok(session.partial_run(&names)?))?;
        Ok(PyPartialRun::new(run, names.feeds, dtypes))
    }

    /// The devices on which steps run.
    fn devices(&self, py: Python<'_>) -> Result<Vec<String>, Fail> {
        match self.place()? {
            Place::Here(_) => Ok(crate::runtime::devices(py)?.into_iter().map(|it| it.0).collect()),
            Place::Server(session) => {
                let devices = blocking(py, || Ok(session.devices()?))?;
                Ok(devices.into_iter().map(|device| device.name).collect())
            }
        }
    }

    /// The nodes of the plan of a step, with device, plugin and label of the kernel of each.
    fn plan<'py>(
        &self,
        py: Python<'py>,
        feeds: Vec<String>,
        fetches: Vec<String>,
        targets: Vec<String>,
    ) -> Result<Vec<Bound<'py, PyDict>>, Fail> {
        let Place::Here(session) = self.follow(py)? else { return Ok(Vec::new()) };
        let names = CallableOptions { feeds, fetches, targets, ..CallableOptions::default() };
        let nodes = blocking(py, || Ok(session.callable(names)?.nodes()?))?;
        let one = |node: &tenon_runtime::NodeReport| {
            let made = PyDict::new(py);
            made.set_item("name", &node.name)?;
            made.set_item("op", &node.op)?;
            made.set_item("device", &node.device)?;
            made.set_item("plugin", &node.plugin)?;
            made.set_item("label", &node.label)?;
            let outputs: Vec<_> = node
                .outputs
                .iter()
                .map(|(dtype, shape)| Ok((dtype_object(py, dtype.base())?, shape_object(shape))))
                .collect::<PyResult<_>>()?;
            made.set_item("outputs", outputs)?;
            Ok(made)
        };
        Ok(nodes.iter().map(one).collect::<PyResult<_>>()?)
    }

    /// Takes over plugins that were loaded since, and keeps variables.
    fn refresh(&self, py: Python<'_>) -> Result<(), Fail> {
        match self.place()? {
            Place::Here(session) => blocking(py, || Ok(session.refresh()?)),
            Place::Server(_) => Ok(()),
        }
    }

    #[getter]
    pub fn closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Cancels the steps in flight, and refuses new ones. Later calls do nothing.
    fn close(&self, py: Python<'_>) -> Result<(), Fail> {
        check_fork()?;
        let place = self.place.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(place) = place else { return Ok(()) };
        self.closed.store(true, Ordering::Release);
        blocking(py, || Ok(place.any().close_session()?))
    }
}

impl Drop for PySession {
    fn drop(&mut self) {
        let place = self.place.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        end(place);
    }
}
