//! The tensors and nodes that a signature names.

use crate::{error::RuntimeError, options::CallableOptions};
use std::collections::HashSet;
use tenon_graph::{Graph, GraphError, NodeId, Output};

/// The tensors and nodes that a signature names.
pub(crate) struct Named {
    pub feeds: Vec<Output>,
    pub fetches: Vec<Output>,
    pub targets: Vec<NodeId>,
}

impl Named {
    pub fn find(graph: &Graph, signature: &CallableOptions) -> Result<Named, RuntimeError> {
        let feeds = tensors(graph, "feed", &signature.feeds)?;
        let fetches = tensors(graph, "fetch", &signature.fetches)?;
        let mut targets = Vec::new();
        for name in &signature.targets {
            targets.push(graph.target(name).map_err(|_| unknown(graph, "target", name))?);
        }
        let mut seen = HashSet::with_capacity(feeds.len());
        for (at, feed) in feeds.iter().enumerate() {
            if !seen.insert(*feed) {
                return Err(RuntimeError::FedTwice { name: signature.feeds[at].clone() });
            }
        }
        Ok(Named { feeds, fetches, targets })
    }
}

fn tensors(
    graph: &Graph,
    what: &'static str,
    names: &[String],
) -> Result<Vec<Output>, RuntimeError> {
    let tensor = |name: &String| {
        graph.tensor(name).map_err(|error| match error {
            GraphError::UnreadOutput { .. } => error.into(),
            _ => unknown(graph, what, name),
        })
    };
    names.iter().map(tensor).collect()
}

/// The error for an unknown name, with similar names.
fn unknown(graph: &Graph, what: &'static str, name: &str) -> RuntimeError {
    let wanted = name.trim_start_matches('^').split(':').next().unwrap_or(name);
    let mut near: Vec<(usize, &str)> = graph
        .nodes()
        .map(|(_, node)| (common_prefix(&node.name, wanted), node.name.as_str()))
        .collect();
    near.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
    let shown: Vec<&str> = near.iter().take(5).map(|(_, name)| *name).collect();
    let nearest = if shown.is_empty() { "no nodes".to_owned() } else { shown.join(", ") };
    RuntimeError::UnknownTensor { what, name: name.to_owned(), nearest }
}

fn common_prefix(a: &str, b: &str) -> usize {
    a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count()
}
