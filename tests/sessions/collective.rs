//! Collective operations between devices of one process. Values and codes are those of TensorFlow 2.21 over virtual CPUs.

use std::time::{Duration, Instant};
use tenon_graph::{GraphBuilder, GraphError, NodeId};
use tenon_runtime::{
    RunOptions, Runtime, RuntimeError, Session,
    framework::{
        Code, DType, PartialShape, Tensor,
        attr::AttrValue,
        element::{bf16, f16},
    },
};
use tenon_tests::session::{self, floats, run, runtime, survives, turn, values};

const PLUGINS: [&str; 2] = ["tenon_cpu", "tenon_data"];

type Built = Result<(), GraphError>;

fn over(devices: &str, knobs: &[(&str, &str)]) -> Runtime {
    let knobs: Vec<_> =
        [("cpu.devices", devices)].into_iter().chain(knobs.iter().copied()).collect();
    runtime(&PLUGINS, &knobs)
}

fn cpu(at: usize) -> String {
    format!("/device:CPU:{at}")
}

/// What a node of a reduction says.
#[derive(Clone, Copy)]
struct Reduce {
    merge: &'static str,
    last: &'static str,
    size: i64,
    timeout: f32,
}

const SUM: Reduce = Reduce { merge: "Add", last: "Id", size: 0, timeout: 0.0 };

impl Reduce {
    /// Adds `y0`, `y1`, ... over the values, one on each device.
    fn build(self, b: &mut GraphBuilder<'_>, of: &[Tensor]) -> Built {
        for (at, value) in of.iter().enumerate() {
            let x = b.constant(&format!("x{at}"), value.clone())?;
            let size = if self.size == 0 { of.len() as i64 } else { self.size };
            let node = b.op("CollectiveReduce").name(&format!("y{at}")).device(&cpu(at)).input(x);
            let node = keys(node, size, 7).attr("merge_op", self.merge).attr("final_op", self.last);
            node.attr("subdiv_offsets", vec![0i64])
                .attr("timeout_seconds", self.timeout)
                .build()?;
        }
        Ok(())
    }
}

/// Adds the keys as attributes.
fn keys<'b, 'r>(
    node: tenon_graph::NodeBuilder<'b, 'r>,
    size: i64,
    instance: i64,
) -> tenon_graph::NodeBuilder<'b, 'r> {
    node.attr("group_size", size).attr("group_key", 1i64).attr("instance_key", instance)
}

fn names(count: usize) -> Vec<String> {
    (0..count).map(|at| format!("y{at}")).collect()
}

fn fetch(session: &Session, count: usize) -> Result<Vec<Tensor>, RuntimeError> {
    let names = names(count);
    run(session, &[], &names.iter().map(String::as_str).collect::<Vec<_>>())
}

fn reduced(runtime: &Runtime, of: &[Tensor], how: Reduce) -> Result<Vec<Tensor>, RuntimeError> {
    let session = session::session(runtime, |b| how.build(b, of));
    fetch(&session, of.len())
}

#[test]
fn every_member_gets_the_merged_value() {
    let _turn = turn();
    let runtime = over("3", &[]);
    let of = [floats(&[1.0, 2.0, 3.0, 4.0]), floats(&[5.0, 6.0, 7.0, 9.0]), floats(&[1.0; 4])];
    for (merge, last, expected) in [
        ("Add", "Id", [7.0, 9.0, 11.0, 14.0]),
        ("Add", "Div", [2.333_333_3, 3.0, 3.666_666_7, 4.666_666_5]),
        ("Mul", "Id", [5.0, 12.0, 21.0, 36.0]),
        ("Min", "Id", [1.0, 1.0, 1.0, 1.0]),
        ("Max", "Id", [5.0, 6.0, 7.0, 9.0]),
    ] {
        let got = reduced(&runtime, &of, Reduce { merge, last, ..SUM }).unwrap();
        assert!(got.iter().all(|it| values(it) == expected), "{merge} {last} {got:?}");
    }
    let scalars = [2.0f32, 3.0].map(|value| Tensor::scalar(value).unwrap());
    let sum = reduced(&runtime, &scalars, SUM).unwrap();
    assert!(sum.iter().all(|it| it.shape().rank() == 0 && values(it) == [5.0]));
    let empty = reduced(&runtime, &[floats(&[]), floats(&[])], SUM).unwrap();
    assert!(empty.iter().all(|it| it.shape().dims() == [0]));
    assert_eq!(values(&reduced(&runtime, &[floats(&[1.0, 2.0])], SUM).unwrap()[0]), [1.0, 2.0]);
}

