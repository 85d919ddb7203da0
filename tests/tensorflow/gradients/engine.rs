//! What a caller may choose, and what is refused.

use super::functions::{call, define_wave};
use super::numeric::dense;
use tenon_gradient::{Gradient, GradientError, Options, Unconnected, gradients};
use tenon_graph::{GraphBuilder, Output};
use tenon_runtime::{
    Runtime, Session, SessionOptions,
    framework::{
        Code, DType, PartialShape, Tensor,
        attr::{AttrList, AttrValue},
    },
    proto::{FunctionDefLibrary, GradientDef},
};
use tenon_tests::session::{run, runtime};

fn vector(b: &mut GraphBuilder<'_>, name: &str) -> Output {
    b.placeholder(name, DType::DOUBLE, PartialShape::new(&[2]).unwrap()).unwrap()
}

fn op(b: &mut GraphBuilder<'_>, op: &str, name: &str, inputs: &[Output]) -> Output {
    b.op(op).name(name).inputs(inputs.iter().copied()).build().unwrap().into()
}

/// The values of tensors, where `x` is [1, 2] and `w` is [3, 4].
fn values(runtime: &Runtime, b: GraphBuilder<'_>, tensors: &[Output]) -> Vec<Vec<f64>> {
    let names: Vec<String> = tensors.iter().map(|&t| b.graph().output_name(t)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let session = Session::new(runtime, SessionOptions::default()).unwrap();
    session.extend_graph(&b.finish()).unwrap();
    let feed = |values: [f64; 2]| Tensor::from_slice(&[2], &values).unwrap();
    let results = run(&session, &[("x", feed([1.0, 2.0])), ("w", feed([3.0, 4.0]))], &names);
    results.unwrap().iter().map(|t| t.as_slice::<f64>().unwrap().to_vec()).collect()
}

fn tensor(gradient: Option<Gradient>) -> Output {
    match gradient {
        Some(Gradient::Dense(values)) => values,
        other => panic!("expected a tensor, found {other:?}"),
    }
}

#[test]
fn an_op_without_a_gradient_is_named_with_the_path() {
    let runtime = runtime(&["tenon_cpu"], &[]);
    let registry = runtime.registry();
    let mut b = GraphBuilder::new(&registry);
    let x = vector(&mut b, "x");
    let a = op(&mut b, "Neg", "a", &[x]);
    let other = op(&mut b, "TruncateMod", "mod", &[a, x]);
    let y = op(&mut b, "Square", "y", &[other]);
    let error = gradients(&mut b, &[y], &[x], &Options::default()).unwrap_err();
    assert_eq!(error.code(), Code::NOT_FOUND);
    assert_eq!(
        error.to_string(),
        "op 'TruncateMod' of node 'mod' has no gradient, but is on the path 'y' <- 'mod' <- 'a' <- 'x': register a \
         gradient for the op, or stop the gradient before it"
    );
    let stop = Options { stop_gradients: vec![other], ..Options::default() };
    assert_eq!(gradients(&mut b, &[y], &[x], &stop).unwrap(), [None]);
}

#[test]
fn given_gradients_are_checked_and_used() {
    let runtime = runtime(&["tenon_cpu"], &[]);
    let registry = runtime.registry();
    let mut b = GraphBuilder::new(&registry);
    let (x, w) = (vector(&mut b, "x"), vector(&mut b, "w"));
    let y = op(&mut b, "Square", "y", &[x]);
    let wide = b.placeholder("wide", DType::DOUBLE, PartialShape::new(&[3]).unwrap()).unwrap();
    let single = b.placeholder("single", DType::FLOAT, PartialShape::new(&[2]).unwrap()).unwrap();
    let given = |given: &[Output]| Options {
        grad_ys: given.iter().map(|&g| Some(Gradient::Dense(g))).collect(),
        ..Options::default()
    };
    let mut refused = |options: Options| gradients(&mut b, &[y], &[x], &options).unwrap_err();
    let error = refused(given(&[wide]));
    assert_eq!(error.to_string(), "gradient 0 of y 'y:0' has shape [3], expected [2]");
    assert_eq!(error.code(), Code::INVALID_ARGUMENT);
    let error = refused(given(&[single]));
    assert_eq!(error.to_string(), "gradient 0 of y 'y:0' has type float, expected double");
    let error = refused(given(&[w, w]));
    assert!(matches!(error, GradientError::GradYCount { expected: 1, found: 2 }), "{error}");
    let error = gradients(&mut b, &[Output::new(y.node, 7)], &[x], &Options::default());
    assert_eq!(error.unwrap_err().code(), Code::INVALID_ARGUMENT);
    let made = gradients(&mut b, &[y], &[x], &given(&[w])).unwrap();
    assert_eq!(values(&runtime, b, &[tensor(made[0])]), [[6.0, 16.0]]);
}

#[test]
fn unconnected_ones_are_none_or_zeros() {
    let runtime = runtime(&["tenon_cpu"], &[]);
    let registry = runtime.registry();
    let mut b = GraphBuilder::new(&registry);
    let (x, w) = (vector(&mut b, "x"), vector(&mut b, "w"));
    let y = op(&mut b, "Square", "y", &[x]);
    let floor = op(&mut b, "Floor", "floor", &[w]);
    let z = op(&mut b, "AddV2", "z", &[y, floor]);
    let made = gradients(&mut b, &[z], &[x, w], &Options::default()).unwrap();
    assert!(made[0].is_some() && made[1].is_none());
    let zeros = Options { unconnected: Unconnected::Zero, ..Options::default() };
    let made = gradients(&mut b, &[z], &[x, w], &zeros).unwrap();
    let made = [tensor(made[0]), tensor(made[1])];
    assert_eq!(values(&runtime, b, &made), [[2.0, 4.0], [0.0, 0.0]]);
}

#[test]
fn gradients_stop_where_they_are_told_to() {
    let runtime = runtime(&["tenon_cpu"], &[]);
    let registry = runtime.registry();
    let mut b = GraphBuilder::new(&registry);
    let x = vector(&mut b, "x");
    let _ = vector(&mut b, "w");
    let a = op(&mut b, "Square", "a", &[x]);
    let y = op(&mut b, "Mul", "y", &[a, x]);
    // With respect to both, the path through `a` does not count for `x`.
    let stop = Options { stop_gradients: vec![a], ..Options::default() };
    let made = gradients(&mut b, &[y], &[x, a], &stop).unwrap();
    let made = [tensor(made[0]), tensor(made[1])];
    assert_eq!(values(&runtime, b, &made), [[1.0, 4.0], [1.0, 2.0]]);
}

#[test]
fn nodes_are_named_gated_and_colocated() {
    let runtime = runtime(&["tenon_cpu"], &[]);
    let registry = runtime.registry();
    let mut b = GraphBuilder::new(&registry);
    let (x, w) = (vector(&mut b, "x"), vector(&mut b, "w"));
    let y = op(&mut b, "Mul", "y", &[x, w]);
    let options = Options { gate: true, colocate: true, ..Options::default() };
    let first = gradients(&mut b, &[y], &[x, w], &options).unwrap();
    let second = gradients(&mut b, &[y], &[x, w], &Options::default()).unwrap();
    let name = |gradient: Option<Gradient>| b.graph().node(tensor(gradient).node).name.clone();
    assert_eq!(name(first[0]), "gradients/y_grad/control_dependency");
    assert!(name(second[0]).starts_with("gradients_1/y_grad/Mul"));
    let node = b.graph().node(b.graph().find("gradients/y_grad/Mul").unwrap());
    let Some(AttrValue::List(AttrList::String(groups))) = node.attrs.get("_class") else {
        panic!("the node is with another one");
    };
    assert_eq!(groups, &[b"loc:@y".to_vec()]);
    let gate = b.graph().node(b.graph().find("gradients/y_grad/tuple").unwrap());
    assert_eq!(gate.control_inputs.len(), 2);
    let made = [tensor(first[0]), tensor(first[1])];
    assert_eq!(values(&runtime, b, &made), [[3.0, 4.0], [1.0, 2.0]]);
}

#[test]
fn an_empty_prefix_is_replaced() {
    let runtime = runtime(&["tenon_cpu"], &[]);
    let registry = runtime.registry();
    let mut b = GraphBuilder::new(&registry);
    let x = vector(&mut b, "x");
    let y = op(&mut b, "Square", "y", &[x]);
    let options = Options { prefix: String::new(), ..Options::default() };
    let made = gradients(&mut b, &[y], &[x], &options).unwrap();
    assert!(b.graph().node(tensor(made[0]).node).name.starts_with("gradients/y_grad/"));
}

#[test]
fn slices_stay_slices_until_a_tensor_is_needed() {
    let runtime = runtime(&["tenon_cpu"], &[]);
    let registry = runtime.registry();
    let mut b = GraphBuilder::new(&registry);
    let x = vector(&mut b, "x");
    let _ = vector(&mut b, "w");
    let constant = |b: &mut GraphBuilder<'_>, value: Tensor| -> Output {
        let dtype = value.dtype();
        b.op("Const").attr("dtype", dtype).attr("value", value).build().unwrap().into()
    };
    let wave = op(&mut b, "Neg", "negative", &[x]);
    let rows = constant(&mut b, Tensor::from_slice(&[3], &[1i32, 0, 1]).unwrap());
    let axis = constant(&mut b, Tensor::scalar(0i32).unwrap());
    let first = op(&mut b, "GatherV2", "first", &[wave, rows, axis]);
    let second = op(&mut b, "GatherV2", "second", &[wave, rows, axis]);
    let made = gradients(&mut b, &[first, second], &[wave, x], &Options::default()).unwrap();
    assert!(matches!(made[0], Some(Gradient::Slices { .. })), "{:?}", made[0]);
    let whole = dense(&mut b, made[0].unwrap(), wave);
    let made = [whole, tensor(made[1])];
    assert_eq!(values(&runtime, b, &made), [[2.0, 4.0], [-2.0, -4.0]]);
}

