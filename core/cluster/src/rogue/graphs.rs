//! Graphs of arbitrary requests: one that is right, of nodes that keep state, wait, loop and call, and changes of it.

use super::choices::Choices;
use std::collections::BTreeMap;
use tenon_proto::{
    ArgDef, AttrValue, AttrValueKind, DataType, FunctionDef, FunctionDefLibrary, GraphDef,
    ListValue, NameAttrList, NodeDef, OpDef, TensorProto, TensorShapeProto, VersionDef,
};

/// Names of tensors, as requests feed and fetch them.
pub(super) const TENSORS: [&str; 22] = [
    "x",
    "y",
    "y:0",
    "value",
    "got",
    "filled",
    "called",
    "turned:1",
    "text",
    "dims",
    "two",
    "size",
    "endless",
    "v",
    "queue",
    "deep",
    "y:7",
    "no",
    "",
    "^y",
    "x:-1",
    "y:99999999999999999999",
];
/// Names of nodes, as requests run them.
pub(super) const TARGETS: [&str; 9] =
    ["set", "put", "close", "y", "got", "endless", "v", "no", "set:0"];

/// The value of an attribute of a node of the graph.
#[derive(Clone, Copy)]
enum Attr {
    Type(DataType),
    Types(&'static [DataType]),
    Text(&'static str),
    Number(i64),
    Function(&'static str),
    AnyShape,
    /// A tensor of one number.
    Value(DataType),
}

use Attr::{AnyShape, Function, Number, Text, Type, Types, Value};
use DataType::{Bool as BOOL, Float as FLOAT, Int32 as INT32, String as STRING};

type Row = (&'static str, &'static str, &'static [&'static str], &'static [(&'static str, Attr)]);

/// Name, op, inputs and attributes of each node.
#[rustfmt::skip]
const NODES: [Row; 26] = [
    ("x", "Placeholder", &[], &[("dtype", Type(FLOAT)), ("shape", AnyShape)]),
    ("text", "Placeholder", &[], &[("dtype", Type(STRING)), ("shape", AnyShape)]),
    ("dims", "Placeholder", &[], &[("dtype", Type(INT32)), ("shape", AnyShape)]),
    ("two", "Const", &[], &[("dtype", Type(FLOAT)), ("value", Value(FLOAT))]),
    ("go", "Const", &[], &[("dtype", Type(BOOL)), ("value", Value(BOOL))]),
    ("y", "AddV2", &["x", "two"], &[("T", Type(FLOAT))]),
    ("filled", "Fill", &["dims", "two"], &[("T", Type(FLOAT)), ("index_type", Type(INT32))]),
    ("v", "VarHandleOp", &[], &[("dtype", Type(FLOAT)), ("shape", AnyShape), ("shared_name", Text("v"))]),
    ("set", "AssignVariableOp", &["v", "x"], &[("dtype", Type(FLOAT))]),
    ("value", "ReadVariableOp", &["v"], &[("dtype", Type(FLOAT))]),
    ("queue", "FIFOQueueV2", &[], &[("component_types", Types(&[FLOAT])), ("capacity", Number(2)), ("shared_name", Text("q"))]),
    ("put", "QueueEnqueueV2", &["queue", "x"], &[("Tcomponents", Types(&[FLOAT]))]),
    ("got", "QueueDequeueV2", &["queue"], &[("component_types", Types(&[FLOAT]))]),
    ("size", "QueueSizeV2", &["queue"], &[]),
    ("close", "QueueCloseV2", &["queue"], &[]),
    ("enter", "Enter", &["x"], &[("T", Type(FLOAT)), ("frame_name", Text("loop"))]),
    ("goes", "Enter", &["go"], &[("T", Type(BOOL)), ("frame_name", Text("loop"))]),
    ("merge", "Merge", &["enter", "next"], &[("T", Type(FLOAT)), ("N", Number(2))]),
    ("again", "Merge", &["goes", "still"], &[("T", Type(BOOL)), ("N", Number(2))]),
    ("cond", "LoopCond", &["again"], &[]),
    ("switch", "Switch", &["merge", "cond"], &[("T", Type(FLOAT))]),
    ("next", "NextIteration", &["switch:1"], &[("T", Type(FLOAT))]),
    ("still", "NextIteration", &["again"], &[("T", Type(BOOL))]),
    ("endless", "Exit", &["switch"], &[("T", Type(FLOAT))]),
    ("called", "PartitionedCall", &["x"], &[("Tin", Types(&[FLOAT])), ("Tout", Types(&[FLOAT])), ("f", Function("twice"))]),
    ("deep", "PartitionedCall", &["x"], &[("Tin", Types(&[FLOAT])), ("Tout", Types(&[FLOAT])), ("f", Function("ever"))]),
];

/// What a changed node may be, or take.
const OPS: [&str; 8] =
    ["Identity", "Exit", "Switch", "NoOp", "twice", "ever", "NoSuchOp", "QueueDequeueManyV2"];
const DEVICES: [&str; 5] = [
    "/device:CPU:0",
    "/job:localhost/replica:0/task:0/device:CPU:0",
    "/device:CPU:9",
    "/job:a",
    "//",
];

