//! Functions: what calls of them become.

use crate::support::{builder, registry, sub};
use tenon_framework::{
    Code, DType, PartialShape, Tensor,
    attr::{AttrList, AttrValue},
};
use tenon_graph::{
    ControlFlow, Expanded, Frames, Graph, GraphBuilder, GraphError, Node, NodeId, Output, called,
    expand, infer_shapes, prune,
};
use tenon_proto::{
    ArgDef, AttrDef, AttrValue as AttrProto, AttrValueKind, FunctionDef, FunctionDefLibrary,
    GraphDef, NodeDef, OpDef,
};

fn floats(count: usize) -> AttrValue {
    AttrValue::List(AttrList::Type(vec![DType::FLOAT; count]))
}

fn x(b: &mut GraphBuilder<'_>) -> Result<Output, GraphError> {
    b.placeholder("x", DType::FLOAT, PartialShape::UNKNOWN)
}

/// Adds a function of `x`, whose result is node `y`.
fn define(
    b: &mut GraphBuilder<'_>,
    name: &str,
    make: impl FnOnce(&mut GraphBuilder<'_>, Output) -> Result<(), GraphError>,
) {
    let mut body = builder();
    let x = x(&mut body).unwrap();
    make(&mut body, x).unwrap();
    let body = body.finish();
    b.define(name, &body, &[x], &[body.tensor("y").unwrap()]).unwrap();
}

fn call(b: &mut GraphBuilder<'_>, name: &str, function: &str, input: Output) -> Output {
    let node =
        b.op("PartitionedCall").name(name).input(input).attr("f", AttrValue::function(function));
    node.attr("Tout", floats(1)).build().unwrap().into()
}

/// Adds `y = -x`.
fn negative(b: &mut GraphBuilder<'_>) {
    define(b, "negative", |b, x| b.op("Neg").name("y").input(x).build().map(|_| ()));
}

fn expanded(graph: &Graph, fetch: Output) -> Expanded {
    expand(graph, registry(), &sub(graph, &[fetch])).unwrap().expect("it has calls")
}

/// The nodes that a step of an expanded graph runs, in order.
fn runs(expanded: &Expanded) -> Vec<&Node> {
    let graph = &expanded.graph;
    let step = prune(graph, &[], &expanded.fetches, &expanded.targets).unwrap();
    infer_shapes(graph, &step, &[]).unwrap();
    step.order.iter().map(|&id| graph.node(id)).collect()
}

fn names<'n>(nodes: &[&'n Node]) -> Vec<&'n str> {
    nodes.iter().map(|node| node.name.as_str()).collect()
}

#[test]
fn a_call_is_a_copy_of_the_body() {
    let mut b = builder();
    negative(&mut b);
    let x = x(&mut b).unwrap();
    let first = call(&mut b, "first", "negative", x);
    let second = call(&mut b, "second", "negative", first);
    let graph = b.finish();
    let expanded = expanded(&graph, second);
    assert_eq!(names(&runs(&expanded)), ["x", "first/y", "second/y"]);
    assert!(expanded.graph.shares(&graph, x.node), "what calls nothing stays");
}

#[test]
fn a_step_without_calls_is_not_expanded() {
    let mut b = builder();
    negative(&mut b);
    let x = x(&mut b).unwrap();
    call(&mut b, "unused", "negative", x);
    let y = b.op("Relu").input(x).build().unwrap();
    let graph = b.finish();
    assert!(expand(&graph, registry(), &sub(&graph, &[y.into()])).unwrap().is_none());
}

#[test]
fn a_fed_result_is_not_computed() {
    let mut b = builder();
    negative(&mut b);
    let x = x(&mut b).unwrap();
    let fed = call(&mut b, "fed", "negative", x);
    let other = call(&mut b, "other", "negative", fed);
    let graph = b.finish();
    let step = prune(&graph, &[fed], &[other], &[]).unwrap();
    let expanded = expand(&graph, registry(), &step).unwrap().unwrap();
    let step = prune(&expanded.graph, &[fed], &expanded.fetches, &[]).unwrap();
    let nodes: Vec<&Node> = step.order.iter().map(|&id| expanded.graph.node(id)).collect();
    assert_eq!(names(&nodes), ["other/y"]);
}

