//! Each plan is built from the nodes of its own frame: all plans together look at each node once or twice.

use super::{Member, Wiring};
use tenon_framework::{device::DeviceName, op::Signature};
use tenon_graph::{Edge, FrameId, PartKind, PartNode, Partition};

/// A node whose kind is not asked for.
fn node(op: &str, at: u32, frame: FrameId, gives_to: FrameId) -> PartNode {
    let inputs = at.checked_sub(1).map(|before| Edge { node: before, output: 0 });
    PartNode {
        name: format!("n{at}"),
        op: op.to_owned(),
        kind: PartKind::Feed { index: 0 },
        inputs: inputs.into_iter().collect(),
        control_inputs: Vec::new(),
        signature: Signature::default(),
        input_memory: Vec::new(),
        output_memory: Vec::new(),
        output_shapes: Vec::new(),
        frame,
        gives_to,
    }
}

/// So many frames, one in the other or one after the other: each is entered, has a node inside, and is left.
fn frames(count: u32, nested: bool) -> Partition {
    let around = |frame: u32| FrameId(if nested { frame - 1 } else { 0 });
    let mut steps: Vec<(&str, FrameId, FrameId)> = Vec::new();
    let enter = |frame: u32| ("Enter", around(frame), FrameId(frame));
    let exit = |frame: u32| ("Exit", FrameId(frame), around(frame));
    let inside = |frame: u32| ("Relu", FrameId(frame), FrameId(frame));
    if nested {
        steps.extend((1..=count).flat_map(|frame| [enter(frame), inside(frame)]));
        steps.extend((1..=count).rev().map(exit));
    } else {
        steps.extend((1..=count).flat_map(|frame| [enter(frame), inside(frame), exit(frame)]));
    }
    let nodes = steps.iter().zip(0..);
    let nodes = nodes.map(|(&(op, runs_in, gives_to), at)| node(op, at, runs_in, gives_to));
    let device = DeviceName::local("CPU", 0);
    let nodes = nodes.collect();
    Partition { device, nodes, has_control_flow: true }
}

#[test]
fn many_frames_are_built_from_their_own_nodes() {
    for nested in [false, true] {
        let partition = frames(200, nested);
        let wiring = Wiring::new(&partition);
        assert_eq!(wiring.members.len(), 201);
        let members: Vec<&Member> = wiring.members.iter().flatten().collect();
        // What enters or leaves a frame is in two.
        assert_eq!(members.len(), 200 * 5, "nested: {nested}");
        for at in 0..partition.nodes.len() as u32 {
            let own = || members.iter().filter(|member| member.at == at);
            assert_eq!(own().filter(|member| member.runs).count(), 1, "n{at} runs once");
            assert_eq!(own().filter(|member| member.gives).count(), 1, "n{at} gives once");
        }
        assert_eq!(wiring.enters, [vec![0], vec![1; 200]].concat());
    }
}
