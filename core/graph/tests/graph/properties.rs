//! Random graphs are imported and cut; random bytes are refused without a panic.

use crate::support::*;
use proptest::prelude::*;
use tenon_framework::DType;
use tenon_graph::{
    Graph, ImportOptions, NodeId, Output, PlacerOptions, infer_shapes, place, prune,
};
use tenon_proto::{GraphDef, NodeDef, decode_graph_def, encode};

/// Node `at` of a random graph: its op, its data inputs and control inputs among earlier nodes.
fn any_node(at: usize, pick: u32, inputs: [usize; 3], controls: &[usize]) -> NodeDef {
    let earlier = |i: usize| format!("n{}", i % at.max(1));
    let (op, count) = match pick % 6 {
        _ if at == 0 => ("Placeholder", 0),
        0 => ("Placeholder", 0),
        1 | 2 => ("Relu", 1),
        3 => ("AddN", 3),
        _ => ("AddV2", 2),
    };
    let mut input: Vec<String> = inputs[..count].iter().map(|&i| earlier(i)).collect();
    if at > 0 {
        input.extend(controls.iter().map(|&i| format!("^{}", earlier(i))));
    }
    let attr = if op == "Placeholder" { "dtype" } else { "T" };
    let mut def = typed(node(&format!("n{at}"), op, &[]), attr, DType::FLOAT);
    if op == "AddN" {
        def = with(def, "N", tenon_proto::AttrValueKind::I(3));
    }
    NodeDef { input, ..def }
}

fn any_graph() -> impl Strategy<Value = Vec<NodeDef>> {
    let parts = (any::<u32>(), any::<[usize; 3]>(), prop::collection::vec(any::<usize>(), 0..3));
    prop::collection::vec(parts, 1..40).prop_map(|parts| {
        let nodes = parts.into_iter().enumerate();
        nodes.map(|(at, (pick, inputs, controls))| any_node(at, pick, inputs, &controls)).collect()
    })
}

fn sample() -> GraphDef {
    let mut b = builder();
    let x = x(&mut b);
    let c = b.constant("c", floats(&[1, 3])).unwrap();
    b.op("AddV2").name("y").input(x).input(c).device("/cpu:0").control(x.node).build().unwrap();
    count_to_ten(&mut b, "loop");
    b.finish().to_graph_def().unwrap()
}

/// Imports the graph and, if that succeeds, takes it through all stages to partitioning.
fn all_the_way(def: &GraphDef) {
    let options = ImportOptions { expansion_limit: 1 << 20 };
    let mut graph = Graph::new();
    if graph.extend_with(def, registry(), &options).is_err() {
        return;
    }
    assert_eq!(encode(&graph.to_graph_def().unwrap()), encode(def));
    let targets: Vec<NodeId> = graph.nodes().map(|(id, _)| id).collect();
    let sub = prune(&graph, &[], &[], &targets).unwrap();
    assert_eq!(sub.order.len(), graph.len(), "what is imported has no cycle");
    let _ = place(&graph, &sub, &Devices::new(), &PlacerOptions::default());
    if infer_shapes(&graph, &sub, &[]).is_ok()
        && let Ok(cut) = cut(&graph, &sub, &|id| id.index() % 3, &|_, _| false)
    {
        crate::partition::check(&graph, &sub, &cut);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(128) })]

    #[test]
    fn a_random_graph_is_read_and_written_back(nodes in any_graph(), seed in any::<u64>()) {
        let mut nodes = nodes;
        // The order of the message does not matter.
        let len = nodes.len();
        nodes.rotate_left(seed as usize % len);
        let def = graph_def(&nodes);
        let graph = Graph::import(&def, registry()).unwrap();
        prop_assert_eq!(graph.to_graph_def().unwrap(), def);
    }

    #[test]
    fn a_random_cut_means_the_same(
        nodes in any_graph(),
        locations in prop::collection::vec(0usize..3, 40),
        host in any::<u64>(),
        feeds in prop::collection::btree_set(0usize..40, 0..4),
        fetches in prop::collection::vec(0usize..40, 1..6),
    ) {
        let graph = import(&nodes).unwrap();
        let output = |at: &usize| Output::from(NodeId((at % graph.len()) as u32));
        let feeds: std::collections::BTreeSet<Output> = feeds.iter().map(output).collect();
        let feeds: Vec<Output> = feeds.into_iter().collect();
        let fetches: Vec<Output> = fetches.iter().map(output).collect();
        let target = NodeId(graph.len() as u32 - 1);
        let sub = prune(&graph, &feeds, &fetches, &[target]).unwrap();
        let in_host = |id: NodeId, _| host >> (id.0 % 64) & 1 == 1;
        let cut = cut(&graph, &sub, &|id| locations[id.index()], &in_host).unwrap();
        crate::partition::check(&graph, &sub, &cut);
    }

    #[test]
    fn changed_bytes_never_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut bytes = encode(&sample()).unwrap();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(def) = decode_graph_def(&bytes) {
            all_the_way(&def);
        }
    }

    #[test]
    fn changed_nodes_never_panic(
        swaps in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0u8..6), 1..6),
    ) {
        let mut def = sample();
        for (a, b, what) in swaps {
            let (a, b) = (a.index(def.node.len()), b.index(def.node.len()));
            let other = def.node[b].clone();
            let node = &mut def.node[a];
            match what {
                0 => node.op = other.op,
                1 => node.input = other.input,
                2 => node.attr.extend(other.attr),
                3 => node.input.push(format!("{}:1", other.name)),
                4 => node.input.push(format!("^{}", other.name)),
                _ => node.attr.clear(),
            }
        }
        all_the_way(&def);
    }
}
