//! A deadline, or who cancels, reaches a kernel while it computes: a step whose kernels would take many seconds ends
//! soon after it.

use std::time::{Duration, Instant};
use tenon_graph::{GraphBuilder, GraphError, Output};
use tenon_runtime::{
    CancelToken, RunOptions, Runtime, Session,
    framework::{Code, DType, PartialShape, Tensor},
};
use tenon_tests::session::{runtime, runtime_of, session_as_written, turn};

const DEADLINE: Duration = Duration::from_millis(100);
/// Kernels of a debug build on a busy machine: the steps below take ten times as long at least.
const PATIENCE: Duration = Duration::from_secs(4);

const PLUGINS: [&str; 3] = ["tenon_cpu", "tenon_fft", "tenon_text"];

fn placeholder(b: &mut GraphBuilder<'_>, dtype: DType) -> Result<Output, GraphError> {
    b.placeholder("x", dtype, PartialShape::UNKNOWN)
}

/// Runs a step with a deadline and one that is cancelled: both end in time, with an error that names the node.
fn ends_in_time(
    runtime: &Runtime,
    feed: &Tensor,
    make: impl FnOnce(&mut GraphBuilder<'_>) -> Result<(), GraphError>,
) {
    let session = session_as_written(runtime, make);
    let options = RunOptions { deadline: Some(DEADLINE), ..RunOptions::default() };
    ends(&session, feed, options, Code::DEADLINE_EXCEEDED);
    let token = CancelToken::new();
    let canceller = {
        let token = token.clone();
        std::thread::spawn(move || {
            std::thread::sleep(DEADLINE);
            token.cancel();
        })
    };
    let options = RunOptions { cancel: Some(token), ..RunOptions::default() };
    ends(&session, feed, options, Code::CANCELLED);
    canceller.join().unwrap();
}

#[track_caller]
fn ends(session: &Session, feed: &Tensor, options: RunOptions, code: Code) {
    let begin = Instant::now();
    let feeds = [("x", feed.clone())];
    let error = session.run(&feeds, &["last"], &[], &options).expect_err("it is not done");
    let took = begin.elapsed();
    assert_eq!(error.code(), code, "{error}");
    assert!(took < DEADLINE + PATIENCE, "it took {took:?}: {error}");
}

fn whole(dims: &[i64], value: f32) -> Tensor {
    let count = dims.iter().product::<i64>() as usize;
    Tensor::from_slice(dims, &vec![value; count]).expect("as many elements")
}

#[test]
fn a_deadline_reaches_random_numbers() {
    let _turn = turn();
    let dims = Tensor::from_slice(&[1], &[200_000_000i64]).unwrap();
    ends_in_time(&runtime(&PLUGINS, &[]), &dims, |b| {
        let x = placeholder(b, DType::INT64)?;
        let node = b.op("RandomUniform").name("last").input(x).attr("dtype", DType::FLOAT);
        node.build().map(|_| ())
    });
}

#[test]
fn a_deadline_reaches_functions_of_many_pairs() {
    let _turn = turn();
    for op in ["Polygamma", "Igamma"] {
        for threads in [1, 2] {
            let runtime = runtime_of(threads, &PLUGINS, &[]);
            ends_in_time(&runtime, &whole(&[8000, 1], 2.0), |b| {
                let x = placeholder(b, DType::FLOAT)?;
                let y = b.constant("y", whole(&[1, 8000], 3.5))?;
                b.op(op).name("last").input(x).input(y).build().map(|_| ())
            });
        }
    }
}

#[test]
fn a_deadline_reaches_texts() {
    let _turn = turn();
    let x = whole(&[8_000_000], 0.1);
    ends_in_time(&runtime(&PLUGINS, &[]), &x, |b| {
        let x = placeholder(b, DType::FLOAT)?;
        let node = b.op("StringFormat").name("last").inputs(vec![x]).attr("template", "%s");
        node.attr("placeholder", "%s").attr("summarize", -1i64).build().map(|_| ())
    });
    ends_in_time(&runtime(&PLUGINS, &[]), &x, |b| {
        let x = placeholder(b, DType::FLOAT)?;
        b.op("AsString").name("last").input(x).build().map(|_| ())
    });
}

#[test]
fn a_deadline_reaches_transforms_and_orders() {
    let _turn = turn();
    let runtime = runtime(&PLUGINS, &[]);
    ends_in_time(&runtime, &whole(&[4096, 4096], 1.0), |b| {
        let x = placeholder(b, DType::FLOAT)?;
        let length = b.constant("length", Tensor::from_slice(&[1], &[4096i32]).unwrap())?;
        b.op("RFFT").name("last").input(x).input(length).build().map(|_| ())
    });
    let values: Vec<f32> =
        (0..1u32 << 24).map(|at| at.wrapping_mul(2_654_435_761) as f32).collect();
    let x = Tensor::from_slice(&[1 << 24], &values).unwrap();
    ends_in_time(&runtime, &x, |b| {
        let x = placeholder(b, DType::FLOAT)?;
        let k = b.constant("k", Tensor::scalar(1i32 << 24).unwrap())?;
        b.op("TopKV2").name("last").input(x).input(k).build().map(|_| ())
    });
    // A table of values that grows is a piece of work that does not end early.
    let x = Tensor::from_slice(&[1 << 22], &values[..1 << 22]).unwrap();
    ends_in_time(&runtime, &x, |b| {
        let x = placeholder(b, DType::FLOAT)?;
        b.op("Unique").name("last").input(x).build().map(|_| ())
    });
}
