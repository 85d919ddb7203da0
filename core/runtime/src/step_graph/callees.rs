//! The step graphs of the functions that a step's nodes call.

use super::{Context, GraphVersion, StepGraph, optimize, placed::PlacedStep};
use crate::{
    error::RuntimeError,
    feeds::{FeedSpec, FeedSpecs},
    run_limits::RunLimits,
};
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};
use tenon_framework::attr::FuncValue;
use tenon_graph::{FunctionKey, Graph, Node, called, callee, prune};

/// The functions that a step's nodes call, with their numbers.
#[derive(Default)]
pub(crate) struct CalledGraphs {
    /// The step graphs, by number. Their own `callees` are empty: all functions are here.
    pub graphs: Vec<(String, StepGraph)>,
    numbers: BTreeMap<FunctionKey, u32>,
}

impl CalledGraphs {
    /// The functions that the nodes of a step call, and those that these call.
    pub(super) fn of(
        placed: &PlacedStep<'_>,
        run_limits: &RunLimits,
    ) -> Result<CalledGraphs, RuntimeError> {
        let mut callees = CalledGraphs::default();
        let mut waiting = VecDeque::new();
        callees.number(placed, &mut waiting);
        while let Some(call) = waiting.pop_front() {
            run_limits.check()?;
            callees.add(placed.context, &call, &mut waiting, run_limits)?;
        }
        Ok(callees)
    }

    /// The numbers of all functions.
    pub fn numbers(&self) -> BTreeMap<FunctionKey, u32> {
        self.numbers.clone()
    }

    /// The number of the function that an attribute names.
    pub fn find(&self, function: &FuncValue) -> Option<u32> {
        self.numbers.get(&FunctionKey::of(function)).copied()
    }

    /// Numbers the functions that a graph's nodes call.
    fn number(&mut self, placed: &PlacedStep<'_>, waiting: &mut VecDeque<Call>) {
        for &id in &placed.sub.order {
            let node = placed.graph.node(id);
            for function in called(&placed.graph, node) {
                let next = self.numbers.len() as u32;
                if *self.numbers.entry(FunctionKey::of(function)).or_insert(next) == next {
                    let (graph, node) = (Arc::clone(&placed.graph), node.clone());
                    waiting.push_back(Call { graph, node, function: function.clone() });
                }
            }
        }
    }

    /// Adds the step graph of a function.
    fn add(
        &mut self,
        context: Context<'_>,
        call: &Call,
        waiting: &mut VecDeque<Call>,
        run_limits: &RunLimits,
    ) -> Result<(), RuntimeError> {
        let registry = &context.version.registry;
        let body = callee(&call.graph, registry, &call.node, &call.function)?;
        let sub = prune(&body.graph, &body.args, &body.returns, &body.effects)?;
        body.graph.check_ops(&sub, registry)?;
        let graph = Arc::new(body.graph);
        let version = GraphVersion { graph: Arc::clone(&graph), ..context.version.clone() };
        let context = Context { version: &version, ..context };
        let placed = PlacedStep::of(context, graph, context.next_graph(), sub, run_limits)?;
        let (placed, _) = optimize::optimized(placed)?;
        let partitioned = placed.partition()?;
        self.number(&placed, waiting);
        let feeds = body.args.iter().enumerate().map(|(at, &arg)| FeedSpec {
            name: format!("argument {at}"),
            dtype: placed.graph.dtype(arg).base(),
            shape: placed.shapes.seen(&placed.sub, arg),
        });
        let graph = StepGraph {
            partitioned,
            feeds: FeedSpecs(feeds.collect()),
            fetches: body.returns.len(),
            scope: placed.scope,
            callees: CalledGraphs::default(),
        };
        self.graphs.push((call.function.name.clone(), graph));
        Ok(())
    }
}

/// A call of a function that has no step graph yet.
struct Call {
    /// The graph whose library has the function.
    graph: Arc<Graph>,
    node: Node,
    function: FuncValue,
}
