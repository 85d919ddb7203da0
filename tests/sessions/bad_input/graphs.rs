//! Graphs that are wrong: each is refused with an error that names what, where, expected and found, and
//! nothing of it stays.

use std::collections::BTreeMap;
use tenon_proto::{
    AttrValue, AttrValueKind, DataType, Dim, GraphDef, ListValue, NodeDef, TensorProto,
    TensorShapeProto, decode_graph_def, encode,
};
use tenon_runtime::{Session, framework::Code};
use tenon_tests::session::{
    Account, floats, good_nodes, good_step, graph, run, runtime, session, survives, turn,
};

const CPU: &[&str] = &["tenon_cpu", "zoo_rust"];

fn node(name: &str, op: &str, input: &[&str], attrs: &[(&str, AttrValueKind)]) -> NodeDef {
    let attr = attrs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), AttrValue { value: Some(value.clone()) }));
    NodeDef {
        name: name.to_owned(),
        op: op.to_owned(),
        input: input.iter().map(|name| (*name).to_owned()).collect(),
        attr: attr.collect::<BTreeMap<_, _>>(),
        ..NodeDef::default()
    }
}

fn of_type(dtype: DataType) -> AttrValueKind {
    AttrValueKind::Type(dtype as i32)
}

fn float() -> AttrValueKind {
    of_type(DataType::Float)
}

fn placeholder(name: &str) -> NodeDef {
    node(name, "Placeholder", &[], &[("dtype", float())])
}

fn def(nodes: impl IntoIterator<Item = NodeDef>) -> GraphDef {
    GraphDef { node: nodes.into_iter().collect(), ..GraphDef::default() }
}

/// Extending a session by these nodes fails with this message; nothing of them stays.
#[track_caller]
fn refused(nodes: impl IntoIterator<Item = NodeDef>, code: Code, expected: &[&str]) {
    let bad = def(nodes);
    survives(
        CPU,
        &[],
        |_| Ok(()),
        |session| {
            let nodes = session.graph().len();
            let error = session.extend(&bad).expect_err("the graph is wrong");
            let message = error.to_string();
            for part in expected {
                assert!(message.contains(part), "expected '{part}' in: {message}");
            }
            assert_eq!(error.code(), code, "{message}");
            assert_eq!(session.graph().len(), nodes, "half of a graph was kept");
        },
    );
}

fn some_graph() -> Vec<u8> {
    let _turn = turn();
    let runtime = runtime(CPU, &[]);
    let graph = graph(&runtime, |b| {
        good_nodes(b)?;
        let c = b.constant("c", floats(&[1.0, 2.0, 3.0]))?;
        b.op("Softmax").name("softmax").input(c).device("/device:CPU:0").build().map(|_| ())
    });
    encode(&graph.to_graph_def().expect("a built graph can be written")).expect("it is small")
}

/// Every beginning of a graph is refused, or is a graph of fewer nodes, which is held against the ops.
#[test]
fn a_truncated_graph_is_refused_or_smaller() {
    let bytes = some_graph();
    survives(
        CPU,
        &[],
        |_| Ok(()),
        |session| {
            let mut refused = 0;
            for length in 0..bytes.len() {
                match decode_graph_def(&bytes[..length]) {
                    Err(error) => {
                        let message = error.to_string();
                        let begin = "tensorflow.GraphDef: expected its binary protobuf form";
                        assert!(message.starts_with(begin), "{message}");
                        assert!(message.contains(&format!("of {length} (")), "{message}");
                        refused += 1;
                    }
                    Ok(whole) => assert!(whole.node.len() < 5, "{length} bytes are not all"),
                }
            }
            assert!(refused > bytes.len() / 2, "{refused} of {}", bytes.len());
            good_step(session);
        },
    );
}

