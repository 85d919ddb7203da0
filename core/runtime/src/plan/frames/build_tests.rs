//! Each plan is built from the nodes of its own frame: all plans together visit each node once or
//! twice.

use super::{Member, Wiring};
use std::sync::Arc;
use tenon_framework::{
    attr::AttrMap,
    attr_view::AttrTable,
    device::DeviceName,
    op::{OpDef, OpFacts, OpRole, Signature},
};
use tenon_graph::{Edge, FrameId, PartKind, PartNode, PartOp, Partition};

/// The partition kind of a node with this role.
fn kind(role: OpRole) -> PartKind {
    let attrs = ["T: type", "frame_name: string", "is_constant: bool", "parallel_iterations: int"];
    let mut def = OpDef::from_spec("Some", &["x: T"], &["y: T"], &attrs).unwrap();
    def.set_facts(OpFacts { role, ..OpFacts::NONE }).unwrap();
    PartKind::Op(Box::new(PartOp {
        def: Arc::new(def),
        attrs: Arc::new(AttrTable::new(AttrMap::new())),
        input_shapes: Vec::new(),
        constants: Vec::new(),
        keys: Vec::new(),
        kernel: None,
    }))
}

fn node(role: OpRole, at: u32, frame: FrameId, gives_to: FrameId) -> PartNode {
    let inputs = at.checked_sub(1).map(|before| Edge { node: before, output: 0 });
    PartNode {
        name: format!("n{at}"),
        op: "Some".to_owned(),
        kind: kind(role),
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

/// A partition with `count` frames, nested or in sequence; each has an entry, a node inside and an
/// exit.
fn frames(count: u32, nested: bool) -> Partition {
    let around = |frame: u32| FrameId(if nested { frame - 1 } else { 0 });
    let mut steps: Vec<(OpRole, FrameId, FrameId)> = Vec::new();
    let enter = |frame: u32| (OpRole::Enter, around(frame), FrameId(frame));
    let exit = |frame: u32| (OpRole::Exit, FrameId(frame), around(frame));
    let inside = |frame: u32| (OpRole::Kernel, FrameId(frame), FrameId(frame));
    if nested {
        steps.extend((1..=count).flat_map(|frame| [enter(frame), inside(frame)]));
        steps.extend((1..=count).rev().map(exit));
    } else {
        steps.extend((1..=count).flat_map(|frame| [enter(frame), inside(frame), exit(frame)]));
    }
    let nodes = steps.iter().zip(0..);
    let nodes = nodes.map(|(&(role, runs_in, gives_to), at)| node(role, at, runs_in, gives_to));
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
        // A node that enters or leaves a frame is in two plans.
        assert_eq!(members.len(), 200 * 5, "nested: {nested}");
        for at in 0..partition.nodes.len() as u32 {
            let own = || members.iter().filter(|member| member.at == at);
            assert_eq!(own().filter(|member| member.runs).count(), 1, "n{at} runs once");
            assert_eq!(own().filter(|member| member.gives).count(), 1, "n{at} gives once");
        }
        assert_eq!(wiring.enters, [vec![0], vec![1; 200]].concat());
    }
}
