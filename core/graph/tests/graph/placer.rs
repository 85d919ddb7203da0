//! Placement of nodes on devices.

use crate::support::*;
use tenon_framework::attr::{AttrList, AttrValue};
use tenon_framework::{Code, DType, device::DeviceName};
use tenon_graph::{Graph, GraphBuilder, NodeId, Placement, PlacerOptions, place, prune};

const CPU: usize = 0;
const ACCEL_1: usize = 1;
const ACCEL_0: usize = 2;

fn soft() -> PlacerOptions {
    PlacerOptions { allow_soft_placement: true, ..PlacerOptions::default() }
}

fn placed_all(
    graph: &Graph,
    options: &PlacerOptions,
) -> Result<Placement, tenon_graph::GraphError> {
    let targets: Vec<NodeId> = graph.nodes().map(|(id, _)| id).collect();
    place(graph, &prune(graph, &[], &[], &targets).unwrap(), &Devices::new(), options)
}

fn class(names: &[&str]) -> AttrValue {
    AttrValue::List(AttrList::String(
        names.iter().map(|name| format!("loc:@{name}").into_bytes()).collect(),
    ))
}

fn relu(b: &mut GraphBuilder<'_>, name: &str, input: NodeId, device: &str) -> NodeId {
    b.op("Relu").name(name).input(input).device(device).build().unwrap()
}

#[test]
fn priority_then_number_decide_where_nothing_is_asked() {
    let mut b = builder();
    let x = x(&mut b);
    let y = relu(&mut b, "y", x.node, "");
    let cast = b.op("Cast").name("c").input(y).attr("DstT", DType::INT32).build().unwrap();
    let placement = placed_all(&b.finish(), &PlacerOptions::default()).unwrap();
    assert_eq!(placement.device(y), Some(ACCEL_0));
    assert_eq!(
        placement.of(y).unwrap().reason.to_string(),
        "requests no device: first device by priority that can run it"
    );
    assert_eq!(placement.device(cast), Some(CPU));
    assert_eq!(
        placement.of(cast).unwrap().passed_over,
        [
            "/job:localhost/replica:0/task:0/device:ACCEL:0: no kernel of Cast for ACCEL",
            "/job:localhost/replica:0/task:0/device:ACCEL:1: no kernel of Cast for ACCEL",
        ]
    );
}

#[test]
fn partial_names_leave_the_rest_open() {
    let mut b = builder();
    let x = x(&mut b);
    let ids: Vec<NodeId> = ["/cpu:*", "/device:ACCEL:1", "/job:localhost", "/device:*:1"]
        .iter()
        .enumerate()
        .map(|(at, device)| relu(&mut b, &format!("n{at}"), x.node, device))
        .collect();
    let placement = placed_all(&b.finish(), &PlacerOptions::default()).unwrap();
    let devices: Vec<_> = ids.iter().map(|&id| placement.device(id).unwrap()).collect();
    assert_eq!(devices, [CPU, ACCEL_1, ACCEL_0, ACCEL_1]);
    assert_eq!(placement.of(ids[0]).unwrap().reason.to_string(), "the node requests /device:CPU:*");
}

#[test]
fn what_cannot_be_met_is_an_error_or_given_up() {
    let mut b = builder();
    let x = x(&mut b);
    let cast = b.op("Cast").name("c").input(x).attr("DstT", DType::INT32);
    let cast = cast.device("/device:ACCEL:0").build().unwrap();
    let gpu = relu(&mut b, "g", x.node, "/gpu:0");
    let graph = b.finish();
    let error = placed_all(&graph, &PlacerOptions::default()).unwrap_err();
    assert_eq!(error.code(), Code::INVALID_ARGUMENT);
    assert_eq!(
        error.to_string(),
        "node 'c' (op 'Cast'): no device can run it (/device:ACCEL:0 was asked for):\n  \
         /job:localhost/replica:0/task:0/device:ACCEL:0: no kernel of Cast for ACCEL\n  \
         /job:localhost/replica:0/task:0/device:ACCEL:1: does not match the request\n  \
         /job:localhost/replica:0/task:0/device:CPU:0: does not match the request\n\
         with soft placement it would run on /job:localhost/replica:0/task:0/device:CPU:0: enable it by the \
         knob runtime.soft_placement (--soft-placement on the command line), or name a device that can run it"
    );
    let placement = placed_all(&graph, &soft()).unwrap();
    assert_eq!((placement.device(cast), placement.device(gpu)), (Some(CPU), Some(ACCEL_0)));
    let reason = placement.of(gpu).unwrap().reason.to_string();
    assert_eq!(reason, "/device:GPU:0 cannot run it: moved by soft placement");
    let mut b = builder();
    b.op("NoOp").name("far").device("/job:worker").build().unwrap();
    let error =
        placed_all(&b.finish(), &soft()).expect_err("the task is never given up").to_string();
    assert!(error.contains("(/job:worker was asked for, and there is no such device)"), "{error}");
    assert!(!error.contains("with soft placement"), "it was asked for already: {error}");
}

