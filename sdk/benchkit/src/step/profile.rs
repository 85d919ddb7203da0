//! Where the time and the memory of a step go.

use super::Step;
use crate::{
    cost,
    error::BenchError,
    record::{NodeTime, Profile, StepMemory, Work},
    stats::describe::median,
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};
use tenon_framework::{DType, PartialShape, op::OpDef};
use tenon_runtime::{
    Callable, NodeReport, RunOptions, Runtime, Session,
    host::{call::TraceSink, memory::HostMemory},
};

/// Steps that are traced at least and at most.
const STEPS: (usize, usize) = (5, 500);

/// Calls and nanoseconds of each node in one step.
#[derive(Debug, Default)]
struct Clock(Mutex<HashMap<String, Spent>>);

#[derive(Debug, Clone, Copy, Default)]
struct Spent {
    calls: u64,
    ns: u64,
    /// Of what the node enqueued on streams: then that counts, not the call that enqueued it.
    streamed: u64,
}

impl Clock {
    fn add(&self, node: &str, spend: impl FnOnce(&mut Spent)) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match all.get_mut(node) {
            Some(known) => spend(known),
            None => spend(all.entry(node.to_owned()).or_default()),
        }
    }

    fn take(&self) -> HashMap<String, Spent> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl TraceSink for Clock {
    fn span(&self, node: &str, name: &str, begin_ns: u64, end_ns: u64) {
        // Named spans are parts of the node's own.
        if name.is_empty() {
            self.add(node, |spent| {
                spent.calls += 1;
                spent.ns += end_ns.saturating_sub(begin_ns);
            });
        }
    }

    fn stream_span(&self, _stream: &str, node: &str, begin_ns: u64, end_ns: u64) {
        self.add(node, |spent| spent.streamed += end_ns.saturating_sub(begin_ns));
    }
}

/// Traces steps for about so long.
///
/// # Errors
/// A step that fails.
pub fn profile(
    (runtime, session): (&Runtime, &Session),
    callable: &Callable,
    step: &Step,
    budget: Duration,
) -> Result<Profile, BenchError> {
    let memory = memory(session, callable, step)?;
    let clock = Arc::new(Clock::default());
    let options = RunOptions { trace: Some(clock.clone()), ..RunOptions::default() };
    let mut fetched = Vec::new();
    let mut steps: Vec<HashMap<String, Spent>> = Vec::new();
    let began = Instant::now();
    while steps.len() < STEPS.0 || (steps.len() < STEPS.1 && began.elapsed() < budget) {
        callable.run_with(&step.feeds, &mut fetched, &options)?;
        steps.push(clock.take());
    }
    let nodes = callable.nodes()?;
    let registry = runtime.registry();
    let def = |node: &NodeReport| registry.op(&node.op).map(|op| &**op);
    let times = nodes.iter().filter_map(|node| node_time(node, def(node), &steps)).collect();
    Ok(Profile { steps: steps.len() as u32, nodes: times, memory })
}

/// What a node took in the steps; `None` for one that ran in none of them.
fn node_time(
    node: &NodeReport,
    def: Option<&OpDef>,
    steps: &[HashMap<String, Spent>],
) -> Option<NodeTime> {
    let spent: Vec<Spent> = steps.iter().filter_map(|step| step.get(&node.name)).copied().collect();
    let calls = spent.first()?.calls;
    let ns = |spent: &Spent| if spent.streamed > 0 { spent.streamed } else { spent.ns } as f64;
    let ns = median(&spent.iter().map(ns).collect::<Vec<f64>>());
    let inputs = known(&node.inputs);
    let outputs = known(&node.outputs);
    let work = inputs.as_deref().zip(outputs.as_deref()).map(|(inputs, outputs)| {
        let attrs = node.attrs.attrs();
        let shares = cost::passes_on(&node.op);
        let call = cost::Call { op: &node.op, def, attrs, inputs, outputs, shares };
        times(cost::work(&call), calls)
    });
    let types = node.inputs.iter().chain(&node.outputs).map(|(dtype, _)| *dtype);
    Some(NodeTime {
        node: node.name.clone(),
        op: node.op.clone(),
        device: node.device.clone(),
        plugin: node.plugin.clone(),
        label: node.label.clone(),
        dtype: types.into_iter().next().unwrap_or(DType::INVALID).to_string(),
        calls,
        ns,
        work,
        rate: 0.0,
        unit: String::new(),
        reached: None,
    })
}

fn known(tensors: &[(DType, PartialShape)]) -> Option<Vec<(DType, Vec<i64>)>> {
    let full =
        |(dtype, shape): &(DType, PartialShape)| Some((*dtype, shape.full()?.dims().to_vec()));
    tensors.iter().map(full).collect()
}

fn times(work: Work, calls: u64) -> Work {
    let calls = calls as f64;
    Work {
        flops: work.flops.map(|flops| flops * calls),
        read: work.read * calls,
        written: work.written * calls,
        source: work.source,
    }
}

/// What the plan says, and what a step holds.
fn memory(
    session: &Session,
    callable: &Callable,
    step: &Step,
) -> Result<Vec<StepMemory>, BenchError> {
    let planned = session.explain_passes(Some(&step.options))?.memory;
    let mut fetched = Vec::new();
    callable.run(&step.feeds, &mut fetched)?;
    drop(fetched);
    let pool = HostMemory::shared();
    let before = pool.stats().live_bytes;
    pool.reset_peak();
    callable.run(&step.feeds, &mut Vec::new())?;
    let held = pool.stats().peak_bytes.saturating_sub(before);
    let of_device = |memory: tenon_runtime::graph::DeviceMemory| StepMemory {
        // Values that keep their buffers from step to step were there before.
        held: memory.device.contains("CPU").then_some(held + memory.kept),
        device: memory.device,
        constants: memory.constants,
        planned: memory.peak,
        without_reuse: memory.without_reuse,
    };
    Ok(planned.into_iter().map(of_device).collect())
}
