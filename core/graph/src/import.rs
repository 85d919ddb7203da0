//! Converts `GraphDef` messages to valid graphs.
//!
//! [`Graph::extend`] makes passes over the new nodes: names; ops, attributes and signatures; edges
//! and their types; cycles. Each pass follows the order of the message and stops at the first
//! error, so the same message always gives the same error. A message with an error leaves the graph
//! unchanged.
//!
//! An unregistered op is not an error here. Of its node, everything except the op's attributes and
//! types is checked, and a step that needs the node is refused ([`Graph::check_ops`]).

mod cycles;
mod edges;
mod nodes;
mod readings;

pub(crate) use cycles::check as check_cycles;
pub(crate) use edges::{Wiring, check_types};
pub(crate) use nodes::{Resolver, unknown_op};
pub(crate) use readings::Readings;

use crate::{Graph, GraphError, Node, NodeId, names::is_valid_node_name};
use std::{collections::HashMap, ops::Range, sync::Arc};
use tenon_framework::registry::Registry;
use tenon_proto::{
    FunctionDefLibrary, FunctionLibrary, GraphDef, VersionDef,
    convert::{Decoder, MAX_EXPANSION_BYTES},
    versions::check_graph_versions,
};

/// Options of an import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportOptions {
    /// Number of bytes, beyond the encoded ones, to which the message's values may expand. The
    /// default is 2 GiB.
    pub expansion_limit: usize,
}

impl Default for ImportOptions {
    fn default() -> ImportOptions {
        ImportOptions { expansion_limit: MAX_EXPANSION_BYTES }
    }
}

impl Graph {
    /// Creates a graph from a message.
    ///
    /// # Errors
    /// As [`Graph::extend`].
    pub fn import(def: &GraphDef, registry: &Registry) -> Result<Graph, GraphError> {
        let mut graph = Graph::new();
        graph.extend(def, registry)?;
        Ok(graph)
    }

    /// Adds the nodes of a message, which may refer to existing nodes, and its functions. Returns
    /// the numbers of the new nodes, in the order of the message.
    ///
    /// # Errors
    /// The first error found; it names the node. The graph is then unchanged.
    pub fn extend(
        &mut self,
        def: &GraphDef,
        registry: &Registry,
    ) -> Result<Range<u32>, GraphError> {
        self.extend_with(def, registry, &ImportOptions::default())
    }

    /// Like [`Graph::extend`], with options.
    ///
    /// # Errors
    /// As [`Graph::extend`].
    pub fn extend_with(
        &mut self,
        def: &GraphDef,
        registry: &Registry,
        options: &ImportOptions,
    ) -> Result<Range<u32>, GraphError> {
        let merged = Merged::new(self, def)?;
        let names = self.check_names(def)?;
        let mut resolver = resolver(registry, &merged, options);
        let nodes = self.resolve(def.node.iter().map(|node| resolver.resolve(node)))?;
        self.append(def, names, nodes, merged)
    }

    /// Like [`Graph::extend`], but consumes the message and frees each constant once it is read, so
    /// that the constants are never all in memory twice.
    ///
    /// # Errors
    /// As [`Graph::extend`].
    pub fn extend_owned(
        &mut self,
        mut def: GraphDef,
        registry: &Registry,
    ) -> Result<Range<u32>, GraphError> {
        let merged = Merged::new(self, &def)?;
        let names = self.check_names(&def)?;
        let options = ImportOptions::default();
        let mut resolver = resolver(registry, &merged, &options);
        let resolved = def.node.iter_mut().map(|node| {
            let resolved = resolver.resolve(node);
            node.attr.clear();
            resolved
        });
        let nodes = self.resolve(resolved)?;
        self.append(&def, names, nodes, merged)
    }

    /// Appends the resolved nodes.
    fn append(
        &mut self,
        def: &GraphDef,
        names: HashMap<String, NodeId>,
        mut nodes: Vec<Node>,
        merged: Merged,
    ) -> Result<Range<u32>, GraphError> {
        let older = self.wire(def, &names, &mut nodes)?;
        let first = self.nodes.len() as u32;
        check_cycles(&nodes, first)?;
        older.into_iter().for_each(|(id, node)| self.nodes[id.index()] = node);
        self.names.extend(names);
        self.nodes.extend(nodes.into_iter().map(Arc::new));
        self.library = merged.library;
        self.versions = merged.versions;
        self.version = self.version.max(def.version);
        append_debug_info(&mut self.debug_info, def.debug_info.as_deref());
        Ok(first..self.nodes.len() as u32)
    }

    fn count_outputs(&self) -> usize {
        self.nodes.iter().map(|node| node.outputs().len()).sum()
    }

    /// Checks and counts the resolved nodes, which have no inputs yet.
    fn resolve(
        &self,
        resolved: impl Iterator<Item = Result<Node, GraphError>>,
    ) -> Result<Vec<Node>, GraphError> {
        let mut outputs = self.count_outputs();
        let resolve = |node: Result<Node, GraphError>| {
            let node = node?;
            outputs += node.outputs().len();
            check_outputs(&node, outputs)?;
            Ok(node)
        };
        resolved.map(resolve).collect()
    }

