//! Placement by cost, beside the best of all placements.

use crate::support::*;
use tenon_graph::{
    DeviceEntry, DeviceView, Graph, GraphBuilder, Node, NodeId, Output, PlacementCosts,
    PlacerOptions, Subgraph, place, place_by_cost, prune,
};

const CPU: usize = 0;
const ACCEL_1: usize = 1;
const ACCEL_0: usize = 2;

/// Costs by the names of nodes: of a call on the CPU and on the other devices, and of a transfer.
#[derive(Debug)]
struct Costs {
    compute: fn(&str) -> [f64; 2],
    transfer: f64,
}

impl PlacementCosts for Costs {
    fn compute(&self, node: &Node, device: &DeviceEntry) -> Option<f64> {
        Some((self.compute)(&node.name)[usize::from(device.device_type != "CPU")])
    }

    fn transfer(&self, _: &Node, _: u32, _: &DeviceEntry, _: &DeviceEntry) -> f64 {
        self.transfer
    }
}

/// A chain of `Relu`s after a placeholder that is fed; the last one is fetched.
fn chain(requests: &[&str]) -> (Graph, Subgraph, Vec<NodeId>) {
    let mut b = builder();
    let x = x(&mut b);
    let mut nodes: Vec<NodeId> = Vec::new();
    for (at, request) in requests.iter().enumerate() {
        let input = nodes.last().map_or(x, |&node| node.into());
        let node = b.op("Relu").name(&format!("n{at}")).input(input).device(request);
        nodes.push(node.build().unwrap());
    }
    let graph = b.finish();
    let last = Output::from(nodes[nodes.len() - 1]);
    let sub = prune(&graph, &[x], &[last], &[]).unwrap();
    (graph, sub, nodes)
}

fn devices(graph: &Graph, sub: &Subgraph, nodes: &[NodeId], costs: &Costs) -> Vec<usize> {
    let placed = place_by_cost(graph, sub, &Devices::new(), &PlacerOptions::default(), costs);
    let placed = placed.unwrap();
    nodes.iter().map(|&node| placed.device(node).unwrap()).collect()
}

#[test]
fn a_transfer_that_costs_more_than_it_saves_is_not_made() {
    let (graph, sub, nodes) = chain(&[""; 3]);
    let costs = |transfer| Costs { compute: |_| [10.0, 2.0], transfer };
    assert_eq!(devices(&graph, &sub, &nodes, &costs(1.0)), [ACCEL_0; 3]);
    // There and back: 24 against the 24 that three calls save, then more.
    assert_eq!(devices(&graph, &sub, &nodes, &costs(13.0)), [CPU; 3]);
    let placed =
        place_by_cost(&graph, &sub, &Devices::new(), &PlacerOptions::default(), &costs(13.0));
    let reason = placed.unwrap().of(nodes[0]).unwrap().reason.to_string();
    assert_eq!(reason, "the step ends soonest there, by the known costs");
}

#[test]
fn requests_are_kept_and_count() {
    let (graph, sub, nodes) = chain(&["", "/device:ACCEL:1", "/device:ACCEL:*", ""]);
    let costs = Costs { compute: |_| [1.0, 2.0], transfer: 5.0 };
    // The last one stays where its input is, since the way back has to be paid in any case.
    assert_eq!(devices(&graph, &sub, &nodes, &costs)[..3], [CPU, ACCEL_1, ACCEL_1]);
}

#[test]
fn without_costs_priority_decides() {
    let (graph, sub, nodes) = chain(&["", "/device:CPU:0", ""]);
    let costs = Costs { compute: |_| [0.0; 2], transfer: 0.0 };
    let by_priority = place(&graph, &sub, &Devices::new(), &PlacerOptions::default()).unwrap();
    let by_priority: Vec<usize> =
        nodes.iter().map(|&node| by_priority.device(node).unwrap()).collect();
    assert_eq!(devices(&graph, &sub, &nodes, &costs), by_priority);
}

/// Independent branches run at the same time on different devices.
#[test]
fn branches_are_spread() {
    let mut b = builder();
    let x = x(&mut b);
    let branches: Vec<NodeId> =
        (0..2).map(|at| b.op("Relu").name(&format!("n{at}")).input(x).build().unwrap()).collect();
    let sum = b.op("AddV2").name("sum").input(branches[0]).input(branches[1]).build().unwrap();
    let graph = b.finish();
    let sub = prune(&graph, &[x], &[sum.into()], &[]).unwrap();
    let costs = Costs {
        compute: |name| if name == "sum" { [1.0, 1.0] } else { [200.0, 100.0] },
        transfer: 1.0,
    };
    let mut placed = devices(&graph, &sub, &branches, &costs);
    placed.sort_unstable();
    assert_eq!(placed, [ACCEL_1, ACCEL_0]);
}

