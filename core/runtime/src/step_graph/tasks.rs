//! Steps over several tasks: a part for each, as a message for its worker.
//!
//! The graph is cut by task, not by device: values cross tasks in host memory, between the first CPU devices of the tasks. Each
//! worker cuts its part by its own devices, optimises it, and chooses the kernels. Feeds and fetches are transfers from and to
//! the *client*, the first device of this process that computes in host memory.

use super::{Context, GraphVersion, Named, feed_specs, placed::PlacedStep};
use crate::{
    error::RuntimeError, feeds::FeedSpecs, options::CallableOptions, rendezvous::EdgeName,
    run_limits::RunLimits,
};
use std::{collections::HashMap, sync::Arc};
use tenon_framework::{DType, PartialShape, Tensor, device::DeviceName};
use tenon_graph::{
    DeviceEntry, DeviceView, Graph, Memory, NodeId, PartKind, PartNode, PartOp, Partition,
    PartitionOptions, Partitioned, Placement, Shapes, Subgraph, Transfer, WithControlLoops,
    control_loops, partition, strip_default_attrs,
};
use tenon_proto::{GraphDef, VersionDef, versions};

/// A step that is cut by task.
#[derive(Debug, Clone)]
pub struct TaskStep {
    /// The parts, one for each task that has nodes.
    pub parts: Vec<TaskPart>,
    /// The feeds, in the order of the signature.
    pub feeds: Vec<TaskFeed>,
    /// The transfers of the fetches to the client, in the order of the signature.
    pub fetches: Vec<EdgeName>,
    /// The task of the client, whose part takes the feeds and gives the fetches.
    pub client: DeviceName,
    pub(crate) specs: FeedSpecs,
}

/// The part of a step at one task.
#[derive(Debug, Clone)]
pub struct TaskPart {
    /// The task.
    pub task: DeviceName,
    /// The nodes; each names its device.
    pub graph: GraphDef,
}

/// A feed of a step that is cut by task.
#[derive(Debug, Clone)]
pub struct TaskFeed {
    /// The transfer from the client; `None` if no node takes the feed.
    pub edge: Option<EdgeName>,
}

impl TaskStep {
    /// Checks the values that are fed.
    ///
    /// # Errors
    /// Another number, type or shape than the step takes.
    pub fn check(&self, feeds: &[Tensor]) -> Result<(), RuntimeError> {
        self.specs.check(feeds)
    }
}

/// Cuts the step of a signature by task.
pub(crate) fn by_task(
    context: Context<'_>,
    signature: &CallableOptions,
    run_limits: &RunLimits,
) -> Result<TaskStep, RuntimeError> {
    let context = Context { any_shape: signature.feeds_of_any_shape, ..context };
    let Named { feeds, fetches, targets } = Named::find(&context.version.graph, signature)?;
    let placed = PlacedStep::new(context, &feeds, &fetches, &targets, run_limits)?;
    let tasks = Tasks::of(&placed);
    let specs = FeedSpecs(feed_specs(&placed, signature, &feeds));
    run_limits.check()?;
    let mut cut = tasks.cut(&placed)?;
    let client = tasks.entries[tasks.client].clone();
    let ends = Ends::make(&mut cut, &client, signature);
    let devices = tasks.devices_of(&placed);
    let GraphVersion { graph, registry, .. } = context.version;
    let write = |part: &Partition| -> Result<TaskPart, RuntimeError> {
        let task = task_of(&part.device);
        let named = |node: &PartNode| {
            let is_own = matches!(node.kind, PartKind::Op(_));
            devices.get(&(task.clone(), node.name.clone())).filter(|_| is_own).cloned()
        };
        let mut graph_def = part.to_graph_def_on(&named)?;
        strip_default_attrs(&mut graph_def, registry);
        graph_def.library = placed.graph.library().or(graph.library()).cloned();
        graph_def.versions = Some(graph.versions().cloned().unwrap_or(VersionDef {
            producer: versions::GRAPH_DEF_VERSION,
            ..VersionDef::default()
        }));
        Ok(TaskPart { task, graph: graph_def })
    };
    let parts = cut.partitions.iter().map(write).collect::<Result<Vec<_>, _>>()?;
    let feeds = (0..feeds.len()).map(|at| TaskFeed { edge: ends.feeds.get(&at).cloned() });
    let fetches = (0..fetches.len()).filter_map(|at| ends.fetches.get(&at).cloned());
    let (feeds, fetches) = (feeds.collect(), fetches.collect());
    Ok(TaskStep { parts, feeds, fetches, client: task_of(&client.name), specs })
}

/// The task of a device.
fn task_of(device: &DeviceName) -> DeviceName {
    DeviceName { device_type: None, id: None, ..device.clone() }
}