#[test]
fn a_function_has_the_gradient_that_its_library_names() {
    let runtime = runtime(&["tenon_cpu"], &[]);
    let registry = runtime.registry();
    let mut b = GraphBuilder::new(&registry);
    let (x, w) = (vector(&mut b, "x"), vector(&mut b, "w"));
    define_wave(&mut b, "wave");
    let mut own = GraphBuilder::new(&registry);
    let args: Vec<Output> = ["a", "b", "c", "d"].map(|name| vector(&mut own, name)).to_vec();
    let product = op(&mut own, "Mul", "product", &[args[3], args[1]]);
    b.define("own", &own.finish(), &args, &[product, args[3]]).unwrap();
    let gradient =
        GradientDef { function_name: "wave".to_owned(), gradient_func: "own".to_owned() };
    b.add_library(FunctionDefLibrary { gradient: vec![gradient], ..Default::default() }).unwrap();
    let y = call(&mut b, "wave", &[x, w], 2);
    let made = gradients(&mut b, &[Output::new(y, 1)], &[x, w], &Options::default()).unwrap();
    let made = [tensor(made[0]), tensor(made[1])];
    assert_eq!(values(&runtime, b, &made), [[3.0, 4.0], [1.0, 1.0]]);
}

#[test]
fn a_gradient_that_refuses_is_named() {
    let runtime = runtime(&["tenon_cpu"], &[]);
    let registry = runtime.registry();
    let mut b = GraphBuilder::new(&registry);
    let x = vector(&mut b, "x");
    let y = b.op("PreventGradient").name("y").input(x).attr("message", "a reason").build().unwrap();
    let error = gradients(&mut b, &[y.into()], &[x], &Options::default()).unwrap_err();
    assert_eq!(error.code(), Code::FAILED_PRECONDITION);
    assert_eq!(
        error.to_string(),
        "gradient of node 'y' (op 'PreventGradient'): the gradient is disabled here: a reason"
    );
}

