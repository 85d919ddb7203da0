//! Several devices in one session: placement, copies between them, two instances of one type, faults of a
//! device in the middle of a step, and the digit classifier against TensorFlow's own results.

use std::path::PathBuf;
use tenon_graph::{GraphBuilder, GraphError};
use tenon_proto::{GraphDef, decode_graph_def};
use tenon_runtime::{
    Metadata, RunOptions, Runtime, Session, SessionOptions,
    framework::{
        Code, DType, PartialShape, Tensor,
        attr::{AttrList, AttrValue},
    },
};
use tenon_testkit::npy;
use tenon_tests::session::{
    Account, floats, good_nodes, good_step, run, run_with, runtime, session, session_with,
    survives, turn, values,
};

const BOTH: &[&str] = &["tenon_cpu", "tenon_accel", "zoo_rust"];
const ACCEL: &str = "/device:ACCEL:0";
const SECOND: &str = "/device:ACCEL:1";

/// Device of each node of a run, without the job.
fn devices_of(metadata: &Metadata) -> Vec<(String, String)> {
    let short =
        |device: &str| device.rsplit_once("device:").map_or(device, |(_, end)| end).to_owned();
    metadata.nodes.iter().map(|node| (node.name.clone(), short(&node.device))).collect()
}

fn device_of(metadata: &Metadata, node: &str) -> String {
    let found = devices_of(metadata).into_iter().find(|(name, _)| name == node);
    found.unwrap_or_else(|| panic!("{node} did not run")).1
}

fn matrix(rows: i64, columns: i64) -> Tensor {
    let all: Vec<f32> =
        (0..rows * columns).map(|at| ((at * 37 % 101) as f32 - 50.0) / 7.0).collect();
    floats(&all).reshaped(&[rows, columns]).expect("as many elements")
}

/// Sums and maxima, whose results have no choice in float: each step rounds in the same way everywhere.
fn arithmetic(on: [&str; 3]) -> impl Fn(&mut GraphBuilder<'_>) -> Result<(), GraphError> {
    move |b| {
        let shape = PartialShape::new(&[-1, 8]).expect("a shape");
        let x = b.placeholder("x", DType::FLOAT, shape)?;
        let c = b.constant("c", floats(&[0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]))?;
        let a = b.op("Mul").name("a").input(x).input(c).device(on[0]).build()?;
        let d = b.op("Sub").name("d").input(a).input(x).device(on[1]).build()?;
        let e = b.op("Square").name("e").input(a).device(on[2]).build()?;
        let f = b.op("Add").name("f").input(d).input(e).device(on[0]).build()?;
        b.op("Maximum").name("y").input(f).input(x).device(on[1]).build().map(|_| ())
    }
}

fn bits(tensor: &Tensor) -> Vec<u32> {
    values(tensor).into_iter().map(f32::to_bits).collect()
}

#[test]
fn split_graphs_agree_with_one_device_bit_for_bit() {
    let _turn = turn();
    let runtime = runtime(BOTH, &[]);
    let on = |devices| {
        let session = session(&runtime, arithmetic(devices));
        let feeds = [("x", matrix(5, 8))];
        let fetched = run(&session, &feeds, &["y", "e"]).expect("a step");
        (bits(&fetched[0]), bits(&fetched[1]))
    };
    let cpu = on(["/device:CPU:0"; 3]);
    assert_eq!(on([ACCEL; 3]), cpu);
    assert_eq!(on(["/device:CPU:0", ACCEL, "/device:CPU:0"]), cpu);
    assert_eq!(on([ACCEL, "/device:CPU:0", ACCEL]), cpu);
    assert_eq!(on([ACCEL, SECOND, "/device:CPU:0"]), cpu);
    assert_eq!(on([ACCEL, SECOND, ACCEL]), cpu);
}

/// Streams run in a random order where events do not say otherwise: the results are the same.
#[test]
fn results_do_not_depend_on_the_order_between_streams() {
    let _turn = turn();
    for seed in ["1", "2", "3", "4"] {
        let runtime = runtime(BOTH, &[("accel.reorder_seed", seed)]);
        let split = session(&runtime, arithmetic([ACCEL, SECOND, "/device:CPU:0"]));
        let cpu = session(&runtime, arithmetic(["/device:CPU:0"; 3]));
        for rows in 1..12 {
            let feeds = [("x", matrix(rows, 8))];
            let found = run(&split, &feeds, &["y"]).expect("a step");
            let expected = run(&cpu, &feeds, &["y"]).expect("a step");
            assert_eq!(bits(&found[0]), bits(&expected[0]), "seed {seed}, {rows} rows");
        }
    }
}

