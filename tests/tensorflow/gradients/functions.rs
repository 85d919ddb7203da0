//! Gradients of calls, conditionals and loops.

use super::numeric::{any, check_graph, positive};
use tenon_gradient::{Gradient, GradientError, Options, gradients};
use tenon_graph::{GraphBuilder, NodeId, Output};
use tenon_runtime::{
    RunOptions, Session, SessionOptions,
    framework::{
        Code, DType, PartialShape, Tensor,
        attr::{AttrList, AttrValue, FuncValue},
    },
};
use tenon_tests::session::{run, runtime};

/// Defines a function of arguments of these types.
pub fn define(
    b: &mut GraphBuilder<'_>,
    name: &str,
    types: &[DType],
    make: impl FnOnce(&mut GraphBuilder<'_>, &[Output]) -> Vec<Output>,
) {
    let mut body = GraphBuilder::new(b.registry());
    if let Some(library) = b.graph().library() {
        body.add_library(library.clone()).unwrap();
    }
    let mut args = Vec::new();
    for (at, &dtype) in types.iter().enumerate() {
        args.push(body.placeholder(&format!("a{at}"), dtype, PartialShape::UNKNOWN).unwrap());
    }
    let results = make(&mut body, &args);
    if let Some(library) = body.graph().library() {
        b.add_library(library.clone()).unwrap();
    }
    b.define(name, &body.finish(), &args, &results).unwrap();
}

pub fn op(b: &mut GraphBuilder<'_>, op: &str, inputs: &[Output]) -> Output {
    b.op(op).inputs(inputs.iter().copied()).build().unwrap().into()
}

fn constant(b: &mut GraphBuilder<'_>, value: Tensor) -> Output {
    let dtype = value.dtype();
    b.op("Const").attr("dtype", dtype).attr("value", value).build().unwrap().into()
}

fn double(b: &mut GraphBuilder<'_>, value: f64) -> Output {
    constant(b, Tensor::scalar(value).unwrap())
}

fn types(types: &[DType]) -> AttrValue {
    AttrValue::List(AttrList::Type(types.to_vec()))
}

pub fn call(b: &mut GraphBuilder<'_>, name: &str, inputs: &[Output], results: usize) -> NodeId {
    call_as(b, "node", name, inputs, results)
}

/// A call with a name of its own.
pub fn call_as(
    b: &mut GraphBuilder<'_>,
    node: &str,
    function: &str,
    inputs: &[Output],
    results: usize,
) -> NodeId {
    let node = b.op("PartitionedCall").name(node).inputs(inputs.iter().copied());
    node.attr("f", AttrValue::function(function))
        .attr("Tout", types(&vec![DType::DOUBLE; results]))
        .build()
        .unwrap()
}

/// `exp(sin(x) * y)` and `x`, of which the gradient reads values of the body.
pub fn define_wave(b: &mut GraphBuilder<'_>, name: &str) {
    define(b, name, &[DType::DOUBLE; 2], |b, args| {
        let sine = op(b, "Sin", &args[..1]);
        let product = op(b, "Mul", &[sine, args[1]]);
        vec![op(b, "Exp", &[product]), args[0]]
    });
}

#[test]
fn calls() {
    let runtime = runtime(&["tenon_cpu"], &[]);
    check_graph(&runtime, "call", &[any(&[2, 3]), any(&[3])], |b, inputs| {
        define_wave(b, "wave");
        call(b, "wave", inputs, 2)
    });
    check_graph(&runtime, "nested", &[any(&[2, 3]), any(&[2, 3])], |b, inputs| {
        define_wave(b, "wave");
        define(b, "outer", &[DType::DOUBLE; 2], |b, args| {
            let inner = call(b, "wave", args, 2);
            vec![op(b, "Mul", &[Output::new(inner, 0), args[1]])]
        });
        call(b, "outer", inputs, 1)
    });
}

pub fn conditional(b: &mut GraphBuilder<'_>, inputs: &[Output], above: f64) -> NodeId {
    define(b, "then", &[DType::DOUBLE; 2], |b, args| {
        let sine = op(b, "Sin", &args[..1]);
        let product = op(b, "Mul", &[sine, args[1]]);
        vec![op(b, "Mul", &[product, product])]
    });
    define(b, "else", &[DType::DOUBLE; 2], |b, args| vec![op(b, "Exp", &args[..1])]);
    let axis = constant(b, Tensor::from_slice(&[1], &[0i32]).unwrap());
    let first = op(b, "Max", &[inputs[0], axis]);
    let limit = double(b, above);
    let selector = op(b, "Greater", &[first, limit]);
    let node = b.op("StatelessIf").name("node").input(selector).inputs(inputs.iter().copied());
    node.attr("then_branch", AttrValue::function("then"))
        .attr("else_branch", AttrValue::function("else"))
        .attr("Tout", types(&[DType::DOUBLE]))
        .build()
        .unwrap()
}

#[test]
fn conditionals() {
    let runtime = runtime(&["tenon_cpu"], &[]);
    for above in [-10.0, 10.0] {
        check_graph(&runtime, "if", &[any(&[3]), any(&[3])], |b, inputs| {
            conditional(b, inputs, above)
        });
    }
    for branch in [-1, 0, 1, 2, 7] {
        check_graph(&runtime, "case", &[positive(&[3])], |b, inputs| {
            for (name, function) in [("c0", "Sqrt"), ("c1", "Log"), ("c2", "Exp")] {
                define(b, name, &[DType::DOUBLE], |b, args| vec![op(b, function, args)]);
            }
            let index = constant(b, Tensor::scalar(branch).unwrap());
            let named = ["c0", "c1", "c2"];
            let branches =
                named.map(|name| FuncValue { name: name.into(), ..FuncValue::default() });
            let branches = AttrValue::List(AttrList::Func(branches.to_vec()));
            let node = b.op("StatelessCase").name("node").input(index).input(inputs[0]);
            node.attr("branches", branches).attr("Tout", types(&[DType::DOUBLE])).build().unwrap()
        });
    }
}

/// A loop of `count` iterations over `(i, x, w)`: `x = sin(x) * w`.
pub fn power_loop(b: &mut GraphBuilder<'_>, inputs: &[Output], count: i32) -> NodeId {
    let kinds = [DType::INT32, DType::DOUBLE, DType::DOUBLE];
    define(b, "more", &kinds, |b, args| {
        let limit = constant(b, Tensor::scalar(count).unwrap());
        vec![op(b, "Less", &[args[0], limit])]
    });
    define(b, "turn", &kinds, |b, args| {
        let one = constant(b, Tensor::scalar(1i32).unwrap());
        let next = op(b, "AddV2", &[args[0], one]);
        let sine = op(b, "Sin", &[args[1]]);
        vec![next, op(b, "Mul", &[sine, args[2]]), args[2]]
    });
    let zero = constant(b, Tensor::scalar(0i32).unwrap());
    let node = b.op("StatelessWhile").name("node").input(zero).inputs(inputs.iter().copied());
    node.attr("cond", AttrValue::function("more"))
        .attr("body", AttrValue::function("turn"))
        .build()
        .unwrap()
}

#[test]
fn loops() {
    let runtime = runtime(&["tenon_cpu", "tenon_data"], &[]);
    for count in [0, 1, 4] {
        check_graph(&runtime, "while", &[any(&[2, 3]), any(&[2, 3])], |b, inputs| {
            power_loop(b, inputs, count)
        });
    }
}

#[test]
fn a_loop_in_a_branch_in_a_call_in_a_loop() {
    let runtime = runtime(&["tenon_cpu", "tenon_data"], &[]);
    let kinds = [DType::INT32, DType::DOUBLE, DType::DOUBLE];
    check_graph(&runtime, "nested", &[any(&[2]), any(&[2])], |b, inputs| {
        define(b, "inner", &[DType::DOUBLE; 2], |b, args| {
            vec![Output::new(power_loop(b, args, 2), 1)]
        });
        define(b, "plain", &[DType::DOUBLE; 2], |b, args| vec![op(b, "Mul", args)]);
        define(b, "branch", &kinds, |b, args| {
            let two = constant(b, Tensor::scalar(2i32).unwrap());
            let zero = constant(b, Tensor::scalar(0i32).unwrap());
            let odd = op(b, "FloorMod", &[args[0], two]);
            let odd = op(b, "Greater", &[odd, zero]);
            let node = b.op("StatelessIf").input(odd).inputs(args[1..].iter().copied());
            let node = node
                .attr("then_branch", AttrValue::function("inner"))
                .attr("else_branch", AttrValue::function("plain"))
                .attr("Tout", types(&[DType::DOUBLE]));
            vec![node.build().unwrap().into()]
        });
        define(b, "outer_more", &kinds, |b, args| {
            let limit = constant(b, Tensor::scalar(3i32).unwrap());
            vec![op(b, "Less", &[args[0], limit])]
        });
        define(b, "outer_turn", &kinds, |b, args| {
            let one = constant(b, Tensor::scalar(1i32).unwrap());
            let next = op(b, "AddV2", &[args[0], one]);
            let value = call(b, "branch", args, 1);
            let sine = op(b, "Sin", &[Output::from(value)]);
            vec![next, op(b, "AddV2", &[sine, args[1]]), args[2]]
        });
        let zero = constant(b, Tensor::scalar(0i32).unwrap());
        let node = b.op("StatelessWhile").name("outer").input(zero).inputs(inputs.iter().copied());
        node.attr("cond", AttrValue::function("outer_more"))
            .attr("body", AttrValue::function("outer_turn"))
            .build()
            .unwrap()
    });
}

/// The error of the gradient of a call of a function of one argument and result.
fn refused(b: &mut GraphBuilder<'_>, function: &str) -> GradientError {
    let x = b.placeholder("x", DType::DOUBLE, PartialShape::UNKNOWN).unwrap();
    let y = call(b, function, &[x], 1);
    gradients(b, &[y.into()], &[x], &Options::default()).unwrap_err()
}

#[test]
fn a_function_that_calls_itself_is_refused() {
    let runtime = runtime(&["tenon_cpu"], &[]);
    let registry = runtime.registry();
    let mut b = GraphBuilder::new(&registry);
    define(&mut b, "then", &[DType::DOUBLE], |b, args| {
        let value = call(b, "power", args, 1);
        vec![op(b, "Mul", &[value.into(), args[0]])]
    });
    define(&mut b, "else", &[DType::DOUBLE], |_, args| args.to_vec());
    define(&mut b, "power", &[DType::DOUBLE], |b, args| {
        let limit = double(b, 1.0);
        let selector = op(b, "Greater", &[args[0], limit]);
        let node = b.op("StatelessIf").input(selector).input(args[0]);
        let node = node
            .attr("then_branch", AttrValue::function("then"))
            .attr("else_branch", AttrValue::function("else"))
            .attr("Tout", types(&[DType::DOUBLE]));
        vec![node.build().unwrap().into()]
    });
    let error = refused(&mut b, "power");
    assert_eq!(error.code(), Code::UNIMPLEMENTED);
    let expected = "the gradient of function 'power' is not made: expected at most 64 functions inside each other, found \
                    more: a function that calls itself has no gradient";
    assert_eq!(error.to_string(), expected);
}

/// A loop of three iterations over `(i, x, handle)`, which multiplies `x` by the variable or leaves it.
fn loop_with_a_variable(b: &mut GraphBuilder<'_>, inputs: &[Output], reads: bool) -> NodeId {
    let kinds = [DType::INT32, DType::DOUBLE, DType::RESOURCE];
    define(b, "more", &kinds, |b, args| {
        let limit = constant(b, Tensor::scalar(3i32).unwrap());
        vec![op(b, "Less", &[args[0], limit])]
    });
    define(b, "turn", &kinds, |b, args| {
        let one = constant(b, Tensor::scalar(1i32).unwrap());
        let next = op(b, "AddV2", &[args[0], one]);
        let value = if reads { read(b, args[2]) } else { double(b, 1.0) };
        vec![next, op(b, "Mul", &[args[1], value]), args[2]]
    });
    let zero = constant(b, Tensor::scalar(0i32).unwrap());
    let node = b.op("While").input(zero).inputs(inputs.iter().copied());
    node.attr("cond", AttrValue::function("more"))
        .attr("body", AttrValue::function("turn"))
        .build()
        .unwrap()
}

fn read(b: &mut GraphBuilder<'_>, handle: Output) -> Output {
    b.op("ReadVariableOp").input(handle).attr("dtype", DType::DOUBLE).build().unwrap().into()
}

#[test]
fn a_variable_through_a_loop() {
    let runtime = runtime(&["tenon_cpu", "tenon_data"], &[]);
    // The results are 5 v^4 and 5 v.
    for (reads, expected) in [(true, 160.0), (false, 5.0)] {
        let registry = runtime.registry();
        let mut b = GraphBuilder::new(&registry);
        let scalar = PartialShape::new(&[]).unwrap();
        let x = b.placeholder("x", DType::DOUBLE, scalar.clone()).unwrap();
        let handle = b.op("VarHandleOp").name("v").attr("dtype", DType::DOUBLE);
        let handle = Output::from(handle.attr("shape", scalar).build().unwrap());
        let two = double(&mut b, 2.0);
        b.op("AssignVariableOp").name("assign").input(handle).input(two).build().unwrap();
        let node = loop_with_a_variable(&mut b, &[x, handle], reads);
        let value = read(&mut b, Output::new(node, 2));
        let y = op(&mut b, "Mul", &[Output::new(node, 1), value]);
        let before = b.graph().len();
        let made = gradients(&mut b, &[y], &[handle], &Options::default()).unwrap();
        let added = b.graph().nodes().skip(before);
        let other = added.map(|(_, node)| &node.name).find(|name| !name.starts_with("gradients/"));
        assert_eq!(other, None);
        let Some(Gradient::Dense(gradient)) = made[0] else { panic!("a tensor") };
        let gradient = b.graph().output_name(gradient);
        let session = Session::new(&runtime, SessionOptions::default()).unwrap();
        session.extend_graph(&b.finish()).unwrap();
        session.run(&[], &[], &["assign"], &RunOptions::default()).unwrap();
        let found = run(&session, &[("x", Tensor::scalar(5.0).unwrap())], &[&gradient]).unwrap();
        assert_eq!(found[0].as_slice::<f64>().unwrap(), [expected]);
    }
}

/// How many nodes of an op all functions of the library have.
fn in_functions(b: &GraphBuilder<'_>, op: &str) -> usize {
    let functions = b.graph().library().into_iter().flat_map(|library| &library.function);
    functions.flat_map(|function| &function.node_def).filter(|node| node.op == op).count()
}

#[test]
fn a_loop_keeps_no_list_of_what_it_does_not_change() {
    let runtime = runtime(&["tenon_cpu", "tenon_data"], &[]);
    let registry = runtime.registry();
    let mut b = GraphBuilder::new(&registry);
    let scalar = || PartialShape::new(&[]).unwrap();
    let x = b.placeholder("x", DType::DOUBLE, scalar()).unwrap();
    let w = b.placeholder("w", DType::DOUBLE, scalar()).unwrap();
    let kinds = [DType::INT32, DType::DOUBLE, DType::DOUBLE];
    define(&mut b, "more", &kinds, |b, args| {
        let limit = constant(b, Tensor::scalar(3i32).unwrap());
        vec![op(b, "Less", &[args[0], limit])]
    });
    // Multiplies x by exp(2 w) three times.
    define(&mut b, "turn", &kinds, |b, args| {
        let one = constant(b, Tensor::scalar(1i32).unwrap());
        let next = op(b, "AddV2", &[args[0], one]);
        let two = double(b, 2.0);
        let twice = op(b, "Mul", &[args[2], two]);
        let factor = op(b, "Exp", &[twice]);
        vec![next, op(b, "Mul", &[args[1], factor]), args[2]]
    });
    let zero = constant(&mut b, Tensor::scalar(0i32).unwrap());
    let node =
        b.op("While").input(zero).input(x).input(w).attr("cond", AttrValue::function("more"));
    let node = node.attr("body", AttrValue::function("turn")).build().unwrap();
    let y = Output::new(node, 1);
    let made = gradients(&mut b, &[y], &[x, w], &Options::default()).unwrap();
    assert_eq!(in_functions(&b, "TensorListPushBack"), 1, "only x changes");
    assert_eq!(in_functions(&b, "TensorListPopBack"), 1);
    let dense = |gradient: &Option<Gradient>| match gradient {
        Some(Gradient::Dense(values)) => b.graph().output_name(*values),
        other => panic!("a tensor: {other:?}"),
    };
    let names: Vec<String> = made.iter().map(dense).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let session = Session::new(&runtime, SessionOptions::default()).unwrap();
    session.extend_graph(&b.finish()).unwrap();
    let feeds = [("x", Tensor::scalar(5.0).unwrap()), ("w", Tensor::scalar(0.25).unwrap())];
    let found = run(&session, &feeds, &names).unwrap();
    // y = x exp(6 w).
    let expected = [1.5f64.exp(), 30.0 * 1.5f64.exp()];
    for (found, expected) in found.iter().zip(expected) {
        let found = found.as_slice::<f64>().unwrap()[0];
        assert!((found - expected).abs() < 1e-12 * expected, "{found}, expected {expected}");
    }
}
