//! Partitioning, checked against the graph: every value comes from the source that the graph
//! states.

use crate::support::*;
use std::collections::{HashMap, HashSet};
use tenon_framework::{Code, DType};
use tenon_graph::{
    ArgSide, ControlFlow, Edge, FrameId, Graph, Memory, NodeId, Output, PartKind, PartNode,
    Partitioned, Subgraph, Transfer, prune,
};

/// The value of the graph that an edge of a partition carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Meaning {
    Value(Output),
    Feed(usize),
    Control(NodeId),
}

/// The ends of the transfers of a cut.
struct Senders<'a> {
    graph: &'a Graph,
    /// By transfer.
    pairs: HashMap<u32, (usize, &'a PartNode, &'a Transfer)>,
}

impl<'a> Senders<'a> {
    fn of(graph: &'a Graph, cut: &'a Partitioned) -> Senders<'a> {
        let mut pairs = HashMap::new();
        for (part, partition) in cut.partitions.iter().enumerate() {
            for node in &partition.nodes {
                if let PartKind::Send(transfer) = &node.kind {
                    assert_eq!((&transfer.sender, transfer.incarnation), (&partition.device, 7));
                    assert!(pairs.insert(transfer.id, (part, node, transfer)).is_none());
                }
            }
        }
        Senders { graph, pairs }
    }

    /// The node of the graph that a node of a partition is, or is a copy of.
    fn node(&self, node: &PartNode) -> NodeId {
        self.graph.find(node.name.trim_end_matches("@host")).unwrap()
    }

    /// Follows an edge back through transfers to its value in the graph.
    fn meaning(&self, cut: &Partitioned, mut part: usize, mut edge: Edge) -> Meaning {
        loop {
            let node = &cut.partitions[part].nodes[edge.node as usize];
            match &node.kind {
                PartKind::Op(_) => {
                    return Meaning::Value(Output::new(self.node(node), edge.output));
                }
                PartKind::Feed { index } => return Meaning::Feed(*index),
                PartKind::Recv(transfer) => {
                    let (from, sender, sent) = self.pairs[&transfer.id];
                    assert_eq!(sent, transfer);
                    part = from;
                    match sender.inputs[..] {
                        [input] => edge = input,
                        _ => return self.control(cut, part, sender.control_inputs[0]),
                    }
                }
                other => panic!("{other:?} has no outputs"),
            }
        }
    }

    fn control(&self, cut: &Partitioned, part: usize, node: u32) -> Meaning {
        let found = &cut.partitions[part].nodes[node as usize];
        match &found.kind {
            PartKind::Op(_) => Meaning::Control(self.node(found)),
            _ => self.meaning(cut, part, Edge { node, output: 0 }),
        }
    }
}

/// Checks all guarantees of partitioning.
pub fn check(graph: &Graph, sub: &Subgraph, cut: &Partitioned) {
    let senders = Senders::of(graph, cut);
    assert_eq!(senders.pairs.len(), cut.transfers as usize);
    let mut keys = HashSet::new();
    let mut found = Vec::new();
    let mut receivers = 0;
    for (part, partition) in cut.partitions.iter().enumerate() {
        let names: HashSet<&str> = partition.nodes.iter().map(|node| node.name.as_str()).collect();
        assert_eq!(names.len(), partition.nodes.len(), "names are unique");
        for (at, node) in partition.nodes.iter().enumerate() {
            check_edges(cut, part, at, node);
            match &node.kind {
                PartKind::Op(_) => {
                    let id = senders.node(node);
                    check_node(graph, sub, &senders, cut, part, node, id);
                    found.push(id);
                }
                PartKind::Recv(transfer) => {
                    receivers += 1;
                    assert_eq!(transfer.receiver, partition.device);
                    let ends = (transfer.sender.to_string(), transfer.receiver.to_string());
                    assert!(keys.insert((ends, transfer.tensor.clone())), "one transfer per key");
                }
                PartKind::Fetch { index } => {
                    let expected = meant(sub, sub.fetches[*index]);
                    assert_eq!(senders.meaning(cut, part, node.inputs[0]), expected);
                }
                PartKind::Send(_) | PartKind::Feed { .. } => {}
            }
        }
    }
    assert_eq!(receivers, senders.pairs.len());
    found.sort();
    let mut expected = sub.order.clone();
    expected.sort();
    assert_eq!(found, expected);
}

