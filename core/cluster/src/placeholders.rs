//! The shapes of a session's placeholders, which its client compares with what it feeds.
//!
//! A server of TensorFlow's protocol does not look at them: a feed may have any shape there. The session from Rust compares
//! them itself, so that a program gets the same error on a server as in its own process.

use crate::error::ClusterError;
use std::collections::HashMap;
use tenon_framework::{PartialShape, Tensor};
use tenon_proto::{
    AttrValueKind, GraphDef, NodeDef, convert::shape_from_proto,
    versions::LAST_PRODUCER_OF_SCALARS_FOR_ANY_SHAPE,
};
use tenon_runtime::RuntimeError;

/// The ops of nodes that are there to be fed.
const OPS: [&str; 3] = ["Placeholder", "PlaceholderV2", "PlaceholderWithDefault"];

/// The shapes of placeholders, by the names of their nodes. One of any shape is not there.
#[derive(Default)]
pub(crate) struct Placeholders(HashMap<String, PartialShape>);

/// The shape that a node says of what it is fed, if it is a placeholder of some shape.
fn shape_of(node: &NodeDef, producer: i32) -> Option<PartialShape> {
    if !OPS.contains(&node.op.as_str()) {
        return None;
    }
    let Some(AttrValueKind::Shape(shape)) = &node.attr.get("shape")?.value else { return None };
    // A shape that makes no sense is an error of the server.
    let shape = shape_from_proto(shape).ok()?;
    let is_any = shape.rank() == Some(0)
        && node.op == "Placeholder"
        && producer <= LAST_PRODUCER_OF_SCALARS_FOR_ANY_SHAPE;
    (!is_any && shape.rank().is_some()).then_some(shape)
}

impl Placeholders {
    /// The placeholders of a graph.
    pub fn of(graph: &GraphDef) -> Placeholders {
        let producer = graph.versions.as_ref().map_or(0, |versions| versions.producer);
        let shapes = graph.node.iter();
        let shapes = shapes.filter_map(|node| Some((node.name.clone(), shape_of(node, producer)?)));
        Placeholders(shapes.collect())
    }

    /// Adds those of another graph.
    pub fn add(&mut self, others: Placeholders) {
        self.0.extend(others.0);
    }

    /// Checks what is fed.
    ///
    /// # Errors
    /// The first feed of another shape than its placeholder says.
    pub fn check(&self, feeds: &[(&str, Tensor)]) -> Result<(), ClusterError> {
        for (name, tensor) in feeds {
            let node = name.strip_suffix(":0").unwrap_or(name);
            if let Some(shape) = self.0.get(node)
                && !shape.accepts(tensor.shape())
            {
                let (expected, found) = (shape.clone(), Box::new(*tensor.shape()));
                let error = RuntimeError::FeedShape { name: (*name).to_owned(), expected, found };
                let (code, message) = (error.code(), error.to_string());
                return Err(ClusterError::Refused { code, message });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_framework::Code;
    use tenon_proto::{AttrValue, Dim, TensorShapeProto, VersionDef};

    fn placeholder(op: &str, name: &str, dims: &[i64]) -> NodeDef {
        let dim = dims.iter().map(|&size| Dim { size, ..Dim::default() }).collect();
        let shape = TensorShapeProto { dim, ..TensorShapeProto::default() };
        let attr = AttrValue { value: Some(AttrValueKind::Shape(shape)) };
        NodeDef {
            name: name.to_owned(),
            op: op.to_owned(),
            attr: [("shape".to_owned(), attr)].into_iter().collect(),
            ..NodeDef::default()
        }
    }

    fn graph(producer: i32, node: NodeDef) -> Placeholders {
        let versions = Some(VersionDef { producer, ..VersionDef::default() });
        Placeholders::of(&GraphDef { node: vec![node], versions, ..GraphDef::default() })
    }

    #[test]
    fn a_feed_has_the_shape_of_its_placeholder() {
        let mut known = graph(2000, placeholder("Placeholder", "x", &[-1, 2]));
        known.add(graph(2000, placeholder("PlaceholderWithDefault", "d", &[1])));
        known.add(graph(2000, placeholder("Identity", "i", &[1])));
        let pair = Tensor::from_slice(&[1, 2], &[1f32, 2.0]).unwrap();
        let row = Tensor::from_slice(&[2], &[1f32, 2.0]).unwrap();
        known.check(&[("x", pair.clone()), ("x:0", pair), ("i", row.clone())]).unwrap();
        for name in ["x", "x:0", "d"] {
            let error = known.check(&[(name, row.clone())]).unwrap_err();
            assert_eq!(error.code(), Code::INVALID_ARGUMENT);
            assert!(error.to_string().contains("found [2]"), "{error}");
        }
    }

    #[test]
    fn a_scalar_of_an_old_graph_stands_for_any_shape() {
        let row = Tensor::from_slice(&[2], &[1f32, 2.0]).unwrap();
        let of = |producer| graph(producer, placeholder("Placeholder", "x", &[]));
        of(21).check(&[("x", row.clone())]).unwrap();
        of(22).check(&[("x", row)]).unwrap_err();
    }
}
