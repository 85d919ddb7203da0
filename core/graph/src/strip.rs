//! Strips attributes that have their default values.

use tenon_framework::registry::Registry;
use tenon_proto::{GraphDef, convert::attr_to_proto};

/// Removes from each node the attributes that have their op's default value, as TensorFlow's
/// `strip_default_attrs` does. A reader whose ops have the same defaults reads the same graph.
/// Nodes of unknown ops are unchanged.
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
