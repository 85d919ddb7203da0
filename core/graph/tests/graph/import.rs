//! The messages that import accepts, and its errors for the others.

use crate::support::*;
use tenon_framework::{Code, DType, PartialShape, attr::AttrValue as AttrValueHere};
use tenon_graph::Graph;
use tenon_proto::{
    AttrValue, AttrValueKind, Dim, ExperimentalDebugInfo, FunctionDef, FunctionDefLibrary,
    ListValue, NodeDef, OpDef, TensorProto, TensorShapeProto, VersionDef,
    versions::{GRAPH_DEF_VERSION, own_versions},
};

#[test]
fn nodes_are_resolved_in_any_order() {
    let add = typed(node("y", "AddV2", &["x", "x:0", "^z", "^z"]), "T", DType::FLOAT);
    let graph = import(&[add, placeholder("x"), node("z", "NoOp", &[])]).unwrap();
    let y = graph.node(graph.find("y").unwrap());
    assert_eq!(y.inputs, [graph.tensor("x").unwrap(), graph.tensor("x:0").unwrap()]);
    assert_eq!(y.control_inputs, [graph.target("z").unwrap()]);
    assert_eq!(y.outputs(), [DType::FLOAT]);
    let x = graph.node(graph.find("x").unwrap());
    assert!(x.attrs.get("shape").is_some(), "the default is applied");
}

#[test]
fn names_must_be_well_formed_and_unique() {
    assert!(
        refused(&[node("a b", "NoOp", &[])])
            .starts_with("node 'a b' (op 'NoOp'): names of nodes follow")
    );
    assert!(refused(&[node("_a", "NoOp", &[])]).contains("names of nodes follow"));
    assert!(import(&[node("_a", "_Internal", &[])]).is_ok());
    let twice = [node("a", "NoOp", &[]), node("a", "NoOp", &[])];
    assert_eq!(refused(&twice), "node 'a': there are two nodes of this name: rename one");
}

#[test]
fn attributes_are_checked() {
    assert_eq!(
        refused(&[node("x", "Placeholder", &[])]),
        "node 'x': op 'Placeholder': attribute 'dtype' of type type is missing and has no default: set it"
    );
    let wrong = with(placeholder("x"), "dtype", AttrValueKind::I(3));
    assert_eq!(
        refused(&[wrong]),
        "node 'x': attribute 'dtype': expected a value of type type, found int"
    );
    let private = with(placeholder("x"), "_colour", AttrValueKind::I(3));
    let graph = import(&[private]).unwrap();
    let x = graph.node(graph.find("x").unwrap());
    assert_eq!(x.attrs.get("_colour").unwrap().as_int(), Some(3));
    let relu = typed(node("y", "Relu", &["x"]), "T", DType::STRING);
    assert!(
        refused(&[placeholder("x"), relu])
            .starts_with("node 'y': op 'Relu': attribute 'T' is one of")
    );
}

#[test]
fn attributes_of_newer_writers_are_ignored_with_one_warning_and_written_back() {
    let newer = |at: usize| {
        let node = typed(node(&format!("x{at}"), "Placeholder", &[]), "dtype", DType::FLOAT);
        with(with(node, "colour", AttrValueKind::I(3)), "_private", AttrValueKind::I(3))
    };
    let nodes: Vec<_> = (0..5).map(newer).collect();
    let graph = import(&nodes).unwrap();
    let x = graph.node(graph.find("x0").unwrap());
    assert!(x.attrs.get("colour").is_none() && x.attrs.get("_private").is_some());
    assert_eq!(graph.to_graph_def().unwrap().node, nodes);
    assert_eq!(
        graph.ignored_attrs_warning(0..5).unwrap(),
        "attributes that their ops do not have are ignored: 'colour' of node 'x0' (op 'Placeholder'), 'colour' of \
         node 'x1' (op 'Placeholder'), 'colour' of node 'x2' (op 'Placeholder') and 2 more; the graph may come from a \
         newer TensorFlow"
    );
    assert_eq!(graph.ignored_attrs(3..u32::MAX).count(), 2);
    assert!(import(&[placeholder("x")]).unwrap().ignored_attrs_warning(0..9).is_none());
}

