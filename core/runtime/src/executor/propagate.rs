//! Propagation after a node is done: the only difference between graphs with and without control
//! flow.
//!
//! [`Acyclic`] is the form for partitions without control flow: every node runs once, when its
//! counter of predecessors reaches 0. The form with frames, iterations and dead values is in
//! `frames`. A partition's state is generic over the form, so that the acyclic form has no cost
//! from the other.

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

/// The propagation between a partition's nodes. Every function gets the state that contains the
/// form.
pub(crate) trait Propagate: Sized + 'static {
    /// Resets the counters for another run of the plan.
    fn begin(state: &PartitionState<Self>);

    /// Handles a finished node whose outputs are set: notifies its successors, and releases inputs
    /// that it was the last to read. Nodes that become ready are put on `ready`.
    fn propagate(state: &PartitionState<Self>, index: u32, node: &HotNode, ready: &mut Vec<u32>);

    /// Like [`Propagate::propagate`], for a `_Recv` that received a dead value.
    fn propagate_dead(state: &PartitionState<Self>, index: u32, ready: &mut Vec<u32>);

    /// Counts a node as outstanding before it is handed to another thread.
    fn raise(state: &PartitionState<Self>);

    /// Ends the work counted by [`Propagate::raise`] and passes on the nodes that became ready. The
    /// state may be freed before this returns.
    fn lower(state: &PartitionState<Self>, ready: Vec<u32>);

    /// The key of a transfer.
    fn key<'t>(state: &PartitionState<Self>, transfer: &'t Transfer) -> Cow<'t, Key>;
}

/// A pointer to a state whose step waits for outstanding work: whoever makes one has called
/// [`Propagate::raise`].
pub(super) struct Waiting<P: Propagate>(*const PartitionState<P>);

// SAFETY: the state is `Sync`, and stays alive until the count of outstanding work is lowered.
unsafe impl<P: Propagate> Send for Waiting<P> {}

impl<P: Propagate> Waiting<P> {
    pub fn new(state: &PartitionState<P>) -> Waiting<P> {
        Waiting(state)
    }

    pub fn state(&self) -> &PartitionState<P> {
        // SAFETY: the step waits for this work, so the state is alive until `P::lower`.
        unsafe { &*self.0 }
    }
}

/// Lowers a counter by one and returns its value before; `alone` says that no other thread changes it.
#[inline(always)]
pub(super) fn count_down(count: &AtomicU32, alone: bool) -> u32 {
    if !alone {
        return count.fetch_sub(1, Ordering::AcqRel);
    }
    let old = count.load(Ordering::Relaxed);
    count.store(old.wrapping_sub(1), Ordering::Relaxed);
    old
}

/// The form without control flow.
pub(crate) struct Acyclic {
    /// The number of unfinished predecessors of each node.
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
        let alone = state.is_alone();
        state.slots.release_inputs(node, alone);
        for &successor in node.successors.of(&state.plan.successors) {
            let next = successor.node();
            if successor.is_only() || count_down(&state.form.pending[next as usize], alone) == 1 {
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
