//! Variables on a device with memory and streams of its own.

use super::support::{ACCEL, Held, PATIENCE};
use std::{
    sync::{Arc, Condvar, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};
use tenon_graph::{GraphBuilder, GraphError};
use tenon_runtime::{
    RunOptions, Session,
    framework::{DType, PartialShape, Tensor},
    host::call::TraceSink,
};
use tenon_tests::session::{floats, run, runtime, session, session_as_written, turn, values};

const PLUGINS: &[&str] = &["tenon_cpu", "tenon_data", "tenon_accel"];
const LENGTH: usize = 5000;

/// A variable on ACCEL: `set` gives it `x`, `add` adds `x`, `value` reads it and `twice` computes with it.
fn variable(b: &mut GraphBuilder<'_>) -> Result<(), GraphError> {
    let shape = PartialShape::new(&[LENGTH as i64]).expect("a shape");
    let x = b.placeholder("x", DType::FLOAT, shape.clone())?;
    let handle = b.op("VarHandleOp").name("v").attr("dtype", DType::FLOAT).attr("shape", shape);
    let handle = handle.device(ACCEL).build()?;
    b.op("AssignVariableOp").name("set").input(handle).input(x).device(ACCEL).build()?;
    b.op("AssignAddVariableOp").name("add").input(handle).input(x).device(ACCEL).build()?;
    let value = b.op("ReadVariableOp").name("value").input(handle).attr("dtype", DType::FLOAT);
    let value = value.device(ACCEL).build()?;
    b.op("Add").name("twice").input(value).input(value).device(ACCEL).build().map(drop)
}

fn all(value: f32) -> Tensor {
    floats(&[value; LENGTH])
}

fn change(session: &Session, node: &str, value: f32, options: &RunOptions) {
    session.run(&[("x", all(value))], &[], &[node], options).expect("it runs");
}

/// Tells when the call for a node has returned.
#[derive(Default)]
struct Returned {
    nodes: Mutex<Vec<String>>,
    more: Condvar,
}

impl TraceSink for Returned {
    fn span(&self, node: &str, _name: &str, _begin_ns: u64, _end_ns: u64) {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner).push(node.to_owned());
        self.more.notify_all();
    }
}

impl Returned {
    fn wait_for(&self, node: &str) {
        let end = Instant::now() + PATIENCE;
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        while !nodes.iter().any(|name| name == node) {
            assert!(Instant::now() < end, "{node} was not called, only {nodes:?}");
            let waited = self.more.wait_timeout(nodes, Duration::from_millis(100));
            nodes = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[test]
fn a_variable_is_set_updated_and_read_on_its_device() {
    let _turn = turn();
    let session = session(&runtime(PLUGINS, &[]), variable);
    change(&session, "set", 1.0, &RunOptions::default());
    for _ in 0..3 {
        change(&session, "add", 0.5, &RunOptions::default());
    }
    let fetched = run(&session, &[], &["value", "twice"]).expect("it has a value");
    assert_eq!((values(&fetched[0]), values(&fetched[1])), (vec![2.5; LENGTH], vec![5.0; LENGTH]));
}

#[test]
fn a_step_waits_for_an_update_that_another_has_only_enqueued() {
    let _turn = turn();
    let runtime = runtime(PLUGINS, &[]);
    let session = session(&runtime, variable);
    change(&session, "set", 1.0, &RunOptions::default());
    for fetch in ["value", "twice"] {
        let before = values(&run(&session, &[], &[fetch]).expect("it has a value")[0])[0];
        let found = thread::scope(|scope| {
            let (back, trace) = (Held::back(&runtime, "assign_add"), Arc::new(Returned::default()));
            let (session, sink) = (&session, Arc::clone(&trace) as Arc<dyn TraceSink>);
            let options = RunOptions { trace: Some(sink), ..RunOptions::default() };
            let update = scope.spawn(move || change(session, "add", 2.0, &options));
            trace.wait_for("add");
            let read = scope.spawn(move || run(session, &[], &[fetch]).expect("it has a value"));
            // Long enough for a step that does not wait.
            thread::sleep(Duration::from_millis(50));
            drop(back);
            update.join().expect("no panic");
            read.join().expect("no panic").remove(0)
        });
        let change = if fetch == "value" { 2.0 } else { 4.0 };
        assert_eq!(values(&found), vec![before + change; LENGTH], "{fetch}");
    }
}

#[test]
fn steps_that_update_at_the_same_time_lose_nothing() {
    const STEPS: usize = 25;
    let _turn = turn();
    for seed in ["0", "7"] {
        let runtime = runtime(PLUGINS, &[("accel.reorder_seed", seed)]);
        let session = session(&runtime, variable);
        change(&session, "set", 0.0, &RunOptions::default());
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..STEPS {
                        change(&session, "add", 1.0, &RunOptions::default());
                        let seen = values(&run(&session, &[], &["value"]).expect("a value")[0]);
                        assert!(seen.iter().all(|value| *value == seen[0]), "half of an update");
                    }
                });
            }
        });
        let found = run(&session, &[], &["value"]).expect("it has a value");
        assert_eq!(values(&found[0]), vec![4.0 * STEPS as f32; LENGTH], "seed {seed}");
    }
}

/// `change` is `v^2 - relu(v)`, which `update` subtracts from `v`; `before` is `-v`, on a stream of its own.
fn decay(b: &mut GraphBuilder<'_>) -> Result<(), GraphError> {
    let shape = PartialShape::new(&[LENGTH as i64]).expect("a shape");
    let x = b.placeholder("x", DType::FLOAT, shape.clone())?;
    let handle = b.op("VarHandleOp").name("v").attr("dtype", DType::FLOAT).attr("shape", shape);
    let handle = handle.device(ACCEL).build()?;
    b.op("AssignVariableOp").name("set").input(handle).input(x).device(ACCEL).build()?;
    let value = b.op("ReadVariableOp").input(handle).attr("dtype", DType::FLOAT).device(ACCEL);
    let value = value.build()?;
    b.op("Neg").name("before").input(value).device(ACCEL).build()?;
    let square = b.op("Square").input(value).device(ACCEL).build()?;
    let relu = b.op("Relu").input(value).device(ACCEL).build()?;
    let change = b.op("Sub").input(square).input(relu).device(ACCEL).build()?;
    let update = b.op("AssignSubVariableOp").name("update").input(handle).input(change);
    update.device(ACCEL).build().map(drop)
}

#[test]
fn an_update_comes_after_all_that_reads_the_value_in_whatever_order_streams_run() {
    let _turn = turn();
    for seed in ["0", "1", "2", "3", "4", "5"] {
        let runtime = runtime(PLUGINS, &[("accel.reorder_seed", seed)]);
        let session = session_as_written(&runtime, decay);
        let mut expected: Vec<f32> = (0..LENGTH).map(|at| (at % 7) as f32 / 8.0 + 0.5).collect();
        let first = [("x", floats(&expected))];
        session.run(&first, &[], &["set"], &RunOptions::default()).expect("it is set");
        for step in 0..5 {
            let ran = session.run(&[], &["before"], &["update"], &RunOptions::default());
            let before = values(&ran.expect("it runs").0[0]);
            let same = before.iter().zip(&expected).all(|(before, value)| *before == -value);
            assert!(same, "seed {seed}, step {step}");
            expected.iter_mut().for_each(|x| *x -= *x * *x - x.max(0.0));
        }
    }
}
