//! Steps that cannot run: wrong feeds, unknown names, nodes without a kernel or a device.

use tenon_graph::{GraphBuilder, GraphError};
use tenon_proto::GraphDef;
use tenon_runtime::{
    CallableOptions, RunOptions, RuntimeError, Session,
    framework::{Code, DType, PartialShape, Shape, Tensor},
};
use tenon_tests::session::{floats, good_nodes, good_step, run, runtime, session, survives, turn};

const CPU: &[&str] = &["tenon_cpu", "zoo_rust"];

/// Shapes that do not go together are found when the step is compiled.
#[test]
fn shapes_that_do_not_fit_are_named() {
    let make = |b: &mut GraphBuilder<'_>| {
        let a = b.constant("a", floats(&[1.0; 6]).reshaped(&[2, 3]).expect("six"))?;
        b.op("MatMul").name("product").input(a).input(a).build().map(|_| ())
    };
    survives(CPU, &[], make, |session| {
        let error = run(session, &[], &["product"]).expect_err("3 is not 2");
        let message = error.to_string();
        assert_eq!(error.code(), Code::INVALID_ARGUMENT, "{message}");
        assert!(message.contains("'product'") && message.contains("MatMul"), "{message}");
    });
}

fn typed(b: &mut GraphBuilder<'_>) -> Result<(), GraphError> {
    let shape = PartialShape::new(&[-1, 2]).expect("a shape");
    let x = b.placeholder("x", DType::FLOAT, shape)?;
    b.op("Neg").name("y").input(x).build()?;
    let flag = b.placeholder("flag", DType::BOOL, PartialShape::UNKNOWN)?;
    b.op("Identity").name("same").input(flag).build()?;
    Ok(())
}

#[track_caller]
fn refused_feed(
    session: &Session,
    feeds: &[(&str, Tensor)],
    fetches: &[&str],
    expected: &str,
) -> RuntimeError {
    let error = run(session, feeds, fetches).expect_err("the step cannot run");
    assert_eq!(error.to_string(), expected);
    error
}

fn matrix() -> Tensor {
    floats(&[1.0, 2.0]).reshaped(&[1, 2]).expect("two elements")
}

#[test]
fn feeds_are_checked() {
    survives(CPU, &[], typed, |session| {
        let ints = Tensor::from_slice(&[1, 2], &[1i32, 2]).expect("two elements");
        let error =
            refused_feed(session, &[("x", ints)], &["y"], "feed 'x': expected float, found int32");
        assert_eq!(error.code(), Code::INVALID_ARGUMENT);
        let expected = "feed 'x': expected shape [?,2], found [3]";
        refused_feed(session, &[("x", floats(&[1.0; 3]))], &["y"], expected);
        let twice = [("x", matrix()), ("x:0", matrix())];
        refused_feed(session, &twice, &["y"], "tensor 'x:0' is fed twice");
        let error = run(session, &[("z", matrix())], &["y"]).expect_err("there is no z");
        assert_eq!(error.code(), Code::NOT_FOUND);
        let message = error.to_string();
        assert!(
            message.starts_with("feed 'z': the graph has no such tensor; it has "),
            "{message}"
        );
        for name in ["x:1", "x:", "^x", ""] {
            let error = run(session, &[(name, matrix())], &["y"]).expect_err("no such tensor");
            assert!(error.to_string().starts_with(&format!("feed '{name}': ")), "{error}");
        }
        let error = run(session, &[], &["y"]).expect_err("x is not fed");
        let message = error.to_string();
        assert!(message.contains("'x'"), "{message}");
        assert_eq!(error.code(), Code::INVALID_ARGUMENT, "{message}");
    });
}

#[test]
fn a_callable_counts_its_feeds() {
    survives(CPU, &[], typed, |session| {
        let options = CallableOptions::new(&["x"], &["y"]);
        let callable = session.callable(options).expect("the names are right");
        let mut fetched = Vec::new();
        let error = callable.run(&[], &mut fetched).expect_err("one feed is missing");
        assert_eq!(error.to_string(), "the callable takes 1 feeds, found 0");
        callable.run(&[matrix()], &mut fetched).expect("it stays usable");
        assert_eq!(fetched[0].as_slice::<f32>().expect("floats"), [-1.0, -2.0]);
    });
}

