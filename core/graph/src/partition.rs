//! Cuts a step's graph into one partition per device.
//!
//! Where a value is needed on another device, or on the same device in the other kind of memory, a
//! `Send` gives it to the rendezvous and a `Recv` takes it: one pair per (tensor, destination,
//! memory), shared by all readers there. A constant is not sent: its node is copied to where it is
//! needed. The value of a reference is sent to each reader apart, once everything else that the
//! reader waits for is done, so that it sees the updates before it. A control edge between devices becomes a pair that carries an empty tensor. On one
//! device, the `Recv` also waits for its `Send` by a control edge, so that it runs in the frame and
//! iteration of the `Send`. Between devices, the `Recv` waits for the control loop that its device
//! has in the frame of the `Send` ([`control_loops`]).

mod assemble;
mod control_loops;
mod cutter;
mod ends;
mod message;
mod op;
mod reach;
mod types;

pub use assemble::{AssembleError, assemble};
pub use control_loops::{WithControlLoops, control_loops};
pub use op::{MadeFrom, PartOp};
pub use types::{
    ArgSide, Edge, Memory, PartKind, PartNode, Partition, PartitionOptions, Partitioned, Transfer,
};

use crate::{ControlFlow, DeviceEntry, Frames, Graph, GraphError, Subgraph};
use std::collections::BTreeMap;

/// The location of each node, by position in the order.
///
/// # Errors
/// A location outside the list of devices.
fn locations(
    graph: &Graph,
    sub: &Subgraph,
    options: &PartitionOptions<'_>,
) -> Result<Vec<usize>, GraphError> {
    let devices = options.devices.len();
    let locations = sub.order.iter().map(|&id| match (options.location)(id) {
        found if found < devices => Ok(found),
        found => {
            let what = format!("node '{}'", graph.node(id).name);
            Err(GraphError::Location { what, found, devices })
        }
    });
    locations.collect()
}

/// Creates the partitions from nodes by location. `may_be_dead` says that a received value may be
/// dead even if no node here is a control-flow node.
fn finish(
    parts: BTreeMap<usize, Vec<PartNode>>,
    devices: &[DeviceEntry],
    may_be_dead: bool,
    (frames, transfers): (Frames, u32),
) -> Partitioned {
    let steers = |node: &PartNode| node.control_flow() != ControlFlow::No;
    // A received value may be dead if there is a control-flow node in any partition.
    let any = may_be_dead || parts.values().flatten().any(steers);
    let receives = |node: &PartNode| matches!(node.kind, PartKind::Recv(_));
    let partitions = parts.into_iter().map(|(location, nodes)| Partition {
        device: devices[location].name.clone(),
        has_control_flow: any && nodes.iter().any(|node| steers(node) || receives(node)),
        nodes,
    });
    Partitioned { partitions: partitions.collect(), frames, transfers }
}

/// Cuts a step's graph. Equal inputs give equal partitions.
///
/// # Errors
/// Loops over several devices without control loops, references that would leave their device, fetches inside loops, and
/// locations outside the list of devices.
pub fn partition(
    graph: &Graph,
    sub: &Subgraph,
    options: &PartitionOptions<'_>,
) -> Result<Partitioned, GraphError> {
    let frames = Frames::find(graph, sub)?;
    cutter::Cutter::new(graph, sub, options, &frames, ends::Ends::default())?.cut()
}

/// Like [`partition`], for a graph that is itself a part of one that was cut elsewhere: its `_Send` and `_Recv` nodes are the
/// ends of transfers with other parts.
///
/// # Errors
/// As [`partition`]; a transfer without devices.
pub fn partition_part(
    graph: &Graph,
    sub: &Subgraph,
    options: &PartitionOptions<'_>,
) -> Result<Partitioned, AssembleError> {
    let frames = Frames::find(graph, sub)?;
    let ends = ends::Ends::find(graph, sub, options.shapes)?;
    Ok(cutter::Cutter::new(graph, sub, options, &frames, ends)?.cut()?)
}
