//! Functions that kernels call: within their step, and beyond it.

use std::time::{Duration, Instant};
use tenon_graph::{Graph, GraphBuilder, GraphError, Output};
use tenon_runtime::{
    RunOptions, Runtime, RuntimeError, Session, SessionOptions, Worker,
    framework::{
        Code, DType, PartialShape, Tensor,
        attr::{AttrList, AttrValue},
    },
};
use tenon_tests::{
    session::{self, floats, graph, library, turn, values},
    zoo::Language,
};

type Built = Result<(), GraphError>;

/// The plugins for CPU and for queues, and the zoo of a language.
fn over(threads: usize, language: Language) -> Runtime {
    let files = ["tenon_cpu", "tenon_data"].map(library);
    session::runtime_over(threads, files.into_iter().chain([language.zoo()]), &[])
}

/// Adds function `double`: `y = x + x`, of any shape; `refuse`, which fails; and `wait`, which takes an element of a
/// queue that has none.
fn define(b: &mut GraphBuilder<'_>, runtime: &Runtime) -> Built {
    let mut body = |name: &str, make: &dyn Fn(&mut GraphBuilder<'_>, Output) -> Built| {
        let body = graph(runtime, |b| {
            let x = b.placeholder("x", DType::FLOAT, PartialShape::UNKNOWN)?;
            make(b, x)
        });
        b.define(name, &body, &[body.tensor("x")?], &[body.tensor("y")?])
    };
    body("double", &|b, x| b.op("AddV2").name("y").input(x).input(x).build().map(|_| ()))?;
    body("refuse", &|b, x| {
        let node = b.op("CheckNumerics").name("y").input(x).attr("message", "refused");
        node.build().map(|_| ())
    })?;
    body("wait", &|b, _| {
        let types = vec![DType::FLOAT];
        let queue = b.op("FIFOQueueV2").name("queue").attr("component_types", types.clone());
        let queue = queue.attr("shared_name", "empty").build()?;
        let node = b.op("QueueDequeueV2").name("y").input(queue);
        node.attr("component_types", types).build().map(|_| ())
    })
}

