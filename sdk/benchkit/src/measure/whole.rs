//! A whole call: what a user of the runtime pays.

use super::ready::Ready;
use crate::{calls::Call, error::BenchError, sampler::Subject, variants::Host};
use tenon_framework::{PartialShape, Tensor, registry::KernelDef};
use tenon_runtime::{
    Callable, CallableOptions, Session, SessionOptions, graph::GraphBuilder,
    host::instance::PreparedCall,
};

/// Name of the node.
const NODE: &str = "bench";

/// A step of a graph of one op, if a session can be made to run this very kernel; else a call without a graph.
pub enum Whole<'a> {
    /// A step.
    Step {
        /// The prepared step.
        callable: Callable,
        /// Its session, which closes when it is dropped.
        _session: Session,
        /// What it is fed.
        feeds: Vec<Tensor>,
        /// What it fetched last.
        fetched: Vec<Tensor>,
    },
    /// A call.
    Call(PreparedCall<'a>),
}

impl<'a> Whole<'a> {
    /// The whole call of a kernel.
    ///
    /// # Errors
    /// Neither a step nor a call can be made.
    pub fn new(
        host: &'a Host,
        ready: &'a Ready,
        call: &Call,
        inputs: &[Tensor],
    ) -> Result<Whole<'a>, BenchError> {
        if let Some(step) = step(host, ready, call, inputs) {
            return Ok(step);
        }
        let prepared = PreparedCall::new(&ready.instance, inputs, &host.env);
        let prepared =
            prepared.map_err(|error| BenchError::wish(&call.op.name, error.to_string()))?;
        Ok(Whole::Call(prepared))
    }

    /// As a record has it.
    pub fn through(&self) -> &'static str {
        match self {
            Whole::Step { .. } => "callable",
            Whole::Call(_) => "call",
        }
    }
}

/// A step that runs this kernel; `None` where a session runs another, or none.
fn step<'a>(host: &Host, ready: &Ready, call: &Call, inputs: &[Tensor]) -> Option<Whole<'a>> {
    let session = session(host, ready, call, inputs)?;
    let explained = session.explain(Some(NODE)).ok()?.pop()?;
    let winner = explained.kernels?.winner?;
    if !same(&winner, &ready.choice.def) {
        return None;
    }
    let outputs = ready.shapes.outputs.len();
    let fed = |at: &usize| !call.case.inputs[*at].constant;
    let options = CallableOptions {
        feeds: (0..inputs.len()).filter(fed).map(|at| format!("x{at}:0")).collect(),
        fetches: (0..outputs).map(|at| format!("{NODE}:{at}")).collect(),
        targets: if outputs == 0 { vec![NODE.to_owned()] } else { Vec::new() },
        ..CallableOptions::default()
    };
    let feeds: Vec<Tensor> = (0..inputs.len()).filter(fed).map(|at| inputs[at].clone()).collect();
    let callable = session.callable(options).ok()?;
    let mut fetched = Vec::new();
    callable.run(&feeds, &mut fetched).ok()?;
    Some(Whole::Step { callable, _session: session, feeds, fetched })
}

fn same(a: &KernelDef, b: &KernelDef) -> bool {
    a.plugin == b.plugin && a.order == b.order
}

/// A session over a graph of this one node.
fn session(host: &Host, ready: &Ready, call: &Call, inputs: &[Tensor]) -> Option<Session> {
    let registry = host.runtime.registry();
    let mut builder = GraphBuilder::new(&registry);
    let mut sources = Vec::new();
    for (at, input) in inputs.iter().enumerate() {
        let name = format!("x{at}");
        let source = if call.case.inputs[at].constant {
            builder.constant(&name, input.clone())
        } else {
            builder.placeholder(&name, input.dtype(), PartialShape::from(*input.shape()))
        };
        sources.push(source.ok()?);
    }
    let device = ready.choice.device.full_name();
    let mut node = builder.op(&call.op.name).name(NODE).inputs(sources).device(device);
    for (name, value) in &call.case.attrs {
        node = node.attr(name, value.clone());
    }
    if !ready.choice.def.label.is_empty() {
        node = node.attr("_kernel", ready.choice.def.label.as_str());
    }
    node.build().ok()?;
    let options = SessionOptions { soft_placement: Some(false), ..SessionOptions::as_written() };
    let session = Session::new(&host.runtime, options).ok()?;
    session.extend(&builder.finish().to_graph_def().ok()?).ok()?;
    Some(session)
}

impl Subject for Whole<'_> {
    fn run(&mut self, calls: u64) -> Result<(), String> {
        for _ in 0..calls {
            match self {
                Whole::Step { callable, feeds, fetched, .. } => {
                    callable.run(feeds, fetched).map_err(|error| error.to_string())?;
                }
                Whole::Call(call) => call.run().map_err(|error| error.to_string())?,
            }
        }
        Ok(())
    }
}