fn meant(sub: &Subgraph, output: Output) -> Meaning {
    sub.feed_of(output).map_or(Meaning::Value(output), Meaning::Feed)
}

/// Edges lead forward, types and memory agree on both ends.
fn check_edges(cut: &Partitioned, part: usize, at: usize, node: &PartNode) {
    let nodes = &cut.partitions[part].nodes;
    let merge = node.control_flow() == ControlFlow::Merge;
    assert_eq!(node.inputs.len(), node.signature.inputs.len());
    for (index, edge) in node.inputs.iter().enumerate() {
        let source = &nodes[edge.node as usize];
        assert!(merge || (edge.node as usize) < at, "{} reads ahead", node.name);
        let output = edge.output as usize;
        assert_eq!(source.output_memory[output], node.input_memory[index], "{}", node.name);
        assert_eq!(source.signature.outputs[output].base(), node.signature.inputs[index].base());
    }
    assert!(node.control_inputs.iter().all(|&control| (control as usize) < at));
}

fn check_node(
    graph: &Graph,
    sub: &Subgraph,
    senders: &Senders<'_>,
    cut: &Partitioned,
    part: usize,
    node: &PartNode,
    id: NodeId,
) {
    let original = graph.node(id);
    assert_eq!((&node.name, &node.op), (&original.name, &original.op.name));
    assert_eq!(node.inputs.len(), original.inputs.len());
    for (&edge, &input) in node.inputs.iter().zip(&original.inputs) {
        assert_eq!(senders.meaning(cut, part, edge), meant(sub, input), "{}", node.name);
    }
    let controls: Vec<Meaning> =
        node.control_inputs.iter().map(|&at| senders.control(cut, part, at)).collect();
    let expected: Vec<Meaning> = sub.control_inputs(graph, id).map(Meaning::Control).collect();
    assert_eq!(controls, expected, "{}", node.name);
}

fn by_name<'a>(graph: &'a Graph, places: &'a [(&'a str, usize)]) -> impl Fn(NodeId) -> usize + 'a {
    |id| {
        let name = graph.node(id).name.as_str();
        places.iter().find(|(prefix, _)| name.starts_with(prefix)).map_or(0, |(_, at)| *at)
    }
}

fn sends(cut: &Partitioned) -> Vec<&Transfer> {
    let mut sends: Vec<&Transfer> = cut
        .partitions
        .iter()
        .flat_map(|partition| &partition.nodes)
        .filter_map(|node| match &node.kind {
            PartKind::Send(transfer) => Some(transfer),
            _ => None,
        })
        .collect();
    sends.sort_by_key(|transfer| transfer.id);
    sends
}

#[test]
fn one_device_needs_no_transfers() {
    let mut b = builder();
    let x = x(&mut b);
    let y = b.op("Relu").name("y").input(x).build().unwrap();
    let graph = b.finish();
    let sub = prune(&graph, &[x], &[y.into(), y.into(), x], &[]).unwrap();
    let cut = cut(&graph, &sub, &|_| 0, &|_, _| false).unwrap();
    check(&graph, &sub, &cut);
    let names: Vec<&str> = cut.partitions[0].nodes.iter().map(|n| n.name.as_str()).collect();
    assert_eq!(names, ["x:0/_arg", "y", "y:0/_retval_0", "y:0/_retval_1", "x:0/_retval_2"]);
    assert_eq!(cut.partitions[0].nodes[1].output_shapes[0].to_string(), "[?,3]");
    assert!(!cut.partitions[0].has_control_flow);
}

#[test]
fn a_tensor_goes_to_a_device_once() {
    let mut b = builder();
    let x = x(&mut b);
    let y = b.op("Relu").name("y").input(x).build().unwrap();
    let a1 = b.op("Add").name("a1").input(y).input(y).build().unwrap();
    let a2 = b.op("Mul").name("a2").input(y).input(a1).build().unwrap();
    let graph = b.finish();
    let sub = prune(&graph, &[x], &[a2.into()], &[]).unwrap();
    let cut = cut(&graph, &sub, &by_name(&graph, &[("a", 2)]), &|_, _| false).unwrap();
    check(&graph, &sub, &cut);
    let sends = sends(&cut);
    assert_eq!(sends.len(), 2, "y to the accelerator, a2 back to the client");
    let (sender, receiver) = (&sends[0].sender, &sends[0].receiver);
    assert_eq!((sender, receiver, &*sends[0].tensor), (&device(0), &device(2), "y:0"));
    assert_eq!(sends[0].shape.to_string(), "[?,3]");
    assert_eq!(
        (sends[0].source_memory, sends[0].destination_memory),
        (Memory::Host, Memory::Device)
    );
    assert_eq!(
        (sends[1].source_memory, sends[1].destination_memory),
        (Memory::Device, Memory::Host)
    );
    let text = cut.partitions[1].to_string();
    assert!(text.contains("1 a1 = Add(0:0, 0:0)"), "{text}");
}

