//! Values that are forwarded: the buffer is shared, never copied.

use tenon_abi::{Slot, slot_flags};
use tenon_framework::Tensor;
use tenon_host::call::Value;

/// A value to be forwarded from one slot to another.
pub(super) enum Passed {
    /// An additional reference to a buffer.
    Tensor(Tensor),
    /// A reference to a variable.
    Reference(Slot),
}

impl Passed {
    /// The value of a slot; `None` if the slot is not set.
    pub fn of(slot: &Slot) -> Option<Passed> {
        if slot.flags & slot_flags::REF != 0 {
            return Some(Passed::Reference(*slot));
        }
        Value::tensor(slot).map(Passed::Tensor)
    }

    /// Stores the value in another slot.
    pub fn show(&self, slot: &mut Slot, value: &mut Value) {
        match self {
            Passed::Tensor(tensor) => value.hold(slot, tensor),
            Passed::Reference(reference) => {
                let alias = slot.alias;
                *slot = *reference;
                slot.alias = alias;
            }
        }
    }
}

/// Clears a slot.
pub(super) fn clear(slot: &mut Slot) {
    slot.data = std::ptr::null_mut();
    slot.buffer = std::ptr::null_mut();
    slot.flags &= slot_flags::UNUSED;
}
