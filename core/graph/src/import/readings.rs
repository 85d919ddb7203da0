//! The outputs of unregistered ops: only their readers tell how many there are and of which types.

use super::check_outputs;
use crate::{Graph, GraphError, Node, NodeId, Output};
use std::{collections::BTreeMap, sync::Arc};
use tenon_framework::DType;

/// The types of these outputs, as their readers expect them.
#[derive(Debug, Default)]
pub(crate) struct Readings {
    types: BTreeMap<Output, DType>,
}

impl Readings {
    /// The type of an output of an unregistered op: as an earlier reader expects it, or else as
    /// this reader does.
    pub(super) fn read(&mut self, source: &Node, output: Output, expected: DType) -> DType {
        let known = source.outputs().get(output.output as usize).copied();
        let known = known.unwrap_or(DType::INVALID);
        let found = self.types.entry(output).or_insert(known);
        // A reader of the value can read a reference too.
        let closer = expected.is_ref() && *found == expected.base();
        if *found == DType::INVALID || closer {
            *found = expected;
        }
        *found
    }

    /// Adds the outputs to their nodes. New nodes (`nodes`) are changed in place; changed copies of
    /// the graph's own nodes are returned, to replace them.
    ///
    /// # Errors
    /// A graph with more outputs than the limit. `outputs` is the number before the additions.
    pub(super) fn give(
        self,
        graph: &Graph,
        nodes: &mut [Node],
        mut outputs: usize,
    ) -> Result<Vec<(NodeId, Arc<Node>)>, GraphError> {
        let mut older: BTreeMap<NodeId, Node> = BTreeMap::new();
        for (Output { node: id, output }, dtype) in self.types {
            let node = match id.index().checked_sub(graph.len()) {
                Some(at) => &mut nodes[at],
                None => older.entry(id).or_insert_with(|| graph.node(id).clone()),
            };
            let wanted = output as usize + 1;
            outputs += wanted.saturating_sub(node.outputs().len());
            check_outputs(node, outputs)?;
            let types = &mut node.signature.outputs;
            if types.len() < wanted {
                types.resize(wanted, DType::INVALID);
            }
            types[output as usize] = dtype;
        }
        Ok(older.into_iter().map(|(id, node)| (id, Arc::new(node))).collect())
    }
}
