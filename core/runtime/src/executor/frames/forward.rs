//! Nodes that forward a value within an iteration.

use super::{Iteration, iteration::not_set};
use crate::plan::frames::{FrameInput, FrameNode};
use tenon_abi::DType;
use tenon_framework::KernelError;

impl Iteration {
    /// Forwards an input, which the node reads no more after this.
    #[inline(always)]
    pub(super) fn pass(&self, from: FrameInput, to: u32) -> Result<(), KernelError> {
        let FrameInput { output, counted } = from;
        // SAFETY: this thread runs the node, which owns `to` and reads the input; the plan says
        // whether the input is counted.
        let is_set = unsafe { self.slots.pass(output, to, counted) };
        if counted {
            self.slots.release_input(output, self.is_alone());
        }
        if is_set { Ok(()) } else { Err(not_set()) }
    }

    /// Forwards the input of a `Merge`, and its number.
    pub(super) fn merge(
        &self,
        from: FrameInput,
        input: u32,
        node: &FrameNode,
    ) -> Result<(), KernelError> {
        self.pass(from, node.output)?;
        let number = node.output + 1;
        if !self.plan.outputs[number as usize].unused {
            let value = &self.form.plan().numbers[input as usize];
            // SAFETY: this thread runs the node and owns its outputs.
            unsafe { self.slots.value_mut(number).hold(self.slots.slot_mut(number), value) };
        }
        Ok(())
    }

    /// The output that the selector of a `Switch` names: a bool, or the number of an output. A
    /// number that no output has names the last one.
    pub(super) fn selected(&self, at: u32, index: u32) -> Result<u32, KernelError> {
        // SAFETY: the node that wrote the predicate is done, so no thread writes the slot.
        let slot = unsafe { self.slots.slot(at) };
        if slot.data.is_null() || slot.elements != 1 || slot.rank != 0 {
            return Err(KernelError::invalid_argument(format!(
                "expected a predicate of shape [], found {} dimensions with {} elements",
                slot.rank, slot.elements
            )));
        }
        if slot.dtype != DType::INT32 {
            // SAFETY: the slot holds one bool in host memory.
            return Ok(u32::from(unsafe { *slot.data.cast::<u8>() } != 0));
        }
        // SAFETY: the slot holds one int32 in host memory, aligned as tensors are.
        let number = unsafe { *slot.data.cast::<i32>() };
        let last = (self.node(index).info.outputs.len() as u32).saturating_sub(1);
        Ok(u32::try_from(number).map_or(last, |number| number.min(last)))
    }
}
