//! The error of a node, which ends the step.

use super::{partition::PartitionState, propagate::Propagate};
use crate::error::StepError;
use tenon_abi::Code;
use tenon_framework::KernelError;

impl<P: Propagate> PartitionState<P> {
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
