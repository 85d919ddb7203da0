//! Values that are forwarded: the buffer is shared, never copied.

use tenon_abi::{Slot, slot_flags};
use tenon_framework::{Tensor, tensor::Buffer};
use tenon_host::call::Value;

/// Whether a slot shows a value.
pub(super) fn is_set(slot: &Slot) -> bool {
    slot.flags & slot_flags::REF != 0 || !(slot.data.is_null() || slot.buffer.is_null())
}

/// A value that leads from one iteration to another.
pub(super) struct Crossing<'s> {
    /// A slot that shows it.
    pub slot: &'s Slot,
    /// A reference to its buffer that nothing else needs; without it, a further one is made.
    pub owner: Option<Buffer>,
}

impl Crossing<'_> {
    /// Shows the value in `slot`.
    pub fn show(self, slot: &mut Slot, value: &mut Value) {
        if self.slot.flags & slot_flags::REF != 0 {
            *slot = Slot { alias: slot.alias, ..*self.slot };
        } else if let Some(owner) = self.owner {
            value.adopt(slot, self.slot, owner);
        } else {
            value.share(slot, self.slot);
        }
    }
}

impl<'s> From<&'s Slot> for Crossing<'s> {
    fn from(slot: &'s Slot) -> Crossing<'s> {
        Crossing { slot, owner: None }
    }
}

/// A value that waits for an iteration in which it is shown.
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

    /// A slot that shows the value while this object lives.
    pub fn slot(&self) -> Slot {
        match self {
            Passed::Tensor(tensor) => tensor.slot(),
            Passed::Reference(reference) => *reference,
        }
    }
}

/// Clears a slot.
pub(super) fn clear(slot: &mut Slot) {
    slot.data = std::ptr::null_mut();
    slot.buffer = std::ptr::null_mut();
    slot.flags &= slot_flags::UNUSED;
}