/// Random bytes, and a graph in which some bytes are others: an error or another graph, never more.
#[test]
fn random_bytes_do_no_harm() {
    let bytes = some_graph();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut inputs: Vec<Vec<u8>> = Vec::new();
    for at in 0..400 {
        let mut changed = bytes.clone();
        for _ in 0..=(at % 4) {
            let position = random() as usize % changed.len();
            changed[position] = random() as u8;
        }
        inputs.push(changed);
        let length = random() as usize % 200;
        inputs.push((0..length).map(|_| random() as u8).collect());
    }
    let _turn = turn();
    let before = Account::now();
    let mut accepted = 0;
    {
        let runtime = runtime(CPU, &[]);
        let base = session(&runtime, good_nodes);
        for def in inputs.iter().filter_map(|input| decode_graph_def(input).ok()) {
            let session = session(&runtime, |_| Ok(()));
            if session.extend(&def).is_ok() {
                accepted += 1;
                for node in &def.node {
                    // Whatever it is by now: it runs, or an error says why not.
                    let _ = run(&session, &[("good_x", floats(&[1.0]))], &[&node.name]);
                }
            }
            good_step(&base);
        }
    }
    assert!(accepted > 10, "{accepted} changed graphs were graphs still");
    before.check("after all of them");
}

#[test]
fn a_cycle_is_named_node_by_node() {
    let add = |name: &str, x: &str, y: &str| node(name, "Add", &[x, y], &[("T", float())]);
    refused(
        [placeholder("x"), add("a", "x", "c"), add("b", "a", "x"), add("c", "b", "x")],
        Code::INVALID_ARGUMENT,
        &["the graph has a cycle outside of loops: ", "'a'", "'b'", "'c'"],
    );
    refused(
        [node("a", "NoOp", &["^b"], &[]), node("b", "NoOp", &["^a"], &[])],
        Code::INVALID_ARGUMENT,
        &["the graph has a cycle outside of loops: "],
    );
}

/// Extends a session by a graph that nobody has to run, unless it has it.
#[track_caller]
fn extend_once(session: &Session, graph: &GraphDef) {
    if session.graph().find("x").is_none() {
        session.extend(graph).expect("nobody has to run it");
    }
}

/// A step of these nodes fails with this message.
#[track_caller]
fn step_refused(graph: GraphDef, fetch: &str, code: Code, expected: &[&str]) {
    survives(
        CPU,
        &[],
        |_| Ok(()),
        |session| {
            extend_once(session, &graph);
            let error = run(session, &[("x", floats(&[1.0]))], &[fetch]).expect_err("it is wrong");
            let message = error.to_string();
            for part in expected {
                assert!(message.contains(part), "expected '{part}' in: {message}");
            }
            assert_eq!(error.code(), code, "{message}");
        },
    );
}

#[test]
fn an_unknown_op_is_named_with_its_neighbours() {
    step_refused(
        def([placeholder("x"), node("y", "Sofmax", &["x"], &[("T", float())])]),
        "y",
        Code::NOT_FOUND,
        &["'y': its node's op 'Sofmax' is not registered", "load the plugin"],
    );
    step_refused(
        def([
            placeholder("x"),
            node("y", "Sofmax", &["x"], &[("T", float())]),
            node("z", "Neg", &["y"], &[("T", float())]),
        ]),
        "z",
        Code::NOT_FOUND,
        &[
            "needed ops are not registered: 'Sofmax' (node 'y'; did you mean 'Softmax'?)",
            "load the plugin",
        ],
    );
}

#[test]
fn an_unknown_op_that_no_step_needs_does_no_harm() {
    let graph = def([
        placeholder("x"),
        node("y", "Neg", &["x"], &[("T", float())]),
        node("v", "Unheard", &[], &[("dtype", float())]),
        node("v/read", "Identity", &["v"], &[("T", float())]),
        node("fed", "Neg", &["v/read"], &[("T", float())]),
    ]);
    survives(
        CPU,
        &[],
        |_| Ok(()),
        |session| {
            extend_once(session, &graph);
            let x = || ("x", floats(&[1.0, -2.0]));
            let y = run(session, &[x()], &["y"]).expect("it needs what is there");
            assert_eq!(y[0].as_slice::<f32>().expect("floats"), [-1.0, 2.0]);
            let fed =
                run(session, &[("v", floats(&[3.0]))], &["fed"]).expect("the variable is fed");
            assert_eq!(fed[0].as_slice::<f32>().expect("floats"), [-3.0]);
            let error = run(session, &[x()], &["y", "v/read"]).expect_err("it needs the variable");
            assert!(error.to_string().contains("'Unheard' (node 'v')"), "{error}");
            let told = session.explain(None).expect("what can run is explained");
            let blocked = |name: &str| {
                let node = told.iter().find(|node| node.node == name).expect("every node is told");
                node.blocked.clone()
            };
            assert_eq!(blocked("y"), None);
            assert_eq!(blocked("v").as_deref(), Some("op 'Unheard' is not registered"));
            let read = blocked("v/read").expect("it cannot run");
            assert_eq!(read, "it needs node 'v', whose op 'Unheard' is not registered");
            session.explain_passes(None).expect("the step of all that can run");
            session.refresh().expect("nothing that was there is gone");
        },
    );
}

