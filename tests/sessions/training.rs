//! Updates of variables by optimisers: what is refused, what readers keep, and several updates at the same time. The
//! modules are about the loops around such updates: checkpoints, hooks, queues, and sessions that are lost.

mod background;
mod killed;
mod model;
mod monitored;
mod queues;
mod saver;

use std::thread;
use tenon_graph::{GraphBuilder, GraphError, NodeId, Output};
use tenon_runtime::{
    RunOptions, Session,
    framework::{Code, DType, PartialShape, Tensor},
};
use tenon_tests::session::{floats, run, runtime, runtime_of, session, turn, values};

const PLUGINS: &[&str] = &["tenon_cpu", "tenon_data", "tenon_train"];

fn scalar(b: &mut GraphBuilder<'_>, name: &str, value: f32) -> Result<Output, GraphError> {
    b.constant(name, Tensor::scalar(value).expect("a scalar"))
}

/// A variable, which the node `set_NAME` gives the placeholder `first`.
fn variable(b: &mut GraphBuilder<'_>, name: &str, first: NodeId) -> Result<NodeId, GraphError> {
    let shape = PartialShape::UNKNOWN;
    let handle = b.op("VarHandleOp").name(name).attr("dtype", DType::FLOAT).attr("shape", shape);
    let handle = handle.build()?;
    let set = format!("set_{name}");
    b.op("AssignVariableOp").name(&set).input(handle).input(first).build()?;
    b.op("ReadVariableOp")
        .name(&format!("value_{name}"))
        .input(handle)
        .attr("dtype", DType::FLOAT)
        .build()?;
    Ok(handle)
}

/// Variables `a` and `b`. `forth` has `a` trained with `b` as its momentum, `back` the other way round, `same` has
/// `a` as both; `rows` updates rows of `a` with `b` as the sum of squares, by the placeholder `indices`, `rows_same` with `a`.
fn updates(b: &mut GraphBuilder<'_>) -> Result<(), GraphError> {
    let first = b.op("Placeholder").name("first").attr("dtype", DType::FLOAT);
    let first = first.attr("shape", PartialShape::UNKNOWN).build()?;
    let gradient = b.op("Placeholder").name("gradient").attr("dtype", DType::FLOAT);
    let gradient = gradient.attr("shape", PartialShape::UNKNOWN).build()?;
    let indices = b.op("Placeholder").name("indices").attr("dtype", DType::INT32);
    let indices = indices.attr("shape", PartialShape::UNKNOWN).build()?;
    let (a, other) = (variable(b, "a", first)?, variable(b, "b", first)?);
    let (lr, momentum) = (scalar(b, "lr", 0.5)?, scalar(b, "momentum", 1.0)?);
    for (name, var, accum) in [("forth", a, other), ("back", other, a), ("same", a, a)] {
        let update = b.op("ResourceApplyMomentum").name(name).input(var).input(accum);
        update.input(lr).input(gradient).input(momentum).build()?;
    }
    for (name, sum, locks) in [
        ("rows", other, false),
        ("rows_locked", other, true),
        ("rows_same", a, false),
        ("rows_same_locked", a, true),
    ] {
        let update = b.op("ResourceSparseApplyAdagrad").name(name).attr("use_locking", locks);
        update.input(a).input(sum).input(lr).input(gradient).input(indices).build()?;
    }
    Ok(())
}

fn start(session: &Session, first: &Tensor) {
    let targets = ["set_a", "set_b"];
    let feeds = [("first", first.clone())];
    session.run(&feeds, &[], &targets, &RunOptions::default()).expect("they are assigned");
}

fn step(
    session: &Session,
    node: &str,
    gradient: &Tensor,
    indices: &[i32],
) -> Result<(), (Code, String)> {
    let indices = Tensor::from_slice(&[indices.len() as i64], indices).expect("a vector");
    let feeds = [("gradient", gradient.clone()), ("indices", indices)];
    let ran = session.run(&feeds, &[], &[node], &RunOptions::default());
    ran.map(drop).map_err(|error| (error.code(), error.to_string()))
}

fn value(session: &Session, name: &str) -> Vec<f32> {
    let name = format!("value_{name}");
    values(&run(session, &[], &[&name]).expect("it has a value")[0])
}

#[track_caller]
fn refused(
    session: &Session,
    node: &str,
    gradient: &Tensor,
    indices: &[i32],
    code: Code,
    text: &str,
) {
    let (found, message) = step(session, node, gradient, indices).expect_err("it is refused");
    assert!(found == code && message.contains(text), "{node}: {found}: {message}");
}

