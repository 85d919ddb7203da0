//! Gradients of loops and conditionals that are made of `Switch`, `Merge` and frames.

use super::numeric::{any, check_graph};
use tenon_gradient::{Gradient, Options, gradients};
use tenon_graph::{GraphBuilder, NodeId, Output};
use tenon_runtime::{
    RunOptions, Session, SessionOptions,
    framework::{DType, PartialShape, Tensor, attr::AttrValue},
};
use tenon_tests::session::{run, runtime};

fn op(b: &mut GraphBuilder<'_>, op: &str, inputs: &[Output]) -> Output {
    b.op(op).inputs(inputs.iter().copied()).build().unwrap().into()
}

/// A scalar that is made after a node, and so in its frame.
fn int(b: &mut GraphBuilder<'_>, value: i32, after: Option<NodeId>) -> Output {
    let value = Tensor::scalar(value).unwrap();
    let mut node = b.op("Const").attr("dtype", value.dtype()).attr("value", value);
    if let Some(after) = after {
        node = node.control(after);
    }
    node.build().unwrap().into()
}

fn enter(b: &mut GraphBuilder<'_>, value: Output, frame: &str, stays: bool) -> Output {
    let node = b.op("Enter").input(value).attr("frame_name", frame);
    node.attr("is_constant", AttrValue::Bool(stays)).build().unwrap().into()
}

/// A loop of `count` iterations over variables; `fixed` stay. `body` gets the number of the iteration, a node that runs in
/// it, the variables and what stays.
fn while_loop(
    b: &mut GraphBuilder<'_>,
    frame: &str,
    count: i32,
    after: Option<NodeId>,
    vars: &[Output],
    fixed: &[Output],
    body: impl FnOnce(&mut GraphBuilder<'_>, Output, NodeId, &[Output], &[Output]) -> Vec<Output>,
) -> Vec<Output> {
    let zero = int(b, 0, after);
    let mut merges = Vec::new();
    for &var in [zero].iter().chain(vars) {
        let enter = enter(b, var, frame, false);
        merges.push(b.op("Merge").input(enter).input(enter).build().unwrap());
    }
    let fixed: Vec<Output> = fixed.iter().map(|&value| enter(b, value, frame, true)).collect();
    let limit = int(b, count, Some(merges[0]));
    let less = op(b, "Less", &[merges[0].into(), limit]);
    let cond = op(b, "LoopCond", &[less]);
    let mut switches = Vec::new();
    for &merge in &merges {
        switches.push(op(b, "Switch", &[merge.into(), cond]).node);
    }
    let mut inside = Vec::new();
    for &switch in &switches {
        inside.push(op(b, "Identity", &[Output::new(switch, 1)]));
    }
    let one = int(b, 1, Some(inside[0].node));
    let mut results = vec![op(b, "AddV2", &[inside[0], one])];
    results.extend(body(b, inside[0], inside[0].node, &inside[1..], &fixed));
    for (&merge, &result) in merges.iter().zip(&results) {
        let next = op(b, "NextIteration", &[result]);
        b.back_edge(merge, 1, next).unwrap();
    }
    switches[1..].iter().map(|&switch| op(b, "Exit", &[Output::new(switch, 0)])).collect()
}

/// The results of a conditional: `yes` or `no` of values.
fn conditional(
    b: &mut GraphBuilder<'_>,
    pred: Output,
    values: &[Output],
    yes: impl FnOnce(&mut GraphBuilder<'_>, &[Output]) -> Output,
    no: impl FnOnce(&mut GraphBuilder<'_>, &[Output]) -> Output,
) -> Output {
    let (mut falses, mut trues) = (Vec::new(), Vec::new());
    for &value in values {
        let switch = op(b, "Switch", &[value, pred]).node;
        falses.push(Output::new(switch, 0));
        trues.push(Output::new(switch, 1));
    }
    let (no, yes) = (no(b, &falses), yes(b, &trues));
    op(b, "Merge", &[no, yes])
}

#[test]
fn conditionals() {
    let runtime = runtime(&["tenon_cpu"], &[]);
    for take in [true, false] {
        check_graph(&runtime, "cond", &[any(&[3]), any(&[3])], |b, inputs| {
            let pred = Tensor::scalar(take).unwrap();
            let pred = b.op("Const").attr("dtype", pred.dtype()).attr("value", pred);
            let pred = pred.build().unwrap().into();
            let y = conditional(
                b,
                pred,
                inputs,
                |b, v| {
                    let sine = op(b, "Sin", &v[..1]);
                    op(b, "Mul", &[sine, v[1]])
                },
                |b, v| op(b, "Exp", &v[..1]),
            );
            op(b, "Mul", &[y, inputs[1]]).node
        });
    }
}

#[test]
fn a_loop() {
    let runtime = runtime(&["tenon_cpu", "tenon_data"], &[]);
    for count in [0, 1, 4] {
        check_graph(&runtime, "loop", &[any(&[2, 3]), any(&[2, 3])], |b, inputs| {
            let (vars, fixed) = inputs.split_at(1);
            let results =
                while_loop(b, "loop", count, None, vars, fixed, |b, _, _, vars, fixed| {
                    let sine = op(b, "Sin", vars);
                    vec![op(b, "Mul", &[sine, fixed[0]])]
                });
            op(b, "Mul", &[results[0], inputs[1]]).node
        });
    }
}

#[test]
fn variables_that_exchange_their_values() {
    let runtime = runtime(&["tenon_cpu", "tenon_data"], &[]);
    check_graph(&runtime, "exchange", &[any(&[2]), any(&[2])], |b, inputs| {
        let results = while_loop(b, "loop", 3, None, inputs, &[], |b, _, _, vars, _| {
            let product = op(b, "Mul", vars);
            vec![op(b, "Sin", &[vars[1]]), product]
        });
        results[0].node
    });
}

#[test]
fn a_branch_in_a_loop() {
    let runtime = runtime(&["tenon_cpu", "tenon_data"], &[]);
    check_graph(&runtime, "branch", &[any(&[2]), any(&[2])], |b, inputs| {
        let (vars, fixed) = inputs.split_at(1);
        let body = |b: &mut GraphBuilder<'_>, at, pivot, vars: &[Output], fixed: &[Output]| {
            let two = int(b, 2, Some(pivot));
            let zero = int(b, 0, Some(pivot));
            let rest = op(b, "FloorMod", &[at, two]);
            let odd = op(b, "Greater", &[rest, zero]);
            let values = [vars[0], fixed[0]];
            vec![conditional(
                b,
                odd,
                &values,
                |b, v| {
                    let sine = op(b, "Sin", &v[..1]);
                    let wave = op(b, "Cos", &[sine]);
                    op(b, "Mul", &[wave, v[1]])
                },
                |b, v| op(b, "Mul", &[v[0], v[0]]),
            )]
        };
        while_loop(b, "loop", 4, None, vars, fixed, body)[0].node
    });
}

#[test]
fn a_loop_in_a_loop() {
    let runtime = runtime(&["tenon_cpu", "tenon_data"], &[]);
    check_graph(&runtime, "nested", &[any(&[2]), any(&[2])], |b, inputs| {
        let (vars, fixed) = inputs.split_at(1);
        let outer = |b: &mut GraphBuilder<'_>, _, pivot, vars: &[Output], fixed: &[Output]| {
            let waves = [op(b, "Sin", vars)];
            let inner = |b: &mut GraphBuilder<'_>, _, _, vars: &[Output], fixed: &[Output]| {
                let sine = op(b, "Cos", vars);
                vec![op(b, "Mul", &[sine, fixed[0]])]
            };
            let inner = while_loop(b, "inner", 2, Some(pivot), &waves, fixed, inner);
            vec![op(b, "Mul", &[inner[0], vars[0]])]
        };
        while_loop(b, "outer", 3, None, vars, fixed, outer)[0].node
    });
}