#[test]
fn a_function_whose_result_nothing_gives_is_named() {
    let mut bad = def([
        placeholder("x"),
        node("t", "Twice", &["x"], &[]),
        node("y", "Neg", &["t"], &[("T", float())]),
    ]);
    let arg = |name: &str| tenon_proto::ArgDef {
        name: name.to_owned(),
        r#type: DataType::Float as i32,
        ..Default::default()
    };
    let signature = tenon_proto::OpDef {
        name: "Twice".to_owned(),
        input_arg: vec![arg("a")],
        output_arg: vec![arg("b")],
        ..Default::default()
    };
    let function = tenon_proto::FunctionDef { signature: Some(signature), ..Default::default() };
    bad.library =
        Some(tenon_proto::FunctionDefLibrary { function: vec![function], ..Default::default() });
    let expected = ["function 'Twice'", "nothing gives its result 'b'"];
    step_refused(bad, "y", Code::INVALID_ARGUMENT, &expected);
}

#[test]
fn attributes_are_held_against_the_op() {
    refused(
        [node("x", "Placeholder", &[], &[])],
        Code::INVALID_ARGUMENT,
        &["node 'x': op 'Placeholder': attribute 'dtype' of type type is missing"],
    );
    refused(
        [node("x", "Placeholder", &[], &[("dtype", AttrValueKind::I(1))])],
        Code::INVALID_ARGUMENT,
        &["node 'x': attribute 'dtype': expected a value of type type, found"],
    );
    refused(
        [placeholder("x"), node("y", "Relu", &["x"], &[("T", of_type(DataType::String))])],
        Code::INVALID_ARGUMENT,
        &["node 'y': op 'Relu': attribute 'T' is one of ", "found string"],
    );
    refused(
        [node("y", "AddN", &[], &[("T", float()), ("N", AttrValueKind::I(0))])],
        Code::INVALID_ARGUMENT,
        &["node 'y': op 'AddN': ", "'N' is at least 1, found 0"],
    );
    refused(
        [node("x", "Placeholder", &[], &[("dtype", AttrValueKind::Type(9_999))])],
        Code::INVALID_ARGUMENT,
        &["node 'x': attribute 'dtype': expected the number of an element type, found 9999"],
    );
}

#[test]
fn arity_and_types_of_inputs_are_checked() {
    refused(
        [placeholder("x"), node("y", "Add", &["x"], &[("T", float())])],
        Code::INVALID_ARGUMENT,
        &["node 'y': op 'Add' takes 2 (x, y) inputs, found 1"],
    );
    let ints = node("i", "Placeholder", &[], &[("dtype", of_type(DataType::Int32))]);
    refused(
        [placeholder("x"), ints, node("y", "Add", &["x", "i"], &[("T", float())])],
        Code::INVALID_ARGUMENT,
        &["node 'y' (op 'Add'): input 1 (argument 'y') is float, found int32 from 'i:0'"],
    );
    refused(
        [placeholder("x"), node("y", "Neg", &["x:3"], &[("T", float())])],
        Code::INVALID_ARGUMENT,
        &["node 'y': input 'x:3': its node (op 'Placeholder') has 1 outputs"],
    );
    refused(
        [placeholder("x"), node("y", "Neg", &["xx"], &[("T", float())])],
        Code::INVALID_ARGUMENT,
        &["node 'y': input 'xx' names a node that is not in the graph"],
    );
}