#[test]
fn fetches_of_a_devices_tensors_come_to_the_host() {
    let _turn = turn();
    let before = Account::now();
    {
        let runtime = runtime(BOTH, &[]);
        let session = session(&runtime, arithmetic([ACCEL; 3]));
        let mut kept = Vec::new();
        for rows in [1, 3, 0, 7] {
            let x = matrix(rows, 8);
            let fetched = run(&session, &[("x", x.clone())], &["x", "a", "c"]).expect("a step");
            assert!(fetched.iter().all(Tensor::is_on_host));
            let c = values(&fetched[2]);
            let product = values(&x).into_iter().zip(c.iter().cycle()).map(|(x, c)| x * c);
            assert_eq!(values(&fetched[1]), product.collect::<Vec<f32>>());
            kept.push((fetched[1].clone(), values(&fetched[1])));
        }
        assert!(kept.iter().all(|(tensor, then)| values(tensor) == *then));
    }
    before.check("after the devices are closed");
}

#[test]
fn placement_follows_names_in_full_and_in_part() {
    let _turn = turn();
    let runtime = runtime(BOTH, &[]);
    let full = "/job:localhost/replica:0/task:0/device:ACCEL:1";
    let session = session(&runtime, |b| {
        let x = b.placeholder("x", DType::FLOAT, PartialShape::UNKNOWN)?;
        let mut node = |name: &str, device: &str| {
            b.op("Neg").name(name).input(x).device(device).build().map(|_| ())
        };
        node("free", "")?;
        node("part", "/device:ACCEL:1")?;
        node("any", "/device:ACCEL:*")?;
        node("full", full)?;
        node("old", "/accel:1").or_else(|_| node("old", "/device:ACCEL:1"))?;
        node("job", "/job:localhost")
    });
    let fetches = ["free", "part", "any", "full", "job"];
    let options = RunOptions::default();
    let (_, metadata) =
        run_with(&session, &[("x", floats(&[1.0]))], &fetches, &options).expect("a step");
    let places = fetches.map(|node| device_of(&metadata, node));
    assert_eq!(places, ["CPU:0", "ACCEL:1", "ACCEL:0", "ACCEL:1", "CPU:0"]);
}

#[test]
fn the_sessions_device_is_for_nodes_that_name_none() {
    let _turn = turn();
    let runtime = runtime(BOTH, &[]);
    let options = SessionOptions { device: Some(SECOND.to_owned()), ..SessionOptions::default() };
    let session = session_with(&runtime, options, arithmetic(["", "/device:CPU:0", ""]));
    let feeds = [("x", matrix(2, 8))];
    let (_, metadata) = run_with(&session, &feeds, &["y"], &RunOptions::default()).expect("a step");
    assert_eq!(device_of(&metadata, "a"), "ACCEL:1");
    assert_eq!(device_of(&metadata, "d"), "CPU:0");
    let device = Some("/device:ACCEL:first".to_owned());
    let options = SessionOptions { device, ..SessionOptions::default() };
    let error = Session::new(&runtime, options).err().expect("that is not a name of a device");
    assert!(error.to_string().starts_with("option device: "), "{error}");
}

/// Without soft placement a node that its device has no kernel for is refused; with it, it goes elsewhere.
#[test]
fn soft_placement_moves_what_a_device_cannot_run() {
    let _turn = turn();
    let runtime = runtime(BOTH, &[]);
    let make = |b: &mut GraphBuilder<'_>| {
        good_nodes(b)?;
        let x = b.placeholder("x", DType::FLOAT, PartialShape::UNKNOWN)?;
        b.op("ZooTrace").name("y").input(x).device(ACCEL).build().map(|_| ())
    };
    let feeds = [("x", floats(&[1.0, 2.0]))];
    let knobs = [("runtime.soft_placement".to_owned(), "true".to_owned())];
    let by_knob = SessionOptions { knobs: knobs.into(), ..SessionOptions::default() };
    let by_option = SessionOptions { soft_placement: Some(true), ..SessionOptions::default() };
    for options in [by_knob.clone(), by_option] {
        let soft = session_with(&runtime, options, make);
        let (fetched, metadata) =
            run_with(&soft, &feeds, &["y"], &RunOptions::default()).expect("a step");
        assert_eq!(values(&fetched[0]), [2.0, 4.0]);
        assert_eq!(device_of(&metadata, "y"), "CPU:0");
    }
    let over_the_knob = SessionOptions { soft_placement: Some(false), ..by_knob };
    let hard = session_with(&runtime, over_the_knob, make);
    assert!(run(&hard, &feeds, &["y"]).is_err(), "the option goes before the knob");
    let hard = session(&runtime, make);
    let message = run(&hard, &feeds, &["y"]).expect_err("ACCEL has no such kernel").to_string();
    for part in ["'y'", "ZooTrace", "ACCEL", "zoo-rust", "with soft placement it would run on"] {
        assert!(message.contains(part), "expected '{part}' in: {message}");
    }
    good_step(&hard);
}