#[test]
fn a_symbolic_gradient_is_that_of_the_call() {
    let runtime = runtime(&["tenon_cpu"], &[]);
    let registry = runtime.registry();
    let mut b = GraphBuilder::new(&registry);
    let (x, w) = (vector(&mut b, "x"), vector(&mut b, "w"));
    define_wave(&mut b, "wave");
    let y = call(&mut b, "wave", &[x, w], 2);
    let ys = [Output::new(y, 0), Output::new(y, 1)];
    let options = Options {
        grad_ys: [w, x].map(|given| Some(Gradient::Dense(given))).to_vec(),
        ..Options::default()
    };
    let made = gradients(&mut b, &ys, &[x, w], &options).unwrap();
    let types = |count| AttrValue::List(AttrList::Type(vec![DType::DOUBLE; count]));
    let node = b.op("SymbolicGradient").name("symbolic").inputs([x, w, w, x]);
    let node = node.attr("f", AttrValue::function("wave")).attr("Tout", types(2)).build().unwrap();
    let tensors = [tensor(made[0]), tensor(made[1]), Output::new(node, 0), Output::new(node, 1)];
    let found = values(&runtime, b, &tensors);
    assert_eq!(found[0], found[2]);
    assert_eq!(found[1], found[3]);
    let expected = 1f64.cos() * 3.0 * (3.0 * 1f64.sin()).exp() * 3.0 + 1.0;
    assert!((found[0][0] - expected).abs() < 1e-12, "{found:?}, expected {expected}");
}

#[test]
fn a_symbolic_gradient_that_does_not_fit_is_refused() {
    let runtime = runtime(&["tenon_cpu"], &[]);
    let registry = runtime.registry();
    let mut b = GraphBuilder::new(&registry);
    let (x, w) = (vector(&mut b, "x"), vector(&mut b, "w"));
    define_wave(&mut b, "wave");
    let types = AttrValue::List(AttrList::Type(vec![DType::DOUBLE; 2]));
    let node = b.op("SymbolicGradient").name("symbolic").inputs([x, w, w]);
    node.attr("f", AttrValue::function("wave")).attr("Tout", types).build().unwrap();
    let session = Session::new(&runtime, SessionOptions::default()).unwrap();
    session.extend_graph(&b.finish()).unwrap();
    let feed = || Tensor::from_slice(&[2], &[1.0, 2.0]).unwrap();
    let error = run(&session, &[("x", feed()), ("w", feed())], &["symbolic"]).unwrap_err();
    let expected = "gradient of node 'symbolic' (op 'SymbolicGradient'): expected 4 inputs and 2 outputs for \
                    function 'wave', found 3 and 2";
    assert!(error.to_string().contains(expected), "{error}");
    // A step that does not need the node runs.
    let found = run(&session, &[("x", feed())], &["x"]).unwrap();
    assert_eq!(found[0].as_slice::<f64>().unwrap(), [1.0, 2.0]);
}