#[test]
fn an_attribute_without_value_has_its_default() {
    let empty = |mut node: NodeDef, attr: &str| {
        node.attr.insert(attr.to_owned(), AttrValue { value: None });
        node
    };
    let leaky = typed(node("y", "LeakyRelu", &["x"]), "T", DType::FLOAT);
    let nodes = [placeholder("x"), empty(empty(empty(leaky, "alpha"), "_odd"), "colour")];
    let graph = import(&nodes).unwrap();
    let y = graph.node(graph.find("y").unwrap());
    assert!(matches!(y.attrs.get("alpha"), Some(AttrValueHere::Float(alpha)) if *alpha == 0.2));
    assert!(y.attrs.get("_odd").is_none());
    assert_eq!(graph.to_graph_def().unwrap().node, nodes);
    assert_eq!(
        refused(&[empty(node("x", "Placeholder", &[]), "dtype")]),
        "node 'x': op 'Placeholder': attribute 'dtype' of type type is missing and has no default: set it"
    );
}

#[test]
fn old_placeholders_of_the_shape_of_a_scalar_are_of_any_shape() {
    let scalar = AttrValueKind::Shape(TensorShapeProto::default());
    let shape = |producer: Option<i32>, shape: &AttrValueKind| {
        let mut def = graph_def(&[with(placeholder("x"), "shape", shape.clone())]);
        def.versions = producer.map(|producer| VersionDef { producer, ..VersionDef::default() });
        let graph = Graph::import(&def, registry()).unwrap();
        assert_eq!(graph.to_graph_def().unwrap(), def, "it is written as it was read");
        match graph.node(graph.find("x").unwrap()).attrs.get("shape") {
            Some(AttrValueHere::Shape(shape)) => shape.to_string(),
            other => panic!("{other:?}"),
        }
    };
    // TensorFlow 2.21 takes any feed for producers up to 21, and for a graph without versions.
    assert_eq!(shape(Some(21), &scalar), "<unknown>");
    assert_eq!(shape(Some(0), &scalar), "<unknown>");
    assert_eq!(shape(None, &scalar), "<unknown>");
    assert_eq!(shape(Some(22), &scalar), "[]");
    let dim = vec![Dim { size: 2, name: String::new() }];
    let vector = AttrValueKind::Shape(TensorShapeProto { dim, unknown_rank: false });
    assert_eq!(shape(Some(21), &vector), "[2]");
}

#[test]
fn graphs_that_are_built_say_their_version_so_that_scalars_stay_scalars() {
    let mut b = builder();
    b.placeholder("x", DType::FLOAT, PartialShape::new(&[]).unwrap()).unwrap();
    let def = b.finish().to_graph_def().unwrap();
    assert_eq!(def.versions, Some(own_versions()));
    let graph = Graph::import(&def, registry()).unwrap();
    let x = graph.node(graph.find("x").unwrap());
    assert!(
        matches!(x.attrs.get("shape"), Some(AttrValueHere::Shape(shape)) if shape.rank() == Some(0))
    );
}

#[test]
fn graphs_for_newer_readers_are_refused() {
    let mut def = graph_def(&[placeholder("x")]);
    let versions = |producer, min_consumer, bad_consumers: &[i32]| {
        Some(VersionDef { producer, min_consumer, bad_consumers: bad_consumers.to_vec() })
    };
    def.versions = versions(99999, 99999, &[]);
    let mut graph = Graph::new();
    let error = graph.extend(&def, registry()).unwrap_err();
    assert!(error.to_string().contains("readers of version 99999 and newer"), "{error}");
    assert_eq!((error.code(), graph.len()), (Code::INVALID_ARGUMENT, 0));
    let error = graph.extend_owned(def.clone(), registry()).unwrap_err();
    assert!(error.to_string().contains("versions.min_consumer"), "{error}");
    def.versions = versions(30, 0, &[GRAPH_DEF_VERSION]);
    assert!(Graph::import(&def, registry()).unwrap_err().to_string().contains("bad_consumers"));
    def.versions = versions(99999, 0, &[]);
    assert!(Graph::import(&def, registry()).is_ok(), "newer writers may be read");
}

#[test]
fn a_value_that_means_nothing_here_stays_in_the_message() {
    let mut list = ListValue::default();
    list.s.push(b"a".to_vec());
    list.i.push(1);
    let odd = with(placeholder("x"), "_odd", AttrValueKind::List(Box::new(list)));
    let graph = import(std::slice::from_ref(&odd)).unwrap();
    assert!(graph.node(graph.find("x").unwrap()).attrs.get("_odd").is_none());
    assert_eq!(graph.to_graph_def().unwrap().node, [odd]);
}

