//! Partitions as messages, and back.

use crate::support::*;
use tenon_framework::{DType, Tensor};
use tenon_graph::{
    ArgSide, AssembleError, Graph, NodeId, PartOp, PartitionOptions, Partitioned, Subgraph,
    assemble, infer_shapes, prune,
};
use tenon_proto::{GraphDef, NodeDef};

/// Whether an input or output of an op is in host memory.
type HostMemory = fn(&str, ArgSide) -> bool;

/// The message of a partition, read as a worker reads it.
fn read(def: &GraphDef, host: HostMemory) -> Result<Partitioned, AssembleError> {
    let graph = Graph::import(def, registry()).unwrap();
    let all: Vec<NodeId> = graph.nodes().map(|(id, _)| id).collect();
    let sub = prune(&graph, &[], &[], &all).unwrap();
    let shapes = infer_shapes(&graph, &sub, &[]).unwrap();
    let devices = Devices::new().entries;
    let options = PartitionOptions {
        devices: &devices,
        location: &|id| {
            let device = &graph.node(id).device;
            devices.iter().position(|entry| entry.name == *device).unwrap()
        },
        client: 0,
        host_memory: &|id, side| host(&graph.node(id).op.name, side),
        op: &|id| PartOp::new(&graph, &sub, &shapes, id, None),
        shapes: &shapes,
        control_loops: &[],
    };
    assemble(&graph, &sub, &options)
}

/// The nodes by name. Shapes are inferred again when the graph is read, and may be less precise:
/// the value of a constant does not pass through a transfer.
fn sorted(def: &GraphDef) -> Vec<NodeDef> {
    let mut nodes = def.node.clone();
    for node in nodes.iter_mut().filter(|node| !node.op.starts_with('_')) {
        node.attr.remove("_output_shapes");
    }
    nodes.sort_by(|a, b| a.name.cmp(&b.name));
    nodes
}

/// Checks that each partition of a cut is the same after it was written and read.
fn check(graph: &Graph, sub: &Subgraph, location: &dyn Fn(NodeId) -> usize, host: HostMemory) {
    let of_op = |id: NodeId, side| host(&graph.node(id).op.name, side);
    let cut = cut(graph, sub, location, &of_op).unwrap();
    for partition in &cut.partitions {
        let def = partition.to_graph_def().unwrap();
        let again = read(&def, host).unwrap();
        let [found] = &again.partitions[..] else { panic!("one device, found {again:?}") };
        assert_eq!(found.device, partition.device);
        assert_eq!(found.has_control_flow, partition.has_control_flow, "{partition}");
        assert_eq!(sorted(&found.to_graph_def().unwrap()), sorted(&def), "{partition}");
        assert_eq!(again.frames.frames.len() > 1, partition.nodes.iter().any(|n| n.frame.0 > 0));
    }
}

fn places(graph: &Graph) -> impl Fn(NodeId) -> usize + '_ {
    move |id| if graph.node(id).name.starts_with("a_") { 2 } else { 0 }
}

#[test]
fn transfers_constants_and_copies_on_a_device_come_back() {
    let mut b = builder();
    let x = x(&mut b);
    let c = b.op("Const").name("c").attr("dtype", DType::FLOAT);
    let c = c.attr("value", Tensor::scalar(2f32).unwrap()).build().unwrap();
    let shape = b.op("Shape").name("a_shape").input(x).build().unwrap();
    let back = b.op("Reshape").name("a_back").input(x).input(shape).build().unwrap();
    let y = b.op("Mul").name("a_y").input(back).input(c).build().unwrap();
    let z = b.op("Mul").name("z").input(y).input(c).control(shape).build().unwrap();
    let graph = b.finish();
    let sub = prune(&graph, &[x], &[z.into(), y.into()], &[]).unwrap();
    check(&graph, &sub, &places(&graph), |op, side| op == "Reshape" && side == ArgSide::Input(1));
}

#[test]
fn a_control_edge_between_devices_comes_back() {
    let mut b = builder();
    let x = x(&mut b);
    let first = b.op("Relu").name("first").input(x).build().unwrap();
    let after = b.op("NoOp").name("a_after").control(first).build().unwrap();
    let graph = b.finish();
    let sub = prune(&graph, &[x], &[], &[after]).unwrap();
    check(&graph, &sub, &places(&graph), |_, _| false);
}

#[test]
fn loops_and_what_may_be_dead_come_back() {
    let mut b = builder();
    let exit = count_to_ten(&mut b, "a_loop");
    let y = b.op("Neg").name("y").input(exit).build().unwrap();
    let graph = b.finish();
    let sub = prune(&graph, &[], &[y.into()], &[]).unwrap();
    check(&graph, &sub, &places(&graph), |_, _| false);
}

#[test]
fn names_that_partitioning_adds_do_not_meet_those_of_the_graph() {
    let mut b = builder();
    let x = x(&mut b);
    let taken = b.op("Relu").name("x_0/_arg").input(x).build().unwrap();
    let graph = b.finish();
    let sub = prune(&graph, &[x], &[taken.into()], &[]).unwrap();
    let cut = cut(&graph, &sub, &|_| 0, &|_, _| false).unwrap();
    let def = cut.partitions[0].to_graph_def().unwrap();
    let names: Vec<&str> = def.node.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["x_0/_arg_1", "x_0/_arg", "x_0/_arg_0/_retval_0"]);
}

#[test]
fn a_value_in_another_memory_than_it_is_wanted_is_refused() {
    let mut b = builder();
    let x = x(&mut b);
    let y = b.op("Relu").name("a_y").input(x).build().unwrap();
    let z = b.op("Neg").name("a_z").input(y).build().unwrap();
    let graph = b.finish();
    let sub = prune(&graph, &[x], &[z.into()], &[]).unwrap();
    let cut = cut(&graph, &sub, &places(&graph), &|_, _| false).unwrap();
    let accel = cut.partitions.iter().find(|part| part.device == device(2)).unwrap();
    let error = read(&accel.to_graph_def().unwrap(), |op, _| op == "Relu").unwrap_err();
    let expected = "takes output 0 of";
    assert!(error.to_string().contains(expected), "{error}");
    assert!(matches!(error, AssembleError::Memory { .. }));
}