#[test]
fn host_arguments_are_copied_within_a_device() {
    let mut b = builder();
    let x = x(&mut b);
    let shape = b.op("Shape").name("a_shape").input(x).build().unwrap();
    let back = b.op("Reshape").name("a_back").input(x).input(shape).build().unwrap();
    let neg = b.op("Neg").name("a_neg").input(shape).build().unwrap();
    let graph = b.finish();
    let sub = prune(&graph, &[x], &[back.into(), neg.into()], &[]).unwrap();
    // The shape is computed on the device, and Reshape reads it in host memory.
    let host = |id: NodeId, side| graph.node(id).op.name == "Reshape" && side == ArgSide::Input(1);
    let cut = cut(&graph, &sub, &by_name(&graph, &[("a_", 2)]), &host).unwrap();
    check(&graph, &sub, &cut);
    let sends = sends(&cut);
    let local: Vec<_> = sends.iter().filter(|transfer| transfer.is_local()).collect();
    assert_eq!(local.len(), 1);
    assert_eq!(local[0].tensor, "a_shape:0@host");
    assert_eq!((&local[0].sender, local[0].destination_memory), (&device(2), Memory::Host));
    let accel = &cut.partitions[1];
    let receiver = accel.nodes.iter().find(|node| node.name.starts_with("a_shape:0@host/_recv"));
    let sender = receiver.unwrap().control_inputs[0];
    assert!(matches!(&accel.nodes[sender as usize].kind, PartKind::Send(t) if t == *local[0]));
}

#[test]
fn a_control_edge_between_devices_carries_an_empty_tensor_once() {
    let mut b = builder();
    let x = x(&mut b);
    let first = b.op("Relu").name("first").input(x).build().unwrap();
    let a1 = b.op("NoOp").name("a1").control(first).build().unwrap();
    let a2 = b.op("NoOp").name("a2").control(first).control(a1).build().unwrap();
    let graph = b.finish();
    let sub = prune(&graph, &[x], &[], &[a2]).unwrap();
    let cut = cut(&graph, &sub, &by_name(&graph, &[("a", 1)]), &|_, _| false).unwrap();
    check(&graph, &sub, &cut);
    let sends = sends(&cut);
    assert_eq!(sends.len(), 1);
    assert!(sends[0].is_control());
    assert_eq!((sends[0].tensor.as_str(), sends[0].dtype), ("^first", DType::FLOAT));
    assert_eq!(sends[0].shape.to_string(), "[0]");
}

#[test]
fn any_tensor_can_be_fed() {
    let mut b = builder();
    let x = x(&mut b);
    let y = b.op("Relu").name("y").input(x).build().unwrap();
    let z = b.op("Neg").name("a_z").input(y).build().unwrap();
    let graph = b.finish();
    let sub = prune(&graph, &[y.into()], &[z.into(), y.into()], &[]).unwrap();
    let cut = cut(&graph, &sub, &by_name(&graph, &[("a_", 2)]), &|_, _| false).unwrap();
    check(&graph, &sub, &cut);
    let client = &cut.partitions[0];
    assert!(client.nodes.iter().all(|node| node.name != "y" && node.name != "x"));
    assert_eq!(client.device, device(0));
}

#[test]
fn a_loop_stays_on_one_device() {
    let mut b = builder();
    let exit = count_to_ten(&mut b, "loop");
    let graph = b.finish();
    let sub = prune(&graph, &[], &[exit], &[]).unwrap();
    let whole = cut(&graph, &sub, &by_name(&graph, &[("loop", 2)]), &|_, _| false).unwrap();
    check(&graph, &sub, &whole);
    assert_eq!(whole.frames.frames.len(), 2);
    assert_eq!(whole.frames.path(FrameId(1)), "loop");
    assert_eq!(whole.frames.info(FrameId(1)).enters, 3);
    let accel = whole.partitions.iter().find(|partition| partition.device == device(2)).unwrap();
    assert!(accel.has_control_flow);
    let frame = |name: &str| accel.nodes.iter().find(|n| n.name == name).unwrap().frame;
    assert_eq!(["loop/zero", "loop/start"].map(frame), [FrameId::ROOT; 2]);
    assert_eq!(["loop/merge", "loop/next", "loop/exit"].map(frame), [FrameId(1); 3]);

    let places = [("loop/add", 0), ("loop", 2)];
    let error = cut(&graph, &sub, &by_name(&graph, &places), &|_, _| false).unwrap_err();
    assert_eq!(error.code(), Code::UNIMPLEMENTED);
    assert!(
        error.to_string().starts_with("loop 'loop' is over several devices: 'loop/switch:1' goes"),
        "{error}"
    );
}

