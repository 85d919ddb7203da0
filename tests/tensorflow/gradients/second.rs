//! Gradients of gradients, by central differences of the first ones.

use super::functions::{call, conditional, define_wave, power_loop};
use super::numeric::{Input, any, check_known, int_tensor, ints, positive};
use tenon_gradient::{Gradient, Options, gradients};
use tenon_graph::{GraphBuilder, NodeId, Output};
use tenon_tests::session::runtime;

/// A node that gives the gradients of `y` with respect to `xs`.
fn first_order(b: &mut GraphBuilder<'_>, y: Output, xs: &[Output]) -> NodeId {
    let made = gradients(b, &[y], xs, &Options::default()).unwrap();
    let mut parts = Vec::new();
    for gradient in made.into_iter().flatten() {
        let Gradient::Dense(values) = gradient else { panic!("expected a tensor") };
        parts.push(values);
    }
    b.op("IdentityN").inputs(parts).build().unwrap()
}

#[test]
fn ops() {
    let runtime = runtime(&["tenon_cpu"], &[]);
    let check = |op: &str, inputs: &[Input]| {
        check_known(&runtime, op, inputs, |b, sources| {
            let xs: Vec<Output> = sources
                .iter()
                .copied()
                .filter(|x| b.graph().node(x.node).op.name == "Placeholder")
                .collect();
            let node = b.op(op).inputs(sources.iter().copied());
            let y: Output = node.build().unwrap().into();
            let y = b.op("Sin").input(y).build().unwrap();
            first_order(b, y.into(), &xs)
        });
    };
    for op in ["Square", "Exp", "Expm1", "Sin", "Cos", "Atan", "Asinh", "Erf"] {
        check(op, &[any(&[2, 3])]);
    }
    for op in ["Log", "Log1p", "Lgamma"] {
        check(op, &[positive(&[2, 3])]);
    }
    for op in ["Mul", "RealDiv", "Pow", "SquaredDifference", "Atan2", "Xlogy", "Xdivy"] {
        check(op, &[positive(&[2, 3]), positive(&[2, 3])]);
    }
    check("Reshape", &[any(&[2, 3]), ints(&[6])]);
    check("Slice", &[any(&[3, 2]), ints(&[1, 0]), ints(&[2, 1])]);
    check("GatherNd", &[any(&[3, 2]), int_tensor(&[1, 2], &[2, 1])]);
    check("Transpose", &[any(&[2, 3]), ints(&[1, 0])]);
}

#[test]
fn calls_conditionals_and_loops() {
    let runtime = runtime(&["tenon_cpu", "tenon_data"], &[]);
    let inputs = [any(&[2]), any(&[2])];
    check_known(&runtime, "call", &inputs, |b, sources| {
        define_wave(b, "wave");
        let y = call(b, "wave", sources, 2);
        first_order(b, y.into(), sources)
    });
    for above in [-10.0, 10.0] {
        check_known(&runtime, "if", &inputs, |b, sources| {
            let y = conditional(b, sources, above);
            first_order(b, y.into(), sources)
        });
    }
    check_known(&runtime, "while", &inputs, |b, sources| {
        let y = power_loop(b, sources, 3);
        first_order(b, Output::new(y, 1), sources)
    });
}
