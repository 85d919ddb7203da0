//! Assigns a device to each node.
//!
//! Nodes that must share a device form a group: nodes colocated by `_class` (`loc:@name`), and both
//! ends of an edge that carries a reference or a resource. The requests of a group are merged, also
//! those of nodes that only other steps run, so that a resource is on one device in all steps. Of
//! the devices that match them and can run every node of the group, the first one is chosen,
//! ordered by the priority of the device types, local before remote, then by name. With soft
//! placement, a request for a type and number that cannot be met is dropped.
//!
//! A node without inputs and requests whose readers are all on one device is placed there, since
//! computing its value costs less than copying it (TensorFlow's placer does the same with generator
//! nodes).
//!
//! [`place_by_cost`] chooses among the devices that this leaves open by what calls and transfers cost.

mod cost;
mod groups;

pub use cost::{PlacementCosts, place_by_cost};

use crate::{DeviceEntry, DeviceView, Graph, GraphError, NodeId, NodeQuery, Subgraph};
use groups::{Group, groups};
use std::{cmp::Reverse, fmt};
use tenon_framework::device::DeviceName;

/// Options of placement.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlacerOptions {
    /// Whether a request for the type and number of a device may be dropped if it cannot be met.
    pub allow_soft_placement: bool,
    /// The device preferred for nodes without a request, if it can run them; empty for none.
    pub default_device: DeviceName,
}

/// The reason for a node's placement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlacementReason {
    /// The node requests the device.
    Requested {
        /// The request of the node.
        request: DeviceName,
    },
    /// The node requests nothing, or less than the nodes of its group.
    Colocated {
        /// The first node of the group.
        with: String,
        /// The merged request of the group; empty if there is none.
        request: DeviceName,
    },
    /// The node requests nothing; this is the default device.
    Default,
    /// The node requests nothing; this is the first device that can run it.
    Priority,
    /// The node has no inputs and requests nothing; all its readers are on this device.
    Consumers,
    /// The request leaves several devices; on this one the step ends soonest, by the known costs.
    Cost,
    /// Optimisation created the node, and it runs on the device of the nodes that it replaces.
    Optimised,
    /// The requested device cannot run the node.
    Soft {
        /// The request that was dropped.
        request: DeviceName,
    },
}

impl fmt::Display for PlacementReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlacementReason::Requested { request } => write!(f, "the node requests {request}"),
            PlacementReason::Colocated { with, request } if *request == DeviceName::default() => {
                write!(f, "belongs with '{with}', no node of the group requests a device")
            }
            PlacementReason::Colocated { with, request } => {
                write!(f, "belongs with '{with}', the group requests {request}")
            }
            PlacementReason::Default => f.write_str("requests no device: the default device"),
            PlacementReason::Priority => {
                f.write_str("requests no device: first device by priority that can run it")
            }
            PlacementReason::Consumers => {
                f.write_str("requests no device and has no inputs: the device of its readers")
            }
            PlacementReason::Cost => f.write_str("the step ends soonest there, by the known costs"),
            PlacementReason::Optimised => {
                f.write_str("made by optimisation: the device of the nodes that it replaces")
            }
            PlacementReason::Soft { request } => {
                write!(f, "{request} cannot run it: moved by soft placement")
            }
        }
    }
}

/// The placement of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodePlacement {
    /// The position in [`DeviceView::devices`].
    pub device: usize,
    /// The reason for the placement.
    pub reason: PlacementReason,
    /// Preferred devices that cannot run the node, each with the reason.
    pub passed_over: Vec<String>,
}

/// The placement of the nodes of a step's graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// The placements by node; `None` for nodes that do not run.
    nodes: Vec<Option<NodePlacement>>,
}

impl Placement {
    /// The placement of a node; `None` if it does not run.
    pub fn of(&self, node: NodeId) -> Option<&NodePlacement> {
        self.nodes.get(node.index())?.as_ref()
    }

    /// The placement of a graph that passes made from this one. `devices` has a position of a device
    /// for each node, or `None` for a node that does not run; only the entries of the additional
    /// nodes are used.
    pub fn extended(mut self, devices: &[Option<usize>]) -> Placement {
        let own = self.nodes.len();
        self.nodes.extend(devices.iter().skip(own).map(|device| {
            let reason = PlacementReason::Optimised;
            device.map(|device| NodePlacement { device, reason, passed_over: Vec::new() })
        }));
        self
    }

    /// The position of a node's device; `None` if the node does not run.
    pub fn device(&self, node: NodeId) -> Option<usize> {
        self.of(node).map(|placed| placed.device)
    }
}

/// Places the nodes of a step's graph.
///
/// # Errors
/// Colocation with unknown nodes, conflicting requests in a group, and nodes that no device can run
/// (the error lists the devices with the reasons).
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

/// The positions of the devices, most preferred first.
fn preferred(devices: &[DeviceEntry]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..devices.len()).collect();
    order.sort_by_key(|&at| {
        let device = &devices[at];
        (Reverse(device.priority), !device.is_local, &device.name)
    });
    order
}

/// For each node, the running nodes that read its data.
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
    nodes: Vec<Option<NodePlacement>>,
}

/// A device that can run a group, and the preferred ones that cannot.
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

    /// Finds a device without the request's type and number.
    fn find_soft(&self, group: &Group) -> Option<Found> {
        let task = DeviceName { device_type: None, id: None, ..group.request.clone() };
        self.find(group, &task).ok()
    }

    /// Finds the most preferred device that matches a request and can run every node of a group, or
    /// else returns each device with the reason why not.
    fn find(&self, group: &Group, request: &DeviceName) -> Result<Found, Vec<String>> {
        let devices = self.view.devices();
        let mut passed_over = Vec::new();
        let mut elsewhere = Vec::new();
        for &at in &self.preferred {
            let device = &devices[at];
            if !request.matches(&device.name) {
                elsewhere.push(format!("{}: does not match the request", device.name));
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

    /// The error for a group without a device, with the device that soft placement would choose.
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
            self.nodes[id.index()] = Some(NodePlacement {
                device: found.device,
                reason,
                passed_over: found.passed_over.clone(),
            });
        }
    }

    /// Places a group of a single node without inputs and requests.
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