#[test]
fn quotients_of_other_types_are_tensorflow_s() {
    let _turn = turn();
    let runtime = over("3", &[]);
    let mean = Reduce { last: "Div", ..SUM };
    let of = |make: &dyn Fn(&[f64]) -> Tensor| {
        [[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 9.0], [1.0; 4]].map(|row| make(&row))
    };
    let ints = of(&|row| {
        Tensor::from_slice(&[4], &row.iter().map(|&it| it as i32).collect::<Vec<_>>()).unwrap()
    });
    let got = reduced(&runtime, &ints, mean).unwrap();
    assert!(got.iter().all(|it| it.as_slice::<i32>().unwrap() == [2, 3, 3, 4]));
    let halves = of(&|row| {
        Tensor::from_slice(&[4], &row.iter().map(|&it| f16::from_f64(it)).collect::<Vec<_>>())
            .unwrap()
    });
    let expected = [2.333_984_375, 3.0, 3.666_015_625, 4.667_968_75].map(f16::from_f64);
    let got = reduced(&runtime, &halves, mean).unwrap();
    assert!(got.iter().all(|it| it.as_slice::<f16>().unwrap() == expected));
    let brains = of(&|row| {
        Tensor::from_slice(&[4], &row.iter().map(|&it| bf16::from_f64(it)).collect::<Vec<_>>())
            .unwrap()
    });
    let expected = [2.328_125, 3.0, 3.671_875, 4.656_25].map(bf16::from_f64);
    let got = reduced(&runtime, &brains, mean).unwrap();
    assert!(got.iter().all(|it| it.as_slice::<bf16>().unwrap() == expected));
}

/// Large values go around a ring, small ones by halves, and by the knob from member to member: the same values, and the
/// same bits at all members and in all runs.
#[test]
fn sums_are_the_same_at_all_members_and_in_all_runs() {
    let _turn = turn();
    for order in ["auto", "places"] {
        let runtime = over("5", &[("data.collective_order", order)]);
        for count in [3usize, 40_000] {
            let value = |place: usize, at: usize| ((place * 31 + at * 7) % 97) as f32 / 7.0;
            let of: Vec<Tensor> = (0..5)
                .map(|place| floats(&(0..count).map(|at| value(place, at)).collect::<Vec<_>>()))
                .collect();
            let session = session::session(&runtime, |b| SUM.build(b, &of));
            let first: Vec<Vec<f32>> = fetch(&session, 5).unwrap().iter().map(values).collect();
            assert!(first.iter().all(|it| *it == first[0]));
            for (at, sum) in first[0].iter().enumerate() {
                let by_places = (0..5).map(|place| value(place, at)).reduce(|a, b| a + b).unwrap();
                let near = (sum - by_places).abs() <= 1e-5 * by_places.abs();
                assert!(if order == "places" { *sum == by_places } else { near }, "{at} {sum}");
            }
            let again: Vec<Vec<f32>> = fetch(&session, 5).unwrap().iter().map(values).collect();
            assert_eq!(first, again);
        }
    }
    let wrong = over("2", &[("data.collective_order", "fast")]);
    let error = reduced(&wrong, &[floats(&[1.0]), floats(&[2.0])], SUM).unwrap_err();
    assert_eq!(error.code(), Code::INVALID_ARGUMENT);
    assert!(error.to_string().contains("expected auto or places"), "{error}");
}

/// Adds a node of an op whose keys are inputs.
fn with_keys(
    b: &mut GraphBuilder<'_>,
    op: &str,
    at: usize,
    value: Option<Tensor>,
    size: i32,
) -> Result<NodeId, GraphError> {
    let [size, group, instance] =
        [("size", size), ("group", 4), ("instance", 9)].map(|(name, key)| {
            b.constant(&format!("{name}{at}"), Tensor::scalar(key).expect("a scalar"))
        });
    let (size, group, instance) = (size?, group?, instance?);
    let value = value.map(|value| b.constant(&format!("x{at}"), value)).transpose()?;
    let mut node = b.op(op).name(&format!("y{at}")).device(&cpu(at));
    if let Some(value) = value {
        node = node.input(value);
    }
    node = node.input(size).input(group).input(instance);
    match op {
        "CollectiveReduceV2" | "CollectiveReduceScatterV2" => {
            node =
                node.attr("merge_op", "Add").attr("final_op", "Id").attr("Nordering_token", 0i64);
        }
        "CollectiveGatherV2" | "CollectiveAllToAllV2" => node = node.attr("Nordering_token", 0i64),
        _ => {}
    }
    node.build()
}

