//! Functions: calls that stay nodes, within each other and beside work that completes later; what ends them; what
//! they say of errors. What conditionals, loops and calls of functions compute is compared with TensorFlow in
//! tests/client.

use std::time::{Duration, Instant};
use tenon_graph::{Graph, GraphBuilder, GraphError, NodeId, Output};
use tenon_proto::{ArgDef, AttrValue as AttrProto, AttrValueKind, FunctionDefLibrary, GraphDef};
use tenon_runtime::{
    CancelToken, RunOptions, Runtime, RuntimeError, Session, SessionOptions,
    framework::{
        Code, DType, PartialShape, Tensor,
        attr::{AttrList, AttrValue},
    },
};
use tenon_tests::session::{self, graph, turn};

type Built = Result<(), GraphError>;

fn int(value: i32) -> Tensor {
    Tensor::scalar(value).expect("a scalar")
}

/// The value of an attribute that lists one type.
fn types(dtype: DType) -> AttrValue {
    AttrValue::List(AttrList::Type(vec![dtype]))
}

/// Adds a function of one argument and one result, nodes `x` and `y` of its body.
fn define(
    b: &mut GraphBuilder<'_>,
    name: &str,
    dtype: DType,
    runtime: &Runtime,
    make: impl FnOnce(&mut GraphBuilder<'_>, Output) -> Built,
) -> Built {
    let body: Graph = graph(runtime, |b| {
        let x = b.placeholder("x", dtype, PartialShape::UNKNOWN)?;
        make(b, x)
    });
    b.define(name, &body, &[body.tensor("x")?], &[body.tensor("y")?])
}

/// Adds a call of a function of one argument and one result.
fn call(
    b: &mut GraphBuilder<'_>,
    name: &str,
    function: &str,
    input: Output,
    dtype: DType,
) -> Result<NodeId, GraphError> {
    let node =
        b.op("PartitionedCall").name(name).input(input).attr("f", AttrValue::function(function));
    node.attr("Tout", types(dtype)).build()
}

/// `count(x) = x > 0 ? 1 + count(x - step) : 0`: `x` calls within each other for a step of 1, and calls without end
/// for a step of 0.
fn counting(runtime: &Runtime, step: i32) -> GraphDef {
    let make = |b: &mut GraphBuilder<'_>| {
        define(b, "more", DType::INT32, runtime, |b, x| {
            let (step, one) = (b.constant("step", int(step))?, b.constant("one", int(1))?);
            let left = b.op("Sub").name("left").input(x).input(step).build()?;
            let count = call(b, "call", "count", left.into(), DType::INT32)?;
            b.op("AddV2").name("y").input(count).input(one).build().map(|_| ())
        })?;
        define(b, "none", DType::INT32, runtime, |b, _| b.constant("y", int(0)).map(|_| ()))?;
        define(b, "count", DType::INT32, runtime, |b, x| {
            let zero = b.constant("zero", int(0))?;
            let goes_on = b.op("Greater").name("goes_on").input(x).input(zero).build()?;
            let node = b.op("StatelessIf").name("y").input(goes_on).input(x);
            let node = node
                .attr("then_branch", AttrValue::function("more"))
                .attr("else_branch", AttrValue::function("none"));
            node.attr("Tout", types(DType::INT32)).build().map(|_| ())
        })?;
        let x = b.placeholder("x", DType::INT32, PartialShape::UNKNOWN)?;
        call(b, "y", "count", x, DType::INT32).map(|_| ())
    };
    graph(runtime, make).to_graph_def().expect("it can be written")
}

fn over(runtime: &Runtime, def: &GraphDef) -> Session {
    let session = Session::new(runtime, SessionOptions::default()).expect("options by default");
    session.extend(def).expect("the graph is right");
    session
}

fn counted(session: &Session, depth: i32) -> Result<i32, RuntimeError> {
    let fetched = session::run(session, &[("x", int(depth))], &["y"])?;
    Ok(fetched[0].as_slice::<i32>().expect("an int32")[0])
}

