//! State, functions and control flow: the cost of a read, an update, an iteration, a call and a conditional, of a queue
//! and of a list. Each id times one whole step on one thread, with as many of them as its name says.

use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use tenon_benches::{Failure, filled, plugin};
use tenon_framework::{
    DType, PartialShape, Tensor,
    attr::{AttrList, AttrValue},
};
use tenon_runtime::{
    CallableOptions, RunOptions, Runtime, RuntimeOptions, Session, SessionOptions,
    graph::{GraphBuilder, GraphError, NodeId, Output},
    proto::{AttrValue as AttrProto, AttrValueKind},
};

type Built = Result<(), GraphError>;

/// Nodes, calls or conditionals of a step.
const COUNT: usize = 1000;
/// Iterations of a step.
const ITERATIONS: i32 = 10_000;

fn scalar(value: i32) -> Tensor {
    Tensor::scalar(value).expect("a scalar")
}

fn types(types: &[DType]) -> AttrValue {
    AttrValue::List(AttrList::Type(types.to_vec()))
}

/// Adds a function `y = op(x, 1)` of float.
fn define(b: &mut GraphBuilder<'_>, runtime: &Runtime, name: &str, op: &str) -> Built {
    let registry = runtime.registry();
    let mut body = GraphBuilder::new(&registry);
    let x = body.placeholder("x", DType::FLOAT, PartialShape::UNKNOWN)?;
    let one = body.constant("one", filled(&[1], |_| 1.0))?;
    let y = body.op(op).name("y").input(x).input(one).build()?;
    b.define(name, &body.finish(), &[x], &[y.into()])
}

/// A variable of one float, with node `set` to initialise it.
fn variable(b: &mut GraphBuilder<'_>) -> Result<NodeId, GraphError> {
    let shape = PartialShape::UNKNOWN;
    let handle = b.op("VarHandleOp").name("v").attr("dtype", DType::FLOAT).attr("shape", shape);
    let handle = handle.build()?;
    let first = b.constant("first", filled(&[1], |_| 0.0))?;
    b.op("AssignVariableOp").name("set").input(handle).input(first).build()?;
    Ok(handle)
}

/// Reads of a variable that do not wait for each other.
fn reads(b: &mut GraphBuilder<'_>, _: &Runtime) -> Built {
    let handle = variable(b)?;
    let read = |b: &mut GraphBuilder<'_>| {
        b.op("ReadVariableOp").input(handle).attr("dtype", DType::FLOAT).build()
    };
    gathered(b, read)
}

/// As [`reads`], of values that need no variable.
fn identities(b: &mut GraphBuilder<'_>, _: &Runtime) -> Built {
    let x = b.constant("value", filled(&[1], |_| 0.0))?;
    let source = b.op("Neg").input(x).build()?;
    variable(b)?;
    gathered(b, |b| b.op("Identity").input(source).build())
}

/// So many nodes, and `last`, which waits for all.
fn gathered(
    b: &mut GraphBuilder<'_>,
    mut make: impl FnMut(&mut GraphBuilder<'_>) -> Result<NodeId, GraphError>,
) -> Built {
    let nodes = (0..COUNT).map(|_| make(b)).collect::<Result<Vec<_>, _>>()?;
    let last = b.op("NoOp").name("last");
    nodes.into_iter().fold(last, |last, node| last.control(node)).build().map(|_| ())
}

/// Updates of a variable, one after the other.
fn updates(b: &mut GraphBuilder<'_>, _: &Runtime) -> Built {
    let handle = variable(b)?;
    let one = b.constant("one", filled(&[1], |_| 1.0))?;
    let mut before: Option<NodeId> = None;
    for _ in 0..COUNT {
        let add = b.op("AssignAddVariableOp").input(handle).input(one);
        before = Some(before.into_iter().fold(add, |add, node| add.control(node)).build()?);
    }
    let last = b.op("NoOp").name("last");
    before.into_iter().fold(last, |last, node| last.control(node)).build().map(|_| ())
}

/// `while i < n: i = i + 1`.
fn counting(b: &mut GraphBuilder<'_>, runtime: &Runtime) -> Built {
    variable(b)?;
    let registry = runtime.registry();
    let function = |b: &mut GraphBuilder<'_>, name: &str, op: &str, value: i32| {
        let mut body = GraphBuilder::new(&registry);
        let i = body.placeholder("i", DType::INT32, PartialShape::UNKNOWN)?;
        let value = body.constant("value", scalar(value))?;
        let y = body.op(op).name("y").input(i).input(value).build()?;
        b.define(name, &body.finish(), &[i], &[y.into()])
    };
    function(b, "below", "Less", ITERATIONS)?;
    function(b, "next", "AddV2", 1)?;
    let zero = b.constant("zero", scalar(0))?;
    let node = b.op("StatelessWhile").name("last").input(zero);
    node.attr("cond", AttrValue::function("below"))
        .attr("body", AttrValue::function("next"))
        .build()
        .map(|_| ())
}