    /// Sets the inputs of the new nodes, and the outputs of unregistered ops that they read.
    /// Returns the existing nodes that gained outputs.
    fn wire(
        &self,
        def: &GraphDef,
        names: &HashMap<String, NodeId>,
        nodes: &mut [Node],
    ) -> Result<Vec<(NodeId, Arc<Node>)>, GraphError> {
        let wiring = Wiring { graph: self, names, nodes };
        let inputs =
            def.node.iter().map(|node| wiring.resolve(node)).collect::<Result<Vec<_>, _>>()?;
        let mut readings = Readings::default();
        for (node, inputs) in wiring.nodes.iter().zip(&inputs) {
            check_types(&wiring, node, &inputs.data, &mut readings)?;
        }
        for (node, inputs) in nodes.iter_mut().zip(inputs) {
            node.inputs = inputs.data;
            node.control_inputs = inputs.control;
        }
        let new: usize = nodes.iter().map(|node| node.outputs().len()).sum();
        let outputs = self.count_outputs() + new;
        readings.give(self, nodes, outputs)
    }

    fn check_names(&self, def: &GraphDef) -> Result<HashMap<String, NodeId>, GraphError> {
        let total = self.nodes.len() + def.node.len();
        if u32::try_from(total).is_err() {
            return Err(GraphError::TooManyNodes { found: total });
        }
        let mut names = HashMap::with_capacity(def.node.len());
        for (at, node) in def.node.iter().enumerate() {
            self.check_name(&node.name, &node.op)?;
            let id = NodeId((self.nodes.len() + at) as u32);
            if names.insert(node.name.clone(), id).is_some() {
                return Err(GraphError::DuplicateNode { node: node.name.clone() });
            }
        }
        Ok(names)
    }

    /// Checks the name of a node to be added.
    pub(crate) fn check_name(&self, name: &str, op: &str) -> Result<(), GraphError> {
        if !is_valid_node_name(name, op.starts_with('_')) {
            return Err(GraphError::NodeName { name: name.to_owned(), op: op.to_owned() });
        }
        if self.names.contains_key(name) {
            return Err(GraphError::DuplicateNode { node: name.to_owned() });
        }
        Ok(())
    }
}

/// Everything in a graph besides its nodes, merged from the graph and a message.
struct Merged {
    library: Option<Arc<FunctionLibrary>>,
    versions: Option<VersionDef>,
}

impl Merged {
    fn new(graph: &Graph, def: &GraphDef) -> Result<Merged, GraphError> {
        if let Some(versions) = &def.versions {
            check_graph_versions(versions).map_err(GraphError::Version)?;
        }
        Ok(Merged {
            library: merged_library(graph.library.as_ref(), def.library.as_ref())?,
            versions: merged_versions(graph.versions.as_ref(), def.versions.as_ref())?,
        })
    }
}

fn resolver<'a>(
    registry: &'a Registry,
    merged: &'a Merged,
    options: &ImportOptions,
) -> Resolver<'a> {
    let mut decoder = Decoder::new().with_expansion_limit(options.expansion_limit);
    if let Some(library) = &merged.library {
        decoder = decoder.with_library(library);
    }
    // As in TensorFlow, a graph without versions counts as version 0.
    let producer = merged.versions.as_ref().map_or(0, |versions| versions.producer);
    Resolver::new(registry, decoder, producer).with_functions(merged.library.as_deref())
}

/// Checks the total number of outputs: a node of a few bytes may declare many, and each takes
/// memory in every pass.
fn check_outputs(node: &Node, found: usize) -> Result<(), GraphError> {
    const MAX_OUTPUTS: usize = 1 << 24;
    if found <= MAX_OUTPUTS {
        return Ok(());
    }
    Err(GraphError::TooManyOutputs { node: node.name.clone(), limit: MAX_OUTPUTS, found })
}

/// Merges two libraries. A function in both must be the same.
fn merged_library(
    have: Option<&Arc<FunctionLibrary>>,
    add: Option<&FunctionDefLibrary>,
) -> Result<Option<Arc<FunctionLibrary>>, GraphError> {
    let Some(add) = add else { return Ok(have.cloned()) };
    let mut merged = have.cloned().unwrap_or_default();
    let outcome = Arc::make_mut(&mut merged).merge(add);
    outcome.map_err(|name| GraphError::FunctionConflict { name })?;
    Ok(Some(merged))
}

/// Merges versions. As in TensorFlow, all parts of a graph come from one producer version.
fn merged_versions(
    have: Option<&VersionDef>,
    add: Option<&VersionDef>,
) -> Result<Option<VersionDef>, GraphError> {
    match (have, add) {
        (Some(have), Some(add)) if have.producer != add.producer => {
            Err(GraphError::Versions { have: have.producer, found: add.producer })
        }
        (have, add) => Ok(have.or(add).cloned()),
    }
}

/// Joins two encoded messages, which merges them.
fn append_debug_info(have: &mut Option<Vec<u8>>, add: Option<&[u8]>) {
    if let Some(add) = add {
        have.get_or_insert_default().extend_from_slice(add);
    }
}
