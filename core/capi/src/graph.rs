//! Graphs: nodes, their handles, and what is known of the shapes of their outputs.
//!
//! # Ownership
//! A [`TF_Graph`] and the sessions over it share a [`Shared`]; it frees the operations when the last of them is deleted.
//!
//! # Locks
//! The state of a graph has one lock, the outermost of the library. A session that follows a graph holds it while it takes over
//! new nodes.

use crate::{
    fail::Failure,
    operation::{OpRef, TF_Operation, TF_Output},
    process,
};
use std::{
    collections::HashMap,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
};
use tenon_framework::{
    registry::Registry,
    sync::{Mutex, MutexGuard, Rank},
};
use tenon_graph::{Graph, GraphBuilder, Inferred, NodeId, Output};
use tenon_proto::{FunctionDefLibrary, GraphDef, versions::own_versions};
use tenon_runtime::Runtime;

/// The rank of a graph's lock: outside of those of sessions, here and on a server.
const GRAPH: Rank = Rank(3);

/// A graph.
pub struct TF_Graph {
    pub(crate) shared: Arc<Shared>,
    /// For a part of a loop: what the loop will be a part of.
    pub(crate) parent: Option<Parent>,
}

/// What a loop will be a part of.
pub(crate) struct Parent {
    pub(crate) graph: Arc<Shared>,
    pub(crate) inputs: Vec<TF_Output>,
}

/// What a graph and its sessions share.
pub(crate) struct Shared {
    state: Mutex<State>,
    /// A number that every change of the graph increments.
    version: AtomicU64,
    /// The runtime; `None` for that of the process.
    runtime: Option<Runtime>,
}

/// The contents of a graph.
pub(crate) struct State {
    pub(crate) graph: Graph,
    pub(crate) shapes: Inferred,
    operations: Vec<OpRef>,
    readers: Readers,
    own: Weak<Shared>,
}

/// The readers of each node.
#[derive(Default)]
struct Readers {
    /// Data readers by output: node and number of the input.
    data: HashMap<Output, Vec<(NodeId, usize)>>,
    control: HashMap<NodeId, Vec<NodeId>>,
    /// The number of nodes whose inputs are listed.
    nodes: usize,
}

impl Shared {
    /// An empty graph over a runtime, or over that of the process.
    pub(crate) fn new(runtime: Option<Runtime>) -> Arc<Shared> {
        Arc::new_cyclic(|own| {
            let mut graph = Graph::new();
            graph.set_versions(own_versions());
            let state = State {
                graph,
                shapes: Inferred::default(),
                operations: Vec::new(),
                readers: Readers::default(),
                own: own.clone(),
            };
            Shared { state: Mutex::ranked(GRAPH, state), version: AtomicU64::new(0), runtime }
        })
    }

    /// The runtime with the graph's ops.
    ///
    /// # Errors
    /// That of the process does not start.
    pub(crate) fn runtime(&self) -> Result<&Runtime, Failure> {
        match &self.runtime {
            Some(runtime) => Ok(runtime),
            None => process::runtime(),
        }
    }

