//! Graphs built in code.

use crate::support::*;
use tenon_framework::{DType, PartialShape, Tensor};
use tenon_graph::{Graph, GraphBuilder, GraphError, NodeId, Output};

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
fn scopes_give_names_and_devices_to_the_nodes_of_a_closure() {
    let mut b = builder();
    let mut added = Vec::new();
    let mut add = |b: &mut GraphBuilder<'_>, name: &str, device: &str| {
        let id = b.op("NoOp").name(name).device(device).build().unwrap();
        let node = b.graph().node(id);
        added.push(format!("{} on {}", node.name, node.device));
    };
    let done = b.with_device("/job:a/device:CPU:0", |b| {
        b.with_name_scope("outer", |b| {
            add(b, "n", "");
            let inner = b.with_device("/device:CPU:1", |b| {
                b.with_name_scope("inner", |b| add(b, "n", ""));
                b.with_name_scope("", |b| add(b, "n", "/job:b"));
            });
            inner.unwrap();
            add(b, "m", "");
        });
    });
    done.unwrap();
    add(&mut b, "m", "");
    assert_eq!(
        added,
        [
            "outer/n on /job:a/device:CPU:0",
            "outer/inner/n on /job:a/device:CPU:1",
            "n on /job:b/device:CPU:1",
            "outer/m on /job:a/device:CPU:0",
            "m on ",
        ]
    );
    let error = b.with_device("cpu:x", |_| unreachable!("the device is malformed")).unwrap_err();
    assert!(error.to_string().starts_with("node '*': "), "{error}");
}

/// A name that is free in a scope is free outside too, for nodes that are appended as they are.
#[test]
fn a_name_is_free_in_a_scope() {
    let mut b = builder();
    b.op("NoOp").name("x").build().unwrap();
    let names = b.with_name_scope("s", |b| {
        b.op("NoOp").name("y").build().unwrap();
        let id = b.op("NoOp").build().unwrap();
        assert_eq!(b.graph().node(id).name, "s/NoOp");
        ["x", "y", "z"].map(|name| b.unused_name(name))
    });
    assert_eq!(names, ["x_1", "y_1", "z"]);
    let again = b.with_name_scope("s", |b| b.op("NoOp").name("y").build()).unwrap_err();
    assert_eq!(again, GraphError::DuplicateNode { node: "s/y".to_owned() });
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
