//! Puts the nodes of a frame in order, see [`super`].

use super::{ALWAYS, Program, Step, Task, Turn, classes::Classes};
use crate::plan::{Span, frames::Role};

/// Where an input of a node comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::plan) enum Source {
    /// It is there from the start of every iteration.
    There,
    /// It enters the first iteration.
    Entering,
    /// It comes from the iteration before.
    Before,
    /// A node of the frame.
    Node(u32),
}

/// An input of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::plan) struct Input {
    pub source: Source,
    /// The output of the plan that it reads.
    pub output: u32,
    /// Whether that output counts its readers.
    pub counted: bool,
}

/// A node of the frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::plan) struct Item {
    pub role: Role,
    pub inputs: Vec<Input>,
    pub controls: Vec<Source>,
    /// The outputs of the plan that it writes.
    pub outputs: Span,
}

/// The program of a frame of a plan with this number of outputs; `None` if its nodes have no order in which one thread
/// can run them.
pub(in crate::plan) fn program(items: &[Item], outputs: usize) -> Option<Program> {
    let order = order(items)?;
    let mut builder = Builder {
        items,
        classes: Classes::new(),
        nodes: vec![ALWAYS; items.len()],
        outputs: vec![ALWAYS; outputs],
        steps: Vec::with_capacity(items.len()),
        merged: Vec::new(),
    };
    for node in order {
        builder.node(node)?;
    }
    let turn = builder.turn()?;
    let Builder { classes, outputs, mut steps, merged, .. } = builder;
    link(&mut steps, &classes);
    Some(Program {
        steps: steps.into(),
        merged: merged.into(),
        classes: classes.len(),
        outputs: outputs.into(),
        turn,
    })
}

/// The nodes in an order in which each comes after those that it waits for: what a node makes ready comes right after
/// it, as far as possible.
fn order(items: &[Item]) -> Option<Vec<u32>> {
    let mut after: Vec<Vec<u32>> = vec![Vec::new(); items.len()];
    let mut missing = vec![0u32; items.len()];
    for (item, at) in items.iter().zip(0u32..) {
        let sources = item.inputs.iter().map(|input| input.source);
        for source in sources.chain(item.controls.iter().copied()) {
            if let Source::Node(before) = source {
                after.get_mut(before as usize)?.push(at);
                missing[at as usize] += 1;
            }
        }
    }
    let mut ready: Vec<u32> = (0..items.len() as u32).rev().collect();
    ready.retain(|&at| missing[at as usize] == 0);
    let mut order = Vec::with_capacity(items.len());
    while let Some(at) = ready.pop() {
        order.push(at);
        for &next in after[at as usize].iter().rev() {
            missing[next as usize] -= 1;
            if missing[next as usize] == 0 {
                ready.push(next);
            }
        }
    }
    (order.len() == items.len()).then_some(order)
}

/// Sets where the program goes on after steps whose class is dead.
fn link(steps: &mut [Step], classes: &Classes) {
    for at in (0..steps.len()).rev() {
        let class = steps[at].class;
        let mut next = at + 1;
        // What a step that is left out would skip is left out with it.
        while let Some(step) = steps.get(next)
            && !step.releases
            && classes.implies(step.class, class)
        {
            next = step.next as usize;
        }
        steps[at].next = next as u32;
    }
}

struct Builder<'i> {
    items: &'i [Item],
    classes: Classes,
    /// The class of each node, and of each output of the plan.
    nodes: Vec<u32>,
    outputs: Vec<u32>,
    steps: Vec<Step>,
    merged: Vec<u32>,
}