#[test]
fn inputs_are_checked() {
    let relu = |input: &[&str]| typed(node("y", "Relu", input), "T", DType::FLOAT);
    let with_x = |input: &[&str]| refused(&[placeholder("x"), relu(input)]);
    assert_eq!(with_x(&["z"]), "node 'y': input 'z' names a node that is not in the graph");
    assert_eq!(
        with_x(&["x:1"]),
        "node 'y': input 'x:1': its node (op 'Placeholder') has 1 outputs, numbered from 0"
    );
    assert!(
        with_x(&["x:-1"]).contains("is written 'node', 'node:output' or '^node', found 'x:-1'")
    );
    assert!(with_x(&["^x", "x"]).contains("data inputs must precede control inputs, found 'x'"));
    assert_eq!(with_x(&[]), "node 'y': op 'Relu' takes 1 (features) inputs, found 0");
    assert!(with_x(&["x", "x"]).ends_with("takes 1 (features) inputs, found 2"));
}

#[test]
fn types_of_edges_name_both_ends() {
    let ints = typed(node("i", "Placeholder", &[]), "dtype", DType::INT32);
    let add = typed(node("y", "AddV2", &["x", "i"]), "T", DType::FLOAT);
    let error = import(&[placeholder("x"), ints, add]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "node 'y' (op 'AddV2'): input 1 (argument 'y') is float, found int32 from 'i:0' (op 'Placeholder')"
    );
    assert_eq!(error.code(), Code::INVALID_ARGUMENT);
}

#[test]
fn references_serve_as_values_but_not_the_other_way() {
    let variable = typed(node("v", "TestVariable", &[]), "dtype", DType::FLOAT);
    let assign = |input: &[&str]| typed(node("a", "TestAssign", input), "T", DType::FLOAT);
    let relu = typed(node("y", "Relu", &["v"]), "T", DType::FLOAT);
    assert!(import(&[variable.clone(), placeholder("x"), assign(&["v", "x"]), relu]).is_ok());
    let error = refused(&[variable, placeholder("x"), assign(&["x", "x"])]);
    assert!(error.contains("is float_ref, found float from 'x:0'"), "{error}");
    assert!(error.ends_with(
        "the op expects a reference, which only variables and ops that forward them give"
    ));
}

#[test]
fn devices_are_read() {
    let mut x = placeholder("x");
    x.device = "/cpu:0".to_owned();
    let graph = import(std::slice::from_ref(&x)).unwrap();
    assert_eq!(graph.node(graph.find("x").unwrap()).device.to_string(), "/device:CPU:0");
    assert_eq!(graph.to_graph_def().unwrap().node[0].device, "/cpu:0");
    x.device = "/xpu:0".to_owned();
    assert!(refused(&[x]).starts_with("node 'x': device name \"/xpu:0\" at byte 0"));
}

#[test]
fn a_cycle_is_refused_and_named_in_the_order_of_data() {
    let relu = |name: &str, input: &str| typed(node(name, "Relu", &[input]), "T", DType::FLOAT);
    let cycle = [relu("a", "c"), relu("b", "a"), relu("c", "b"), relu("d", "c")];
    assert_eq!(refused(&cycle), "the graph has a cycle outside of loops: 'b' -> 'c' -> 'a' -> 'b'");
    assert!(refused(&[node("a", "NoOp", &["^a"])]).ends_with("'a' -> 'a'"));
    let merge = |op: &str| {
        let merge = with(node("m", "Merge", &["x", "n"]), "N", AttrValueKind::I(2));
        [
            placeholder("x"),
            typed(merge, "T", DType::FLOAT),
            typed(node("n", op, &["m"]), "T", DType::FLOAT),
        ]
    };
    assert!(import(&merge("NextIteration")).is_ok());
    assert!(refused(&merge("Relu")).contains("cycle"));
}

#[test]
fn a_long_chain_costs_no_stack() {
    let mut nodes = vec![placeholder("n0")];
    for at in 1..50_000 {
        let input = format!("n{}", at - 1);
        nodes.push(typed(node(&format!("n{at}"), "Relu", &[&input]), "T", DType::FLOAT));
    }
    nodes.reverse();
    let graph = import(&nodes).unwrap();
    assert_eq!(sub(&graph, &[graph.tensor("n49999").unwrap()]).order.len(), 50_000);
}

#[test]
fn extending_is_all_or_nothing() {
    let mut graph = import(&[placeholder("x")]).unwrap();
    let bad = graph_def(&[node("ok", "NoOp", &[]), node("bad", "NoOp", &["^nowhere"])]);
    assert!(graph.extend(&bad, registry()).is_err());
    assert_eq!(graph.len(), 1);
    assert!(graph.find("ok").is_none());
    let more = graph_def(&[typed(node("y", "Relu", &["x"]), "T", DType::FLOAT)]);
    assert_eq!(graph.extend(&more, registry()).unwrap(), 1..2);
    let again = graph_def(&[placeholder("x")]);
    assert!(graph.extend(&again, registry()).unwrap_err().to_string().contains("two nodes"));
}

