//! Placement by cost: the devices on which a step ends soonest, as far as costs are known.
//!
//! A step is simulated. Nodes run in their order; a device runs one node at a time; a value that is on another device
//! arrives when it is computed and transferred. Feeds come from the client's device, and fetches go there. Requests,
//! colocation and missing kernels are as hard as for [`place`](super::place): what may be chosen are the devices of groups
//! that these leave open.
//!
//! Placements are made in three ways: by priority; each device wherever it may be chosen; and node by node the device on
//! which the node ends first (the greedy heuristic that the TensorFlow white paper of 2015 describes in section 3.2.1). In
//! each of them single groups are moved for as long as that makes the step shorter, and the shortest is taken.

use super::{
    Group, Placement, PlacementReason, Placer, PlacerOptions, consumers, groups, place, preferred,
};
use crate::{DeviceEntry, DeviceView, Graph, GraphError, Node, NodeId, Output, Subgraph};
use std::fmt;
use tenon_framework::device::DeviceName;

/// What nodes and transfers cost.
pub trait PlacementCosts: fmt::Debug + Send + Sync {
    /// Nanoseconds of a call of the node on a device; `None` if nothing is known, which counts as 0.
    fn compute(&self, node: &Node, device: &DeviceEntry) -> Option<f64>;

    /// Nanoseconds from the end of the node until an output of it is on another device.
    fn transfer(&self, node: &Node, output: u32, from: &DeviceEntry, to: &DeviceEntry) -> f64;
}

/// Simulated nodes, in all, for which single groups are moved.
const MOVES: usize = 4_000_000;

/// Places the nodes of a step's graph where the step ends soonest.
///
/// # Errors
/// As [`place`](super::place).
pub fn place_by_cost(
    graph: &Graph,
    sub: &Subgraph,
    view: &dyn DeviceView,
    options: &PlacerOptions,
    costs: &dyn PlacementCosts,
) -> Result<Placement, GraphError> {
    let by_priority = place(graph, sub, view, options)?;
    let (generators, groups): (Vec<Group>, Vec<Group>) =
        groups(graph, sub, options.allow_soft_placement)?
            .into_iter()
            .partition(|group| group.is_generator(graph, sub));
    let nodes = vec![None; graph.len()];
    let mut placer = Placer { graph, view, options, preferred: preferred(view.devices()), nodes };
    let search = Search::new(&placer, sub, costs, &groups, &by_priority);
    let chosen = search.best();
    for (group, (&device, open)) in groups.iter().zip(chosen.iter().zip(&search.candidates)) {
        let reason = by_priority.of(group.members[0]).map(|placed| &placed.reason);
        let reason = match (open.len(), reason) {
            (0 | 1, Some(reason)) => reason.clone(),
            _ => PlacementReason::Cost,
        };
        placer.set(group, super::Found { device, passed_over: Vec::new() }, reason);
    }
    let consumers = consumers(graph, sub);
    for group in &generators {
        placer.place_generator(group, &consumers[group.members[0].index()])?;
    }
    Ok(Placement { nodes: placer.nodes })
}

/// A step whose groups of nodes have to be placed. A *choice* has the device of each group.
struct Search<'a> {
    graph: &'a Graph,
    sub: &'a Subgraph,
    devices: &'a [DeviceEntry],
    costs: &'a dyn PlacementCosts,
    /// By node its group; `None` for nodes that do not run, and for those that have no inputs and cost nothing.
    group_of: Vec<Option<usize>>,
    /// By group the devices that may be chosen, most preferred first.
    candidates: Vec<Vec<usize>>,
    /// By node and device the cost of a call.
    compute: Vec<Vec<f64>>,
    by_priority: Vec<usize>,
    /// The device of the client.
    home: usize,
}

/// The clock of a simulated step.
struct Clock {
    /// By node when it ends.
    ends: Vec<f64>,
    /// By device when it is free.
    free: Vec<f64>,
}