#[test]
fn colocated_nodes_share_a_device() {
    let mut b = builder();
    let x = x(&mut b);
    let first = relu(&mut b, "first", x.node, "/device:ACCEL:1");
    let second =
        b.op("Relu").name("second").input(x).attr("_class", class(&["first"])).build().unwrap();
    let third =
        b.op("Relu").name("third").input(x).attr("_class", class(&["second"])).build().unwrap();
    let graph = b.finish();
    let placement = placed_all(&graph, &PlacerOptions::default()).unwrap();
    for id in [first, second, third] {
        assert_eq!(placement.device(id), Some(ACCEL_1));
    }
    let reason = placement.of(third).unwrap().reason.to_string();
    assert_eq!(reason, "belongs with 'first', the group requests /device:ACCEL:1");
    // A node that does not run still determines the device of nodes colocated with it.
    let only = place(&graph, &sub(&graph, &[third.into()]), &Devices::new(), &soft()).unwrap();
    assert_eq!((only.device(third), only.device(first)), (Some(ACCEL_1), None));
}

#[test]
fn colocation_that_cannot_be_is_refused() {
    let mut b = builder();
    let x = x(&mut b);
    relu(&mut b, "a", x.node, "/cpu:0");
    b.op("Relu")
        .name("b")
        .input(x)
        .device("/device:ACCEL:0")
        .attr("_class", class(&["a"]))
        .build()
        .unwrap();
    let graph = b.finish();
    assert_eq!(
        placed_all(&graph, &PlacerOptions::default()).unwrap_err().to_string(),
        "nodes 'a' and 'b' belong on one device (one names the other in '_class'): cannot merge device names \
         '/device:CPU:0' and '/device:ACCEL:0': their types differ"
    );
    assert!(placed_all(&graph, &soft()).is_ok());
    let mut b = builder();
    b.op("NoOp").name("n").attr("_class", class(&["nowhere"])).build().unwrap();
    let error = placed_all(&b.finish(), &soft()).unwrap_err().to_string();
    assert_eq!(error, "node 'n': attribute '_class' names 'nowhere', which is not in the graph");
}

#[test]
fn references_and_resources_stay_with_their_device() {
    let mut b = builder();
    let x = x(&mut b);
    let variable =
        b.op("TestVariable").attr("dtype", DType::FLOAT).device("/cpu:0").build().unwrap();
    let assign = b.op("TestAssign").input(variable).input(x).build().unwrap();
    let read = relu(&mut b, "read", assign, "");
    let handle = b.op("TestVarHandle").attr("dtype", DType::FLOAT).build().unwrap();
    let value = b.op("ReadVariableOp").input(handle).attr("dtype", DType::FLOAT);
    let value = value.device("/device:ACCEL:1").build().unwrap();
    let placement = placed_all(&b.finish(), &PlacerOptions::default()).unwrap();
    assert_eq!(placement.device(assign), Some(CPU));
    assert_eq!(placement.device(read), Some(ACCEL_0), "reading a reference binds nothing");
    assert_eq!((placement.device(handle), placement.device(value)), (Some(ACCEL_1), Some(ACCEL_1)));
}

#[test]
fn a_resource_is_where_its_users_in_other_steps_ask_for() {
    let mut b = builder();
    let handle = b.op("TestVarHandle").attr("dtype", DType::FLOAT).build().unwrap();
    let read = |b: &mut GraphBuilder<'_>, device: &str| {
        let read = b.op("ReadVariableOp").input(handle).attr("dtype", DType::FLOAT);
        read.device(device).build().unwrap()
    };
    let (anywhere, there) = (read(&mut b, ""), read(&mut b, "/device:ACCEL:1"));
    let elsewhere = read(&mut b, "/cpu:0");
    let graph = b.finish();
    for step in [anywhere, there, elsewhere] {
        let step = prune(&graph, &[], &[], &[step]).unwrap();
        let placed = place(&graph, &step, &Devices::new(), &PlacerOptions::default()).unwrap();
        assert_eq!(placed.device(handle), Some(ACCEL_1));
    }
}

#[test]
fn the_default_device_counts_where_nothing_is_asked_and_a_kernel_is_there() {
    let mut b = builder();
    let x = x(&mut b);
    let y = relu(&mut b, "y", x.node, "");
    let z = relu(&mut b, "z", x.node, "/cpu:0");
    let cast = b.op("Cast").name("c").input(y).attr("DstT", DType::INT32).build().unwrap();
    let default = DeviceName::parse("/device:ACCEL:1").unwrap();
    let options = PlacerOptions { default_device: default, ..PlacerOptions::default() };
    let placement = placed_all(&b.finish(), &options).unwrap();
    let devices = [y, z, cast].map(|id| placement.device(id).unwrap());
    assert_eq!(devices, [ACCEL_1, CPU, CPU]);
    assert_eq!(
        placement.of(y).unwrap().reason.to_string(),
        "requests no device: the default device"
    );
}

#[test]
fn what_has_no_inputs_goes_to_its_only_users() {
    let mut b = builder();
    let c = b.constant("c", floats(&[3])).unwrap();
    let d = b.constant("d", floats(&[3])).unwrap();
    let y = b.op("Add").name("y").input(c).input(d).device("/cpu:0").build().unwrap();
    let z = relu(&mut b, "z", d.node, "/device:ACCEL:1");
    let placement = placed_all(&b.finish(), &PlacerOptions::default()).unwrap();
    assert_eq!((placement.device(y), placement.device(z)), (Some(CPU), Some(ACCEL_1)));
    assert_eq!(placement.device(c.node), Some(CPU));
    assert_eq!(placement.device(d.node), Some(ACCEL_0), "users on two devices");
}