impl Builder<'_> {
    /// Adds the step of a node, whose sources have theirs already.
    fn node(&mut self, node: u32) -> Option<()> {
        let item = &self.items[node as usize];
        let (class, task) = match item.role {
            Role::Enter { .. } => return None,
            Role::Merge => self.merge(item)?,
            Role::Trigger => (ALWAYS, Some(Task::Node)),
            role => {
                let class = self.class(node)?;
                (class, self.task(role, item, class)?)
            }
        };
        let Some(task) = task else {
            self.nodes[node as usize] = class;
            return Some(());
        };
        let own = if let Task::Merge { class, .. } = task { class } else { class };
        self.nodes[node as usize] = own;
        for (output, at) in (item.outputs.start..item.outputs.end).zip(0..) {
            let of_output = if let Task::Switch(first) = task { first + at } else { own };
            *self.outputs.get_mut(output as usize)? = of_output;
        }
        let alive = |input: &Input| {
            input.counted && !self.classes.implies(self.outputs[input.output as usize], class)
        };
        let releases = item.role != Role::Merge && item.inputs.iter().any(alive);
        self.steps.push(Step { node, class, next: 0, releases, task });
        Some(())
    }

    /// The class of a node that needs all of its inputs. Steps that find it out are added.
    fn class(&mut self, node: u32) -> Option<u32> {
        let item = &self.items[node as usize];
        let mut needed = Vec::with_capacity(item.inputs.len() + item.controls.len());
        for input in &item.inputs {
            match input.source {
                Source::There => {}
                Source::Node(_) => needed.push(self.outputs[input.output as usize]),
                Source::Entering | Source::Before => return None,
            }
        }
        for source in &item.controls {
            match *source {
                Source::There => {}
                Source::Node(before) => needed.push(self.nodes[before as usize]),
                Source::Entering | Source::Before => return None,
            }
        }
        let steps = &mut self.steps;
        Some(self.classes.all(&needed, |left, with, class| {
            let task = Task::Both { with, class };
            steps.push(Step { node, class: left, next: 0, releases: false, task });
        }))
    }

    /// What a node does; `Some(None)` for one that leads to another iteration.
    #[allow(clippy::option_option, reason = "the outer one says whether there is a program at all")]
    fn task(&mut self, role: Role, item: &Item, class: u32) -> Option<Option<Task>> {
        Some(match role {
            Role::Exit | Role::NextIteration => None,
            Role::LoopCond => Some(Task::Pass),
            Role::Switch => {
                let [_, predicate] = item.inputs[..] else { return None };
                let count = item.outputs.end - item.outputs.start;
                Some(Task::Switch(self.classes.cases(predicate.output, class, count)))
            }
            _ => Some(Task::Node),
        })
    }

    /// The class of the step of a `Merge`, and what it does.
    #[allow(clippy::option_option, reason = "as for `task`")]
    fn merge(&mut self, item: &Item) -> Option<(u32, Option<Task>)> {
        let position = |source: Source| item.inputs.iter().position(|input| input.source == source);
        match (position(Source::Entering), position(Source::Before)) {
            (None, None) => {}
            (Some(enter), Some(next)) if item.inputs.len() == 2 => {
                let task = Task::Loop { enter: enter as u32, next: next as u32 };
                return Some((ALWAYS, Some(task)));
            }
            _ => return None,
        }
        let start = self.merged.len() as u32;
        let classes: Vec<u32> =
            item.inputs.iter().map(|input| self.outputs[input.output as usize]).collect();
        self.merged.extend(&classes);
        let inputs = Span { start, end: self.merged.len() as u32 };
        let (class, under) = self.classes.any(&classes);
        Some((under, Some(Task::Merge { inputs, class })))
    }

    /// The ends of an iteration; `Some(None)` for a frame that is not a loop.
    #[allow(clippy::option_option, reason = "as for `task`")]
    fn turn(&mut self) -> Option<Option<Turn>> {
        let of = |role: Role| {
            let items = self.items.iter().zip(0u32..);
            items
                .filter(move |(item, _)| item.role == role)
                .map(|(_, at)| at)
                .collect::<Box<[u32]>>()
        };
        let (conditions, nexts, exits) =
            (of(Role::LoopCond), of(Role::NextIteration), of(Role::Exit));
        let [condition] = conditions[..] else {
            return (conditions.is_empty() && nexts.is_empty() && exits.is_empty()).then_some(None);
        };
        let class = |node: &u32| self.nodes[*node as usize];
        let first = self.classes.cases(self.items[condition as usize].outputs.start, ALWAYS, 2);
        let ends = class(&condition) == ALWAYS
            && !nexts.is_empty()
            && nexts.iter().all(|next| class(next) == first + 1)
            && exits.iter().all(|exit| class(exit) == first);
        ends.then_some(Some(Turn { continues: first + 1, nexts, exits }))
    }
}

#[cfg(test)]
#[path = "build_tests.rs"]
mod tests;