#[test]
fn effects_come_before_results_and_after_what_the_call_waits_for() {
    let mut b = builder();
    define(&mut b, "f", |b, x| {
        b.op("OwnCheck").name("unseen").input(x).build()?;
        let variable = b.op("TestVarHandle").name("v").attr("dtype", DType::FLOAT).build()?;
        b.op("AssignVariableOp").name("set").input(variable).input(x).build()?;
        b.op("Neg").name("y").input(x).build().map(|_| ())
    });
    let x = x(&mut b).unwrap();
    let before = b.op("NoOp").name("before").build().unwrap();
    let node =
        b.op("StatefulPartitionedCall").name("f").input(x).attr("f", AttrValue::function("f"));
    let node = node.attr("Tout", floats(1)).control(before).build().unwrap();
    let after = b.op("Relu").name("after").input(x).control(node).build().unwrap();
    let graph = b.finish();
    let step = prune(&graph, &[], &[node.into()], &[after]).unwrap();
    let expanded = expand(&graph, registry(), &step).unwrap().unwrap();
    let graph = &expanded.graph;
    let step = prune(graph, &[], &expanded.fetches, &expanded.targets).unwrap();
    let at = |name: &str| step.position(graph.find(name).unwrap());
    assert!(at("f/set").is_some());
    assert!(graph.find("f/unseen").is_none(), "only nodes with state are effects");
    assert!(at("before") < at("f/set") && at("f/set") < at("after"));
    let result = step.position(expanded.fetches[0].node);
    assert!(at("f/set") < result && result.is_some());
}

/// A loop `while cond(x): x = body(x)`.
fn repeat(b: &mut GraphBuilder<'_>, name: &str, input: Output) -> Output {
    let node =
        b.op("StatelessWhile").name(name).input(input).attr("cond", AttrValue::function("small"));
    node.attr("body", AttrValue::function("body")).build().unwrap().into()
}

fn small(b: &mut GraphBuilder<'_>) {
    define(b, "small", |b, x| {
        let most = b.constant("most", Tensor::scalar(10f32).unwrap())?;
        b.op("Less").name("y").input(x).input(most).build().map(|_| ())
    });
}

#[test]
fn a_loop_is_a_frame_with_its_constants_outside() {
    let mut b = builder();
    small(&mut b);
    define(&mut b, "body", |b, x| {
        let one = b.constant("one", Tensor::scalar(1f32).unwrap())?;
        b.op("AddV2").name("y").input(x).input(one).build().map(|_| ())
    });
    let x = x(&mut b).unwrap();
    let first = repeat(&mut b, "first", x);
    let second = repeat(&mut b, "second", first);
    let graph = b.finish();
    let expanded = expanded(&graph, second);
    let step = prune(&expanded.graph, &[x], &expanded.fetches, &[]).unwrap();
    let frames = Frames::find(&expanded.graph, &step).unwrap();
    let paths: Vec<&str> = frames.frames[1..].iter().map(|frame| frame.name.as_str()).collect();
    assert_eq!(paths, ["first", "second"]);
    let frame = |name: &str| {
        let at = step.position(expanded.graph.find(name).unwrap()).unwrap();
        frames.path(frames.runs_in[at])
    };
    assert_eq!(frame("first/body/one"), "", "a constant is made once");
    assert_eq!(frame("first/body/y"), "first");
    assert_eq!(frame("second/small/y"), "second");
    let roles = |role| runs(&expanded).iter().filter(|node| node.control_flow() == role).count();
    assert_eq!(roles(ControlFlow::Merge), 2, "one value changes in each loop");
    assert_eq!(roles(ControlFlow::Enter), 6, "a value and two constants enter each");
}