fn rows(dims: &[i64], of: &[f32]) -> Tensor {
    Tensor::from_slice(dims, of).unwrap()
}

/// An op, the shape of its results, and those of both members.
type Exchange = (&'static str, &'static [i64], [&'static [f32]; 2]);

#[test]
fn values_are_gathered_scattered_and_exchanged() {
    let _turn = turn();
    let runtime = over("2", &[]);
    let of = [rows(&[2, 2], &[1.0, 2.0, 3.0, 4.0]), rows(&[2, 2], &[5.0, 6.0, 7.0, 8.0])];
    let cases: [Exchange; 4] = [
        ("CollectiveReduceV2", &[2, 2], [&[6.0, 8.0, 10.0, 12.0]; 2]),
        ("CollectiveGatherV2", &[4, 2], [&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]; 2]),
        ("CollectiveReduceScatterV2", &[1, 2], [&[6.0, 8.0], &[10.0, 12.0]]),
        ("CollectiveAllToAllV2", &[2, 2], [&[1.0, 2.0, 5.0, 6.0], &[3.0, 4.0, 7.0, 8.0]]),
    ];
    for (op, dims, expected) in cases {
        let session = session::session(&runtime, |b| {
            of.iter()
                .enumerate()
                .try_for_each(|(at, it)| with_keys(b, op, at, Some(it.clone()), 2).map(drop))
        });
        let got = fetch(&session, 2).unwrap();
        for (got, expected) in got.iter().zip(expected) {
            assert_eq!((got.shape().dims(), &*values(got)), (dims, expected), "{op}");
        }
    }
    for op in ["CollectiveReduceScatterV2", "CollectiveAllToAllV2"] {
        let session = session::session(&runtime, |b| {
            (0..2).try_for_each(|at| with_keys(b, op, at, Some(floats(&[1.0; 3])), 2).map(drop))
        });
        let error = fetch(&session, 2).unwrap_err();
        assert_eq!(error.code(), Code::INVALID_ARGUMENT, "{error}");
        assert!(error.to_string().contains("2 members: expected a first dimension"), "{error}");
    }
}

#[test]
fn one_member_gives_its_value_to_all() {
    let _turn = turn();
    let runtime = over("3", &[]);
    let session = session::session(&runtime, |b| {
        let shape = Tensor::from_slice(&[1], &[2i32]).expect("a vector");
        for at in [0, 2] {
            // The shape is the last input.
            let [size, group, instance] =
                [3, 4, 9].map(|key| Tensor::scalar(key).expect("a scalar"));
            let mut node = Vec::new();
            for (name, value) in [("s", size), ("g", group), ("i", instance), ("d", shape.clone())]
            {
                node.push(b.constant(&format!("{name}{at}"), value)?);
            }
            let mut made = b.op("CollectiveBcastRecvV2").name(&format!("y{at}")).device(&cpu(at));
            for input in node {
                made = made.input(input);
            }
            made.attr("T", DType::FLOAT).build()?;
        }
        with_keys(b, "CollectiveBcastSendV2", 1, Some(floats(&[1.5, 2.5])), 3).map(drop)
    });
    assert!(fetch(&session, 3).unwrap().iter().all(|it| values(it) == [1.5, 2.5]));
}

/// Broadcasts of which each member says its shape, and whether it sends.
fn broadcast(runtime: &Runtime, members: &[(bool, i64)]) -> Result<Vec<Tensor>, RuntimeError> {
    let session = session::session(runtime, |b| {
        for (at, &(sends, rows)) in members.iter().enumerate() {
            let shape = PartialShape::new(&[rows]).expect("a shape");
            let op = if sends { "CollectiveBcastSend" } else { "CollectiveBcastRecv" };
            let x = b.constant(&format!("x{at}"), floats(&vec![1.5; rows as usize]))?;
            let mut node = b.op(op).name(&format!("y{at}")).device(&cpu(at));
            if sends {
                node = node.input(x);
            }
            let node = keys(node, members.len() as i64, 3).attr("shape", AttrValue::Shape(shape));
            node.attr("T", DType::FLOAT).build()?;
        }
        Ok(())
    });
    fetch(&session, members.len())
}

#[test]
fn members_that_do_not_agree_are_refused() {
    let _turn = turn();
    let runtime = over("3", &[]);
    let got = broadcast(&runtime, &[(false, 2), (true, 2), (false, 2)]).unwrap();
    assert!(got.iter().all(|it| values(it) == [1.5, 1.5]));
    let cases = [
        (broadcast(&runtime, &[(false, 3), (true, 2)]), Code::INVALID_ARGUMENT, "shape mismatch"),
        (broadcast(&runtime, &[(false, 2), (false, 2)]), Code::INTERNAL, "no source"),
        (broadcast(&runtime, &[(true, 2), (true, 2)]), Code::INTERNAL, "second claim"),
        (
            reduced(&runtime, &[floats(&[1.0, 2.0]), floats(&[1.0])], SUM),
            Code::INVALID_ARGUMENT,
            "shape mismatch in the collective instance 7",
        ),
        (
            reduced(&runtime, &[rows(&[1, 2], &[1.0; 2]), floats(&[1.0; 2])], SUM),
            Code::INVALID_ARGUMENT,
            "give all members inputs of one shape",
        ),
        (
            reduced(&runtime, &[floats(&[1.0]), Tensor::from_slice(&[1], &[1i32]).unwrap()], SUM),
            Code::INTERNAL,
            "int32",
        ),
        (
            reduced(&runtime, &[floats(&[1.0])], Reduce { size: -1, ..SUM }),
            Code::INVALID_ARGUMENT,
            "group_size must be positive integer but got -1",
        ),
    ];
    for (result, code, said) in cases {
        let error = result.unwrap_err();
        assert_eq!(error.code(), code, "{error}");
        assert!(error.to_string().contains(said), "{error}");
        assert!(error.to_string().contains("node 'y"), "{error}");
    }
}

#[test]
fn who_waits_for_a_member_that_does_not_come_ends_by_its_limit() {
    let _turn = turn();
    let runtime = over("2", &[]);
    let alone = Reduce { size: 2, ..SUM };
    let begin = Instant::now();
    let timed = Reduce { timeout: 0.3, ..alone };
    let error = reduced(&runtime, &[floats(&[1.0])], timed).unwrap_err();
    assert_eq!(error.code(), Code::DEADLINE_EXCEEDED, "{error}");
    assert!(error.to_string().contains("waiting for other members"), "{error}");
    let session = session::session(&runtime, |b| alone.build(b, &[floats(&[1.0])]));
    let deadline = Some(Duration::from_millis(300));
    let options = RunOptions { deadline, ..RunOptions::default() };
    let error = session::run_with(&session, &[], &["y0"], &options).map(drop).unwrap_err();
    assert_eq!(error.code(), Code::DEADLINE_EXCEEDED, "{error}");
    assert!(begin.elapsed() < Duration::from_secs(10));
}

/// The error of a node ends the members that wait for its value, and is what the caller sees. Nothing stays behind.
#[test]
fn an_error_elsewhere_ends_what_waits() {
    {
        // A process keeps the libraries that it has loaded.
        let _turn = turn();
        drop(runtime(&PLUGINS, &[]));
    }
    survives(
        &PLUGINS,
        &[("cpu.devices", "2")],
        |b| {
            for at in 0..2 {
                let bad = b.placeholder(
                    &format!("x{at}"),
                    DType::FLOAT,
                    PartialShape::new(&[1]).expect("a shape"),
                )?;
                let checked = b.op("CheckNumerics").name(&format!("checked{at}")).device(&cpu(at));
                let checked = checked.input(bad).attr("message", "bad").build()?;
                let node = b.op("CollectiveReduce").name(&format!("y{at}")).device(&cpu(at));
                let node = keys(node.input(checked), 2, 7).attr("merge_op", "Add");
                let node = node.attr("final_op", "Id").attr("subdiv_offsets", vec![0i64]);
                node.build()?;
            }
            Ok(())
        },
        |session| {
            let feed = |second: f32| [("x0", floats(&[1.0])), ("x1", floats(&[second]))];
            let error = run(session, &feed(f32::NAN), &["y0", "y1"]).unwrap_err();
            assert_eq!(error.code(), Code::INVALID_ARGUMENT, "{error}");
            assert!(error.to_string().contains("checked1"), "{error}");
            let sum = run(session, &feed(2.0), &["y0", "y1"]).unwrap();
            assert!(sum.iter().all(|it| values(it) == [3.0]));
        },
    );
}