    /// The state, to read.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// The number of changes so far.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Changes the graph. If `change` fails, or a shape function refuses a new node, the graph stays as it was.
    pub(crate) fn change<T>(
        &self,
        change: impl FnOnce(&mut Graph, &Arc<Registry>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let registry = self.runtime()?.registry();
        let mut state = self.lock();
        let mut graph = state.graph.clone();
        let made = change(&mut graph, &registry)?;
        state.adopt(graph)?;
        self.version.fetch_add(1, Ordering::Release);
        Ok(made)
    }

    /// As [`Shared::change`], with a builder.
    pub(crate) fn build<T>(
        &self,
        build: impl FnOnce(&mut GraphBuilder<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.change(|graph, registry| {
            let mut builder = GraphBuilder::extending(std::mem::take(graph), registry);
            let made = build(&mut builder)?;
            *graph = builder.finish();
            Ok(made)
        })
    }

    /// Appends one node, without a copy of the graph. `build` gives the node as it was checked, and appends nothing itself.
    pub(crate) fn append(
        &self,
        build: impl FnOnce(&mut GraphBuilder<'_>) -> Result<tenon_graph::Node, Failure>,
    ) -> Result<OpRef, Failure> {
        let registry = self.runtime()?.registry();
        let mut state = self.lock();
        let mut builder = GraphBuilder::extending(std::mem::take(&mut state.graph), &registry);
        let node = build(&mut builder);
        let State { shapes, graph, .. } = &mut *state;
        let appended = node.and_then(|node| {
            let known = shapes.of_node(&node)?;
            shapes.push(known);
            Ok(builder.append(node))
        });
        *graph = builder.finish();
        let id = appended?;
        state.make_handles();
        self.version.fetch_add(1, Ordering::Release);
        Ok(state.operation(id))
    }

    /// Adds functions to the library.
    pub(crate) fn add_functions(&self, library: FunctionDefLibrary) -> Result<(), Failure> {
        self.change(|graph, registry| {
            let def = GraphDef { library: Some(library), ..GraphDef::default() };
            graph.extend(&def, registry)?;
            Ok(())
        })
    }
}

impl State {
    /// Takes over a graph that has further nodes, and infers their shapes.
    fn adopt(&mut self, graph: Graph) -> Result<(), Failure> {
        let before = self.shapes.len();
        if let Err(error) = self.shapes.follow(&graph) {
            self.shapes.truncate(before);
            return Err(error.into());
        }
        // The inputs of a node that was there may be others now, where a loop was closed.
        self.readers = Readers::default();
        self.graph = graph;
        self.make_handles();
        Ok(())
    }

    /// Makes the handles of new nodes.
    fn make_handles(&mut self) {
        let nodes = self.graph.shared_nodes();
        for (at, node) in nodes.iter().enumerate().skip(self.operations.len()) {
            let id = NodeId(at as u32);
            let operation = TF_Operation::new(self.own.clone(), id, Arc::clone(node));
            self.operations.push(OpRef::new(operation));
        }
    }

    /// The handle of a node.
    pub(crate) fn operation(&self, id: NodeId) -> OpRef {
        self.operations[id.index()]
    }

    /// The handle of a node by number.
    pub(crate) fn operation_at(&self, at: usize) -> Option<OpRef> {
        self.operations.get(at).copied()
    }

    /// An output as C refers to it.
    pub(crate) fn output(&self, output: Output) -> TF_Output {
        TF_Output::new(self.operation(output.node), output.output)
    }

    fn read(&mut self) -> &Readers {
        let readers = &mut self.readers;
        for (id, node) in self.graph.nodes().skip(readers.nodes) {
            for (at, input) in node.inputs.iter().enumerate() {
                readers.data.entry(*input).or_default().push((id, at));
            }
            for source in &node.control_inputs {
                readers.control.entry(*source).or_default().push(id);
            }
        }
        readers.nodes = self.graph.len();
        readers
    }

    /// The data readers of an output: node and number of the input.
    pub(crate) fn readers(&mut self, output: Output) -> &[(NodeId, usize)] {
        self.read().data.get(&output).map_or(&[], Vec::as_slice)
    }

    /// The nodes that wait for a node.
    pub(crate) fn waiting(&mut self, id: NodeId) -> &[NodeId] {
        self.read().control.get(&id).map_or(&[], Vec::as_slice)
    }
}

impl Drop for State {
    fn drop(&mut self) {
        for operation in self.operations.drain(..) {
            // SAFETY: the graph and its sessions are gone, after which no caller in C uses its operations.
            unsafe { operation.free() };
        }
    }
}

/// The shared state of a graph.
///
/// # Errors
/// Null.
pub(crate) fn shared(graph: Option<&TF_Graph>) -> Result<&Arc<Shared>, Failure> {
    graph.map(|graph| &graph.shared).ok_or_else(|| Failure::null("the graph"))
}

api! {
    /// Makes an empty graph.
    fn TF_NewGraph() -> Option<Box<TF_Graph>> {
        Some(Box::new(TF_Graph { shared: Shared::new(None), parent: None }))
    }

    /// Deletes a graph. Its operations stay valid until its sessions are deleted.
    fn TF_DeleteGraph(graph: Option<Box<TF_Graph>>) { drop(graph) }
}