/// Without waiting, it would run once more than the body: nothing that it reads is dead after the last iteration.
#[test]
fn what_acts_on_constants_of_a_loop_alone_waits_for_its_body() {
    let mut b = builder();
    small(&mut b);
    define(&mut b, "body", |b, x| {
        let shape = b.constant("shape", Tensor::from_slice(&[0], &[0i32; 0]).unwrap())?;
        let random = b.op("RandomUniform").name("random").input(shape);
        let random = random.attr("dtype", AttrValue::Type(DType::FLOAT)).build()?;
        let scaled = b.op("Neg").name("scaled").input(random).build()?;
        b.op("AddV2").name("y").input(x).input(scaled).build().map(|_| ())
    });
    let x = x(&mut b).unwrap();
    let first = repeat(&mut b, "first", x);
    let graph = b.finish();
    let expanded = expanded(&graph, first);
    let waits = |name: &str| {
        let node = expanded.graph.node(expanded.graph.find(name).unwrap());
        let before = node.control_inputs.iter().map(|&id| expanded.graph.node(id).name.clone());
        before.collect::<Vec<_>>()
    };
    assert_eq!(waits("first/body/random"), ["first/body/pivot"]);
    assert!(waits("first/body/scaled").is_empty() && waits("first/body/y").is_empty());
}

/// A constant costs nothing when it is there on every branch; what depends on constants alone must not run on a branch
/// that is not taken.
#[test]
fn on_a_branch_only_constants_do_not_wait() {
    let mut b = builder();
    define(&mut b, "noisy", |b, x| {
        let shape = b.constant("shape", Tensor::from_slice(&[0], &[0i32; 0]).unwrap())?;
        let random = b.op("RandomUniform").name("random").input(shape);
        let random = random.attr("dtype", AttrValue::Type(DType::FLOAT)).build()?;
        let scaled = b.op("Neg").name("scaled").input(random).build()?;
        b.op("AddV2").name("y").input(x).input(scaled).build().map(|_| ())
    });
    define(&mut b, "fixed", |b, _| b.constant("y", Tensor::scalar(1f32).unwrap()).map(|_| ()));
    let truth = b.placeholder("truth", DType::BOOL, PartialShape::UNKNOWN).unwrap();
    let x = x(&mut b).unwrap();
    let node = b.op("StatelessIf").name("if").input(truth).input(x);
    let node = node
        .attr("then_branch", AttrValue::function("noisy"))
        .attr("else_branch", AttrValue::function("fixed"));
    let node = node.attr("Tout", floats(1)).build().unwrap();
    let graph = b.finish();
    let expanded = expanded(&graph, node.into());
    let waits = |name: &str| {
        let node = expanded.graph.node(expanded.graph.find(name).unwrap());
        let before = node.control_inputs.iter().map(|&id| expanded.graph.node(id).name.clone());
        before.collect::<Vec<_>>()
    };
    assert!(waits("if/noisy/shape").is_empty() && waits("if/fixed/y").is_empty());
    assert_eq!(waits("if/noisy/random"), ["if/noisy/pivot"]);
    assert!(waits("if/noisy/scaled").is_empty() && waits("if/noisy/y").is_empty());
    assert_eq!(waits("if/fixed/result_0"), ["if/fixed/pivot"], "the result of a branch");
}

#[test]
fn frames_of_functions_that_are_called_twice_are_two() {
    let mut b = builder();
    small(&mut b);
    define(&mut b, "body", |b, x| b.op("Exp").name("y").input(x).build().map(|_| ()));
    define(&mut b, "loop", |b, x| {
        let node =
            b.op("StatelessWhile").name("y").input(x).attr("cond", AttrValue::function("small"));
        node.attr("body", AttrValue::function("body")).build().map(|_| ())
    });
    let x = x(&mut b).unwrap();
    let first = call(&mut b, "first", "loop", x);
    let second = call(&mut b, "second", "loop", x);
    let sum = b.op("AddV2").name("sum").input(first).input(second).build().unwrap();
    let graph = b.finish();
    let expanded = expanded(&graph, sum.into());
    let step = prune(&expanded.graph, &[x], &expanded.fetches, &[]).unwrap();
    let frames = Frames::find(&expanded.graph, &step).unwrap();
    let mut paths: Vec<&str> = frames.frames[1..].iter().map(|frame| frame.name.as_str()).collect();
    paths.sort_unstable();
    assert_eq!(paths, ["first/y", "second/y"]);
}

#[test]
fn a_function_that_calls_itself_is_called_by_a_node() {
    let mut b = builder();
    define(&mut b, "f", |b, x| {
        let node =
            b.op("PartitionedCall").name("again").input(x).attr("f", AttrValue::function("f"));
        let again = node.attr("Tout", floats(1)).build()?;
        b.op("Neg").name("y").input(again).build().map(|_| ())
    });
    let x = x(&mut b).unwrap();
    let y = call(&mut b, "y", "f", x);
    let graph = b.finish();
    let expanded = expanded(&graph, y);
    let nodes = runs(&expanded);
    assert_eq!(names(&nodes), ["x", "y/again", "y/y"]);
    let functions = called(&expanded.graph, nodes[1]);
    assert_eq!(functions.iter().map(|function| function.name.as_str()).collect::<Vec<_>>(), ["f"]);
}

