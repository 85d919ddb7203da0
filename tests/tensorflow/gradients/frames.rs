//! Gradients of loops and conditionals that are made of `Switch`, `Merge` and frames.

use super::numeric::{any, check_graph};
use tenon_graph::{GraphBuilder, NodeId, Output};
use tenon_runtime::framework::{Tensor, attr::AttrValue};
use tenon_tests::session::runtime;

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
