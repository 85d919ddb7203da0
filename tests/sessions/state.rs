//! State that sessions share, and what goes with a step.

use crate::sessions::ZOO;
use std::thread;
use tenon_graph::{GraphBuilder, GraphError};
use tenon_runtime::{
    RunOptions, Session, SessionOptions, Worker,
    framework::{Code, DType, PartialShape, Shape, Tensor},
    host::variants::{EncodedVariant, decode, encode},
};
use tenon_tests::{
    bench::texts,
    session::{floats, graph, run, runtime, session, turn, values},
};

const ROWS: usize = 4;

/// A variable of [`ROWS`] elements, which `set` gives `x`; `add` adds 1 to the element `row`, `element` is that element.
fn table(b: &mut GraphBuilder<'_>) -> Result<(), GraphError> {
    let shape = PartialShape::new(&[ROWS as i64]).expect("a shape");
    let point = PartialShape::new(&[]).expect("no dimensions");
    let x = b.placeholder("x", DType::FLOAT, shape.clone())?;
    let row = b.placeholder("row", DType::INT64, point)?;
    let one = b.constant("one", Tensor::scalar(1f32).expect("a scalar"))?;
    let handle = b.op("ZooVariable").name("v").attr("shape", shape);
    let handle = handle.attr("shared_name", "table").build()?;
    b.op("ZooVariableAssign").name("set").input(handle).input(x).build()?;
    b.op("ZooVariableScatterAdd").name("add").input(handle).input(row).input(one).build()?;
    b.op("ZooVariableGather").name("element").input(handle).input(row).build()?;
    b.op("ZooVariableRead").name("value").input(handle).build().map(|_| ())
}

fn on(worker: &Worker, options: SessionOptions) -> Session {
    let session = Session::on(worker, options).expect("options");
    let def = graph(worker.runtime(), table).to_graph_def().expect("it can be written");
    session.extend(&def).expect("it can be read");
    session
}

fn set(session: &Session, x: &[f32]) {
    let options = Default::default();
    session.run(&[("x", floats(x))], &[], &["set"], &options).expect("it is assigned");
}

fn scatter(session: &Session, row: usize) -> Result<(), Code> {
    let row = Tensor::scalar(row as i64).expect("a scalar");
    let ran = session.run(&[("row", row)], &[], &["add"], &Default::default());
    ran.map(drop).map_err(|error| error.code())
}

fn value(session: &Session) -> Vec<f32> {
    values(&run(session, &[], &["value"]).expect("it has a value")[0]).to_vec()
}

#[test]
fn rows_are_updated_at_the_same_time_and_what_was_read_stays() {
    const TIMES: usize = 200;
    let _turn = turn();
    let worker = Worker::new(&runtime(ZOO, &[]));
    let sessions: Vec<Session> =
        (0..ROWS).map(|_| on(&worker, SessionOptions::default())).collect();
    set(&sessions[0], &[0.0; ROWS]);
    let before = run(&sessions[0], &[], &["value"]).expect("it has a value").remove(0);
    thread::scope(|scope| {
        for (row, session) in sessions.iter().enumerate() {
            scope.spawn(move || {
                for _ in 0..TIMES {
                    scatter(session, row).expect("a row");
                    scatter(session, 0).expect("the row of all");
                }
            });
        }
    });
    assert_eq!(values(&before), [0.0; ROWS], "who had the value keeps it");
    let (mine, all) = (TIMES as f32, (ROWS * TIMES) as f32);
    assert_eq!(value(&sessions[1]), [mine + all, mine, mine, mine], "no update is lost");
    let seen = run(&sessions[0], &[], &["value"]).expect("it has a value").remove(0);
    scatter(&sessions[2], 1).expect("a row");
    assert_eq!(values(&seen)[1], mine, "a reader has a copy");
    let row = Tensor::scalar(1i64).expect("a scalar");
    let element = run(&sessions[3], &[("row", row)], &["element"]).expect("an element");
    assert_eq!(values(&element[0]), [mine + 1.0]);
    assert_eq!(scatter(&sessions[0], ROWS), Err(Code::INVALID_ARGUMENT));
    // Assigning it anew leaves what is assigned alone.
    let x = [1.0, 2.0, 3.0, 4.0];
    set(&sessions[0], &x);
    scatter(&sessions[1], 2).expect("a row");
    assert_eq!(value(&sessions[2]), [1.0, 2.0, 4.0, 4.0]);
}