/// Nodes went to the CPU, and who measured ACCEL:7 measured the CPU.
#[test]
fn a_session_whose_device_is_not_there_was_run_elsewhere_in_silence() {
    let _turn = turn();
    let runtime = runtime(BOTH, &[]);
    let feeds = [("x", matrix(2, 8))];
    for name in ["ACCEL:7", "/device:FOO:0"] {
        let device = Some(name.to_owned());
        let options = SessionOptions { device, ..SessionOptions::default() };
        let strict = session_with(&runtime, options.clone(), arithmetic(["", "", ""]));
        let error = run(&strict, &feeds, &["y"]).expect_err("there is no such device");
        let message = error.to_string();
        for part in [name, "device:ACCEL:1", "device:CPU:0", "runtime.soft_placement"] {
            assert!(message.contains(part), "expected '{part}' in: {message}");
        }
        assert_eq!(error.code(), Code::INVALID_ARGUMENT);
        let options = SessionOptions { soft_placement: Some(true), ..options };
        let soft = session_with(&runtime, options, arithmetic(["", "", ""]));
        run(&soft, &feeds, &["y"]).expect("a step on what is there");
    }
}

#[test]
fn colocated_nodes_share_a_device() {
    let _turn = turn();
    let runtime = runtime(BOTH, &[]);
    let session = session(&runtime, |b| {
        let x = b.placeholder("x", DType::FLOAT, PartialShape::UNKNOWN)?;
        let a = b.op("Neg").name("a").input(x).device(SECOND).build()?;
        let with = AttrValue::List(AttrList::String(vec![b"loc:@a".to_vec()]));
        b.op("Square").name("b").input(a).attr("_class", with).build().map(|_| ())
    });
    let (_, metadata) =
        run_with(&session, &[("x", floats(&[3.0]))], &["b"], &RunOptions::default())
            .expect("a step");
    assert_eq!(device_of(&metadata, "b"), "ACCEL:1");
}

#[test]
fn steps_at_once_share_a_device() {
    let _turn = turn();
    let before = Account::now();
    {
        let runtime = runtime(BOTH, &[]);
        let session = session(&runtime, arithmetic([ACCEL, "/device:CPU:0", SECOND]));
        std::thread::scope(|scope| {
            for thread in 1..=8 {
                let session = &session;
                scope.spawn(move || {
                    let feeds = [("x", matrix(thread, 8))];
                    let first = run(session, &feeds, &["y"]).expect("a step");
                    for _ in 0..40 {
                        let again = run(session, &feeds, &["y"]).expect("a step");
                        assert_eq!(bits(&again[0]), bits(&first[0]));
                    }
                });
            }
        });
    }
    before.check("after the devices are closed");
}

/// A step that ACCEL takes part in fails with this code at this node or device.
fn device_fault(knob: (&str, &str), code: Code, expected: &str) {
    let _turn = turn();
    let before = Account::now();
    {
        let runtime = runtime(BOTH, &[knob]);
        let session = session(&runtime, |b| {
            good_nodes(b)?;
            arithmetic([ACCEL, "/device:CPU:0", ACCEL])(b)
        });
        let feeds = [("x", matrix(50, 8))];
        let failed = (0..60).find_map(|_| run(&session, &feeds, &["y"]).err());
        let error = failed.unwrap_or_else(|| panic!("{knob:?} changed nothing"));
        let message = error.to_string();
        assert_eq!(error.code(), code, "{message}");
        assert!(message.contains(expected), "expected '{expected}' in: {message}");
        assert!(message.contains("ACCEL:0"), "the device is named: {message}");
        for _ in 0..10 {
            let _ = run(&session, &feeds, &["y"]);
            good_step(&session);
        }
    }
    before.check("after the devices are closed");
}

#[test]
fn memory_of_a_device_that_runs_out_fails_the_step() {
    device_fault(
        ("accel.fail_alloc_after_bytes", "4096"),
        Code::RESOURCE_EXHAUSTED,
        "device memory of",
    );
}

#[test]
fn a_command_that_fails_fails_the_step() {
    device_fault(("accel.fail_command_after", "9"), Code::INTERNAL, "");
}

