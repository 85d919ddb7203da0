//! The nodes of a frame, as its program is made of them.

use super::{Wiring, is_steady, role_of};
use crate::plan::{
    Action, Plan, Span,
    frames::program::{Input, Item, Program, Source, program},
    node_flags,
};
use tenon_graph::ControlFlow;

/// The flags of nodes that are done when their call returns.
const IN_PLACE: u32 = node_flags::PLAIN | node_flags::ACTION | node_flags::FORWARD;

impl Wiring<'_> {
    /// The program of the frame at this position; `None` if some node of it has to wait, or leads into another frame.
    pub(super) fn program(&self, position: usize, plan: &Plan) -> Option<Program> {
        if !plan.device.info().host_memory || plan.streams > 0 || plan.roles.is_some() {
            return None;
        }
        let running = self.members[position].iter().filter(|member| member.runs);
        let items: Option<Vec<Item>> = running
            .filter_map(|member| Some((member, self.places.number[member.at as usize]?)))
            .map(|(member, number)| self.item(position, member.at as usize, plan, number))
            .collect();
        program(&items?, plan.outputs.len())
    }

    /// A node of the frame at this position; `None` if it has to wait.
    fn item(&self, position: usize, at: usize, plan: &Plan, number: u32) -> Option<Item> {
        let (node, placed) = (&self.partition.nodes[at], &plan.nodes[number as usize]);
        let flags = plan.hot[number as usize].flags;
        let is_action = flags & node_flags::ACTION != 0;
        if flags & !IN_PLACE != 0 || (is_action && !matches!(placed.action, Action::Nothing)) {
            return None;
        }
        let inputs = node.inputs.iter().zip(&placed.inputs).map(|(edge, &output)| {
            let counted = plan.outputs[output as usize].is_counted();
            Some(Input { source: self.source(position, edge.node)?, output, counted })
        });
        let controls = node.control_inputs.iter().map(|&source| self.source(position, source));
        let start = self.places.first[at];
        let count =
            if self.position(node.gives_to) == position { node.signature.outputs.len() } else { 0 };
        Some(Item {
            role: self.role(at),
            inputs: inputs.collect::<Option<_>>()?,
            controls: controls.collect::<Option<_>>()?,
            outputs: Span { start, end: start + count as u32 },
        })
    }

    /// Where a value that a node of the frame at this position waits for comes from; `None` if it leaves another frame.
    fn source(&self, position: usize, at: u32) -> Option<Source> {
        let node = &self.partition.nodes[at as usize];
        let is_inside = self.position(node.frame) == position;
        match (role_of(node), self.places.number[at as usize]) {
            (ControlFlow::NextIteration, _) => Some(Source::Before),
            (ControlFlow::Enter, _) if !is_inside && is_steady(node) => Some(Source::There),
            (ControlFlow::Enter, _) if !is_inside => Some(Source::Entering),
            (_, Some(number)) if is_inside => Some(Source::Node(number)),
            (_, None) if is_inside => Some(Source::There),
            _ => None,
        }
    }
}