/// A session over function definitions and what `make` adds.
fn session_of(
    worker: &Worker,
    runtime: &Runtime,
    make: impl FnOnce(&mut GraphBuilder<'_>) -> Built,
) -> Session {
    let session = Session::on(worker, SessionOptions::default()).expect("options by default");
    let def = graph(runtime, |b| {
        define(b, runtime)?;
        make(b)
    });
    session.extend(&def.to_graph_def().expect("it can be written")).expect("it can be read");
    session
}

fn x(b: &mut GraphBuilder<'_>) -> Result<Output, GraphError> {
    b.placeholder("x", DType::FLOAT, PartialShape::UNKNOWN)
}

fn ran(session: &Session, input: &[f32], fetch: &str) -> Result<Vec<f32>, RuntimeError> {
    session::run(session, &[("x", floats(input))], &[fetch]).map(|fetched| values(&fetched[0]))
}

/// Runs a node for its effect.
fn effect(session: &Session, target: &str) -> Result<(), RuntimeError> {
    session.run(&[], &[], &[target], &RunOptions::default()).map(|_| ())
}

#[test]
fn a_kernel_calls_a_function() {
    let _turn = turn();
    for (language, threads) in Language::ALL.into_iter().flat_map(|l| [(l, 1), (l, 2)]) {
        let runtime = over(threads, language);
        let apply = language.op("Apply");
        let session = session_of(&Worker::new(&runtime), &runtime, |b| {
            let mut input = x(b)?;
            for (name, function, on_pool) in
                [("once", "double", false), ("twice", "double", true), ("fails", "refuse", false)]
            {
                let node =
                    b.op(&apply).name(name).input(input).attr("f", AttrValue::function(function));
                let node = node.attr("on_pool", on_pool).build()?;
                input = node.into();
            }
            let node =
                b.op(&apply).name("unknown").input(input).attr("f", AttrValue::function("nothing"));
            node.build().map(|_| ())
        });
        assert_eq!(ran(&session, &[1., 2.], "once").unwrap(), [2., 4.], "{language:?}");
        assert_eq!(ran(&session, &[3.], "twice").unwrap(), [12.]);
        assert_eq!(ran(&session, &[3.], "fails").unwrap(), [12.]);
        let error = ran(&session, &[f32::NAN], "fails").unwrap_err();
        assert_eq!(error.code(), Code::INVALID_ARGUMENT, "{error}");
        assert!(error.to_string().contains("refused"), "{error}");
        let error = ran(&session, &[1.], "unknown").unwrap_err();
        assert_eq!(error.code(), Code::NOT_FOUND, "{error}");
        assert!(error.to_string().contains("'nothing'"), "{error}");
    }
}

#[test]
fn a_call_within_a_step_ends_with_it() {
    let _turn = turn();
    for (language, on_pool) in Language::ALL.into_iter().flat_map(|l| [(l, false), (l, true)]) {
        let runtime = over(2, language);
        let session = session_of(&Worker::new(&runtime), &runtime, |b| {
            let input = x(b)?;
            let node = b
                .op(&language.op("Apply"))
                .name("y")
                .input(input)
                .attr("f", AttrValue::function("wait"));
            node.attr("on_pool", on_pool).build().map(|_| ())
        });
        let options =
            RunOptions { deadline: Some(Duration::from_millis(50)), ..RunOptions::default() };
        let began = Instant::now();
        let error =
            session::run_with(&session, &[("x", floats(&[1.]))], &["y"], &options).unwrap_err();
        assert_eq!(error.code(), Code::DEADLINE_EXCEEDED, "{error}");
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    }
}

#[test]
fn a_constant_is_kept_and_returned_in_each_step() {
    let _turn = turn();
    let runtime = over(2, Language::Rust);
    let session = session_of(&Worker::new(&runtime), &runtime, |b| {
        let limit = b.placeholder("limit", DType::INT32, PartialShape::UNKNOWN)?;
        let number = |value: i32| Tensor::scalar(value).expect("a scalar");
        let (zero, one) = (b.constant("zero", number(0))?, b.constant("one", number(1))?);
        let value = b.constant("value", floats(&[1., 2.]))?;
        let body: Graph = graph(&runtime, |b| {
            b.placeholder("i", DType::INT32, PartialShape::UNKNOWN)?;
            let x = b.placeholder("x", DType::FLOAT, PartialShape::UNKNOWN)?;
            b.op("AddV2").name("y").input(x).input(x).build().map(|_| ())
        });
        b.define("body", &body, &[body.tensor("i")?, body.tensor("x")?], &[body.tensor("y")?])?;
        let node = b.op("For").name("y").input(zero).input(limit).input(one).input(value);
        node.attr("body", AttrValue::function("body")).build().map(|_| ())
    });
    for (limit, expected) in [(0, [1., 2.]), (0, [1., 2.]), (3, [8., 16.]), (0, [1., 2.])] {
        let limit = Tensor::scalar(limit).expect("a scalar");
        let fetched = session::run(&session, &[("limit", limit)], &["y"]).unwrap();
        assert_eq!(values(&fetched[0]), expected);
    }
}

#[test]
fn a_function_outlives_its_session() {
    let _turn = turn();
    for (language, threads) in Language::ALL.into_iter().flat_map(|l| [(l, 1), (l, 2)]) {
        let runtime = over(threads, language);
        let worker = Worker::new(&runtime);
        let keep = |function: &str| {
            let session = session_of(&worker, &runtime, |b| {
                let node = b.op(&language.op("FunctionKeep")).name("keep");
                let node = node.attr("shared_name", "f").attr("f", AttrValue::function(function));
                node.build().map(|_| ())
            });
            effect(&session, "keep")
        };
        let users = session_of(&worker, &runtime, |b| {
            let input = x(b)?;
            for (name, on_pool) in [("here", false), ("pool", true)] {
                let node = b.op(&language.op("FunctionCall")).name(name).input(input);
                node.attr("shared_name", "f").attr("on_pool", on_pool).build()?;
            }
            let node = b.op(&language.op("FunctionCancel")).name("cancel");
            node.attr("shared_name", "f").build().map(|_| ())
        });
        let error = ran(&users, &[1.], "here").unwrap_err();
        assert_eq!(error.code(), Code::FAILED_PRECONDITION, "{error}");
        keep("double").unwrap();
        for fetch in ["here", "pool", "here"] {
            assert_eq!(ran(&users, &[1., 4.], fetch).unwrap(), [2., 8.], "{language:?} {fetch}");
        }
        keep("wait").unwrap();
        std::thread::scope(|scope| {
            let waits = ["here", "pool"].map(|fetch| scope.spawn(|| ran(&users, &[1.], fetch)));
            std::thread::sleep(Duration::from_millis(20));
            effect(&users, "cancel").unwrap();
            for wait in waits {
                let error = wait.join().expect("no panic").unwrap_err();
                assert_eq!(error.code(), Code::CANCELLED, "{language:?}: {error}");
            }
        });
        let error = ran(&users, &[1.], "here").unwrap_err();
        assert_eq!(error.code(), Code::CANCELLED, "{error}");
    }
}

/// Adds an iterator over the numbers for which function `refuse_all` is true: over none of very many.
fn endless(b: &mut GraphBuilder<'_>, runtime: &Runtime) -> Built {
    let body: Graph = graph(runtime, |b| {
        let n = b.placeholder("n", DType::INT64, PartialShape::UNKNOWN)?;
        b.op("Less").name("y").input(n).input(n).build().map(|_| ())
    });
    b.define("refuse_all", &body, &[body.tensor("n")?], &[body.tensor("y")?])?;
    let types = || AttrValue::from(vec![DType::INT64]);
    let shapes =
        || AttrValue::List(AttrList::Shape(vec![PartialShape::new(&[]).expect("a shape")]));
    let mut number =
        |name: &str, value: i64| b.constant(name, Tensor::scalar(value).expect("a scalar"));
    let (start, stop, step) = (number("start", 0)?, number("stop", i64::MAX)?, number("step", 1)?);
    let range = b.op("RangeDataset").name("range").input(start).input(stop).input(step);
    let range = range.attr("output_types", types()).attr("output_shapes", shapes()).build()?;
    let filter = b.op("FilterDataset").name("filter").input(range);
    let filter = filter
        .attr("predicate", AttrValue::function("refuse_all"))
        .attr("Targuments", Vec::<DType>::new());
    let filter = filter.attr("output_types", types()).attr("output_shapes", shapes()).build()?;
    let iterator =
        b.op("IteratorV2").name("iterator").attr("shared_name", "").attr("container", "");
    let iterator =
        iterator.attr("output_types", types()).attr("output_shapes", shapes()).build()?;
    b.op("MakeIterator").name("make").input(filter).input(iterator).build()?;
    let next = b.op("IteratorGetNext").name("next").input(iterator);
    next.attr("output_types", types()).attr("output_shapes", shapes()).build().map(|_| ())
}

#[test]
fn an_iterator_that_finds_no_element_ends_with_step_and_session() {
    let _turn = turn();
    for threads in [1, 2] {
        let runtime = over(threads, Language::Rust);
        let session = session_of(&Worker::new(&runtime), &runtime, |b| endless(b, &runtime));
        effect(&session, "make").unwrap();
        let began = Instant::now();
        for _ in 0..2 {
            let options =
                RunOptions { deadline: Some(Duration::from_millis(100)), ..RunOptions::default() };
            let error = session::run_with(&session, &[], &["next"], &options).unwrap_err();
            assert_eq!(error.code(), Code::DEADLINE_EXCEEDED, "{threads} threads: {error}");
        }
        drop(session);
        assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    }
}
