//! Gradients of many calls: each function is differentiated once for all calls of it that are alike.

use super::functions::{call_as, define, op};
use tenon_gradient::{Gradient, Options, gradients};
use tenon_graph::{GraphBuilder, Output};
use tenon_runtime::{
    Session, SessionOptions,
    framework::{Code, DType, PartialShape, Tensor},
};
use tenon_tests::session::{run, runtime};

fn scalar(b: &mut GraphBuilder<'_>) -> Output {
    b.placeholder("x", DType::DOUBLE, PartialShape::new(&[]).unwrap()).unwrap()
}

fn functions(b: &GraphBuilder<'_>) -> usize {
    b.graph().library().map_or(0, |library| library.function.len())
}

fn gradient(b: &mut GraphBuilder<'_>, y: Output, x: Output) -> Output {
    let made = gradients(b, &[y], &[x], &Options::default()).unwrap();
    let Some(Gradient::Dense(made)) = made[0] else { panic!("a tensor: {made:?}") };
    made
}

/// `y` and its gradient at 0.5.
fn values(b: GraphBuilder<'_>, fetches: &[Output]) -> Vec<f64> {
    let runtime = runtime(&["tenon_cpu"], &[]);
    let names: Vec<String> = fetches.iter().map(|&fetch| b.graph().output_name(fetch)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let session = Session::new(&runtime, SessionOptions::default()).unwrap();
    session.extend_graph(&b.finish()).unwrap();
    let fetched = run(&session, &[("x", Tensor::scalar(0.5).unwrap())], &names).unwrap();
    fetched.iter().map(|tensor| tensor.as_slice::<f64>().unwrap()[0]).collect()
}

#[test]
fn one_function_that_is_called_often() {
    let runtime = runtime(&["tenon_cpu"], &[]);
    let registry = runtime.registry();
    let mut b = GraphBuilder::new(&registry);
    define(&mut b, "sine", &[DType::DOUBLE], |b, args| vec![op(b, "Sin", args)]);
    let x = scalar(&mut b);
    let mut y = x;
    let (mut value, mut slope) = (0.5f64, 1.0);
    for at in 0..3_000 {
        y = call_as(&mut b, &format!("call_{at}"), "sine", &[y], 1).into();
        (value, slope) = (value.sin(), slope * value.cos());
    }
    let by_x = gradient(&mut b, y, x);
    // The shape of the first call's argument is known, those of the others are not.
    assert_eq!(functions(&b), 3, "the function and two gradients");
    let found = values(b, &[y, by_x]);
    assert!((found[0] - value).abs() < 1e-12 && (found[1] - slope).abs() < 1e-12, "{found:?}");
}

#[test]
fn many_functions() {
    const COUNT: usize = 2_000;
    let runtime = runtime(&["tenon_cpu"], &[]);
    let registry = runtime.registry();
    let mut b = GraphBuilder::new(&registry);
    let x = scalar(&mut b);
    let mut y = x;
    let (mut value, mut slope) = (0.5f64, 1.0);
    for at in 0..COUNT {
        let name = format!("function_{at}");
        let mut body = GraphBuilder::new(&registry);
        let arg = body.placeholder("a", DType::DOUBLE, PartialShape::UNKNOWN).unwrap();
        let sine = op(&mut body, "Sin", &[arg]);
        b.define(&name, &body.finish(), &[arg], &[sine]).unwrap();
        y = call_as(&mut b, &format!("call_{at}"), &name, &[y], 1).into();
        (value, slope) = (value.sin(), slope * value.cos());
    }
    let by_x = gradient(&mut b, y, x);
    assert_eq!(functions(&b), 2 * COUNT);
    let found = values(b, &[y, by_x]);
    assert!((found[0] - value).abs() < 1e-12 && (found[1] - slope).abs() < 1e-12, "{found:?}");
}

/// Functions `level_0` to `level_LAST`, each of which joins the results of two calls of the one before, and a call of the
/// last one; with its argument.
fn levels(b: &mut GraphBuilder<'_>, last: usize, join: &str) -> [Output; 2] {
    define(b, "level_0", &[DType::DOUBLE], |b, args| vec![op(b, "Sin", args)]);
    for level in 1..=last {
        let next = format!("level_{}", level - 1);
        define(b, &format!("level_{level}"), &[DType::DOUBLE], |b, args| {
            let first = call_as(b, "first", &next, args, 1).into();
            let second = call_as(b, "second", &next, args, 1).into();
            vec![op(b, join, &[first, second])]
        });
    }
    let x = scalar(b);
    [call_as(b, "call", &format!("level_{last}"), &[x], 1).into(), x]
}

#[test]
fn functions_that_call_the_next_one_twice() {
    let runtime = runtime(&["tenon_cpu"], &[]);
    let registry = runtime.registry();
    let mut b = GraphBuilder::new(&registry);
    let [y, x] = levels(&mut b, 39, "AddN");
    gradient(&mut b, y, x);
    assert_eq!(functions(&b), 2 * 40, "each function and its gradient");
}

#[test]
fn too_many_values_of_functions_are_refused() {
    let runtime = runtime(&["tenon_cpu"], &[]);
    let registry = runtime.registry();
    let mut b = GraphBuilder::new(&registry);
    let [y, x] = levels(&mut b, 39, "Mul");
    let error = gradients(&mut b, &[y], &[x], &Options::default()).unwrap_err();
    assert_eq!(error.code(), Code::UNIMPLEMENTED);
    let expected =
        "is not made: expected a gradient that reads at most 16384 values of the function, found ";
    assert!(error.to_string().contains(expected), "{error}");
}

#[test]
fn calls_that_want_other_gradients_have_functions_of_their_own() {
    let runtime = runtime(&["tenon_cpu"], &[]);
    let registry = runtime.registry();
    let mut b = GraphBuilder::new(&registry);
    define(&mut b, "product", &[DType::DOUBLE; 2], |b, args| vec![op(b, "Mul", args)]);
    let x = scalar(&mut b);
    let three = b.constant("three", Tensor::scalar(3.0).unwrap()).unwrap();
    let left = call_as(&mut b, "left", "product", &[x, three], 1).into();
    let right = call_as(&mut b, "right", "product", &[three, x], 1).into();
    let both = call_as(&mut b, "both", "product", &[left, right], 1).into();
    let again = call_as(&mut b, "again", "product", &[both, x], 1).into();
    let by_x = gradient(&mut b, again, x);
    // The argument of the last call has a known shape.
    assert_eq!(functions(&b), 5, "gradients by the first, by the second, and twice by both");
    // 9 x^3, and 27 x^2.
    assert_eq!(values(b, &[again, by_x]), [1.125, 6.75]);
}