/// A bool whose byte is 2, as unsafe code or a foreign buffer could hand it over.
fn bad_bool() -> Tensor {
    let bytes = Tensor::from_slice(&[3], &[0u8, 2, 1]).expect("three elements");
    let shape = Shape::new(&[3]).expect("a shape");
    // SAFETY: bytes are not valid bools, which is what is tested: feeds are validated before anything reads
    // them as bools.
    unsafe { Tensor::from_parts(bytes.buffer().clone(), DType::BOOL, shape) }.expect("three bytes")
}

#[test]
fn a_bool_byte_of_two_is_refused() {
    survives(CPU, &[], typed, |session| {
        let expected = "feed 'flag': a bool is 0 or 1, found 2 as element 1";
        refused_feed(session, &[("flag", bad_bool())], &["same"], expected);
        let good = Tensor::from_slice(&[2], &[true, false]).expect("two elements");
        let fetched = run(session, &[("flag", good)], &["same"]).expect("bools are fine");
        assert_eq!(fetched[0].as_slice::<bool>().expect("bools"), [true, false]);
    });
}

#[test]
fn unknown_fetches_and_targets_are_named() {
    survives(CPU, &[], typed, |session| {
        for name in ["yy", "y:1", "", "^y"] {
            let error = run(session, &[("x", matrix())], &[name]).expect_err("no such tensor");
            let message = error.to_string();
            let begin = format!("fetch '{name}': the graph has no such tensor; it has ");
            assert!(message.starts_with(&begin), "{message}");
            assert_eq!(error.code(), Code::NOT_FOUND);
        }
        let options = RunOptions::default();
        let error = session.run(&[], &[], &["nothing"], &options).expect_err("no such node");
        assert!(error.to_string().starts_with("target 'nothing': "), "{error}");
    });
}

/// No kernel for the op on the device asked for, or for the element type: the candidates are listed.
#[test]
fn a_node_without_a_kernel_lists_the_candidates() {
    let make = |b: &mut GraphBuilder<'_>| {
        let z = b.placeholder("z", DType::QINT8, PartialShape::UNKNOWN)?;
        let axes = b.constant("axes", Tensor::from_slice(&[1], &[0i32]).expect("one axis"))?;
        b.op("Max").name("most").input(z).input(axes).build().map(|_| ())
    };
    survives(CPU, &[], make, |session| {
        let z = Tensor::from_bytes(DType::QINT8, &[1], &[0]).expect("one element");
        let error = run(session, &[("z", z)], &["most"]).expect_err("nobody has such a kernel");
        let message = error.to_string();
        for part in ["'most'", "Max", "CPU", "qint8", "float", "double"] {
            assert!(message.contains(part), "expected '{part}' in: {message}");
        }
        assert!(matches!(error.code(), Code::NOT_FOUND | Code::INVALID_ARGUMENT), "{message}");
    });
}

#[test]
fn a_device_that_is_not_there_is_refused_without_soft_placement() {
    let _turn = turn();
    let runtime = runtime(CPU, &[]);
    let session = session(&runtime, |b| {
        good_nodes(b)?;
        let c = b.constant("c", floats(&[1.0]))?;
        b.op("Neg").name("far").input(c).device("/device:ACCEL:7").build().map(|_| ())
    });
    let error = run(&session, &[], &["far"]).expect_err("there is no ACCEL");
    let message = error.to_string();
    assert!(message.contains("'far'") && message.contains("ACCEL:7"), "{message}");
    assert!(message.contains("and there is no such device"), "{message}");
    assert!(message.contains("/device:CPU:0"), "the devices there are: {message}");
    assert_eq!(error.code(), Code::INVALID_ARGUMENT, "{message}");
    good_step(&session);
}

#[test]
fn a_closed_session_says_so() {
    let _turn = turn();
    let runtime = runtime(CPU, &[]);
    let session = session(&runtime, good_nodes);
    session.close();
    let error = run(&session, &[("good_x", floats(&[1.0]))], &["good_y"]).expect_err("closed");
    assert_eq!(error.to_string(), "the session is closed");
    assert_eq!(error.code(), Code::FAILED_PRECONDITION);
    assert_eq!(
        session.extend(&GraphDef::default()).expect_err("closed").to_string(),
        "the session is closed"
    );
}
