//! Nodes whose kernel is chosen by the shapes of their inputs, or leaves the check of these shapes to the host.
//!
//! Who owns what: a state keeps the entry that the last call of each such node used, and it belongs to the node's
//! owner, as the node's call frame does. A call's kernel lives by it until the node's next call in this state, also
//! where its shapes have left the table meanwhile. Where the shapes are those of the last call, nothing else is
//! looked at.

use super::{partition::PartitionState, propagate::Propagate};
use crate::{
    error::StepError,
    plan::{Action, Entry, PerShape},
};
use std::{cell::UnsafeCell, sync::Arc};
use tenon_abi::slot_flags;
use tenon_framework::KernelError;
use tenon_host::instance::KernelInstance;

/// What the last calls used.
pub(super) struct LastUsed(Box<[UnsafeCell<Option<Arc<Entry>>>]>);

impl LastUsed {
    pub fn new(open: u32) -> LastUsed {
        LastUsed((0..open).map(|_| UnsafeCell::default()).collect())
    }
}

impl<P: Propagate> PartitionState<P> {
    /// The shape that the node's input has now; `None` for a reference.
    fn input_shape(&self, slot: u32) -> Option<&[i64]> {
        // SAFETY: the node that wrote the input is done, and a set slot has its dimensions.
        unsafe {
            let slot = self.slot_mut(slot);
            (slot.flags & slot_flags::REF == 0).then(|| slot.shape())
        }
    }

    /// The kernel for the node's inputs as they are.
    ///
    /// # Safety
    /// This thread owns the node, whose predecessors are done.
    unsafe fn choose(
        &self,
        index: u32,
        table: &PerShape,
        at: u32,
    ) -> Result<&KernelInstance, KernelError> {
        // SAFETY: the caller owns the node, and so the entry that its last call used (see the module's docs).
        let used = unsafe { &mut *self.last_used.0[at as usize].get() };
        let shapes = self.node(index).inputs.iter().map(|&slot| self.input_shape(slot));
        let entry = match used.take() {
            Some(entry) if entry.fits(shapes.clone()) => entry,
            _ => table.get(shapes)?,
        };
        Ok(&used.insert(entry).instance)
    }

    /// Checks the shapes of the node's inputs, where its kernel leaves that to the host.
    ///
    /// # Safety
    /// This thread owns the node, whose predecessors are done.
    pub(super) unsafe fn check_shapes(&self, index: u32) -> Result<(), KernelError> {
        let Action::PerShape { table, at } = &self.node(index).action else { return Ok(()) };
        // SAFETY: this thread owns the node, and what comes before it is done, as the caller guarantees.
        unsafe { self.choose(index, table, *at) }.map(drop)
    }

    /// The kernel that the node's call runs on; `None` before the first call, and for every other node.
    ///
    /// # Safety
    /// This thread owns the node.
    pub(super) unsafe fn chosen(&self, index: u32) -> Option<&KernelInstance> {
        let Action::PerShape { at, .. } = self.node(index).action else { return None };
        // SAFETY: the caller owns the node, and so the entry that its last call used (see the module's docs).
        let used = unsafe { &*self.last_used.0[at as usize].get() };
        used.as_ref().map(|entry| &*entry.instance)
    }

    /// Runs a node by the kernel that takes its inputs' shapes.
    pub(super) fn run_per_shape(
        &self,
        index: u32,
        table: &PerShape,
        at: u32,
        ready: &mut Vec<u32>,
    ) {
        // SAFETY: this thread owns the node, whose predecessors are done.
        if let Err(error) = unsafe { self.show_references(index) } {
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

    /// Runs a blocking kernel that was chosen before, on a thread that may block.
    pub(super) fn run_chosen(&self, index: u32, ready: &mut Vec<u32>) {
        // SAFETY: the node was handed to this thread.
        if let Some(kernel) = unsafe { self.chosen(index) } {
            self.call(index, kernel.compute(), kernel.state(), ready);
        }
    }

    /// Stops the step since no kernel can be chosen: the error is no kernel's.
    #[cold]
    fn fail_choice(&self, index: u32, error: &KernelError) {
        let info = &self.node(index).info;
        let device = self.plan.device.name().to_string();
        self.shared.fail(StepError::node(&info.name, &info.op, &device, "", error));
    }
}