#[test]
fn a_session_that_asks_for_it_has_state_of_its_own() {
    let _turn = turn();
    let worker = Worker::new(&runtime(ZOO, &[]));
    let shared = on(&worker, SessionOptions::default());
    let options = || SessionOptions { isolate_state: true, ..SessionOptions::default() };
    let (own, other) = (on(&worker, options()), on(&worker, options()));
    for (session, x) in [(&shared, 1.0), (&own, 2.0), (&other, 3.0)] {
        set(session, &[x; ROWS]);
    }
    assert_eq!((value(&shared)[0], value(&own)[0], value(&other)[0]), (1.0, 2.0, 3.0));
    assert_eq!(worker.reset(&[""]), 1, "only what is shared is the worker's");
    assert_eq!(value(&own)[0], 2.0);
}

#[test]
fn what_is_in_the_container_of_a_step_goes_with_it() {
    let _turn = turn();
    let worker = Worker::new(&runtime(ZOO, &[]));
    let counts = graph(worker.runtime(), |b| {
        let first = b.op("ZooStepCount").name("first").build()?;
        let second = b.op("ZooStepCount").name("second").control(first).build()?;
        b.op("ZooStepCount").name("third").control(second).build().map(|_| ())
    });
    let session = Session::on(&worker, SessionOptions::default()).expect("no options");
    session.extend(&counts.to_graph_def().expect("it can be written")).expect("it can be read");
    for _ in 0..3 {
        let found = run(&session, &[], &["first", "third"]).expect("a step");
        let found = found.iter().map(|count| count.as_slice::<i64>().expect("a count")[0]);
        assert_eq!(found.collect::<Vec<_>>(), [1, 3], "each step begins anew");
        assert!(worker.resources().list().is_empty());
    }
}

#[test]
fn a_reference_to_a_variable_without_a_value_is_refused_unless_the_op_gives_it_one() {
    let _turn = turn();
    let session = session(&runtime(ZOO, &[]), |b| {
        let x = b.placeholder("x", DType::FLOAT, PartialShape::UNKNOWN)?;
        let reference = b.op("ZooRefVariable").name("v").build()?;
        b.op("ZooRefAssign").name("assign").input(reference).input(x).build()?;
        b.op("ZooRefRead").name("read").input(reference).build()?;
        b.op("Neg").name("negated").input(reference).build().map(|_| ())
    });
    for node in ["read", "negated"] {
        let error = run(&session, &[], &[node]).expect_err("it has no value");
        assert_eq!(error.code(), Code::FAILED_PRECONDITION);
        let expected = "Attempting to use uninitialized value v";
        assert!(error.to_string().contains(expected), "{node}: {error}");
    }
    let options = Default::default();
    session.run(&[("x", floats(&[2.0]))], &[], &["assign"], &options).expect("it is assigned");
    assert_eq!(values(&run(&session, &[], &["read"]).expect("a value")[0]), [2.0]);
    assert_eq!(values(&run(&session, &[], &["negated"]).expect("a value")[0]), [-2.0]);
}

