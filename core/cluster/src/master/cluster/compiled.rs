//! Steps that are cut by task and registered at the workers.

use super::{
    super::Answered,
    CONTROL, ClusterSession,
    links::{Link, together},
};
use crate::{keys, methods, refusal::Refusal};
use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, Ordering},
};
use tenon_framework::Code;
use tenon_proto::{AttrValueKind, DeregisterGraphRequest, NodeDef, RegisterGraphRequest};
use tenon_runtime::{CallableOptions, RunOptions, Session, TaskStep};

/// Parts of a step whose master needs no thread, at most.
const MOST_LIGHT: usize = 4;

/// A part of a step, registered at its worker.
pub(super) struct Registered {
    pub link: Link,
    pub graph_handle: String,
    /// Whether the client's values enter and leave there.
    pub is_client: bool,
}

/// A step that is registered at the workers; dropping it drops its graphs there.
pub(in crate::master) struct Compiled {
    pub(super) step: TaskStep,
    pub(super) parts: Vec<Registered>,
    /// The keys of the fetches, in order.
    pub(super) fetches: Vec<String>,
    /// The number of its graph, if it has collective operations on whose steps several masters agree; else 0.
    pub(super) graph_key: i64,
    /// Whether it consists of nodes of this task that do nothing.
    pub(super) is_idle: bool,
    session: String,
    /// Whether the workers have dropped the graphs already.
    is_forgotten: AtomicBool,
}

impl Compiled {
    /// Whether its calls are so few that the thread which read its request makes them, and no other master has to agree on its
    /// number.
    pub(super) fn is_light(&self) -> bool {
        self.parts.len() <= MOST_LIGHT && self.graph_key == 0
    }

    /// The workers drop the graphs by themselves.
    pub(super) fn forget(&self) {
        self.is_forgotten.store(true, Ordering::Relaxed);
    }
}

impl Drop for Compiled {
    fn drop(&mut self) {
        if self.is_forgotten.load(Ordering::Relaxed) {
            return;
        }
        for Registered { link, graph_handle, .. } in &self.parts {
            let request = DeregisterGraphRequest {
                graph_handle: graph_handle.clone(),
                session_handle: self.session.clone(),
                create_worker_session_called: true,
            };
            // A worker that is gone has no graph left.
            link.start::<methods::DeregisterGraph>(request, Some(CONTROL), drop);
        }
    }
}

/// The size and the keys of a node's collective operation, if its attributes say them.
fn operation_of(node: &NodeDef) -> Option<[i64; 3]> {
    let number = |name: &str| match node.attr.get(name).and_then(|attr| attr.value.as_ref()) {
        Some(AttrValueKind::I(number)) => Some(*number),
        _ => None,
    };
    let names = ["group_size", "group_key", "instance_key"];
    let [size, group, instance] = names.map(number);
    Some([size?, group?, instance?]).filter(|_| node.op.starts_with("Collective"))
}

/// The number of a step's graph by its collective operations, as other masters with the same operations have it; 0 if all
/// members are in this graph, so that no other master takes part.
fn graph_key(step: &TaskStep) -> i64 {
    let mut members: BTreeMap<[i64; 3], i64> = BTreeMap::new();
    for node in step.parts.iter().flat_map(|part| &part.graph.node) {
        if let Some(operation) = operation_of(node) {
            *members.entry(operation).or_default() += 1;
        }
    }
    members.retain(|[size, ..], count| *count < *size);
    if members.is_empty() {
        return 0;
    }
    // FNV-1a: the same in every process.
    let bytes = members.keys().flatten().flat_map(|key| key.to_le_bytes());
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    (bytes.fold(0xcbf2_9ce4_8422_2325, mix) >> 1).cast_signed().max(1)
}

/// Cuts the step of a signature, and registers the parts at once.
pub(super) fn compile(
    cluster: &ClusterSession,
    session: &Session,
    signature: &CallableOptions,
    options: &RunOptions,
) -> Answered<Compiled> {
    let mut step = session.tasks(signature, options)?;
    let client = step.client.to_string();
    let graph_key = graph_key(&step);
    let mut calls = Vec::with_capacity(step.parts.len());
    let mut is_idle = step.parts.len() == 1;
    for part in std::mem::take(&mut step.parts) {
        let task = part.task.to_string();
        let link = cluster.links.get(&task).ok_or_else(|| {
            Refusal::new(Code::INTERNAL, format!("the session has no worker for {task}"))
        })?;
        cluster.check_task(&task)?;
        is_idle &= !link.is_other() && part.graph.node.iter().all(|node| node.op == "NoOp");
        let request = RegisterGraphRequest {
            session_handle: cluster.handle.clone(),
            graph_def: Some(part.graph),
            create_worker_session_called: true,
            collective_graph_key: graph_key,
            ..RegisterGraphRequest::default()
        };
        calls.push((link.clone(), request));
    }
    // Parts of other tasks are called first: they take longer.
    calls.sort_by_key(|(link, _)| !link.is_other());
    let links: Vec<Link> = calls.iter().map(|(link, _)| link.clone()).collect();
    let answers = together::<methods::RegisterGraph>(calls, super::limit_of(options));
    let fetches = step.fetches.iter().map(keys::of_edge).collect();
    let mut compiled = Compiled {
        step,
        parts: Vec::with_capacity(links.len()),
        fetches,
        graph_key,
        is_idle,
        session: cluster.handle.clone(),
        is_forgotten: AtomicBool::new(false),
    };
    let mut first = None;
    for (link, (task, answer)) in links.into_iter().zip(answers) {
        match answer {
            Ok(registered) => compiled.parts.push(Registered {
                is_client: task == client,
                link,
                graph_handle: registered.graph_handle,
            }),
            Err(refusal) => drop(first.get_or_insert_with(|| super::from(&task)(refusal))),
        }
    }
    match first {
        Some(refusal) => Err(refusal),
        None => Ok(compiled),
    }
}