/// Calls of a function that is not inlined, one after the other.
fn calls(b: &mut GraphBuilder<'_>, runtime: &Runtime) -> Built {
    variable(b)?;
    define(b, runtime, "f", "AddV2")?;
    in_turn(b, |b, name, value| {
        let node =
            b.op("PartitionedCall").name(name).input(value).attr("f", AttrValue::function("f"));
        node.attr("Tout", types(&[DType::FLOAT])).build()
    })
}

/// The nodes of those calls, without the calls.
fn additions(b: &mut GraphBuilder<'_>, _: &Runtime) -> Built {
    variable(b)?;
    let one = b.constant("one", filled(&[1], |_| 1.0))?;
    in_turn(b, |b, name, value| b.op("AddV2").name(name).input(value).input(one).build())
}

/// Conditionals, one after the other.
fn conditionals(b: &mut GraphBuilder<'_>, runtime: &Runtime) -> Built {
    variable(b)?;
    define(b, runtime, "more", "AddV2")?;
    define(b, runtime, "less", "Sub")?;
    let truth = Tensor::from_bytes(DType::BOOL, &[], &[1]).expect("a bool");
    let truth = b.constant("truth", truth)?;
    let truth = b.op("LogicalNot").input(truth).build()?;
    in_turn(b, |b, name, value| {
        let node = b.op("StatelessIf").name(name).input(truth).input(value);
        let node = node
            .attr("then_branch", AttrValue::function("more"))
            .attr("else_branch", AttrValue::function("less"));
        node.attr("Tout", types(&[DType::FLOAT])).build()
    })
}

/// Pairs of an enqueue and a dequeue of one float, one after the other, in a queue without other users.
fn queue_pairs(b: &mut GraphBuilder<'_>, _: &Runtime) -> Built {
    variable(b)?;
    let shape = PartialShape::new(&[]).expect("a scalar's shape");
    let queue = b
        .op("FIFOQueueV2")
        .name("queue")
        .attr("component_types", types(&[DType::FLOAT]))
        .attr("shapes", AttrValue::List(AttrList::Shape(vec![shape])))
        .attr("capacity", 8i64)
        .build()?;
    let first = b.constant("start", Tensor::scalar(1.0f32).expect("a scalar"))?;
    let mut value: Output = b.op("Neg").input(first).build()?.into();
    for at in 0..COUNT {
        let put = b.op("QueueEnqueueV2").input(queue).input(value);
        let put = put.attr("Tcomponents", types(&[DType::FLOAT])).build()?;
        let name = if at + 1 == COUNT { "last".to_owned() } else { format!("taken_{at}") };
        let take = b.op("QueueDequeueV2").name(&name).input(queue).control(put);
        value = take.attr("component_types", types(&[DType::FLOAT])).build()?.into();
    }
    Ok(())
}