#[test]
fn what_an_update_refuses_is_named_and_nothing_is_written() {
    let _turn = turn();
    let session = session(&runtime(PLUGINS, &[]), updates);
    let ones = floats(&[1.0; 6]);
    let unset = "Attempting to use uninitialized value a";
    for node in ["forth", "rows", "rows_locked"] {
        refused(&session, node, &ones, &[0], Code::FAILED_PRECONDITION, unset);
    }
    let matrix = ones.reshaped(&[3, 2]).expect("as many elements");
    start(&session, &matrix);
    let invalid = Code::INVALID_ARGUMENT;
    refused(
        &session,
        "forth",
        &ones,
        &[],
        invalid,
        "var and the gradient do not have the same shape: [3, 2] and [6]",
    );
    for (node, indices) in
        [("same", &[][..]), ("rows_same", &[0, 1, 2]), ("rows_same_locked", &[0, 1, 2])]
    {
        let text = "variables 0 and 1: expected two variables, found one";
        refused(&session, node, &matrix, indices, invalid, text);
    }
    for node in ["rows", "rows_locked"] {
        for (indices, text) in [
            ([0, 3, 1], "Index 3 at offset 1 in indices is out of range: expected one in [0, 3)"),
            ([0, 1, -1], "Index -1 at offset 2 in indices is out of range"),
        ] {
            refused(&session, node, &matrix, &indices, invalid, text);
        }
        refused(
            &session,
            node,
            &matrix,
            &[0, 1],
            invalid,
            "for each of 2 indices, found shape [3, 2]",
        );
        refused(&session, node, &ones, &[0, 1], invalid, "for each of 2 indices, found shape [6]");
    }
    assert_eq!(value(&session, "a"), [1.0; 6]);
    assert_eq!(value(&session, "b"), [1.0; 6]);
}

#[test]
fn a_reader_keeps_the_value_from_before_an_update() {
    let _turn = turn();
    let session = session(&runtime(PLUGINS, &[]), updates);
    let matrix = floats(&[1.0; 6]).reshaped(&[3, 2]).expect("as many elements");
    start(&session, &matrix);
    let held = run(&session, &[], &["value_a", "value_b"]).expect("they have values");
    step(&session, "forth", &matrix, &[]).expect("it is updated");
    assert_eq!(value(&session, "b"), [2.0; 6]);
    assert_eq!(value(&session, "a"), [0.0; 6]);
    // Of rows 1, 0, 1, 2: the second update of row 1 follows the first.
    step(&session, "rows", &floats(&[0.0; 8]).reshaped(&[4, 2]).expect("as many"), &[1, 0, 1, 2])
        .expect("rows are updated");
    assert!(held.iter().all(|tensor| values(tensor) == [1.0; 6]));
}

#[test]
fn updates_of_two_variables_in_both_orders_do_not_wait_for_each_other() {
    const TIMES: usize = 300;
    let _turn = turn();
    let session = session(&runtime_of(4, PLUGINS, &[]), updates);
    let zeros = floats(&[0.0; 6]).reshaped(&[3, 2]).expect("as many elements");
    start(&session, &zeros);
    thread::scope(|scope| {
        for node in ["forth", "back", "rows", "rows_locked"] {
            let (session, gradient) = (&session, &zeros);
            scope.spawn(move || {
                (0..TIMES).for_each(|_| {
                    step(session, node, gradient, &[2, 0, 2]).expect("no update fails");
                });
            });
        }
    });
    // Adagrad divides by the root of a sum that is 0 here.
    assert!(value(&session, "b").iter().all(|x| *x == 0.0 || x.is_nan()));
}

/// An update of a million elements, and one of many rows with some twice, on four threads and on one.
#[test]
fn threads_do_not_change_a_result() {
    let _turn = turn();
    let (rows, len, count) = (4_000, 250, 3_000);
    let noise = |at: usize| ((at * 2_654_435_761) % 1009) as f32 / 1009.0;
    let tensor = |rows: usize, shift: f32| {
        let all: Vec<f32> = (0..rows * len).map(|at| noise(at) + shift).collect();
        floats(&all).reshaped(&[rows as i64, len as i64]).expect("as many elements")
    };
    let (first, whole, some) = (tensor(rows, 0.5), tensor(rows, -0.5), tensor(count, -0.5));
    let indices: Vec<i32> = (0..count).map(|at| (at * 7919 % 1999) as i32).collect();
    let on = |threads: usize| {
        let session = session(&runtime_of(threads, PLUGINS, &[]), updates);
        start(&session, &first);
        step(&session, "forth", &whole, &[]).expect("all is updated");
        step(&session, "rows", &some, &indices).expect("rows are updated");
        step(&session, "rows_locked", &some, &indices).expect("rows are updated");
        (value(&session, "a"), value(&session, "b"))
    };
    let (alone, together) = (on(1), on(4));
    let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&alone.0), bits(&together.0));
    assert_eq!(bits(&alone.1), bits(&together.1));
}
