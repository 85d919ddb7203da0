//! Nodes whose kernel is chosen by the shapes of their inputs, or leaves the shape check to the
//! host.
//!
//! Ownership: a state keeps the entry that the last call of each such node used. It belongs to the
//! owner of the node, like the node's call frame. It keeps the call's kernel alive until the node's
//! next call in this state, even if its shapes have left the table. If the shapes are those of the
//! last call, nothing else is looked up.

use super::{partition::PartitionState, propagate::Propagate};
use crate::{
    error::StepError,
    plan::{Action, Entry, PerShape},
};
use std::{cell::UnsafeCell, sync::Arc};
use tenon_abi::slot_flags;
use tenon_framework::KernelError;
use tenon_host::instance::KernelInstance;

/// The entries used by the last calls.
pub(super) struct LastUsed(Box<[UnsafeCell<Option<Arc<Entry>>>]>);

impl LastUsed {
    pub fn new(open: u32) -> LastUsed {
        LastUsed((0..open).map(|_| UnsafeCell::default()).collect())
    }
}

impl<P: Propagate> PartitionState<P> {
    /// The current shape of the node's input; `None` for a reference.
    fn input_shape(&self, slot: u32) -> Option<&[i64]> {
        // SAFETY: the node that wrote the input is done, and the dimensions of a set slot are
        // valid.
        unsafe {
            let slot = self.slots.slot(slot);
            (slot.flags & slot_flags::REF == 0).then(|| slot.shape())
        }
    }

    /// The kernel for the current shapes of the node's inputs.
    ///
    /// # Safety
    /// - The calling thread must own the node.
    /// - The predecessors of the node must be done.
    unsafe fn choose(
        &self,
        index: u32,
        table: &PerShape,
        at: u32,
    ) -> Result<&KernelInstance, KernelError> {
        // SAFETY: the caller owns the node, and so the entry of its last call (see the module's
        // docs).
        let used = unsafe { &mut *self.last_used.0[at as usize].get() };
        let shapes = self.node(index).inputs.iter().map(|&slot| self.input_shape(slot));
        let entry = match used.take() {
            Some(entry) if entry.fits(shapes.clone()) => entry,
            _ => table.get(shapes)?,
        };
        Ok(&used.insert(entry).instance)
    }

    /// Checks the shapes of the node's inputs, if its kernel leaves that to the host.
    ///
    /// # Safety
    /// - The calling thread must own the node.
    /// - The predecessors of the node must be done.
    pub(super) unsafe fn check_shapes(&self, index: u32) -> Result<(), KernelError> {
        let Action::PerShape { table, at } = &self.node(index).action else { return Ok(()) };
        // SAFETY: the caller owns the node, and its predecessors are done.
        unsafe { self.choose(index, table, *at) }.map(drop)
    }

    /// The kernel of the node's current call; `None` before the first call, and for nodes without a
    /// choice.
    ///
    /// # Safety
    /// The calling thread must own the node.
    pub(super) unsafe fn chosen(&self, index: u32) -> Option<&KernelInstance> {
        let Action::PerShape { at, .. } = self.node(index).action else { return None };
        // SAFETY: the caller owns the node, and so the entry of its last call (see the module's
        // docs).
        let used = unsafe { &*self.last_used.0[at as usize].get() };
        used.as_ref().map(|entry| &*entry.instance)
    }

    /// Runs a node with the kernel for the shapes of its inputs.
    pub(super) fn run_per_shape(
        &self,
        index: u32,
        table: &PerShape,
        at: u32,
        ready: &mut Vec<u32>,
    ) {
        // SAFETY: the node is ready and this thread runs it, so it owns the node, and the
        // predecessors are done.
        if let Err(error) = unsafe { self.slots.show_references(index, &self.shared.cancellation) }
        {
            return self.fail_node(index, &error);
        }
        // SAFETY: as above.
        let kernel = match unsafe { self.choose(index, table, at) } {
            Ok(kernel) => kernel,
            Err(error) => return self.fail_choice(index, &error),
        };
        if kernel.is_async() {
            self.call_async(index, kernel.compute(), kernel.state(), ready);
        } else if kernel.is_blocking() {
            self.spawn_blocking(index, true);
        } else {
            self.hand_over_beside(index, ready);
            self.call(index, kernel.compute(), kernel.state(), ready);
        }
    }

    /// Runs a blocking kernel that was already chosen, on a thread that may block.
    pub(super) fn run_chosen(&self, index: u32, ready: &mut Vec<u32>) {
        // SAFETY: the node was handed to this thread, which now owns it.
        if let Some(kernel) = unsafe { self.chosen(index) } {
            self.call(index, kernel.compute(), kernel.state(), ready);
        }
    }

    /// Stops the step because no kernel can be chosen; the error names no plugin.
    #[cold]
    fn fail_choice(&self, index: u32, error: &KernelError) {
        let info = &self.node(index).info;
        let device = self.plan.device.name().to_string();
        self.shared.fail(StepError::node(&info.name, &info.op, &device, "", error));
    }
}
