//! Values: the contents of an output slot, and their owner.

use std::sync::atomic::AtomicU32;
use tenon_abi::{DType, MAX_RANK, MemoryKind, Slot, slot_flags};
use tenon_framework::{Shape, Tensor, tensor::Buffer};

/// Outputs up to this many bytes keep their buffer in the step state between steps; buffers of
/// larger ones are freed when their last reader is done.
pub const KEEP_BYTES: usize = 16 * 1024;

/// Whether elements of this type lead to values of their own, which live as long as the elements do.
pub fn is_handle(dtype: DType) -> bool {
    matches!(dtype.base(), DType::RESOURCE | DType::VARIANT)
}

/// The host's side of one slot.
///
/// `Slot::data` of a set slot has exactly one owner: `owner` (a reference of this value), or `kept`
/// (the buffer that stays here between steps); an unset slot has none. Fields change only through
/// the call that writes the output, and after its last reader.
pub struct Value {
    /// A reference that is released with the last reader.
    pub owner: Option<Buffer>,
    /// The buffer that is reused from step to step unless something else holds it.
    pub kept: Option<Buffer>,
    /// Readers left in this step; counted only where `owner` may be set.
    pub readers: AtomicU32,
    /// Dimensions, where they differ from the plan's.
    pub dims: [i64; MAX_RANK],
}

impl Default for Value {
    fn default() -> Value {
        Value { owner: None, kept: None, readers: AtomicU32::new(0), dims: [0; MAX_RANK] }
    }
}

/// Fills a slot that shows `buffer` under `dims`, which must live as long as the slot shows it.
pub fn fill_slot(slot: &mut Slot, buffer: &Buffer, dtype: DType, dims: &[i64], flags: u32) {
    let elements = dims.iter().product::<i64>() as u64;
    slot.data = buffer.data();
    slot.dims = dims.as_ptr();
    slot.buffer = buffer.as_raw();
    slot.elements = elements;
    slot.bytes = elements * u64::from(dtype.bits() / 8);
    slot.dtype = dtype.base();
    slot.rank = dims.len() as u32;
    slot.memory = buffer.kind();
    slot.flags = flags;
}

impl Value {
    /// Shows `tensor` in `slot` and holds a reference to it.
    pub fn hold(&mut self, slot: &mut Slot, tensor: &Tensor) {
        let dims = tensor.shape().dims();
        self.dims[..dims.len()].copy_from_slice(dims);
        fill_slot(slot, tensor.buffer(), tensor.dtype(), &self.dims[..dims.len()], slot_flags::SET);
        self.owner = Some(tensor.buffer().clone());
    }

    /// Shows a `tensor` that the host addresses as one in host memory, even if a device pinned the
    /// memory, and holds a reference to it: for kernels that require host memory.
    pub fn hold_on_host(&mut self, slot: &mut Slot, tensor: &Tensor) {
        debug_assert!(tensor.is_on_host(), "memory that the host does not address");
        self.hold(slot, tensor);
        slot.memory = MemoryKind::HOST;
    }

    /// Shows in `slot` the tensor that `from` shows, and holds a further reference to its buffer.
    /// Returns false if `from` shows none.
    #[inline]
    pub fn share(&mut self, slot: &mut Slot, from: &Slot) -> bool {
        if from.data.is_null() || from.flags & slot_flags::REF != 0 {
            return false;
        }
        // SAFETY: a set slot of the host shows a live buffer.
        let buffer = unsafe { Buffer::clone_raw(from.buffer) };
        let Some(buffer) = buffer else { return false };
        self.adopt(slot, from, buffer);
        true
    }

    /// Shows in `slot` the tensor that `from` shows, whose buffer is `buffer`, and holds that reference.
    #[inline]
    pub fn adopt(&mut self, slot: &mut Slot, from: &Slot, buffer: Buffer) {
        debug_assert!(buffer.as_raw() == from.buffer, "another buffer than the one that is shown");
        // SAFETY: a set slot of the host shows dimensions that live with its buffer.
        let dims = unsafe { from.shape() };
        self.dims[..dims.len()].copy_from_slice(dims);
        *slot = Slot {
            dims: self.dims.as_ptr(),
            memory: buffer.kind(),
            alias: slot.alias,
            flags: slot_flags::SET,
            ..*from
        };
        self.owner = Some(buffer);
    }

    /// Shows in `slot` what `from` shows, which is set, without a reference to the buffer: it must stay as long as the slot
    /// shows it.
    #[inline]
    pub fn lend(&mut self, slot: &mut Slot, from: &Slot) {
        self.owner = None;
        *slot = Slot { alias: slot.alias, flags: slot_flags::SET, ..*from };
    }

    /// The tensor that a set slot shows, as a further reference to its buffer.
    #[inline]
    pub fn tensor(slot: &Slot) -> Option<Tensor> {
        if slot.data.is_null() || slot.buffer.is_null() || slot.flags & slot_flags::REF != 0 {
            return None;
        }
        // SAFETY: a set slot of the host shows a live buffer whose elements the kernel has written,
        // and dimensions that live with it.
        unsafe {
            let buffer = Buffer::clone_raw(slot.buffer)?;
            Tensor::from_parts(buffer, slot.dtype, Shape::new(slot.shape()).ok()?).ok()
        }
    }

    /// Whether an input's buffer may become an output's: nothing else holds or will read it.
    pub fn is_last_holder(&self) -> bool {
        self.readers.load(std::sync::atomic::Ordering::Acquire) == 1
            && self.owner.as_ref().is_some_and(Buffer::is_unique)
    }

    /// Ends the step for this value.
    #[inline]
    pub fn release(&mut self) {
        self.owner = None;
    }
}
