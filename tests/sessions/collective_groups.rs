//! Collective operations that take their keys from a communicator, and groups by an assignment.

use tenon_graph::{GraphBuilder, GraphError, NodeId};
use tenon_runtime::{
    Runtime, RuntimeError,
    framework::{Code, Tensor},
};
use tenon_tests::session::{self, floats, run, runtime, turn, values};

fn over_two() -> Runtime {
    runtime(&["tenon_cpu", "tenon_data"], &[("cpu.devices", "2")])
}

/// Adds `y0` and `y1`, which exchange these values with communicators of these ranks, and a group assignment of this shape.
fn exchange(
    b: &mut GraphBuilder<'_>,
    op: &str,
    of: &[Tensor; 2],
    (ranks, size, assignment): ([i32; 2], i32, &[i64]),
) -> Result<(), GraphError> {
    for (at, value) in of.iter().enumerate() {
        let mut scalar = |name: &str, value: i32| -> Result<NodeId, GraphError> {
            let value = Tensor::scalar(value).expect("a scalar");
            Ok(b.constant(&format!("{name}{at}"), value)?.node)
        };
        let (group, rank) = (scalar("group", 5)?, scalar("rank", ranks[at])?);
        let size = scalar("size", size)?;
        let device = format!("/device:CPU:{at}");
        let made = b.op("CollectiveInitializeCommunicator").name(&format!("made{at}"));
        let made = made.device(&device).input(group).input(rank).input(size).build()?;
        let count = assignment.iter().product::<i64>();
        let assigned: Vec<i32> = (0..count as i32).collect();
        let assigned = Tensor::from_slice(assignment, &assigned).expect("a tensor");
        let assigned = b.constant(&format!("assigned{at}"), assigned)?;
        let x = b.constant(&format!("x{at}"), value.clone())?;
        let node = b.op(op).name(&format!("y{at}")).device(&device);
        let node = node.input(x).input(made).input(assigned);
        match op {
            "CollectiveReduceV3" => node.attr("reduction", "Max").build()?,
            _ => node.build()?,
        };
    }
    Ok(())
}

type How<'h> = ([i32; 2], i32, &'h [i64]);

fn exchanged(runtime: &Runtime, op: &str, how: How<'_>) -> Result<Vec<Vec<f32>>, RuntimeError> {
    let of = [floats(&[1.0, 5.0]), floats(&[3.0, 4.0])];
    let session = session::session(runtime, |b| exchange(b, op, &of, how));
    // Each member's second operation follows its first one.
    let once = || Ok(run(&session, &[], &["y0", "y1"])?.iter().map(values).collect());
    let first: Result<Vec<Vec<f32>>, RuntimeError> = once();
    assert_eq!(first.as_ref().ok(), once().as_ref().ok());
    first
}

#[test]
fn members_take_their_keys_from_a_communicator() {
    let _turn = turn();
    let runtime = over_two();
    for ranks in [[0, 1], [1, 0]] {
        let got = exchanged(&runtime, "CollectiveReduceV3", (ranks, 2, &[0])).unwrap();
        assert_eq!(got, [[3.0, 5.0], [3.0, 5.0]]);
    }
    let got = exchanged(&runtime, "CollectiveAllToAllV3", ([0, 1], 2, &[0, 0])).unwrap();
    assert_eq!(got, [[1.0, 3.0], [5.0, 4.0]]);
}

#[test]
fn communicators_that_cannot_be_are_refused() {
    let _turn = turn();
    let cases: [(&str, How<'_>, Code, &str); 4] = [
        (
            "CollectiveReduceV3",
            ([0, 1], 2, &[1, 2]),
            Code::UNIMPLEMENTED,
            "group_assignment of shape",
        ),
        ("CollectiveAllToAllV3", ([1, 0], 2, &[0]), Code::UNIMPLEMENTED, "order of the devices"),
        ("CollectiveReduceV3", ([0, 2], 2, &[0]), Code::INVALID_ARGUMENT, "rank 2"),
        ("CollectiveReduceV3", ([0, 1], 0, &[0]), Code::INVALID_ARGUMENT, "group_size 0"),
    ];
    for (op, how, code, what) in cases {
        let error = exchanged(&over_two(), op, how).unwrap_err();
        assert_eq!(error.code(), code, "{error}");
        assert!(error.to_string().contains(what), "{error}");
    }
}

#[test]
fn a_device_has_the_group_that_it_is_assigned_to() {
    let _turn = turn();
    let runtime = over_two();
    let of = |groups: &[i32], device: i32, base: i32| {
        let session = session::session(&runtime, |b| {
            let groups = Tensor::from_slice(&[2, 2], groups).expect("a matrix");
            let groups = b.constant("groups", groups)?;
            let device = b.constant("device", Tensor::scalar(device).expect("a scalar"))?;
            let base = b.constant("base", Tensor::scalar(base).expect("a scalar"))?;
            let node = b.op("CollectiveAssignGroupV2").name("assigned");
            node.input(groups).input(device).input(base).build().map(drop)
        });
        run(&session, &[], &["assigned:0", "assigned:1"]).map(|got| {
            let number = |it: &Tensor| it.as_slice::<i32>().expect("numbers")[0];
            [number(&got[0]), number(&got[1])]
        })
    };
    assert_eq!(of(&[0, 2, 3, 1], 2, 7).unwrap(), [2, 7]);
    assert_eq!(of(&[0, 2, 3, 1], 3, 7).unwrap(), [2, 8]);
    // Keys wrap around, and 0 is none.
    assert_eq!(of(&[0, 2, 3, 1], 1, i32::MAX).unwrap(), [2, i32::MIN]);
    for (groups, device, base, what) in [
        ([0, 1, 2, 3], 9, 1, "no group with it"),
        ([0, 1, 2, 4], 3, 1, "has device 4"),
        ([0, -1, 2, 3], 3, 1, "has device -1"),
        ([0, 1, 2, 3], 3, -1, "reserved"),
    ] {
        let error = of(&groups, device, base).unwrap_err();
        assert_eq!(error.code(), Code::INVALID_ARGUMENT, "{error}");
        assert!(error.to_string().contains(what), "{error}");
    }
}
