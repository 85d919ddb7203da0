//! Graphs that TensorFlow wrote (tests/goldens/graphs): read, cut, and written back.

use crate::support::*;
use std::path::{Path, PathBuf};
use tenon_graph::{Graph, NodeId, PlacerOptions, infer_shapes, place, prune};
use tenon_proto::{GraphDef, read_graph_def};

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/goldens/graphs");
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|e| e == "pb")).collect();
    files.sort();
    assert!(files.len() >= 14, "found {}", files.len());
    files
}

fn read(path: &Path) -> GraphDef {
    read_graph_def(&std::fs::read(path).unwrap()[..]).unwrap().unwrap()
}

/// All graphs.
fn graphs() -> Vec<(String, GraphDef, Graph)> {
    let read = |path: PathBuf| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let def = read(&path);
        let graph =
            Graph::import(&def, registry()).unwrap_or_else(|error| panic!("{name}: {error}"));
        (name, def, graph)
    };
    files().into_iter().map(read).collect()
}

/// All nodes run.
fn everything(graph: &Graph) -> tenon_graph::Subgraph {
    let targets: Vec<NodeId> = graph.nodes().map(|(id, _)| id).collect();
    prune(graph, &[], &[], &targets).unwrap()
}

#[test]
fn what_tensorflow_wrote_is_written_back_unchanged() {
    for (name, def, graph) in graphs() {
        assert_eq!(graph.to_graph_def().unwrap(), def, "{name}");
        let mut owned = Graph::new();
        owned.extend_owned(def.clone(), registry()).unwrap();
        assert_eq!(owned.to_graph_def().unwrap(), def, "{name}, given away");
    }
}

#[test]
fn nodes_can_be_written_from_what_is_known_of_them() {
    for (name, def, mut graph) in graphs() {
        graph.forget_messages();
        let written = graph.to_graph_def().unwrap();
        assert_eq!(written.node.len(), def.node.len(), "{name}");
        let mut again = Graph::import(&written, registry()).unwrap();
        for ((_, a), (_, b)) in graph.nodes().zip(again.nodes()) {
            assert_eq!((&a.name, &a.inputs, &a.signature), (&b.name, &b.inputs, &b.signature));
            assert_eq!((&a.control_inputs, &a.device), (&b.control_inputs, &b.device));
        }
        again.forget_messages();
        assert_eq!(again.to_graph_def().unwrap(), written, "{name}");
    }
}

#[test]
fn inferred_shapes_agree_with_those_that_tensorflow_inferred() {
    let mut compared = 0;
    for (name, _, graph) in graphs() {
        let sub = everything(&graph);
        let shapes = infer_shapes(&graph, &sub, &[]).unwrap_or_else(|e| panic!("{name}: {e}"));
        for (id, node) in graph.nodes() {
            let Some(recorded) = recorded_shapes(node) else { continue };
            for (at, expected) in recorded.iter().enumerate() {
                let found = shapes.shape(tenon_graph::Output::new(id, at as u32));
                assert_eq!(&found, expected, "{name}: {}:{at} ({})", node.name, node.op.name);
                compared += 1;
            }
        }
    }
    assert!(compared > 20, "{compared} shapes compared");
}

fn recorded_shapes(node: &tenon_graph::Node) -> Option<&[tenon_framework::PartialShape]> {
    use tenon_framework::attr::{AttrList, AttrValue};
    match node.attrs.get("_output_shapes")? {
        AttrValue::List(AttrList::Shape(shapes)) => Some(shapes),
        _ => None,
    }
}

#[test]
fn every_graph_is_placed_and_cut_on_one_device() {
    let options = PlacerOptions { allow_soft_placement: true, ..PlacerOptions::default() };
    let mut devices = Devices::new();
    devices.entries.truncate(1);
    for (name, _, graph) in graphs() {
        let sub = everything(&graph);
        let placement =
            place(&graph, &sub, &devices, &options).unwrap_or_else(|e| panic!("{name}: {e}"));
        let location = |id| placement.device(id).unwrap();
        let cut =
            cut(&graph, &sub, &location, &|_, _| false).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(cut.partitions.len(), 1, "{name}");
        assert_eq!(cut.transfers, 0, "{name}");
        assert_eq!(cut.partitions[0].nodes.len(), graph.len());
        let loops = name.starts_with("while");
        assert_eq!(cut.frames.frames.len() > 1, loops, "{name}");
        crate::partition::check(&graph, &sub, &cut);
    }
}
