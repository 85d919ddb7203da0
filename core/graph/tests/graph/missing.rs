//! Nodes of unregistered ops: a graph may have them as long as no step needs them.

use crate::support::*;
use tenon_framework::{Code, DType, op::OpDef, registry::*};
use tenon_graph::{Graph, GraphError, NodeId, Output, infer_shapes, prune};
use tenon_proto::{AttrValueKind, NodeDef};

fn relu(name: &str, input: &[&str]) -> NodeDef {
    typed(node(name, "Relu", input), "T", DType::FLOAT)
}

/// The error of a step that fetches this.
fn step(graph: &Graph, fetch: &str) -> Result<(), GraphError> {
    graph.check_ops(&sub(graph, &[graph.tensor(fetch)?]), registry())
}

#[test]
fn a_leftover_variable_that_nobody_needs_does_not_matter() {
    let variable = with(node("v", "Unheard", &[]), "shared_name", AttrValueKind::S(vec![b'v']));
    let nodes = [placeholder("x"), relu("y", &["x"]), variable, relu("read", &["v"])];
    let graph = import(&nodes).unwrap();
    assert_eq!(graph.to_graph_def().unwrap().node, nodes);
    let mut owned = Graph::new();
    owned.extend_owned(graph_def(&nodes), registry()).unwrap();
    owned.forget_messages();
    assert_eq!(owned.to_graph_def().unwrap().node[2], nodes[2], "all that was said of it is kept");
    step(&graph, "y").unwrap();
    let error = step(&graph, "read").unwrap_err();
    assert_eq!(
        error.to_string(),
        "needed ops are not registered: 'Unheard' (node 'v'); load the \
         plugins that define them \
         (--plugin FILE, or their folder in TENON_PLUGIN_PATH), and refresh a session that is open"
    );
    assert_eq!(error.code(), Code::NOT_FOUND);
    let blocked = graph.blocked();
    let id = |name: &str| graph.find(name).unwrap();
    assert_eq!(blocked.len(), 2);
    assert_eq!((blocked[&id("v")], blocked[&id("read")]), (id("v"), id("v")));
}

#[test]
fn all_missing_ops_are_named_at_once_and_not_without_end() {
    let mut nodes = vec![node("m", "MatMull", &[])];
    nodes.extend((0..5).map(|at| node(&format!("s{at}"), "Unkept", &[])));
    nodes.extend((0..20).map(|at| node(&format!("u{at}"), &format!("Unheard{at}"), &[])));
    let graph = import(&nodes).unwrap();
    let all: Vec<NodeId> = graph.nodes().map(|(id, _)| id).collect();
    let sub = prune(&graph, &[], &[], &all).unwrap();
    let text = graph.check_ops(&sub, registry()).unwrap_err().to_string();
    let begin = "needed ops are not registered: 'MatMull' (node 'm'; did you mean 'MatMul'?), \
                 'Unkept' (nodes 's0', 's1', 's2' and 2 more), 'Unheard0' (node 'u0'), ";
    assert!(text.starts_with(begin), "{text}");
    assert!(text.contains("'Unheard5' (node 'u5') and 14 more; load the plugins"), "{text}");
    let error = infer_shapes(&graph, &sub, &[]).unwrap_err();
    assert!(matches!(error, GraphError::MissingOps { .. }), "later passes refuse it too: {error}");
}

#[test]
fn names_edges_and_cycles_of_such_nodes_are_checked_all_the_same() {
    let odd = |name: &str, input: &[&str]| node(name, "Unheard", input);
    assert!(refused(&[odd("a b", &[])]).contains("names of nodes follow"));
    assert!(refused(&[odd("a", &[]), odd("a", &[])]).contains("two nodes of this name"));
    assert!(refused(&[odd("a", &["b"])]).contains("names a node that is not in the graph"));
    assert!(refused(&[odd("a", &["b"]), odd("b", &["a"])]).contains("cycle"));
    assert!(
        refused(&[odd("a", &[]), odd("b", &["^a", "a"])]).contains("must precede control inputs")
    );
    let mut nowhere = odd("a", &[]);
    nowhere.device = "/xpu:0".to_owned();
    assert!(refused(&[nowhere]).starts_with("node 'a': device name"));
    assert_eq!(
        refused(&[odd("a", &[]), relu("y", &["a:65536"])]),
        "node 'y': input 'a:65536': its node (op 'Unheard') has 65536 outputs, numbered from 0"
    );
    // The number of inputs and the types of registered ops are checked as usual.
    assert!(
        refused(&[odd("a", &[]), relu("y", &["a", "a"])]).contains("takes 1 (features) inputs")
    );
}