/// Nodes of a branch that run with it and read none of the values that a switch gives.
#[test]
fn a_value_that_a_branch_makes() {
    let runtime = runtime(&["tenon_cpu", "tenon_data"], &[]);
    check_graph(&runtime, "made", &[any(&[2]), any(&[2])], |b, inputs| {
        let (vars, fixed) = inputs.split_at(1);
        let body = |b: &mut GraphBuilder<'_>, at, pivot, vars: &[Output], fixed: &[Output]| {
            let two = int(b, 2, Some(pivot));
            let zero = int(b, 0, Some(pivot));
            let rest = op(b, "FloorMod", &[at, two]);
            let odd = op(b, "Greater", &[rest, zero]);
            let switch = op(b, "Switch", &[odd, odd]).node;
            let taken = op(b, "Identity", &[Output::new(switch, 1)]).node;
            let values = [vars[0], fixed[0]];
            let yes = |b: &mut GraphBuilder<'_>, v: &[Output]| {
                let three = int(b, 3, Some(taken));
                let more = op(b, "AddV2", &[three, three]);
                let number = b.op("Cast").input(more).attr("DstT", DType::DOUBLE);
                let number = number.build().unwrap().into();
                let product = op(b, "Mul", &[v[0], number]);
                let product = op(b, "Sin", &[product]);
                op(b, "Mul", &[product, v[1]])
            };
            vec![conditional(b, odd, &values, yes, |b, v| op(b, "Mul", &[v[0], v[0]]))]
        };
        while_loop(b, "loop", 4, None, vars, fixed, body)[0].node
    });
}

