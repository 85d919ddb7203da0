//! What is checked after a kernel has run: every output is set, and as shape inference said.

use super::{partition::PartitionState, propagate::Propagate};
use crate::error::StepError;
use tenon_abi::{Code, slot_flags};
use tenon_framework::KernelError;

impl<P: Propagate> PartitionState<P> {
    /// Before a call: outputs that are not planned hold nothing.
    ///
    /// # Safety
    /// This thread owns the node.
    pub(super) unsafe fn clear_outputs(&self, index: u32) {
        let node = self.node(index);
        for at in 0..node.info.outputs.len() as u32 {
            let output = node.first_output + at;
            if !self.plan.outputs[output as usize].planned {
                // SAFETY: the caller owns the node, and the output is one of this node's.
                unsafe {
                    let slot = self.slot_mut(output);
                    slot.data = std::ptr::null_mut();
                    slot.flags &= slot_flags::UNUSED;
                    slot.alias = output + 1;
                }
            }
        }
    }

    /// After a call: every output that somebody reads is set, with the shape that was inferred.
    pub(super) fn check_outputs(&self, index: u32) -> Result<(), KernelError> {
        let node = self.node(index);
        for at in 0..node.info.outputs.len() as u32 {
            let output = node.first_output + at;
            let spec = &self.plan.outputs[output as usize];
            // SAFETY: this thread owns the node.
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
            // SAFETY: a set slot has its dimensions.
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

    /// Stops the step with the error of a node.
    pub(super) fn fail_node(&self, index: u32, error: &KernelError) {
        let node = self.node(index);
        let device = self.plan.device.name().to_string();
        // Whatever fails because the device is lost is the same error.
        let lost = self.plan.device.lost().map(|reason| {
            KernelError::new(Code::UNAVAILABLE, format!("{device} is lost: {reason}"))
        });
        let error = lost.as_ref().unwrap_or(error);
        // SAFETY: whoever fails a node owns it.
        let chosen = unsafe { self.chosen(index) };
        let plugin = chosen.map_or(&*node.plugin, |kernel| &*kernel.def().plugin_name);
        let error = StepError::node(&node.info.name, &node.info.op, &device, plugin, error);
        self.shared.fail(error);
    }
}