/// `v`, which `start` sets to 0; `twice` is the double of what it holds, and `next` adds 1 afterwards.
fn counted(b: &mut GraphBuilder<'_>) -> Result<(), GraphError> {
    let zero = b.constant("zero", Tensor::scalar(0f32).expect("a scalar"))?;
    let one = b.constant("one", Tensor::scalar(1f32).expect("a scalar"))?;
    let v = b.op("VariableV2").name("v").attr("dtype", DType::FLOAT);
    let v = v.attr("shape", PartialShape::new(&[]).expect("no dimensions")).build()?;
    b.op("Assign").name("start").input(v).input(zero).build()?;
    let read = b.op("Identity").name("read").input(v).build()?;
    let twice = b.op("AddV2").name("twice").input(read).input(read).build()?;
    b.op("AssignAdd").name("next").input(v).input(one).control(twice).build().map(|_| ())
}

/// From the fifth step on, an Identity passed on the value that the reference had in the fourth.
#[test]
fn a_reference_is_read_anew_in_every_step() {
    let _turn = turn();
    let session = session(&runtime(&["tenon_cpu", "tenon_data"], &[]), counted);
    run(&session, &[], &["start"]).expect("it has a value then");
    for step in 0..12 {
        let fetched = run(&session, &[], &["twice", "next"]).expect("it counts");
        assert_eq!(values(&fetched[0]), [2.0 * step as f32], "step {step}");
    }
}

#[test]
fn a_variant_is_encoded_with_its_tensors_and_decoded_by_the_name_of_its_type() {
    let _turn = turn();
    let runtime = runtime(ZOO, &[]);
    let session = session(&runtime, |b| {
        let x = b.placeholder("x", DType::FLOAT, PartialShape::UNKNOWN)?;
        let parcel = b.op("ZooParcelPack").name("parcel").attr("label", "fragile").input(x);
        let parcel = parcel.build()?;
        b.op("ZooParcelUnpack").name("unpacked").input(parcel).build().map(|_| ())
    });
    let contents = floats(&[1.0, 2.0, 3.0]);
    let parcel = run(&session, &[("x", contents)], &["parcel"]).expect("it is packed").remove(0);
    let encoded = encode(&parcel).expect("the type can");
    let [value] = &encoded[..] else { panic!("expected one value, found {}", encoded.len()) };
    assert_eq!((value.type_name.as_str(), &*value.metadata), ("zoo.Parcel", &b"fragile"[..]));
    assert_eq!(values(&value.tensors[0]), [1.0, 2.0, 3.0]);
    drop((parcel, run(&session, &[("x", floats(&[0.0]))], &["parcel"])));

    let registry = runtime.registry();
    let again = decode(&registry, Shape::SCALAR, &encoded).expect("the type can");
    let fetched = run(&session, &[("parcel", again)], &["unpacked:0", "unpacked:1"]);
    let fetched = fetched.expect("it is unpacked");
    assert_eq!(values(&fetched[0]), [1.0, 2.0, 3.0]);
    assert_eq!(texts(&fetched[1]), ["fragile"]);

    let refused = |value: EncodedVariant| {
        let error = decode(&registry, Shape::SCALAR, &[value]).expect_err("it is wrong");
        (error.code, error.message)
    };
    let of = |type_name: &str, metadata: &[u8]| EncodedVariant {
        type_name: type_name.to_owned(),
        metadata: metadata.to_vec(),
        tensors: Vec::new(),
    };
    let (code, message) = refused(of("elsewhere.Type", b""));
    assert_eq!(code, Code::NOT_FOUND);
    assert!(message.contains("'elsewhere.Type': load the one that makes its values"), "{message}");
    let (code, message) = refused(of("zoo.Parcel", b"without its tensor"));
    assert_eq!(code, Code::INVALID_ARGUMENT);
    assert!(message.contains("expected more than 0 tensors, found 0"), "{message}");
    let (code, message) = refused(of("zoo.Amount", b"many"));
    assert_eq!(code, Code::INVALID_ARGUMENT);
    assert!(message.contains("expected a number, found 'many'"), "{message}");
    let none = decode(&registry, Shape::SCALAR, &[EncodedVariant::default()]).expect("no value");
    assert_eq!(encode(&none).expect("no value")[0].type_name, "");
    let error = decode(&registry, Shape::SCALAR, &[]).expect_err("one is missing");
    assert_eq!(error.code, Code::INVALID_ARGUMENT);
}

