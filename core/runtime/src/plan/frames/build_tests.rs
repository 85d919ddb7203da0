//! Each plan is built from the nodes of its own frame: all plans together look at each node once or twice.

use super::{Member, Wiring};
use crate::{
    error::RuntimeError,
    plan::{NodeKernel, PlanSource, Transfer, Wanted},
};
use std::sync::Arc;
use tenon_framework::{
    Tensor,
    device::{DeviceName, base::LocalDevice},
    tensor::Memory,
};
use tenon_graph::{Edge, FrameId, NodeId, PartKind, PartNode, Partition};
use tenon_host::memory::HostMemory;

/// A step without kernels, of which only the frames are asked.
struct Framed {
    gives_to: Vec<FrameId>,
    memory: Arc<dyn Memory>,
}

impl PlanSource for Framed {
    fn kernel(&self, _: NodeId) -> Result<Option<NodeKernel>, RuntimeError> {
        Ok(None)
    }

    fn constant(&self, _: NodeId, _: Wanted<'_>) -> Result<Option<Tensor>, RuntimeError> {
        Ok(None)
    }

    fn transfer(&self, transfer: &tenon_graph::Transfer) -> Transfer {
        panic!("expected one device, found a transfer of {}", transfer.tensor)
    }

    fn gives_to(&self, id: NodeId) -> FrameId {
        self.gives_to[id.index()]
    }

    fn is_loop_constant(&self, _: NodeId) -> bool {
        false
    }

    fn host_memory(&self) -> &Arc<dyn Memory> {
        &self.memory
    }

    fn streams(&self, _: &dyn LocalDevice) -> u32 {
        1
    }

    fn record_after(&self) -> Option<u32> {
        None
    }
}

fn node(op: &str, at: u32, frame: FrameId) -> PartNode {
    let inputs = at.checked_sub(1).map(|before| Edge { node: before, output: 0 });
    PartNode {
        name: format!("n{at}"),
        op: op.to_owned(),
        kind: PartKind::Node(NodeId(at)),
        inputs: inputs.into_iter().collect(),
        control_inputs: Vec::new(),
        input_types: Vec::new(),
        output_types: Vec::new(),
        input_memory: Vec::new(),
        output_memory: Vec::new(),
        output_shapes: Vec::new(),
        frame,
    }
}

/// So many frames, one in the other or one after the other: each is entered, has a node inside, and is left.
fn frames(count: u32, nested: bool) -> (Partition, Framed) {
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
    let nodes = steps.iter().zip(0..).map(|(&(op, runs_in, _), at)| node(op, at, runs_in));
    let device = DeviceName::local("CPU", 0);
    let nodes = nodes.collect();
    let partition = Partition { location: 0, device, nodes, has_control_flow: true };
    let gives_to = steps.into_iter().map(|(_, _, gives_to)| gives_to).collect();
    (partition, Framed { gives_to, memory: HostMemory::shared().clone() })
}

#[test]
fn many_frames_are_built_from_their_own_nodes() {
    for nested in [false, true] {
        let (partition, source) = frames(200, nested);
        let wiring = Wiring::new(&partition, &source);
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
