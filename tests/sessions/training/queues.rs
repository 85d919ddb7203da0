//! Queues that threads fill: their end, their cancellation, and errors of the threads.

use super::model::{everywhere, local, plugins, scaffold_with};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tenon_graph::GraphBuilder;
use tenon_runtime::{
    AnySession,
    framework::{Code, DType},
    proto::QueueRunnerDef,
};
use tenon_tests::session::turn;
use tenon_training::{
    Coordinator, Hook, Initial, LoopOptions, MonitoredSession, QueueRunner, SaverOptions, Scaffold,
    StopAtStep, TrainError, VariableOptions, Variables,
};

const GRACE: Duration = Duration::from_secs(30);

/// A queue with room for two numbers; `enqueue` adds 0, 1 and so on up to `limit`, `next` takes one.
fn queue(
    b: &mut GraphBuilder<'_>,
    variables: &mut Variables,
    limit: i64,
) -> Result<(), TrainError> {
    let options = VariableOptions { is_trainable: false, ..VariableOptions::default() };
    let count = variables.add_with(b, "numbers", DType::INT64, &[], &Initial::Zeros, options)?;
    let next = b.op("ResourceCountUpTo").name("number").input(count.handle).attr("limit", limit);
    let next = next.attr("T", DType::INT64).build()?;
    let types = || vec![DType::INT64];
    let queue = b.op("FIFOQueueV2").name("queue").attr("component_types", types());
    let queue = queue.attr("capacity", 2i64).build()?;
    b.op("QueueEnqueueV2").name("enqueue").input(queue).input(next).build()?;
    let taken = b.op("QueueDequeueV2").name("next").input(queue).attr("component_types", types());
    taken.build()?;
    b.op("QueueCloseV2").name("close").input(queue).build()?;
    b.op("QueueCloseV2")
        .name("cancel")
        .input(queue)
        .attr("cancel_pending_enqueues", true)
        .build()?;
    Ok(())
}

fn runner() -> QueueRunner {
    let def = QueueRunnerDef {
        queue_name: "queue".to_owned(),
        enqueue_op_name: vec!["enqueue".to_owned(), "enqueue".to_owned()],
        close_op_name: "close".to_owned(),
        cancel_op_name: "cancel".to_owned(),
        queue_closed_exception_types: vec![],
    };
    let runner = QueueRunner::from_def(&def).unwrap();
    assert_eq!(runner.closed_codes, [Code::OUT_OF_RANGE]);
    let again = QueueRunner::from_def(&runner.to_def()).unwrap();
    assert_eq!(again, runner);
    runner
}

fn started(session: &Arc<dyn AnySession>) -> Coordinator {
    session.run_step(&[], &[], &["init"], None).unwrap();
    let coordinator = Coordinator::new();
    runner().start(session, &coordinator).unwrap();
    coordinator
}

fn scaffold(runtime: &tenon_runtime::Runtime, limit: i64) -> Scaffold {
    scaffold_with(runtime, SaverOptions::default(), |b, v| queue(b, v, limit))
}

#[test]
fn the_queue_is_closed_at_the_end_of_the_input() {
    let _turn = turn();
    everywhere(|runtime, target| {
        let session = target.open(&scaffold(runtime, 7).graph).unwrap();
        let coordinator = started(&session);
        let mut found = Vec::new();
        let ended = loop {
            match session.run_step(&[], &["next"], &[], Some(GRACE)) {
                Ok(values) => found.push(values[0].as_slice::<i64>().unwrap()[0]),
                Err(error) => break error,
            }
        };
        assert_eq!(ended.code, Code::OUT_OF_RANGE, "{ended}");
        found.sort_unstable();
        assert_eq!(found, [0, 1, 2, 3, 4, 5, 6]);
        coordinator.join(GRACE).unwrap();
        session.close_session().unwrap();
    });
}

#[test]
fn threads_that_wait_for_room_end_with_the_stop() {
    let _turn = turn();
    everywhere(|runtime, target| {
        let session = target.open(&scaffold(runtime, 1 << 40).graph).unwrap();
        let coordinator = started(&session);
        session.run_step(&[], &["next"], &[], Some(GRACE)).unwrap();
        coordinator.request_stop();
        let begin = Instant::now();
        coordinator.join(GRACE).unwrap();
        assert!(begin.elapsed() < GRACE / 2);
        session.close_session().unwrap();
    });
}

#[test]
fn the_error_of_a_thread_is_the_error_of_the_training() {
    let _turn = turn();
    let runtime = plugins();
    let broken = QueueRunner { enqueue: vec!["nothing".to_owned()], ..runner() };
    let scaffold = Scaffold { queue_runners: vec![broken], ..scaffold(&runtime, 7) };
    let training =
        MonitoredSession::open(local(&runtime), scaffold, Vec::new(), LoopOptions::default());
    let mut training = training.unwrap();
    // The queue is closed by the cancel thread, and the step's own error follows from that.
    let error = training.run(&[], &["next"], &[]).unwrap_err();
    assert_eq!(error.code(), Code::NOT_FOUND, "{error}");
    assert!(error.to_string().contains("nothing"), "{error}");
    assert!(training.close().is_err());
}

#[test]
fn a_training_ends_with_its_queue() {
    let _turn = turn();
    let runtime = plugins();
    let scaffold = || Scaffold { queue_runners: vec![runner()], ..scaffold(&runtime, 5) };
    let mut training =
        MonitoredSession::open(local(&runtime), scaffold(), Vec::new(), LoopOptions::default())
            .unwrap();
    let mut ran = 0;
    while !training.should_stop() {
        match training.run(&[], &["next"], &["train"]) {
            Ok(_) => ran += 1,
            Err(error) => assert_eq!(error.code(), Code::OUT_OF_RANGE, "{error}"),
        }
    }
    assert_eq!(ran, 5);
    training.close().unwrap();
    // A stop before the end of the input.
    let hooks: Vec<Box<dyn Hook>> = vec![Box::new(StopAtStep::after(2))];
    let training =
        MonitoredSession::open(local(&runtime), scaffold(), hooks, LoopOptions::default()).unwrap();
    let begin = Instant::now();
    training.train(&["train"]).unwrap();
    assert!(begin.elapsed() < GRACE);
}

#[test]
fn a_runner_needs_a_queue_and_a_node() {
    let error = QueueRunner::from_def(&QueueRunnerDef::default()).unwrap_err();
    assert_eq!(error.code(), Code::INVALID_ARGUMENT, "{error}");
}
