//! Writing less: attributes that say what they would say by default.

use tenon_framework::registry::Registry;
use tenon_proto::{GraphDef, convert::attr_to_proto};

/// Takes out of each node the attributes that have their op's default value, as TensorFlow's `strip_default_attrs` does.
/// Read by ops with the same defaults, the graph means what it meant. Nodes of unknown ops stay as they are.
pub fn strip_default_attrs(graph: &mut GraphDef, registry: &Registry) {
    for node in &mut graph.node {
        let Some(op) = registry.op(&node.op) else { continue };
        for attr in &op.attrs {
            let default = attr.default.as_ref().and_then(|value| attr_to_proto(value).ok());
            if default.is_some() && node.attr.get(&attr.name) == default.as_ref() {
                node.attr.remove(&attr.name);
            }
        }
    }
}