#[test]
fn a_device_that_is_lost_fails_the_step_as_unavailable() {
    device_fault(
        ("accel.lose_after_commands", "9"),
        Code::UNAVAILABLE,
        "ACCEL:0 is lost: the knob ",
    );
}

#[test]
fn a_stalled_device_does_not_outlast_a_deadline() {
    let make = |b: &mut GraphBuilder<'_>| arithmetic([ACCEL, "/device:CPU:0", ACCEL])(b);
    // A copy that takes long holds the queue up; the step is given up before it is done.
    survives(BOTH, &[("accel.copy_delay_us", "30000")], make, |session| {
        let options = RunOptions {
            deadline: Some(std::time::Duration::from_millis(5)),
            ..RunOptions::default()
        };
        let result = run_with(session, &[("x", matrix(4, 8))], &["y"], &options);
        let error = result.expect_err("a copy alone takes longer");
        assert_eq!(error.code(), Code::DEADLINE_EXCEEDED, "{error}");
    });
}

fn asset(name: &str) -> PathBuf {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    root.join("sdk/cli/assets/demo").join(name)
}

fn read(name: &str) -> Tensor {
    npy::read(asset(name), None).unwrap_or_else(|error| panic!("{error}"))
}

/// The images as the graph takes them: `[500, 8, 8, 1]`, from 0 to 1.
fn images() -> Tensor {
    let bytes = read("heldout_images.npy");
    let pixels: Vec<f32> = bytes
        .as_slice::<u8>()
        .expect("bytes")
        .iter()
        .map(|&pixel| f32::from(pixel) / 16.0)
        .collect();
    floats(&pixels).reshaped(&[500, 8, 8, 1]).expect("as many pixels")
}

fn digits(change: impl Fn(usize, &mut tenon_proto::NodeDef)) -> GraphDef {
    let bytes = std::fs::read(asset("digits.pb")).expect("the graph is in the repository");
    let mut def = decode_graph_def(&bytes).expect("it is a graph");
    def.node.iter_mut().enumerate().for_each(|(at, node)| change(at, node));
    def
}

/// Every image is classified as TensorFlow did, and the logits are TensorFlow's within 1e-4.
fn classifies_like_tensorflow(runtime: &Runtime, def: &GraphDef) -> Metadata {
    let session = Session::new(runtime, SessionOptions::default()).expect("the options are right");
    session.extend(def).expect("the graph is TensorFlow's");
    let feeds = [("images", images())];
    let fetches = ["logits", "classes"];
    let (fetched, metadata) =
        run_with(&session, &feeds, &fetches, &RunOptions::default()).expect("a step");
    let classes = read("tensorflow_classes.npy");
    let expected = classes.as_slice::<i64>().expect("int64");
    assert_eq!(fetched[1].as_slice::<i64>().expect("int64"), expected);
    let (logits, expected) = (values(&fetched[0]), values(&read("tensorflow_logits.npy")));
    assert_eq!(logits.len(), expected.len());
    let worst = logits.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(worst <= 1e-4, "logits differ by {worst}");
    metadata
}

#[test]
fn digits_on_the_cpu_are_tensorflows() {
    let _turn = turn();
    let runtime = runtime(BOTH, &[]);
    let metadata = classifies_like_tensorflow(&runtime, &digits(|_, _| {}));
    assert!(devices_of(&metadata).iter().all(|(_, device)| device == "CPU:0"));
}

#[test]
fn digits_on_the_accelerator_are_tensorflows() {
    let _turn = turn();
    let runtime = runtime(BOTH, &[]);
    let def = digits(|_, node| node.device = ACCEL.to_owned());
    let metadata = classifies_like_tensorflow(&runtime, &def);
    for op in ["Conv2D", "MaxPool", "MatMul", "BiasAdd", "ArgMax"] {
        let mut nodes = metadata.nodes.iter().filter(|node| node.op == op);
        assert!(nodes.all(|node| node.device.ends_with("ACCEL:0")), "{op}");
    }
}

#[test]
fn digits_split_over_both_are_tensorflows() {
    let _turn = turn();
    let runtime = runtime(BOTH, &[]);
    let def = digits(|at, node| {
        node.device = [ACCEL, "/device:CPU:0", SECOND][at % 3].to_owned();
    });
    let metadata = classifies_like_tensorflow(&runtime, &def);
    let used = devices_of(&metadata);
    for device in ["CPU:0", "ACCEL:0", "ACCEL:1"] {
        assert!(used.iter().any(|(_, on)| on == device), "nothing ran on {device}");
    }
}
