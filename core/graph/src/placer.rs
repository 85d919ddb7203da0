//! Which device runs which node.
//!
//! Nodes that belong on one device form a group: those colocated by `_class` (`loc:@name`), and both ends of
//! an edge that carries a reference or a resource. The requests of a group are merged; of the devices that
//! meet them and can run every node of the group, the first is taken, in the order of the types' priority,
//! local before remote, then by name. With soft placement a request for type and number that cannot be met
//! is given up.
//!
//! A node without inputs that asks for nothing and feeds one device only is put there, since its value costs
//! less to make than to copy (as TensorFlow's placer does with generator nodes).

mod groups;

use crate::{DeviceEntry, DeviceView, Graph, GraphError, NodeId, NodeQuery, Subgraph};
use groups::{Group, groups};
use std::{cmp::Reverse, fmt};
use tenon_framework::device::DeviceName;

/// How nodes are placed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlacerOptions {
    /// Whether a request for type and number of a device may be given up where it cannot be met.
    pub allow_soft_placement: bool,
    /// The device preferred for nodes that ask for nothing; used where it can run them. Open: none.
    pub default_device: DeviceName,
}

/// Why a node is where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlacementReason {
    /// It asks for it.
    Requested {
        /// What it asks for.
        request: DeviceName,
    },
    /// It asks for nothing, or for less, and belongs with nodes that ask.
    Colocated {
        /// First node of the group.
        with: String,
        /// What the group asks for; open when nothing.
        request: DeviceName,
    },
    /// It asks for nothing; the default device.
    Default,
    /// It asks for nothing; the first device that can run it.
    Priority,
    /// It has no inputs and asks for nothing; all that use it are there.
    Consumers,
    /// It was made when the graph was optimised, and runs where the nodes did that it replaces.
    Optimised,
    /// What is asked for cannot run it.
    Soft {
        /// What was given up.
        request: DeviceName,
    },
}

impl fmt::Display for PlacementReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlacementReason::Requested { request } => write!(f, "the node asks for {request}"),
            PlacementReason::Colocated { with, request } if *request == DeviceName::default() => {
                write!(f, "belongs with '{with}', no node of the group asks for a device")
            }
            PlacementReason::Colocated { with, request } => {
                write!(f, "belongs with '{with}', the group asks for {request}")
            }
            PlacementReason::Default => f.write_str("asks for nothing: the default device"),
            PlacementReason::Priority => {
                f.write_str("asks for nothing: first device by priority that can run it")
            }
            PlacementReason::Consumers => {
                f.write_str("asks for nothing and has no inputs: with those that use it")
            }
            PlacementReason::Optimised => {
                f.write_str("made by optimisation: where the nodes were that it replaces")
            }
            PlacementReason::Soft { request } => {
                write!(f, "{request} cannot run it: moved by soft placement")
            }
        }
    }
}

/// Where a node runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// Position in [`DeviceView::devices`].
    pub device: usize,
    /// Why there.
    pub reason: PlacementReason,
    /// Preferred devices that cannot run it, each with the reason.
    pub passed_over: Vec<String>,
}

/// Where the nodes of a step's graph run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// By node; `None` for nodes that do not run.
    nodes: Vec<Option<Placed>>,
}

impl Placement {
    /// Where a node runs; `None` when it does not.
    pub fn of(&self, node: NodeId) -> Option<&Placed> {
        self.nodes.get(node.index())?.as_ref()
    }

    /// The placement of a graph made from this one, whose further nodes run on these devices.
    pub(crate) fn extended(mut self, devices: &[Option<usize>]) -> Placement {
        let own = self.nodes.len();
        self.nodes.extend(devices.iter().skip(own).map(|device| {
            let reason = PlacementReason::Optimised;
            device.map(|device| Placed { device, reason, passed_over: Vec::new() })
        }));
        self
    }

    /// Position of the device of a node that runs.
    pub fn device(&self, node: NodeId) -> Option<usize> {
        self.of(node).map(|placed| placed.device)
    }
}

/// Places the nodes of a step's graph.
///
/// # Errors
/// Colocation with unknown nodes, requests in a group that differ, nodes that no device takes (the error
/// lists the devices with the reasons).
pub fn place(
    graph: &Graph,
    sub: &Subgraph,
    view: &dyn DeviceView,
    options: &PlacerOptions,
) -> Result<Placement, GraphError> {
    let groups = groups(graph, sub, options.allow_soft_placement)?;
    let mut placer = Placer {
        graph,
        view,
        options,
        preferred: preferred(view.devices()),
        nodes: vec![None; graph.len()],
    };
    let consumers = consumers(graph, sub);
    let (generators, others): (Vec<&Group>, Vec<&Group>) =
        groups.iter().partition(|group| group.is_generator(graph, sub));
    for group in others {
        placer.place(group)?;
    }
    for group in generators {
        placer.place_generator(group, &consumers[group.members[0].index()])?;
    }
    Ok(Placement { nodes: placer.nodes })
}

/// Positions of the devices, the most preferred first.
fn preferred(devices: &[DeviceEntry]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..devices.len()).collect();
    order.sort_by_key(|&at| {
        let device = &devices[at];
        (Reverse(device.priority), !device.is_local, &device.name)
    });
    order
}