/// What reads constants alone has nothing from the condition, and yet must wait for it.
#[test]
fn what_depends_on_constants_runs_only_on_the_branch_that_is_taken() {
    let _turn = turn();
    let runtime = session::runtime_of(1, &["tenon_cpu"], &[]);
    let make = |b: &mut GraphBuilder<'_>| {
        define(b, "refuses", DType::FLOAT, &runtime, |b, _| {
            let nan = b.constant("nan", Tensor::scalar(f32::NAN).expect("a scalar"))?;
            let node = b.op("CheckNumerics").name("y").input(nan).attr("message", "taken");
            node.build().map(|_| ())
        })?;
        define(b, "one", DType::FLOAT, &runtime, |b, _| {
            b.constant("y", Tensor::scalar(1f32).expect("a scalar")).map(|_| ())
        })?;
        let truth = b.placeholder("truth", DType::BOOL, PartialShape::UNKNOWN)?;
        let x = b.placeholder("x", DType::FLOAT, PartialShape::UNKNOWN)?;
        let node = b.op("StatelessIf").name("y").input(truth).input(x);
        let node = node
            .attr("then_branch", AttrValue::function("refuses"))
            .attr("else_branch", AttrValue::function("one"));
        node.attr("Tout", types(DType::FLOAT)).build().map(|_| ())
    };
    let def = graph(&runtime, make).to_graph_def().expect("it can be written");
    for options in [SessionOptions::default(), SessionOptions::as_written()] {
        let session = Session::new(&runtime, options).expect("a session");
        session.extend(&def).expect("the graph is right");
        let run = |truth: u8| {
            let truth = Tensor::from_bytes(DType::BOOL, &[], &[truth]).expect("a bool");
            let x = Tensor::scalar(3f32).expect("a scalar");
            session::run(&session, &[("truth", truth), ("x", x)], &["y"])
        };
        for _ in 0..3 {
            assert_eq!(run(0).expect("one")[0].as_slice::<f32>().expect("a float"), &[1.0]);
        }
        let message = run(1).expect_err("a NaN").to_string();
        assert!(message.contains("taken"), "{message}");
    }
}

#[test]
fn a_function_calls_itself_as_often_as_it_must() {
    let _turn = turn();
    for threads in [1, 2] {
        let runtime = session::runtime_of(threads, &["tenon_cpu"], &[]);
        let session = over(&runtime, &counting(&runtime, 1));
        for depth in [0, 1, 2, 3, 40, 1000, 1000, 7] {
            assert_eq!(counted(&session, depth).unwrap(), depth, "{threads} threads");
        }
    }
}

#[test]
fn a_recursion_without_end_is_refused() {
    let _turn = turn();
    let runtime = session::runtime(&["tenon_cpu"], &[]);
    let session = over(&runtime, &counting(&runtime, 0));
    for _ in 0..2 {
        let error = counted(&session, 1).unwrap_err();
        assert_eq!(error.code(), Code::RESOURCE_EXHAUSTED, "{error}");
        assert!(error.to_string().contains("function 'count'"), "{error}");
    }
}

/// A step that calls a function of float vectors twice, which is not inlined.
fn around(
    runtime: &Runtime,
    make: impl FnOnce(&mut GraphBuilder<'_>, Output) -> Built,
) -> GraphDef {
    let make = |b: &mut GraphBuilder<'_>| {
        define(b, "f", DType::FLOAT, runtime, make)?;
        let x = b.placeholder("x", DType::FLOAT, PartialShape::UNKNOWN)?;
        let first = call(b, "first", "f", x, DType::FLOAT)?;
        call(b, "second", "f", first.into(), DType::FLOAT).map(|_| ())
    };
    let mut def = graph(runtime, make).to_graph_def().expect("it can be written");
    let yes = AttrProto { value: Some(AttrValueKind::B(true)) };
    let library = def.library.as_mut().expect("it has a library");
    library.function[0].attr.insert("_noinline".to_owned(), yes);
    def
}

