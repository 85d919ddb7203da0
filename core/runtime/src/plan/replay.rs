//! Decides which partitions can be recorded on their device and replayed, and assigns a role to
//! each node.
//!
//! Every step of such a partition consists of the same commands with the same addresses: the
//! kernels' shapes follow from the input shapes, and their behaviour from attributes and constants.
//! Every node therefore only forwards buffers, is a command in device memory, or is one end of a
//! transfer. No node accesses state, no kernel is chosen by shape at run time, and no command reads
//! host memory that may change.

use super::{Action, HotNode, Plan, PlanNode, PlanOutput, Span, node_flags, streams::Kind};
use tenon_abi::MemoryKind;

/// The role of a node in a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Runs on the host and enqueues nothing.
    Host,
    /// Enqueues commands of the device.
    Command,
    /// Receives a value from another partition.
    Recv,
    /// Sends a value to another partition.
    Send,
}

/// The minimum number of commands for which a recording is worthwhile.
const MIN_COMMANDS: usize = 2;

impl Plan {
    /// Whether each node comes after this one, by node.
    pub fn reach(&self, node: u32) -> Vec<bool> {
        let mut seen = vec![false; self.hot.len()];
        let mut left = vec![node];
        while let Some(at) = left.pop() {
            let Span { start, end } = self.hot[at as usize].successors;
            for next in &self.successors[start as usize..end as usize] {
                let next = next.node();
                if !std::mem::replace(&mut seen[next as usize], true) {
                    left.push(next);
                }
            }
        }
        seen
    }

    /// The roles of the nodes; `None` if the plan cannot be recorded.
    pub(super) fn roles_of(&self, kinds: &[Kind]) -> Option<Box<[Role]>> {
        self.device.replay()?;
        let nodes = self.nodes.iter().zip(&self.hot).zip(kinds);
        let roles: Option<Box<[Role]>> =
            nodes.map(|((node, hot), kind)| role(node, hot, *kind, &self.outputs)).collect();
        let commands = |roles: &[Role]| roles.iter().filter(|role| **role == Role::Command).count();
        roles.filter(|roles| commands(roles) >= MIN_COMMANDS)
    }
}

fn role(node: &PlanNode, hot: &HotNode, kind: Kind, outputs: &[PlanOutput]) -> Option<Role> {
    match (&node.action, kind) {
        (Action::Recv(_), _) => Some(Role::Recv),
        (Action::Send(_), _) => Some(Role::Send),
        (Action::Nothing, _) => Some(Role::Host),
        (Action::PerShape { .. }, _) if node.instance.is_none() => None,
        (_, Kind::State) => None,
        (_, Kind::Passive) => Some(Role::Host),
        (_, _) => is_command(node, hot, outputs).then_some(Role::Command),
    }
}

fn is_command(node: &PlanNode, hot: &HotNode, outputs: &[PlanOutput]) -> bool {
    let on_device = |output: &PlanOutput| output.memory.kind() != MemoryKind::HOST;
    let steady = |&input: &u32| {
        let output = &outputs[input as usize];
        output.constant.is_some() || on_device(output)
    };
    let own = node.first_output as usize..node.first_output as usize + node.info.outputs.len();
    hot.flags & (node_flags::ASYNC | node_flags::BLOCKING) == 0
        && node.references.is_empty()
        && node.inputs.iter().all(steady)
        && outputs[own].iter().all(on_device)
}