#[test]
fn readers_of_one_output_agree_on_its_type() {
    let odd = node("a", "Unheard", &[]);
    let int = |name: &str, input: &str| typed(node(name, "Neg", &[input]), "T", DType::INT32);
    let nodes = [odd, relu("y", &["a:1"]), int("i", "a:2")];
    let mut graph = import(&nodes).unwrap();
    let dtype = |graph: &Graph, name: &str| graph.dtype(graph.tensor(name).unwrap());
    assert_eq!(dtype(&graph, "a:1"), DType::FLOAT);
    assert_eq!(dtype(&graph, "a:2"), DType::INT32);
    let error = graph.tensor("a:0").unwrap_err();
    assert_eq!(
        error.to_string(),
        "'a:0': its node's op 'Unheard' is not registered, and no node of a registered op reads this output: load \
         the plugin that defines the op"
    );
    // A later part of the graph reads more outputs, or reads one as another type.
    graph.extend(&graph_def(&[relu("z", &["a:5"])]), registry()).unwrap();
    assert_eq!(dtype(&graph, "a:5"), DType::FLOAT);
    let error = graph.extend(&graph_def(&[int("j", "a:1")]), registry()).unwrap_err().to_string();
    assert_eq!(
        error,
        "node 'j' (op 'Neg'): input 0 (argument 'x') is int32, found float from 'a:1' (op 'Unheard', which is not \
         registered; the type is that of another reader)"
    );
    assert_eq!(graph.len(), 4);
    // A variable is read as a value here, and as a reference there.
    let assign = typed(node("s", "Assign", &["v", "x"]), "T", DType::FLOAT);
    let variable = [node("v", "Unheard", &[]), placeholder("x"), relu("r", &["v"]), assign];
    assert_eq!(dtype(&import(&variable).unwrap(), "v"), DType::FLOAT.as_ref_type());
}

#[test]
fn what_a_feed_stands_for_need_not_be_known() {
    let graph = import(&[node("queue", "Unheard", &[]), relu("y", &["queue:3"])]).unwrap();
    let (feed, y) = (graph.tensor("queue:3").unwrap(), graph.tensor("y").unwrap());
    let sub = prune(&graph, &[feed], &[y], &[]).unwrap();
    graph.check_ops(&sub, registry()).unwrap();
    assert_eq!(infer_shapes(&graph, &sub, &[]).unwrap().seen(&sub, feed).to_string(), "<unknown>");
}

#[test]
fn a_few_bytes_do_not_make_millions_of_unknown_outputs() {
    let mut nodes = Vec::new();
    for at in 0..300 {
        nodes.push(node(&format!("u{at}"), "Unheard", &[]));
        nodes.push(relu(&format!("y{at}"), &[&format!("u{at}:65535")]));
    }
    let error = import(&nodes).unwrap_err();
    assert_eq!(error.code(), Code::RESOURCE_EXHAUSTED);
    assert!(
        error.to_string().contains("outputs of a graph's nodes are at most 16777216"),
        "{error}"
    );
}

#[test]
fn a_plugin_that_comes_later_makes_its_nodes_whole() {
    let unheard = with(node("a", "Unheard", &["x"]), "N", AttrValueKind::I(2));
    let def = graph_def(&[placeholder("x"), unheard, relu("y", &["a:1"])]);
    let graph = Graph::import(&def, registry()).unwrap();
    assert!(step(&graph, "y").is_err());
    let mut plugin =
        Transaction::new(PluginInfo::linked(registry().next_plugin_id(), "later", "0", 9));
    let op = OpDef::from_spec("Unheard", &["x: float"], &["y: N * float"], &["N: int"]).unwrap();
    plugin.add_op(op);
    let (registry, _) = commit_all(registry(), vec![plugin]).unwrap();
    let again = Graph::import(&graph.to_graph_def().unwrap(), &registry).unwrap();
    let a = again.find("a").unwrap();
    assert_eq!(again.node(a).outputs(), [DType::FLOAT, DType::FLOAT]);
    let y = again.tensor("y").unwrap();
    again.check_ops(&sub(&again, &[y]), &registry).unwrap();
    assert!(again.blocked().is_empty());
    assert_eq!(again.node(y.node).inputs, [Output::new(a, 1)]);
}

#[test]
fn names_of_megabytes_make_short_messages() {
    let long = "n".repeat(5_000_000);
    let text = |error: GraphError| error.to_string();
    let twice = [placeholder(&long), placeholder(&long)];
    let missing = import(&[node(&long, &long, &[]), relu("y", &[&long])]).unwrap();
    let near = import(&[placeholder("x"), relu("y", &[&long])]).unwrap_err();
    let cycle = import(&[relu(&long, &["b"]), relu("b", &[&long])]).unwrap_err();
    let attr = with(placeholder("x"), "dtype", AttrValueKind::Placeholder(long.clone()));
    for message in [
        refused(&twice),
        refused(&[placeholder(&format!("{long} "))]),
        refused(&[placeholder("x"), relu(&long, &["x", "x"])]),
        refused(&[relu("y", &[&format!("{long}:")])]),
        refused(&[attr]),
        text(step(&missing, "y").unwrap_err()),
        text(missing.tensor(&format!("{long}:7")).unwrap_err()),
        text(near),
        text(cycle),
    ] {
        assert!(message.len() < 2048, "{} bytes: {}", message.len(), &message[..200]);
        assert!(message.contains("bytes)"), "{message}");
    }
}