#[test]
fn a_loop_in_a_branch_in_a_loop() {
    let runtime = runtime(&["tenon_cpu", "tenon_data"], &[]);
    check_graph(&runtime, "inner", &[any(&[2]), any(&[2])], |b, inputs| {
        let (vars, fixed) = inputs.split_at(1);
        let body = |b: &mut GraphBuilder<'_>, at, pivot, vars: &[Output], fixed: &[Output]| {
            let two = int(b, 2, Some(pivot));
            let zero = int(b, 0, Some(pivot));
            let rest = op(b, "FloorMod", &[at, two]);
            let odd = op(b, "Greater", &[rest, zero]);
            let switch = op(b, "Switch", &[odd, odd]).node;
            let taken = op(b, "Identity", &[Output::new(switch, 1)]).node;
            let values = [vars[0], fixed[0]];
            let yes = |b: &mut GraphBuilder<'_>, v: &[Output]| {
                let inner = |b: &mut GraphBuilder<'_>, _, _, vars: &[Output], fixed: &[Output]| {
                    let wave = op(b, "Cos", vars);
                    vec![op(b, "Mul", &[wave, fixed[0]])]
                };
                while_loop(b, "inner", 2, Some(taken), &v[..1], &v[1..], inner)[0]
            };
            vec![conditional(b, odd, &values, yes, |b, v| op(b, "Mul", &[v[0], v[0]]))]
        };
        while_loop(b, "loop", 4, None, vars, fixed, body)[0].node
    });
}

#[test]
fn a_variable_whose_last_value_is_not_read() {
    let runtime = runtime(&["tenon_cpu", "tenon_data"], &[]);
    check_graph(&runtime, "longer", &[any(&[2]), any(&[])], |b, inputs| {
        let results = while_loop(b, "loop", 3, None, inputs, &[], |b, _, pivot, vars, _| {
            let axis = int(b, 0, Some(pivot));
            let wave = op(b, "Sin", &vars[..1]);
            let longer = op(b, "ConcatV2", &[wave, vars[0], axis]);
            let sum = op(b, "Sum", &[longer, axis]);
            vec![longer, op(b, "Mul", &[vars[1], sum])]
        });
        results[1].node
    });
}

#[test]
fn two_exits_of_a_variable() {
    let runtime = runtime(&["tenon_cpu", "tenon_data"], &[]);
    check_graph(&runtime, "exits", &[any(&[2])], |b, inputs| {
        let results = while_loop(b, "loop", 2, None, inputs, &[], |b, _, _, vars, _| {
            vec![op(b, "Sin", vars)]
        });
        let last = b.graph().node(results[0].node).inputs[0];
        let other = op(b, "Exit", &[last]);
        let wave = op(b, "Cos", &[other]);
        op(b, "Mul", &[results[0], wave]).node
    });
}

#[test]
fn gradients_stop_at_an_exit() {
    let runtime = runtime(&["tenon_cpu", "tenon_data"], &[]);
    let registry = runtime.registry();
    let mut b = GraphBuilder::new(&registry);
    let x = b.placeholder("x", DType::DOUBLE, PartialShape::new(&[2]).unwrap()).unwrap();
    let results =
        while_loop(&mut b, "loop", 2, None, &[x], &[], |b, _, _, vars, _| vec![op(b, "Sin", vars)]);
    let y = op(&mut b, "Square", &results);
    let stop = Options { stop_gradients: results.clone(), ..Options::default() };
    let made = gradients(&mut b, &[y], &[results[0], x], &stop).unwrap();
    assert!(made[0].is_some() && made[1].is_none(), "{made:?}");
}

#[test]
fn a_variable_that_a_loop_reads() {
    let runtime = runtime(&["tenon_cpu", "tenon_data"], &[]);
    let registry = runtime.registry();
    let mut b = GraphBuilder::new(&registry);
    let scalar = PartialShape::new(&[]).unwrap();
    let x = b.placeholder("x", DType::DOUBLE, scalar.clone()).unwrap();
    let handle = b.op("VarHandleOp").name("v").attr("dtype", DType::DOUBLE).attr("shape", scalar);
    let handle = Output::from(handle.build().unwrap());
    let two = b.constant("two", Tensor::scalar(2.0).unwrap()).unwrap();
    b.op("AssignVariableOp").name("assign").input(handle).input(two).build().unwrap();
    let results = while_loop(&mut b, "loop", 3, None, &[x], &[handle], |b, _, _, vars, fixed| {
        let read = b.op("ReadVariableOp").input(fixed[0]).attr("dtype", DType::DOUBLE);
        let read = read.build().unwrap().into();
        vec![op(b, "Mul", &[vars[0], read])]
    });
    let made = gradients(&mut b, &results, &[handle], &Options::default()).unwrap();
    let Some(Gradient::Dense(gradient)) = made[0] else { panic!("a tensor") };
    let gradient = b.graph().output_name(gradient);
    let session = Session::new(&runtime, SessionOptions::default()).unwrap();
    session.extend_graph(&b.finish()).unwrap();
    session.run(&[], &[], &["assign"], &RunOptions::default()).unwrap();
    let found = run(&session, &[("x", Tensor::scalar(5.0).unwrap())], &[&gradient]).unwrap();
    // The result is 5 v^3.
    assert_eq!(found[0].as_slice::<f64>().unwrap(), [60.0]);
}