#[test]
fn copies_inside_a_loop_run_in_its_frame() {
    let mut b = builder();
    let exit = count_to_ten(&mut b, "loop");
    let graph = b.finish();
    let sub = prune(&graph, &[], &[exit], &[]).unwrap();
    // The counter is in host memory at the back edge, and on the device elsewhere.
    let host = |id: NodeId, _| graph.node(id).op.name == "NextIteration";
    let cut = cut(&graph, &sub, &by_name(&graph, &[("loop", 2)]), &host).unwrap();
    check(&graph, &sub, &cut);
    let local: Vec<_> = sends(&cut).into_iter().filter(|transfer| transfer.is_local()).collect();
    let tensors: Vec<&str> = local.iter().map(|transfer| transfer.tensor.as_str()).collect();
    assert_eq!(tensors, ["loop/add:0@host", "loop/next:0"]);
    let accel = cut.partitions.iter().find(|partition| partition.device == device(2)).unwrap();
    let transfers = accel.nodes.iter().filter(|node| node.name.starts_with("loop/add:0@host/"));
    assert!(transfers.clone().count() == 2 && transfers.clone().all(|n| n.frame == FrameId(1)));
}

#[test]
fn frames_are_checked() {
    let mut b = builder();
    let x = x(&mut b);
    let enter = |b: &mut tenon_graph::GraphBuilder<'_>, frame: &str| {
        b.op("Enter").name(frame).input(x).attr("frame_name", frame).build().unwrap()
    };
    let (one, two) = (enter(&mut b, "one"), enter(&mut b, "two"));
    let mixed = b.op("Add").name("mixed").input(one).input(two).build().unwrap();
    let exit = b.op("Exit").name("exit").input(x).build().unwrap();
    let graph = b.finish();
    let error = |fetch: NodeId| {
        let sub = prune(&graph, &[], &[fetch.into()], &[]).unwrap();
        cut(&graph, &sub, &|_| 0, &|_, _| false).unwrap_err().to_string()
    };
    assert!(error(mixed).starts_with(
        "node 'mixed' (op 'Add'): its inputs come from different frames, 'one' and 'two'"
    ));
    assert_eq!(
        error(exit),
        "node 'exit' (op 'Exit') is not in a loop: its input does not come from an Enter"
    );
    assert_eq!(
        error(one),
        "'one:0' is inside loop 'one' and has a value per iteration: fetch the output of its Exit"
    );
}

#[test]
fn references_do_not_travel() {
    let mut b = builder();
    let x = x(&mut b);
    let variable = b.op("TestVariable").name("v").attr("dtype", DType::FLOAT).build().unwrap();
    let assign = b.op("TestAssign").name("a").input(variable).input(x).build().unwrap();
    let graph = b.finish();
    let sub = prune(&graph, &[x], &[assign.into()], &[]).unwrap();
    let error = cut(&graph, &sub, &by_name(&graph, &[("a", 1)]), &|_, _| false).unwrap_err();
    assert!(error.to_string().starts_with("'v:0' is a reference on"), "{error}");
    let fed = prune(&graph, &[x, variable.into()], &[assign.into()], &[]).unwrap();
    let error = cut(&graph, &fed, &|_| 0, &|_, _| false).unwrap_err();
    assert_eq!(
        error.to_string(),
        "'v:0' is used as a reference and cannot be fed: feed what reads it"
    );
    let whole = cut(&graph, &sub, &|_| 1, &|_, _| false).unwrap();
    check(&graph, &sub, &whole);
    assert_eq!(sends(&whole).iter().find(|t| t.tensor == "a:0").unwrap().dtype, DType::FLOAT);
    let error = cut(&graph, &sub, &|_| 3, &|_, _| false).unwrap_err();
    assert_eq!(error.code(), Code::INTERNAL);
}
