//! Attributes of nodes that their ops do not declare.

use crate::{Graph, Node};
use std::ops::Range;
use tenon_framework::text::cut;

impl Graph {
    /// The attributes of the nodes in this range that their ops do not declare. Each is kept in the
    /// node's message and has no effect. Names that begin with `_` are not listed.
    pub fn ignored_attrs(&self, nodes: Range<u32>) -> impl Iterator<Item = (&Node, &str)> {
        let (start, count) = (nodes.start as usize, nodes.len());
        let nodes = self.nodes.iter().skip(start).take(count);
        nodes.filter(|node| !node.op.is_missing()).flat_map(|node| {
            let names = node.origin.iter().flat_map(|origin| origin.attr.keys());
            let ignored = |name: &&String| !name.starts_with('_') && node.op.attr(name).is_none();
            names.filter(ignored).map(|name| (&**node, name.as_str()))
        })
    }

    /// One warning for all such attributes; `None` if there are none.
    pub fn ignored_attrs_warning(&self, nodes: Range<u32>) -> Option<String> {
        const SHOWN: usize = 3;
        let mut ignored = self.ignored_attrs(nodes);
        let text = |(node, attr): (&Node, &str)| {
            let (attr, name, op) = (cut(attr), cut(&node.name), cut(&node.op.name));
            format!("'{attr}' of node '{name}' (op '{op}')")
        };
        let shown: Vec<String> = ignored.by_ref().take(SHOWN).map(text).collect();
        let more = match ignored.count() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        (!shown.is_empty()).then(|| {
            format!(
                "attributes that their ops do not have are ignored: {}{more}; the graph may come from a newer \
                 TensorFlow",
                shown.join(", ")
            )
        })
    }
}
