//! Creates the call frame of a node, with the places of its inputs and outputs.

use crate::plan::PlanNode;
use std::cell::UnsafeCell;
use tenon_abi::Slot;
use tenon_host::call::{CallFrame, StepEnv, Value};

/// Creates a frame over the slots and values of a partition's state. They must not move while the
/// frame is in use.
pub(super) fn call_frame(
    node: &PlanNode,
    env: *const StepEnv,
    slots: &[UnsafeCell<Slot>],
    values: &[UnsafeCell<Value>],
) -> CallFrame {
    let inputs = node.inputs.iter().map(|&at| slots[at as usize].get().cast_const()).collect();
    let held = node.inputs.iter().map(|&at| values[at as usize].get()).collect();
    let first = node.first_output as usize;
    let (slot, value) = if node.info.outputs.is_empty() {
        (std::ptr::null_mut(), std::ptr::null_mut())
    } else {
        (slots[first].get(), values[first].get())
    };
    // SAFETY: the state that owns the frame also owns slots, values and node, and the environment
    // outlives it. The outputs of a node are consecutive, and `UnsafeCell<T>` has the layout of
    // `T`.
    unsafe { CallFrame::new(&node.info, env, inputs, held, slot, value) }
}