#[test]
fn a_call_waits_for_what_completes_later() {
    let _turn = turn();
    for threads in [1, 2] {
        let runtime = session::runtime_of(threads, &["tenon_cpu", "zoo_rust"], &[]);
        let make = |b: &mut GraphBuilder<'_>, x: Output| {
            let late = b.op("ZooAsync").name("late").input(x).build()?;
            let later = b.op("ZooAsync").name("later").input(late).build()?;
            b.op("Neg").name("y").input(later).build().map(|_| ())
        };
        let session = over(&runtime, &around(&runtime, make));
        for _ in 0..30 {
            let feeds = [("x", session::floats(&[1.0, 3.0]))];
            let fetched = session::run(&session, &feeds, &["second", "first"]).unwrap();
            assert_eq!(session::values(&fetched[0]), [16.0, 48.0]);
            assert_eq!(session::values(&fetched[1]), [-4.0, -12.0]);
        }
    }
}

#[test]
fn an_error_in_a_call_names_its_node() {
    let _turn = turn();
    let runtime = session::runtime(&["tenon_cpu", "zoo_rust"], &[]);
    for mode in ["error", "drop"] {
        let make = |b: &mut GraphBuilder<'_>, x: Output| {
            b.op("ZooAsync").name("y").input(x).attr("mode", mode).build().map(|_| ())
        };
        let session = over(&runtime, &around(&runtime, make));
        for _ in 0..3 {
            let feeds = [("x", session::floats(&[1.0]))];
            let error = session::run(&session, &feeds, &["second"]).unwrap_err();
            assert!(error.to_string().contains("'f/y' (ZooAsync)"), "{error}");
        }
    }
}

#[test]
fn a_call_that_waits_ends_with_its_step() {
    let _turn = turn();
    let runtime = session::runtime(&["tenon_cpu", "zoo_rust"], &[]);
    let make = |b: &mut GraphBuilder<'_>, x: Output| {
        let waits = b.op("ZooBlocking").name("waits").build()?;
        b.op("Mul").name("y").input(x).input(waits).build().map(|_| ())
    };
    let session = over(&runtime, &around(&runtime, make));
    let run = |options: &RunOptions| {
        let feeds = [("x", session::floats(&[1.0]))];
        session.run(&feeds, &["second"], &[], options).map(|_| ()).unwrap_err().code()
    };
    let began = Instant::now();
    let late = RunOptions { deadline: Some(Duration::from_millis(50)), ..RunOptions::default() };
    assert_eq!(run(&late), Code::DEADLINE_EXCEEDED);
    let token = CancelToken::default();
    let options = RunOptions { cancel: Some(token.clone()), ..RunOptions::default() };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(50));
            token.cancel();
        });
        assert_eq!(run(&options), Code::CANCELLED);
    });
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}

fn library(def: &mut GraphDef) -> &mut FunctionDefLibrary {
    def.library.as_mut().expect("it has a library")
}

#[test]
fn calls_that_do_not_fit_are_refused() {
    let _turn = turn();
    let runtime = session::runtime(&["tenon_cpu"], &[]);
    let make =
        |b: &mut GraphBuilder<'_>, x: Output| b.op("Neg").name("y").input(x).build().map(|_| ());
    let def = around(&runtime, make);
    let said = |change: &dyn Fn(&mut GraphDef)| {
        let mut def = def.clone();
        change(&mut def);
        let session = over(&runtime, &def);
        let error = session::run(&session, &[("x", session::floats(&[1.0]))], &["second"]);
        error.unwrap_err().to_string()
    };
    let error = said(&|def| library(def).function.clear());
    assert!(
        error.contains("calls function 'f', which the graph's library does not have"),
        "{error}"
    );
    let error = said(&|def| {
        let function = &mut library(def).function[0];
        function.attr.clear();
        let args = &mut function.signature.as_mut().expect("a signature").input_arg;
        args.push(ArgDef { name: "more".to_owned(), ..args[0].clone() });
    });
    assert!(
        error.contains("function 'f' has arguments [float, float], expected [float]"),
        "{error}"
    );
    let error = said(&|def| library(def).function[0].ret.clear());
    assert!(error.contains("nothing gives its result 'result_0'"), "{error}");
    let error = said(&|def| library(def).function[0].node_def[0].input[0] = "z:0".to_owned());
    assert!(error.contains("found 'z:0'"), "{error}");
    let error = said(&|def| library(def).function[0].node_def[0].op = "Nothing".to_owned());
    assert!(error.contains("in function 'f'") && error.contains("Nothing"), "{error}");
}
