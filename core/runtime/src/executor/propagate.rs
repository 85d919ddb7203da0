//! What happens when a node is done: the one thing in which graphs with control flow differ from others.
//!
//! [`Acyclic`] is the form for partitions in which nothing steers: every node runs once, a count per node
//! says when. The form with frames, iterations and dead values is in `frames`. A partition's state is generic
//! over the two, so that the first has no trace of the second in its instructions.

use super::{partition::PartitionState, shared::Ready};
use crate::{
    plan::{HotNode, Plan, Transfer},
    rendezvous::Key,
};
use std::{
    borrow::Cow,
    sync::atomic::{AtomicU32, Ordering},
};
use tenon_framework::KernelError;

/// How a partition's nodes tell each other that they are done. Every function is told the state whose part
/// the form is.
pub(crate) trait Propagate: Sized + 'static {
    /// Counters are set for another run of the plan.
    fn begin(state: &PartitionState<Self>);

    /// A node is done and its outputs are set: tells its successors, and gives back what it was the last to
    /// read. What becomes ready goes onto `ready`.
    fn propagate(state: &PartitionState<Self>, index: u32, node: &HotNode, ready: &mut Vec<u32>);

    /// As [`Propagate::propagate`], for a `_Recv` that was given a dead value.
    fn propagate_dead(state: &PartitionState<Self>, index: u32, ready: &mut Vec<u32>);

    /// Before one of the state's nodes is handed to somebody else.
    fn raise(state: &PartitionState<Self>);

    /// After that, with what became ready. The state may be gone when this returns.
    fn lower(state: &PartitionState<Self>, ready: Vec<u32>);

    /// What a transfer travels under.
    fn key<'t>(state: &PartitionState<Self>, transfer: &'t Transfer) -> Cow<'t, Key>;
}

/// The form without control flow.
pub(crate) struct Acyclic {
    /// Predecessors of each node that are not done.
    pending: Box<[AtomicU32]>,
}

impl Acyclic {
    pub fn new(plan: &Plan) -> Acyclic {
        Acyclic { pending: plan.nodes.iter().map(|node| AtomicU32::new(node.pending)).collect() }
    }
}

impl Propagate for Acyclic {
    fn begin(state: &PartitionState<Acyclic>) {
        for &(node, count) in &state.plan.counters {
            state.form.pending[node as usize].store(count, Ordering::Relaxed);
        }
    }

    #[inline(always)]
    fn propagate(
        state: &PartitionState<Acyclic>,
        _index: u32,
        node: &HotNode,
        ready: &mut Vec<u32>,
    ) {
        state.give_back_inputs(node);
        for &successor in node.successors.of(&state.plan.successors) {
            let next = successor.node();
            if successor.is_only()
                || state.form.pending[next as usize].fetch_sub(1, Ordering::AcqRel) == 1
            {
                ready.push(next);
            }
        }
    }

    fn propagate_dead(state: &PartitionState<Acyclic>, index: u32, _ready: &mut Vec<u32>) {
        let error = KernelError::internal("a dead value came to a graph without control flow");
        state.fail_node(index, &error);
    }

    fn raise(state: &PartitionState<Acyclic>) {
        state.shared.raise();
    }

    fn lower(state: &PartitionState<Acyclic>, ready: Vec<u32>) {
        for node in ready {
            state.shared.raise();
            state.shared.lower(Some(Ready { partition: state.index, node }));
        }
        state.shared.lower(None);
    }

    fn key<'t>(_state: &PartitionState<Acyclic>, transfer: &'t Transfer) -> Cow<'t, Key> {
        Cow::Borrowed(&transfer.key)
    }
}
