//! Outputs of nodes whose ops nobody registered: how many there are, and of which types, only their readers say.

use super::check_outputs;
use crate::{Graph, GraphError, Node, NodeId, Output};
use std::{collections::BTreeMap, sync::Arc};
use tenon_framework::DType;

/// The types of such outputs, as their readers expect them.
#[derive(Debug, Default)]
pub(crate) struct Readings {
    types: BTreeMap<Output, DType>,
}

impl Readings {
    /// The type of an output of a node whose op nobody registered: as earlier readers expect it, or else as this
    /// one does.
    pub(super) fn read(&mut self, source: &Node, output: Output, expected: DType) -> DType {
        let known = source.outputs().get(output.output as usize).copied();
        let known = known.unwrap_or(DType::INVALID);
        let found = self.types.entry(output).or_insert(known);
        // A reference serves who wants a value too.
        let closer = expected.is_ref() && *found == expected.base();
        if *found == DType::INVALID || closer {
            *found = expected;
        }
        *found
    }

    /// Gives the nodes the outputs that are read: those of `nodes`, which are to follow the nodes of the graph, at once;
    /// the graph's own come back, to be put in their places.
    ///
    /// # Errors
    /// More outputs than a graph may have. `outputs` counts those there are.
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