/// The nodes that run and use each node's data.
fn consumers(graph: &Graph, sub: &Subgraph) -> Vec<Vec<NodeId>> {
    let mut consumers = vec![Vec::new(); graph.len()];
    for &id in &sub.order {
        for input in graph.node(id).inputs.iter().filter(|input| sub.feed_of(**input).is_none()) {
            consumers[input.node.index()].push(id);
        }
    }
    consumers
}

struct Placer<'a> {
    graph: &'a Graph,
    view: &'a dyn DeviceView,
    options: &'a PlacerOptions,
    preferred: Vec<usize>,
    nodes: Vec<Option<Placed>>,
}

/// A device that takes a group, and those before it that do not.
struct Found {
    device: usize,
    passed_over: Vec<String>,
}

impl Placer<'_> {
    fn place(&mut self, group: &Group) -> Result<(), GraphError> {
        let default = &self.options.default_device;
        let open = group.request == DeviceName::default();
        if open
            && *default != DeviceName::default()
            && let Ok(found) = self.find(group, default)
        {
            self.set(group, found, PlacementReason::Default);
            return Ok(());
        }
        let strict = self.find(group, &group.request);
        let (found, reason) = match strict {
            Ok(found) if open => (found, PlacementReason::Priority),
            Ok(found) => (found, PlacementReason::Requested { request: group.request.clone() }),
            Err(candidates) => {
                let given_up = PlacementReason::Soft { request: group.request.clone() };
                match self.find_soft(group) {
                    Some(found) if self.options.allow_soft_placement => (found, given_up),
                    found => return Err(self.no_device(group, candidates, found)),
                }
            }
        };
        self.set(group, found, reason);
        Ok(())
    }

    /// Without type and number of the request.
    fn find_soft(&self, group: &Group) -> Option<Found> {
        let task = DeviceName { device_type: None, id: None, ..group.request.clone() };
        self.find(group, &task).ok()
    }

    /// The most preferred device that meets a request and runs every node of a group; else each device with
    /// the reason why not.
    fn find(&self, group: &Group, request: &DeviceName) -> Result<Found, Vec<String>> {
        let devices = self.view.devices();
        let mut passed_over = Vec::new();
        let mut elsewhere = Vec::new();
        for &at in &self.preferred {
            let device = &devices[at];
            if !request.matches(&device.name) {
                elsewhere.push(format!("{}: is not what was asked for", device.name));
                continue;
            }
            match self.runs(group, &device.device_type) {
                Ok(()) => return Ok(Found { device: at, passed_over }),
                Err(reason) => passed_over.push(format!("{}: {reason}", device.name)),
            }
        }
        passed_over.extend(elsewhere);
        Err(passed_over)
    }

    fn runs(&self, group: &Group, device_type: &str) -> Result<(), String> {
        for &id in &group.members {
            let node = self.graph.node(id);
            self.view.has_kernel(NodeQuery::of(node), device_type).map_err(|reason| {
                if group.members.len() == 1 {
                    reason
                } else {
                    format!("'{}', which belongs with it: {reason}", node.name)
                }
            })?;
        }
        Ok(())
    }

    /// The error of a group, with the place that soft placement would have for it.
    fn no_device(&self, group: &Group, candidates: Vec<String>, soft: Option<Found>) -> GraphError {
        let node = self.graph.node(group.members[0]);
        let devices = self.view.devices();
        GraphError::NoDevice {
            node: node.name.clone(),
            op: node.op.name.clone(),
            requested: Box::new(group.request.clone()),
            is_there: devices.iter().any(|device| group.request.matches(&device.name)),
            candidates,
            soft: soft.map(|found| devices[found.device].name.to_string()),
        }
    }

    fn set(&mut self, group: &Group, found: Found, reason: PlacementReason) {
        let first = &self.graph.node(group.members[0]).name;
        for &id in &group.members {
            let node = self.graph.node(id);
            let own_request =
                node.device == group.request && group.request != DeviceName::default();
            let alone = group.members.len() == 1;
            let moved = matches!(reason, PlacementReason::Soft { .. });
            let reason = if alone || own_request || moved || node.name == *first {
                reason.clone()
            } else {
                PlacementReason::Colocated { with: first.clone(), request: group.request.clone() }
            };
            self.nodes[id.index()] = Some(Placed {
                device: found.device,
                reason,
                passed_over: found.passed_over.clone(),
            });
        }
    }

    /// A group of one node without inputs and request.
    fn place_generator(&mut self, group: &Group, consumers: &[NodeId]) -> Result<(), GraphError> {
        let mut devices = consumers.iter().map(|id| self.nodes[id.index()].as_ref());
        let first = devices.next().flatten().map(|placed| placed.device);
        let all = consumers
            .iter()
            .all(|id| self.nodes[id.index()].as_ref().map(|placed| placed.device) == first);
        if let Some(device) = first.filter(|_| all) {
            let device_type = &self.view.devices()[device].device_type;
            if self.runs(group, device_type).is_ok() {
                let found = Found { device, passed_over: Vec::new() };
                self.set(group, found, PlacementReason::Consumers);
                return Ok(());
            }
        }
        self.place(group)
    }
}