/// `Both(a: N * T) -> (first: T, all: N * T)`: a definition as TensorFlow writes them, with attributes and lists.
fn generic() -> FunctionDef {
    let attr = |name: &str, ty: &str| AttrDef {
        name: name.to_owned(),
        r#type: ty.to_owned(),
        ..AttrDef::default()
    };
    let list = |name: &str| ArgDef {
        name: name.to_owned(),
        type_attr: "T".to_owned(),
        number_attr: "N".to_owned(),
        ..ArgDef::default()
    };
    let first = ArgDef { number_attr: String::new(), ..list("first") };
    let signature = OpDef {
        name: "Both".to_owned(),
        input_arg: vec![list("a")],
        output_arg: vec![first, list("all")],
        attr: vec![attr("T", "type"), attr("N", "int")],
        ..OpDef::default()
    };
    let filled =
        |name: &str| AttrProto { value: Some(AttrValueKind::Placeholder(name.to_owned())) };
    let node = |name: &str, op: &str, input: &str, attrs: &[&str]| NodeDef {
        name: name.to_owned(),
        op: op.to_owned(),
        input: vec![input.to_owned()],
        attr: attrs.iter().map(|&attr| (attr.to_owned(), filled(attr))).collect(),
        ..NodeDef::default()
    };
    let ret = [("first", "fork:y:0"), ("all", "fork:y")];
    FunctionDef {
        signature: Some(signature),
        node_def: vec![
            node("negative", "Neg", "a:1", &["T"]),
            node("fork", "Fork", "negative:y:0", &["T", "N"]),
        ],
        ret: ret.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect(),
        ..FunctionDef::default()
    }
}

#[test]
fn a_node_is_named_after_a_function_with_attributes_and_lists() {
    let mut b = builder();
    let x = x(&mut b).unwrap();
    b.op("Relu").name("r").input(x).build().unwrap();
    let mut def: GraphDef = b.finish().to_graph_def().unwrap();
    def.library = Some(FunctionDefLibrary { function: vec![generic()], ..Default::default() });
    let number = |value| AttrProto { value: Some(AttrValueKind::I(value)) };
    let float = AttrProto { value: Some(AttrValueKind::Type(1)) };
    def.node.push(NodeDef {
        name: "both".to_owned(),
        op: "Both".to_owned(),
        input: vec!["x".to_owned(), "r".to_owned()],
        attr: [("T".to_owned(), float), ("N".to_owned(), number(2))].into(),
        ..NodeDef::default()
    });
    let graph = Graph::import(&def, registry()).unwrap();
    assert_eq!(graph.node(graph.find("both").unwrap()).outputs(), [DType::FLOAT; 3]);
    let expanded = expanded(&graph, graph.tensor("both:2").unwrap());
    let nodes = runs(&expanded);
    assert_eq!(names(&nodes), ["x", "r", "both/negative", "both/fork"]);
    assert_eq!(expanded.fetches[0].output, 1, "the second of the list 'all'");
    assert_eq!(expanded.graph.node(nodes_named(&expanded, "both/negative")).inputs.len(), 1);
    assert_eq!(graph.to_graph_def().unwrap(), def, "it is written as it was read");
}

fn nodes_named(expanded: &Expanded, name: &str) -> NodeId {
    expanded.graph.find(name).unwrap()
}

#[test]
fn calls_of_what_is_not_there_are_refused() {
    let mut b = builder();
    negative(&mut b);
    let x = x(&mut b).unwrap();
    let y = call(&mut b, "y", "negatives", x);
    let graph = b.finish();
    let error = expand(&graph, registry(), &sub(&graph, &[y])).unwrap_err();
    assert_eq!(error.code(), Code::NOT_FOUND);
    let said = error.to_string();
    assert!(
        said.contains("calls function 'negatives'") && said.contains("did you mean 'negative'?"),
        "{said}"
    );
}