impl<'a> Search<'a> {
    fn new(
        placer: &Placer<'a>,
        sub: &'a Subgraph,
        costs: &'a dyn PlacementCosts,
        groups: &[Group],
        by_priority: &Placement,
    ) -> Search<'a> {
        let (graph, devices) = (placer.graph, placer.view.devices());
        let mut group_of = vec![None; graph.len()];
        let mut compute = vec![Vec::new(); graph.len()];
        for (at, group) in groups.iter().enumerate() {
            for &id in &group.members {
                group_of[id.index()] = Some(at);
                let cost = |device| costs.compute(graph.node(id), device).unwrap_or(0.0).max(0.0);
                compute[id.index()] = devices.iter().map(cost).collect();
            }
        }
        let placed = |group: &Group| by_priority.device(group.members[0]).unwrap_or(0);
        let by_priority: Vec<usize> = groups.iter().map(placed).collect();
        let candidates = groups.iter().zip(&by_priority);
        let candidates =
            candidates.map(|(group, &placed)| placer.candidates(group, placed)).collect();
        let is_home = |device: &DeviceEntry| device.is_local && device.host_memory;
        let home = devices.iter().position(is_home).unwrap_or(0);
        Search { graph, sub, devices, costs, group_of, candidates, compute, by_priority, home }
    }

    /// The choice whose step ends first; the one by priority if others are as good.
    fn best(&self) -> Vec<usize> {
        let everywhere = (0..self.devices.len()).map(|device| {
            let groups = self.by_priority.iter().zip(&self.candidates);
            groups
                .map(|(&first, open)| if open.contains(&device) { device } else { first })
                .collect()
        });
        let mut starts: Vec<Vec<usize>> = vec![self.by_priority.clone()];
        starts.extend(everywhere);
        starts.push(self.greedy());
        let mut left = MOVES / self.sub.order.len().max(1);
        let mut best = (f64::INFINITY, Vec::new());
        for start in starts {
            let improved = self.improved(start, &mut left);
            if improved.0 < best.0 {
                best = improved;
            }
        }
        best.1
    }

    /// A choice after moves of single groups for as long as these make the step shorter, at most `left` of them tried.
    fn improved(&self, mut choice: Vec<usize>, left: &mut usize) -> (f64, Vec<usize>) {
        let mut time = self.time(&choice);
        let mut has_moved = true;
        while std::mem::take(&mut has_moved) {
            for (group, open) in
                self.candidates.iter().enumerate().filter(|(_, open)| open.len() > 1)
            {
                for &device in open {
                    if *left == 0 {
                        return (time, choice);
                    }
                    *left -= 1;
                    let former = std::mem::replace(&mut choice[group], device);
                    let moved = self.time(&choice);
                    if moved < time {
                        (time, has_moved) = (moved, true);
                    } else {
                        choice[group] = former;
                    }
                }
            }
        }
        (time, choice)
    }

    /// Chooses the device of a group when its first node runs: the one on which that node ends first.
    fn greedy(&self) -> Vec<usize> {
        let mut chosen: Vec<Option<usize>> = vec![None; self.candidates.len()];
        let mut clock = self.clock();
        for &id in &self.sub.order {
            let Some(group) = self.group_of[id.index()] else { continue };
            let device = match (chosen[group], &self.candidates[group][..]) {
                (Some(device), _) => device,
                (None, []) => self.by_priority[group],
                (None, open) => {
                    let end = |device: &usize| self.end(&clock, id, *device, &|at| chosen[at]);
                    let soonest = open.iter().min_by(|a, b| end(a).total_cmp(&end(b)));
                    soonest.copied().unwrap_or(self.by_priority[group])
                }
            };
            chosen[group] = Some(device);
            self.run(&mut clock, id, device, &|at| chosen[at]);
        }
        let pairs = chosen.into_iter().zip(&self.by_priority);
        pairs.map(|(chosen, first)| chosen.unwrap_or(*first)).collect()
    }

    fn clock(&self) -> Clock {
        Clock { ends: vec![0.0; self.graph.len()], free: vec![0.0; self.devices.len()] }
    }

    /// When a step ends, with its fetches at the client.
    fn time(&self, choice: &[usize]) -> f64 {
        let mut clock = self.clock();
        let device = |group: usize| Some(choice[group]);
        for &id in &self.sub.order {
            if let Some(group) = self.group_of[id.index()] {
                self.run(&mut clock, id, choice[group], &device);
            }
        }
        let fetches = self.sub.fetches.iter().filter(|fetch| self.sub.feed_of(**fetch).is_none());
        let fetched = fetches.map(|fetch| self.arrival(&clock, *fetch, self.home, &device));
        clock.ends.iter().copied().chain(fetched).fold(0.0, f64::max)
    }

    fn run(
        &self,
        clock: &mut Clock,
        id: NodeId,
        device: usize,
        of: &dyn Fn(usize) -> Option<usize>,
    ) {
        let end = self.end(clock, id, device, of);
        clock.ends[id.index()] = end;
        clock.free[device] = end;
    }

    /// When a node would end on a device.
    fn end(
        &self,
        clock: &Clock,
        id: NodeId,
        device: usize,
        of: &dyn Fn(usize) -> Option<usize>,
    ) -> f64 {
        let data =
            self.graph.node(id).inputs.iter().map(|input| self.arrival(clock, *input, device, of));
        let control =
            self.sub.control_inputs(self.graph, id).map(|before| clock.ends[before.index()]);
        let ready = data.chain(control).fold(clock.free[device], f64::max);
        ready + self.compute[id.index()][device]
    }

    /// When a value is on a device. A fed one is at the client when the step begins; one that has no inputs is made where
    /// it is read.
    fn arrival(
        &self,
        clock: &Clock,
        value: Output,
        to: usize,
        of: &dyn Fn(usize) -> Option<usize>,
    ) -> f64 {
        let (from, end) = match (self.sub.feed_of(value), self.group_of[value.node.index()]) {
            (Some(_), _) => (self.home, 0.0),
            (None, None) => return 0.0,
            (None, Some(group)) => (of(group).unwrap_or(to), clock.ends[value.node.index()]),
        };
        if from == to {
            return end;
        }
        let node = self.graph.node(value.node);
        end + self
            .costs
            .transfer(node, value.output, &self.devices[from], &self.devices[to])
            .max(0.0)
    }
}

impl Placer<'_> {
    /// The devices that a group may be on: those that its request matches and that can run it. A group with a default device
    /// or one that soft placement moved stays where it is.
    fn candidates(&self, group: &Group, placed: usize) -> Vec<usize> {
        let devices = self.view.devices();
        let has_default = self.options.default_device != DeviceName::default();
        if has_default && group.request == DeviceName::default()
            || !group.request.matches(&devices[placed].name)
        {
            return vec![placed];
        }
        let matches = |at: &usize| group.request.matches(&devices[*at].name);
        let runs = |at: &usize| self.runs(group, &devices[*at].device_type).is_ok();
        self.preferred.iter().copied().filter(|at| matches(at) && runs(at)).collect()
    }
}