fn kind(attr: Attr) -> AttrValueKind {
    match attr {
        Type(dtype) => AttrValueKind::Type(dtype as i32),
        Types(dtypes) => {
            let list = dtypes.iter().map(|&dtype| dtype as i32).collect();
            AttrValueKind::List(Box::new(ListValue { r#type: list, ..ListValue::default() }))
        }
        Text(text) => AttrValueKind::S(text.as_bytes().to_vec()),
        Number(number) => AttrValueKind::I(number),
        Function(name) => {
            AttrValueKind::Func(NameAttrList { name: name.to_owned(), ..NameAttrList::default() })
        }
        AnyShape => AttrValueKind::Shape(TensorShapeProto { unknown_rank: true, dim: Vec::new() }),
        Value(dtype) => AttrValueKind::Tensor(Box::new(TensorProto {
            dtype: dtype as i32,
            tensor_shape: Some(TensorShapeProto::default()),
            float_val: if dtype == FLOAT { vec![2.0] } else { Vec::new() },
            bool_val: if dtype == FLOAT { Vec::new() } else { vec![true] },
            ..TensorProto::default()
        })),
    }
}

fn attrs(attrs: &[(&str, Attr)]) -> BTreeMap<String, AttrValue> {
    let value = |attr| AttrValue { value: Some(kind(attr)) };
    attrs.iter().map(|&(name, attr)| (name.to_owned(), value(attr))).collect()
}

fn node(&(name, op, inputs, given): &Row) -> NodeDef {
    NodeDef {
        name: name.to_owned(),
        op: op.to_owned(),
        input: inputs.iter().map(|&input| input.to_owned()).collect(),
        attr: attrs(given),
        ..NodeDef::default()
    }
}

/// A function of a float, whose body has one node.
fn function(name: &str, body: NodeDef, result: &str) -> FunctionDef {
    let argument =
        |name: &str| ArgDef { name: name.to_owned(), r#type: FLOAT as i32, ..ArgDef::default() };
    let signature = OpDef {
        name: name.to_owned(),
        input_arg: vec![argument("a")],
        output_arg: vec![argument("b")],
        ..OpDef::default()
    };
    FunctionDef {
        signature: Some(signature),
        node_def: vec![body],
        ret: BTreeMap::from([("b".to_owned(), result.to_owned())]),
        ..FunctionDef::default()
    }
}

/// `twice` doubles its argument; `ever` calls itself without an end.
fn library() -> FunctionDefLibrary {
    let sum = node(&("sum", "AddV2", &["a", "a"], &[("T", Type(FLOAT))]));
    let calls: Row = (
        "call",
        "PartitionedCall",
        &["a"],
        &[("Tin", Types(&[FLOAT])), ("Tout", Types(&[FLOAT])), ("f", Function("ever"))],
    );
    let function =
        vec![function("twice", sum, "sum:z:0"), function("ever", node(&calls), "call:output:0")];
    FunctionDefLibrary { function, ..FunctionDefLibrary::default() }
}

/// A graph that is right, but for the changes that follow.
pub(super) fn make(choices: &mut Choices<'_>) -> GraphDef {
    let mut graph = GraphDef {
        node: NODES.iter().map(node).collect(),
        library: Some(library()),
        versions: Some(VersionDef { producer: 1000, ..VersionDef::default() }),
        ..GraphDef::default()
    };
    // The names of an extension are new, or not.
    if choices.one_in(3) {
        let suffix = format!("_{}", choices.below(4));
        graph.node.iter_mut().for_each(|node| {
            node.name.push_str(&suffix);
        });
    }
    for _ in 0..choices.below(9).saturating_sub(4) {
        change(choices, &mut graph);
    }
    graph
}

fn change(choices: &mut Choices<'_>, graph: &mut GraphDef) {
    let at = choices.below(graph.node.len().max(1));
    let kind = choices.below(12);
    let Some(node) = graph.node.get_mut(at) else { return };
    match kind {
        0 => node.input = choices.some(3, &TENSORS),
        1 => node.op = choices.of(&OPS).to_owned(),
        2 => node.name = choices.of(&TENSORS).to_owned(),
        3 => node.device = choices.of(&DEVICES).to_owned(),
        4 => node.input.push(format!("^{}", choices.of(&TARGETS))),
        5 => change_attr(choices, node),
        6 => node.attr.clear(),
        7 => drop(graph.node.remove(at)),
        8 => {
            let again = node.clone();
            graph.node.push(again);
        }
        9 => graph.library = None,
        10 => {
            let library = graph.library.get_or_insert_default();
            let body = choices.below(library.function.len().max(1));
            if let Some(function) = library.function.get_mut(body) {
                function.ret = BTreeMap::from([("b".to_owned(), choices.of(&TENSORS).to_owned())]);
            }
        }
        _ => {
            let number = choices.number() as i32;
            graph.versions = Some(VersionDef {
                producer: number,
                min_consumer: number,
                ..VersionDef::default()
            });
        }
    }
}

fn change_attr(choices: &mut Choices<'_>, node: &mut NodeDef) {
    let names: Vec<String> = node.attr.keys().cloned().collect();
    if names.is_empty() {
        return;
    }
    let name = names[choices.below(names.len())].clone();
    let value = match choices.below(6) {
        0 => AttrValueKind::Type(choices.number() as i32),
        1 => AttrValueKind::I(choices.number()),
        2 => AttrValueKind::S(choices.bytes()),
        3 => kind(Types(choices.of(&[&[][..], &[FLOAT, FLOAT], &[STRING]]))),
        4 => kind(Function(choices.of(&["twice", "ever", "no"]))),
        _ => AttrValueKind::Tensor(Box::new(super::requests::tensor(choices))),
    };
    node.attr.insert(name, AttrValue { value: Some(value) });
}