#[test]
fn names_are_checked() {
    refused(
        [placeholder("x"), placeholder("x")],
        Code::INVALID_ARGUMENT,
        &["node 'x': there are two nodes of this name: rename one"],
    );
    refused(
        [placeholder("good_x")],
        Code::INVALID_ARGUMENT,
        &["node 'good_x': there are two nodes of this name"],
    );
    for name in ["", "a b", "é", "-x", "x:0", "a\0"] {
        refused(
            [placeholder(name)],
            Code::INVALID_ARGUMENT,
            &[&format!("node '{name}' (op 'Placeholder'): names of nodes follow")],
        );
    }
    for input in ["x:", "x:-1", "x:00", "^", "x y", ":0"] {
        refused(
            [placeholder("x"), node("y", "Neg", &[input], &[("T", float())])],
            Code::INVALID_ARGUMENT,
            &[&format!(
                "node 'y': an input is written 'node', 'node:output' or '^node', found '{input}'"
            )],
        );
    }
    refused(
        [placeholder("x"), node("y", "Neg", &["^x", "x"], &[("T", float())])],
        Code::INVALID_ARGUMENT,
        &["node 'y': data inputs must precede control inputs, found 'x' after one"],
    );
    let mut nowhere = placeholder("x");
    nowhere.device = "/device:CPU:zero".to_owned();
    refused([nowhere], Code::INVALID_ARGUMENT, &["node 'x': ", "/device:CPU:zero"]);
}

fn constant(dims: &[i64], content: Vec<u8>) -> NodeDef {
    let dim = dims.iter().map(|&size| Dim { size, name: String::new() }).collect();
    let tensor = TensorProto {
        dtype: DataType::Float as i32,
        tensor_shape: Some(TensorShapeProto { dim, unknown_rank: false }),
        tensor_content: content.into(),
        ..TensorProto::default()
    };
    let value = AttrValueKind::Tensor(Box::new(tensor));
    node("c", "Const", &[], &[("dtype", float()), ("value", value)])
}

#[test]
fn sizes_that_overflow_are_refused() {
    refused(
        [constant(&[i64::MAX, 2], Vec::new())],
        Code::INVALID_ARGUMENT,
        &["node 'c': attribute 'value': ", "exceeds 2^63 - 1"],
    );
    refused(
        [constant(&[i64::MAX / 2], Vec::new())],
        Code::RESOURCE_EXHAUSTED,
        &[
            "node 'c': attribute 'value': a tensor of float [4611686018427387903] from 0 values needs ",
        ],
    );
    // One value stands for all elements: a few bytes that would be terabytes.
    refused(
        [constant(&[1 << 40], vec![0; 4])],
        Code::INVALID_ARGUMENT,
        &["node 'c': attribute 'value': tensor_content of float [1099511627776] has"],
    );
    refused(
        [constant(&[-2], Vec::new())],
        Code::INVALID_ARGUMENT,
        &["node 'c': attribute 'value': ", "found -2 as dimension 0"],
    );
    refused(
        [constant(&[3], vec![0; 5])],
        Code::INVALID_ARGUMENT,
        &["tensor_content of float [3] has 12 bytes, found 5"],
    );
    let many = vec![Dim { size: 1, name: String::new() }; 300];
    let shape = TensorShapeProto { dim: many, unknown_rank: false };
    refused(
        [node(
            "x",
            "Placeholder",
            &[],
            &[("dtype", float()), ("shape", AttrValueKind::Shape(shape))],
        )],
        Code::INVALID_ARGUMENT,
        &["node 'x': attribute 'shape': a tensor has at most ", "found 300"],
    );
}

#[test]
fn a_list_where_one_value_is_wanted_is_refused() {
    let list = ListValue { i: vec![1, 2], ..ListValue::default() };
    refused(
        [
            placeholder("x"),
            node("y", "Softmax", &["x"], &[("T", AttrValueKind::List(Box::new(list)))]),
        ],
        Code::INVALID_ARGUMENT,
        &["node 'y': attribute 'T': expected a value of type type, found list"],
    );
}