#[test]
fn libraries_and_versions_are_merged() {
    let function = |name: &str, stateful| FunctionDef {
        signature: Some(OpDef { name: name.to_owned(), is_stateful: stateful, ..OpDef::default() }),
        ..FunctionDef::default()
    };
    let part = |functions: &[FunctionDef], producer| {
        let mut def = graph_def(&[]);
        let library = FunctionDefLibrary { function: functions.to_vec(), ..Default::default() };
        def.library = Some(library);
        def.versions = Some(VersionDef { producer, ..VersionDef::default() });
        def
    };
    let mut graph = Graph::import(&part(&[function("f", false)], 7), registry()).unwrap();
    graph.extend(&part(&[function("f", false), function("g", false)], 7), registry()).unwrap();
    assert!(graph.function("f").is_some() && graph.function("g").is_some());
    assert_eq!(graph.library().unwrap().function.len(), 2);
    let error = graph.extend(&part(&[function("f", true)], 7), registry()).unwrap_err();
    assert!(error.to_string().starts_with("function 'f' is in the graph's library already"));
    let error = graph.extend(&part(&[], 8), registry()).unwrap_err();
    assert!(error.to_string().starts_with("the graph comes from a producer of version 7, found 8"));
    assert_eq!(graph.versions().unwrap().producer, 7);
}

#[test]
fn writing_loses_nothing() {
    let mut x = with(placeholder("x"), "shape", AttrValueKind::Shape(TensorShapeProto::default()));
    x.experimental_debug_info = Some(ExperimentalDebugInfo {
        original_node_names: vec!["old".to_owned()],
        original_func_names: Vec::new(),
    });
    x.experimental_type = Some(vec![8, 1]);
    let mut def = graph_def(&[x, typed(node("y", "Relu", &["x:0", "^x"]), "T", DType::FLOAT)]);
    def.debug_info = Some(vec![1, 2]);
    def.version = 3;
    assert_eq!(Graph::import(&def, registry()).unwrap().to_graph_def().unwrap(), def);
}

#[test]
fn a_constant_of_a_few_bytes_cannot_fill_memory() {
    let dim = vec![tenon_proto::Dim { size: 1 << 40, name: String::new() }];
    let value = TensorProto {
        dtype: 1,
        tensor_shape: Some(TensorShapeProto { dim, unknown_rank: false }),
        float_val: vec![1.0],
        ..TensorProto::default()
    };
    let constant = typed(node("c", "Const", &[]), "dtype", DType::FLOAT);
    let constant = with(constant, "value", AttrValueKind::Tensor(Box::new(value)));
    let error = import(&[constant]).unwrap_err();
    assert_eq!(error.code(), Code::RESOURCE_EXHAUSTED);
    assert!(
        error
            .to_string()
            .starts_with("node 'c': attribute 'value': a tensor of float [1099511627776]")
    );
}

#[test]
fn a_few_bytes_do_not_make_millions_of_outputs() {
    let many = |at: usize| {
        let node = typed(node(&format!("n{at}"), "Fork", &["x"]), "T", DType::FLOAT);
        with(node, "N", AttrValueKind::I(1 << 16))
    };
    let mut nodes: Vec<_> = (0..257).map(many).collect();
    nodes.push(placeholder("x"));
    let error = import(&nodes).unwrap_err();
    assert_eq!(error.code(), Code::RESOURCE_EXHAUSTED);
    let expected =
        "node 'n256': the outputs of a graph's nodes are at most 16777216, found 16842752";
    assert_eq!(error.to_string(), expected);
    assert!(import(&nodes[200..]).is_ok());
}

#[test]
fn feeds_fetches_and_targets_are_looked_up() {
    let graph = import(&[placeholder("input")]).unwrap();
    let error = |name: &str| graph.tensor(name).unwrap_err().to_string();
    assert_eq!(error("inptu:0"), "'inptu': the graph has no such node; did you mean 'input'?");
    assert_eq!(error("input:1"), "'input:1': the node has 1 outputs, numbered from 0");
    assert_eq!(error("^input"), "'^input': expected node:output, such as 'x:0'");
    assert!(graph.target("other").is_err());
}