/// Defines a function of a counter and a list, which `make` adds to.
fn with_list(
    b: &mut GraphBuilder<'_>,
    runtime: &Runtime,
    name: &str,
    make: impl FnOnce(&mut GraphBuilder<'_>, Output, Output) -> Result<Vec<Output>, GraphError>,
) -> Built {
    let registry = runtime.registry();
    let mut body = GraphBuilder::new(&registry);
    let i = body.placeholder("i", DType::INT32, PartialShape::UNKNOWN)?;
    let list = body.placeholder("list", DType::VARIANT, PartialShape::UNKNOWN)?;
    let results = make(&mut body, i, list)?;
    b.define(name, &body.finish(), &[i, list], &results)
}

/// The shape of a scalar, as a tensor.
fn scalar_shape() -> Tensor {
    Tensor::from_slice::<i32>(&[0], &[]).expect("an empty vector")
}

/// A loop that pushes as many floats to a list, and one that pops them.
fn pushes(b: &mut GraphBuilder<'_>, runtime: &Runtime, count: i32) -> Built {
    variable(b)?;
    for (name, op, value) in [("below", "Less", count), ("above", "Greater", 0)] {
        with_list(b, runtime, name, |body, i, _| {
            let value = body.constant("value", scalar(value))?;
            Ok(vec![body.op(op).name("y").input(i).input(value).build()?.into()])
        })?;
    }
    with_list(b, runtime, "push", |body, i, list| {
        let one = body.constant("one", scalar(1))?;
        let next = body.op("AddV2").name("next").input(i).input(one).build()?;
        let element = body.constant("element", Tensor::scalar(1.0f32).expect("a scalar"))?;
        let pushed = body.op("TensorListPushBack").name("pushed").input(list).input(element);
        Ok(vec![next.into(), pushed.build()?.into()])
    })?;
    with_list(b, runtime, "pop", |body, i, list| {
        let one = body.constant("one", scalar(1))?;
        let next = body.op("Sub").name("next").input(i).input(one).build()?;
        let shape = body.constant("shape", scalar_shape())?;
        let popped = body.op("TensorListPopBack").name("popped").input(list).input(shape);
        Ok(vec![next.into(), popped.attr("element_dtype", DType::FLOAT).build()?.into()])
    })?;
    let (shape, limit) = (b.constant("shape", scalar_shape())?, b.constant("limit", scalar(-1))?);
    let empty = b.op("EmptyTensorList").name("empty").input(shape).input(limit);
    let empty = empty.attr("element_dtype", DType::FLOAT).build()?;
    let zero = b.constant("zero", scalar(0))?;
    let mut state: [Output; 2] = [zero, empty.into()];
    for (name, cond, step) in [("pushing", "below", "push"), ("last", "above", "pop")] {
        let node = b.op("StatelessWhile").name(name).input(state[0]).input(state[1]);
        let node = node.attr("cond", AttrValue::function(cond));
        let node = node.attr("body", AttrValue::function(step)).build()?;
        state = [0, 1].map(|output| Output { node, output });
    }
    Ok(())
}

/// So many nodes, each of which takes the value of the one before; the last is `last`.
fn in_turn(
    b: &mut GraphBuilder<'_>,
    make: impl Fn(&mut GraphBuilder<'_>, &str, Output) -> Result<NodeId, GraphError>,
) -> Built {
    let first = b.constant("start", filled(&[1], |_| 0.0))?;
    let mut value: Output = b.op("Neg").input(first).build()?.into();
    for at in 0..COUNT {
        let name = if at + 1 == COUNT { "last".to_owned() } else { format!("node_{at}") };
        value = make(b, &name, value)?.into();
    }
    Ok(())
}

fn time(
    c: &mut Criterion,
    runtime: &Runtime,
    id: &str,
    make: impl FnOnce(&mut GraphBuilder<'_>, &Runtime) -> Built,
) -> Result<(), Failure> {
    let session = Session::new(runtime, SessionOptions::as_written())?;
    let registry = runtime.registry();
    let mut builder = GraphBuilder::new(&registry);
    make(&mut builder, runtime)?;
    let mut def = builder.finish().to_graph_def()?;
    let functions = def.library.iter_mut().flat_map(|library| &mut library.function);
    for function in functions.filter(|_| id.contains("not_inlined")) {
        let yes = AttrProto { value: Some(AttrValueKind::B(true)) };
        function.attr.insert("_noinline".to_owned(), yes);
    }
    session.extend(&def)?;
    session.run(&[], &[], &["set"], &RunOptions::default())?;
    let targets = vec!["last".to_owned()];
    let callable = session.callable(CallableOptions { targets, ..CallableOptions::default() })?;
    let mut fetched = Vec::new();
    callable.run(&[], &mut fetched)?;
    c.bench_function(id, |b| {
        b.iter(|| {
            let result = callable.run(black_box(&[]), &mut fetched);
            if let Err(error) = result {
                panic!("{id}: {error}");
            }
        });
    });
    Ok(())
}

fn run(c: &mut Criterion) -> Result<(), Failure> {
    let plugins = [plugin("cpu")?, plugin("data")?];
    let options = RuntimeOptions { threads: Some(1), ..RuntimeOptions::with_plugins(plugins) };
    let (runtime, report) = Runtime::new(options)?;
    report.into_result()?;
    time(c, &runtime, "state/read_variable_1000", reads)?;
    time(c, &runtime, "state/identity_1000", identities)?;
    time(c, &runtime, "state/assign_add_1000", updates)?;
    time(c, &runtime, "loop/while_add_10000", counting)?;
    time(c, &runtime, "call/not_inlined_1000", calls)?;
    time(c, &runtime, "call/additions_1000", additions)?;
    time(c, &runtime, "call/if_lowered_1000", conditionals)?;
    time(c, &runtime, "queue/enqueue_dequeue_1000", queue_pairs)?;
    time(c, &runtime, "list/push_pop_100000", |b, runtime| pushes(b, runtime, 100_000))?;
    time(c, &runtime, "list/push_pop_1000000", |b, runtime| pushes(b, runtime, 1_000_000))?;
    Ok(())
}

fn benches(c: &mut Criterion) {
    if let Err(error) = run(c) {
        panic!("{error}");
    }
}

criterion_group!(control, benches);
criterion_main!(control);