/// The tasks among the devices of a session.
struct Tasks {
    /// For each task, the device at which values enter and leave it.
    entries: Vec<DeviceEntry>,
    /// The task of each device, by position.
    of: Vec<usize>,
    client: usize,
}

impl Tasks {
    fn of(placed: &PlacedStep<'_>) -> Tasks {
        let devices = placed.view.devices();
        let mut numbers: HashMap<DeviceName, usize> = HashMap::new();
        let mut entries: Vec<DeviceEntry> = Vec::new();
        let mut of = Vec::with_capacity(devices.len());
        for device in devices {
            let at = *numbers.entry(task_of(&device.name)).or_insert_with(|| {
                entries.push(device.clone());
                entries.len() - 1
            });
            if device.host_memory && !entries[at].host_memory {
                entries[at] = device.clone();
            }
            of.push(at);
        }
        let client = of[placed.view.client()];
        // Values cross tasks in host memory, whatever device stands for a task.
        entries.iter_mut().for_each(|entry| entry.host_memory = true);
        Tasks { entries, of, client }
    }

    /// The name of the device of each node, by task and name.
    fn devices_of(&self, placed: &PlacedStep<'_>) -> HashMap<(DeviceName, String), String> {
        let named = placed.sub.order.iter().map(|&id| {
            let device = &placed.view.devices()[placed.location(id)].name;
            ((task_of(device), placed.graph.node(id).name.clone()), device.to_string())
        });
        named.collect()
    }

    fn cut(&self, placed: &PlacedStep<'_>) -> Result<Partitioned, RuntimeError> {
        let PlacedStep { graph, sub, shapes, placement, context, .. } = placed;
        let own = graph.len();
        let location = |id: NodeId| self.of[placed.location(id)];
        let registry = &context.version.registry;
        let looped = control_loops(graph, sub, shapes, placement, &location, registry)?;
        let Some(WithControlLoops { graph, sub, shapes, placement, merges }) = looped else {
            return cut(self, graph, sub, shapes, &location, &[]);
        };
        let graph = Arc::new(graph);
        // The nodes of control loops are placed on tasks.
        let added = |placement: &Placement, id: NodeId| placement.device(id).unwrap_or(self.client);
        let location = |id: NodeId| match id.index() < own {
            true => location(id),
            false => added(&placement, id),
        };
        cut(self, &graph, &sub, &shapes, &location, &merges)
    }
}

fn cut(
    tasks: &Tasks,
    graph: &Graph,
    sub: &Subgraph,
    shapes: &Shapes,
    location: &dyn Fn(NodeId) -> usize,
    control_loops: &[NodeId],
) -> Result<Partitioned, RuntimeError> {
    let options = PartitionOptions {
        devices: &tasks.entries,
        location,
        client: tasks.client,
        host_memory: &|_, _| true,
        op: &|id| PartOp::new(graph, sub, shapes, id, None),
        shapes,
        control_loops,
    };
    Ok(partition(graph, sub, &options)?)
}

/// The transfers of feeds and fetches, by position.
#[derive(Default)]
struct Ends {
    feeds: HashMap<usize, EdgeName>,
    fetches: HashMap<usize, EdgeName>,
}

impl Ends {
    /// Makes each feed a `Recv` from the client, and each fetch a `Send` to it.
    fn make(cut: &mut Partitioned, client: &DeviceEntry, signature: &CallableOptions) -> Ends {
        let mut ends = Ends::default();
        let transfer = |tensor: String, dtype: DType| Transfer {
            id: 0,
            sender: client.name.clone(),
            incarnation: client.incarnation,
            receiver: client.name.clone(),
            tensor,
            source_memory: Memory::Host,
            destination_memory: Memory::Host,
            dtype,
            shape: PartialShape::UNKNOWN,
        };
        for node in cut.partitions.iter_mut().flat_map(|part| &mut part.nodes) {
            match node.kind {
                PartKind::Feed { index } => {
                    let dtype = node.signature.outputs[0].base();
                    let made = transfer(format!("feed {index} {}", signature.feeds[index]), dtype);
                    ends.feeds.insert(index, EdgeName::of(&made));
                    let shape = node.output_shapes[0].clone();
                    node.kind = PartKind::Recv(Transfer { shape, ..made });
                }
                PartKind::Fetch { index } => {
                    let dtype = node.signature.inputs[0].base();
                    let name = format!("fetch {index} {}", signature.fetches[index]);
                    let made = transfer(name, dtype);
                    ends.fetches.insert(index, EdgeName::of(&made));
                    node.kind = PartKind::Send(made);
                }
                _ => {}
            }
        }
        ends
    }
}
