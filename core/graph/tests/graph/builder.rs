//! Graphs built in code.

use crate::support::*;
use tenon_framework::{DType, PartialShape, Tensor};
use tenon_graph::{Graph, GraphError, NodeId, Output};

#[test]
fn types_and_numbers_come_from_the_inputs() {
    let mut b = builder();
    let x = x(&mut b);
    let z = b.constant("z", floats(&[3])).unwrap();
    let y = b.op("Add").name("y").input(x).input(z).device("/cpu:0").build().unwrap();
    let pack = b.op("Pack").inputs([x, y.into(), x]).control(y).control(y).build().unwrap();
    let graph = b.finish();
    assert_eq!(graph.node(y).attrs.get("T").unwrap().as_type(), Some(DType::FLOAT));
    assert_eq!(graph.node(pack).attrs.get("N").unwrap().as_int(), Some(3));
    assert_eq!(graph.node(pack).name, "Pack");
    assert_eq!(graph.node(pack).control_inputs, [y]);
    assert_eq!(graph.node(y).device.to_string(), "/device:CPU:0");
}

#[test]
fn what_is_built_is_written_and_read_back() {
    let mut b = builder();
    let x = x(&mut b);
    let split = b.op("Split3").input(x).build().unwrap();
    let c = b.constant("c", floats(&[2, 3])).unwrap();
    b.op("Mul").input(Output::new(split, 2)).input(c).control(split).build().unwrap();
    let exit = count_to_ten(&mut b, "loop");
    let graph = b.finish();
    let def = graph.to_graph_def().unwrap();
    let again = Graph::import(&def, registry()).unwrap();
    assert_eq!(again.to_graph_def().unwrap(), def);
    assert_eq!(again.node(exit.node).name, "loop/exit");
    assert_eq!(def.node[3].input, ["Split3:2", "c", "^Split3"]);
    for (id, node) in graph.nodes() {
        assert_eq!(again.node(id).inputs, node.inputs);
        assert_eq!(again.node(id).signature, node.signature);
    }
}

#[test]
fn unnamed_nodes_get_names_that_are_free() {
    let mut b = builder();
    b.op("NoOp").name("NoOp_1").build().unwrap();
    let names: Vec<String> = (0..3)
        .map(|_| {
            let id = b.op("NoOp").build().unwrap();
            b.graph().node(id).name.clone()
        })
        .collect();
    assert_eq!(names, ["NoOp", "NoOp_2", "NoOp_3"]);
}

#[test]
fn mistakes_are_named_and_change_nothing() {
    let mut b = builder();
    let x = x(&mut b);
    let i = b.constant("i", Tensor::scalar(1i32).unwrap()).unwrap();
    let error = b.op("Add").name("y").input(x).input(i).build().unwrap_err().to_string();
    assert_eq!(error, "node 'y': op 'Add': input 1 (argument 'y') is float, found int32");
    let error = b.op("Ad").name("y").build().unwrap_err().to_string();
    assert!(
        error.starts_with("node 'y': op 'Ad' is not registered; did you mean 'Add'"),
        "{error}"
    );
    let error = b.placeholder("x", DType::FLOAT, PartialShape::UNKNOWN).unwrap_err();
    assert_eq!(error, GraphError::DuplicateNode { node: "x".to_owned() });
    let error =
        b.op("Relu").name("r").input(Output::new(x.node, 1)).build().unwrap_err().to_string();
    assert!(
        error.ends_with("expected an output of a node of this graph, found output 1 of node #0")
    );
    assert!(b.op("NoOp").control(NodeId(9)).build().is_err());
    assert!(b.op("NoOp").device("cpu:x").build().is_err());
    assert!(b.op("Relu").input(x).attr("alpha", 1.0f32).build().is_err());
    assert_eq!(b.graph().len(), 2);
}

#[test]
fn a_back_edge_leads_from_a_next_iteration_to_a_merge() {
    let mut b = builder();
    let x = x(&mut b);
    let merge = b.op("Merge").input(x).input(x).build().unwrap();
    let relu = b.op("Relu").name("r").input(merge).build().unwrap();
    let error = b.back_edge(merge, 1, relu).unwrap_err().to_string();
    assert!(error.contains("found one from 'r' (op 'Relu')"), "{error}");
    let next = b.op("NextIteration").input(relu).build().unwrap();
    assert!(b.back_edge(relu, 0, next).is_err());
    assert!(b.back_edge(merge, 2, next).is_err());
    let i = b.constant("i", Tensor::scalar(1i32).unwrap()).unwrap();
    let ints = b.op("NextIteration").input(i).build().unwrap();
    assert!(b.back_edge(merge, 1, ints).unwrap_err().to_string().contains("is float, found int32"));
    b.back_edge(merge, 1, next).unwrap();
    assert_eq!(b.graph().node(merge).inputs[1], next.into());
}