/// A number that looks random.
fn hash(mut x: u64) -> u64 {
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

fn name_hash(name: &str, salt: u64) -> u64 {
    name.bytes().fold(hash(salt + 1), |x, byte| hash(x ^ u64::from(byte)))
}

/// When a step ends: nodes in their order, a device runs one node at a time, values arrive after a transfer.
fn simulated(
    graph: &Graph,
    sub: &Subgraph,
    x: Output,
    device: &dyn Fn(NodeId) -> usize,
    costs: &Costs,
) -> f64 {
    let mut free = [0.0f64; 3];
    let mut ends = vec![0.0f64; graph.len()];
    let arrival = |ends: &[f64], value: Output, to: usize| match value {
        value if value == x && to == CPU => 0.0,
        value if value == x => costs.transfer,
        value if device(value.node) == to => ends[value.node.index()],
        value => ends[value.node.index()] + costs.transfer,
    };
    for &id in &sub.order {
        if id == x.node {
            continue;
        }
        let (node, at) = (graph.node(id), device(id));
        let ready =
            node.inputs.iter().map(|input| arrival(&ends, *input, at)).fold(free[at], f64::max);
        let end = ready + (costs.compute)(&node.name)[usize::from(at != CPU)];
        (free[at], ends[id.index()]) = (end, end);
    }
    let last = sub.fetches.iter().map(|fetch| arrival(&ends, *fetch, CPU));
    ends.iter().copied().chain(last).fold(0.0, f64::max)
}

fn random_graph(b: &mut GraphBuilder<'_>, seed: u64) -> (Output, Vec<NodeId>) {
    let x = x(b);
    let mut values = vec![x];
    let count = 3 + hash(seed) % 4;
    let nodes = (0..count).map(|at| {
        let pick =
            |salt: u64| values[(hash(seed * 977 + at * 31 + salt) % values.len() as u64) as usize];
        let name = format!("n{seed}_{at}");
        let node = match hash(seed + at) % 3 {
            0 => b.op("Relu").name(&name).input(pick(1)).build().unwrap(),
            _ => b.op("AddV2").name(&name).input(pick(1)).input(pick(2)).build().unwrap(),
        };
        values.push(node.into());
        node
    });
    (x, nodes.collect())
}

/// 3^7 placements at most are tried for each of 100 graphs.
#[test]
fn random_steps_are_nearly_as_short_as_the_shortest() {
    let costs = Costs {
        compute: |name| [1, 2].map(|salt| (1 + name_hash(name, salt) % 100) as f64),
        transfer: 20.0,
    };
    let (mut best, mut worst) = (0, 1.0f64);
    for seed in 0..100 {
        let mut b = builder();
        let (x, nodes) = random_graph(&mut b, seed);
        let graph = b.finish();
        let last = Output::from(nodes[nodes.len() - 1]);
        let sub = prune(&graph, &[x], &[last], &nodes).unwrap();
        let chosen = devices(&graph, &sub, &nodes, &costs);
        let at = |id: NodeId| nodes.iter().position(|node| *node == id).unwrap();
        let time = |choice: &[usize]| simulated(&graph, &sub, x, &|id| choice[at(id)], &costs);
        let all = (0..3usize.pow(nodes.len() as u32)).map(|mut code| {
            let digits = nodes.iter().map(|_| {
                let digit = code % 3;
                code /= 3;
                digit
            });
            time(&digits.collect::<Vec<_>>())
        });
        let shortest = all.fold(f64::INFINITY, f64::min);
        let ratio = time(&chosen) / shortest;
        assert!(ratio >= 1.0 - 1e-12, "seed {seed}: {ratio}");
        best += usize::from(ratio < 1.0 + 1e-12);
        worst = worst.max(ratio);
    }
    assert!(best >= 85 && worst <= 1.3, "{best} of 100 are the shortest, the worst takes {worst}");
}

#[test]
fn errors_are_those_of_placement() {
    let (graph, sub, _) = chain(&["/gpu:0"]);
    let costs = Costs { compute: |_| [1.0; 2], transfer: 1.0 };
    let view = Devices::new();
    let refused = place_by_cost(&graph, &sub, &view, &PlacerOptions::default(), &costs);
    let expected = place(&graph, &sub, &view, &PlacerOptions::default()).unwrap_err();
    assert_eq!(refused.unwrap_err().to_string(), expected.to_string());
    assert_eq!(view.devices().len(), 3);
}