#[test]
fn a_tensor_is_kept_between_steps_under_a_text() {
    let _turn = turn();
    let runtime = runtime(&["tenon_cpu", "tenon_data"], &[]);
    let session = session(&runtime, |b| {
        let x = b.placeholder("x", DType::FLOAT, PartialShape::UNKNOWN)?;
        b.op("GetSessionHandle").name("keep").input(x).build()?;
        let handle = b.placeholder("handle", DType::STRING, PartialShape::UNKNOWN)?;
        let get = b.op("GetSessionTensor").name("get").input(handle);
        get.attr("dtype", DType::FLOAT).build()?;
        b.op("DeleteSessionTensor").name("delete").input(handle).build().map(|_| ())
    });
    let keep = |value: f32| {
        let fetched = run(&session, &[("x", floats(&[value]))], &["keep"]).unwrap();
        fetched.into_iter().next().expect("one fetch")
    };
    let (first, second) = (keep(1.), keep(2.));
    let get = |handle: &Tensor| {
        run(&session, &[("handle", handle.clone())], &["get"]).map(|f| values(&f[0]))
    };
    assert_eq!((get(&first).unwrap(), get(&second).unwrap()), (vec![1.], vec![2.]));
    let delete =
        || session.run(&[("handle", first.clone())], &[], &["delete"], &RunOptions::default());
    delete().unwrap();
    for error in [get(&first).unwrap_err(), delete().unwrap_err()] {
        assert_eq!(error.code(), Code::INVALID_ARGUMENT, "{error}");
        assert!(error.to_string().contains("keep;0;"), "{error}");
    }
    assert_eq!(get(&second).unwrap(), [2.]);
}

#[test]
fn handles_and_variants_are_fetched_and_fed() {
    let _turn = turn();
    let runtime = runtime(&["tenon_cpu", "tenon_data"], &[]);
    let session = session(&runtime, |b| {
        let x = b.placeholder("x", DType::FLOAT, PartialShape::UNKNOWN)?;
        let handle = b.op("VarHandleOp").name("v").attr("dtype", DType::FLOAT);
        let handle = handle.attr("shape", PartialShape::UNKNOWN).build()?;
        let set = b.op("AssignVariableOp").name("set").input(handle).input(x);
        set.attr("dtype", DType::FLOAT).build()?;
        let fed = b.placeholder("handle", DType::RESOURCE, PartialShape::UNKNOWN)?;
        b.op("ReadVariableOp").name("read").input(fed).attr("dtype", DType::FLOAT).build()?;
        let shape =
            b.constant("shape", Tensor::from_slice(&[0], &[0i32; 0]).expect("no element"))?;
        b.op("TensorListFromTensor").name("list").input(x).input(shape).build()?;
        let fed = b.placeholder("variant", DType::VARIANT, PartialShape::UNKNOWN)?;
        b.op("TensorListLength").name("length").input(fed).build().map(|_| ())
    });
    let x = [("x", floats(&[1., 2., 3.]))];
    session.run(&x, &[], &["set"], &RunOptions::default()).unwrap();
    let handle = run(&session, &[], &["v"]).unwrap().remove(0);
    assert_eq!(handle.dtype(), DType::RESOURCE);
    let read = run(&session, &[("handle", handle)], &["read"]).unwrap();
    assert_eq!(values(&read[0]), [1., 2., 3.]);
    let list = run(&session, &x, &["list"]).unwrap().remove(0);
    let length = run(&session, &[("variant", list)], &["length"]).unwrap();
    assert_eq!(length[0].as_slice::<i32>().unwrap(), [3]);
    let error = run(&session, &[("handle", floats(&[1.]))], &["read"]).unwrap_err();
    assert_eq!(error.code(), Code::INVALID_ARGUMENT, "{error}");
}
