//! The checks after a kernel call: every output is set and has the inferred shape.

use super::{partition::PartitionState, propagate::Propagate};
use crate::error::StepError;
use tenon_abi::{Code, slot_flags};
use tenon_framework::KernelError;

impl<P: Propagate> PartitionState<P> {
    /// Clears the unplanned outputs before a call.
    ///
    /// # Safety
    /// The calling thread must own the node with this index.
    pub(super) unsafe fn clear_outputs(&self, index: u32) {
        let node = self.node(index);
        for at in 0..node.info.outputs.len() as u32 {
            let output = node.first_output + at;
            if !self.plan.outputs[output as usize].planned {
                // SAFETY: the caller owns the node, and the output is one of its outputs.
                unsafe {
                    let slot = self.slot_mut(output);
                    slot.data = std::ptr::null_mut();
                    // A kernel compares it with the buffers of its inputs.
                    slot.buffer = std::ptr::null_mut();
                    slot.flags &= slot_flags::UNUSED;
                    slot.alias = output + 1;
                }
            }
        }
    }

    /// Checks after a call that every output with readers is set and has the inferred shape.
    pub(super) fn check_outputs(&self, index: u32) -> Result<(), KernelError> {
        let node = self.node(index);
        for at in 0..node.info.outputs.len() as u32 {
            let output = node.first_output + at;
            let spec = &self.plan.outputs[output as usize];
            // SAFETY: this thread has just run the node and owns it until its successors are
            // notified.
            let slot = unsafe { self.slot_mut(output) };
            if slot.flags & slot_flags::REF != 0 {
                continue;
            }
            if slot.data.is_null() {
                if spec.unused {
                    continue;
                }
                return Err(KernelError::internal(format!(
                    "the kernel returned success and left output {at} unset"
                )));
            }
            // SAFETY: the slot is set, so its dimensions are valid.
            let shape = unsafe { slot.shape() };
            if !spec.shape.accepts(shape) {
                return Err(KernelError::internal(format!(
                    "output {at} has shape {shape:?}, the shape function said {}: one of the two is wrong",
                    spec.shape
                )));
            }
        }
        Ok(())
    }

    /// Stops the step with an error of a node.
    pub(super) fn fail_node(&self, index: u32, error: &KernelError) {
        let node = self.node(index);
        let device = self.plan.device.name().to_string();
        // If the device is lost, every failure has the same error.
        let lost = self.plan.device.lost().map(|reason| {
            KernelError::new(Code::UNAVAILABLE, format!("{device} is lost: {reason}"))
        });
        let error = lost.as_ref().unwrap_or(error);
        // SAFETY: a node fails on the thread that runs or completes it, which owns it.
        let chosen = unsafe { self.chosen(index) };
        let plugin = chosen.map_or(&*node.plugin, |kernel| &*kernel.def().plugin_name);
        let error = StepError::node(&node.info.name, &node.info.op, &device, plugin, error);
        self.shared.fail(error);
    }
}
