//! Tensors that a plugin keeps beyond a call, without a copy.

use crate::{
    compute::ComputeContext,
    misuse::mismatch,
    slots::{strings, view},
};
use std::{ffi::c_void, ptr::NonNull, slice};
use tenon_abi::{Code, DType, KeptTensor, Slot, slot_flags};
use tenon_framework::{
    KernelError, View,
    element::{Element, invalid_bool},
    growth,
    plugin::host,
};

/// A tensor that this plugin keeps: an element of its queue, a value that it remembers. It is read for as
/// long as it is kept, and returned as an output without a copy; it is never written.
///
/// ```
/// use std::sync::Mutex;
/// use tenon_author::{ComputeContext, CreateContext, Kept, Kernel};
/// use tenon_framework::KernelError;
///
/// /// Returns the input of the call before; of the first call, its own.
/// struct Delay {
///     before: Mutex<Option<Kept>>,
/// }
///
/// impl Kernel for Delay {
///     fn new(_: &CreateContext<'_>) -> Result<Self, KernelError> {
///         Ok(Delay { before: Mutex::new(None) })
///     }
///
///     fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
///         let now = c.keep(0)?;
///         let mut before = self.before.lock().unwrap_or_else(|poison| poison.into_inner());
///         c.output_kept(0, before.as_ref().unwrap_or(&now))?;
///         *before = Some(now);
///         Ok(())
///     }
/// }
/// ```
pub struct Kept {
    raw: NonNull<KeptTensor>,
    /// The slot that the host shows, for as long as the tensor is kept.
    slot: Slot,
}

// SAFETY: the host's services for kept tensors take any thread, and a kept tensor is not changed.
unsafe impl Send for Kept {}
// SAFETY: as above.
unsafe impl Sync for Kept {}

impl Kept {
    /// A tensor with a copy of elements of the plugin's own.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when their number is not that of the dimensions; `RESOURCE_EXHAUSTED` without memory.
    pub fn new<T: Element>(dims: &[i64], elements: &[T]) -> Result<Kept, KernelError> {
        // SAFETY: as many elements of this type.
        unsafe { Kept::copy(T::DTYPE, dims, elements.as_ptr().cast(), elements.len() as u64) }
    }

    /// A tensor whose elements are all zero, empty strings, or handles of nothing.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a type without elements of whole bytes; `RESOURCE_EXHAUSTED` without memory.
    pub fn zeros(dtype: DType, dims: &[i64]) -> Result<Kept, KernelError> {
        let bytes = dtype.size().and_then(|size| count(dims)?.checked_mul(size as u64));
        let bytes = bytes.ok_or_else(|| {
            KernelError::invalid_argument(format!("{dtype} {dims:?} is not a tensor with elements"))
        })?;
        let zeros = growth::filled(bytes.div_ceil(8) as usize, 0u64)?;
        let elements = count(dims).unwrap_or(0);
        // SAFETY: all zero is a value of every element type, and there are as many bytes as the elements have.
        unsafe { Kept::copy(dtype, dims, zeros.as_ptr().cast(), elements) }
    }

    /// A tensor with a copy of elements of fixed size that are given as bytes, in this machine's order.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a type without elements of whole bytes, another number of bytes, and bools other than 0 and 1;
    /// `RESOURCE_EXHAUSTED` without memory.
    pub fn from_bytes(dtype: DType, dims: &[i64], bytes: &[u8]) -> Result<Kept, KernelError> {
        let size = dtype.size().filter(|_| !dtype.needs_drop() && !dtype.is_ref());
        let elements = count(dims);
        let expected =
            size.zip(elements).and_then(|(size, elements)| elements.checked_mul(size as u64));
        if expected != Some(bytes.len() as u64) {
            return Err(KernelError::invalid_argument(format!(
                "a tensor of {dtype} {dims:?}: expected its elements as bytes, found {} bytes",
                bytes.len()
            )));
        }
        if dtype == DType::BOOL && invalid_bool(bytes).is_some() {
            return Err(KernelError::invalid_argument(
                "a tensor of bool: expected bytes of 0 and 1, found others",
            ));
        }
        // The host is shown elements, which begin at multiples of their size.
        let mut aligned = growth::filled(bytes.len().div_ceil(16), [0u64; 2])?;
        let flat = aligned.as_flattened_mut().iter_mut();
        for (word, bytes) in flat.zip(bytes.chunks(8)) {
            let mut whole = [0; 8];
            whole[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_ne_bytes(whole);
        }
        // SAFETY: as many elements of this type, whose bytes are all values of it: bools were checked.
        unsafe { Kept::copy(dtype, dims, aligned.as_ptr().cast(), elements.unwrap_or(0)) }
    }

    /// A copy of consecutive elements from number `first` on, under a shape of their own.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when there are fewer; `INTERNAL` in memory of a device; `RESOURCE_EXHAUSTED` without memory.
    pub fn part(&self, first: u64, dims: &[i64]) -> Result<Kept, KernelError> {
        // SAFETY: the slot shows a tensor that is kept.
        unsafe { Kept::part_of(&self.slot, first, dims) }
    }

    /// # Safety
    /// The slot is filled, of a running call or a kept tensor.
    unsafe fn part_of(slot: &Slot, first: u64, dims: &[i64]) -> Result<Kept, KernelError> {
        if !slot.memory.is_host_address() {
            return Err(mismatch("a part of tensor", 0, slot.dtype, slot));
        }
        let elements = count(dims);
        let end = elements.and_then(|elements| first.checked_add(elements));
        let (Some(elements), Some(size), true) =
            (elements, slot.dtype.size(), end.is_some_and(|end| end <= slot.elements))
        else {
            return Err(KernelError::invalid_argument(format!(
                "a part {dims:?} from element {first} on: expected at most {} elements",
                slot.elements
            )));
        };
        // SAFETY: the slot has `elements` elements from `first` on, each of `size` bytes.
        unsafe {
            let from = slot.data.cast_const().cast::<u8>().add(first as usize * size);
            Kept::copy(slot.dtype, dims, from.cast(), elements)
        }
    }

    /// Has the host copy elements.
    ///
    /// # Safety
    /// `from` shows `elements` elements of this type, unless their number is not that of the dimensions.
    pub(super) unsafe fn copy(
        dtype: DType,
        dims: &[i64],
        from: *const c_void,
        elements: u64,
    ) -> Result<Kept, KernelError> {
        if count(dims) != Some(elements) {
            return Err(KernelError::invalid_argument(format!(
                "a tensor {dims:?}: expected as many elements, found {elements}"
            )));
        }
        let bytes = elements * dtype.size().unwrap_or(0) as u64;
        let slot = Slot {
            data: from.cast_mut(),
            dims: dims.as_ptr(),
            elements,
            bytes,
            dtype,
            rank: dims.len() as u32,
            ..Slot::EMPTY
        };
        // SAFETY: a slot without a buffer that shows as many elements as the caller gives.
        unsafe { Kept::of(&slot) }.ok_or_else(|| {
            let message = format!("no memory for a tensor of {dtype} {dims:?}, {bytes} bytes");
            KernelError::new(Code::RESOURCE_EXHAUSTED, message)
        })
    }

    /// Keeps the tensor of a slot; `None` when the slot shows no tensor that can be kept.
    ///
    /// # Safety
    /// The slot is filled, of a running call, a kept tensor, a locked variable, or without a buffer.
    pub(super) unsafe fn of(slot: &Slot) -> Option<Kept> {
        let (mut shown, host) = (Slot::EMPTY, host());
        // SAFETY: the caller gives a filled slot, and the host's table has both entries; `shown` is a place for a slot.
        unsafe {
            let kept = host.keep.expect("the host fills every entry")(slot);
            let raw = NonNull::new(kept)?;
            host.view.expect("the host fills every entry")(kept, &mut shown);
            Some(Kept { raw, slot: shown })
        }
    }

    /// Takes a reference over that the host gave away; `None` for null.
    ///
    /// # Safety
    /// `raw` is null, or a kept tensor that belongs to this plugin.
    pub(super) unsafe fn from_raw(raw: *mut KeptTensor) -> Option<Kept> {
        let raw = NonNull::new(raw)?;
        let mut slot = Slot::EMPTY;
        // SAFETY: a tensor that is kept, and a place for a slot; the host's table has the entry.
        unsafe { host().view.expect("the host fills every entry")(raw.as_ptr(), &mut slot) };
        Some(Kept { raw, slot })
    }

    /// The host's pointer.
    pub(super) fn raw(&self) -> *const KeptTensor {
        self.raw.as_ptr()
    }

    /// Its slot, for tensors in memory of a device.
    pub fn slot(&self) -> &Slot {
        &self.slot
    }

    /// Its element type.
    pub fn dtype(&self) -> DType {
        self.slot.dtype
    }

    /// Its dimensions.
    pub fn dims(&self) -> &[i64] {
        // SAFETY: the host shows the dimensions for as long as the tensor is kept.
        unsafe { self.slot.shape() }
    }

    /// Its elements.
    ///
    /// # Errors
    /// `INTERNAL` when it is of another type, or in memory of a device.
    pub fn view<T: Element>(&self) -> Result<View<'_, T>, KernelError> {
        if self.slot.dtype != T::DTYPE || !self.slot.memory.is_host_address() {
            return Err(mismatch("kept tensor", 0, T::DTYPE, &self.slot));
        }
        // SAFETY: host memory with elements of this type, not written while the tensor is kept.
        Ok(unsafe { view(&self.slot) })
    }

    /// The bytes of its elements, which are of fixed size.
    ///
    /// # Errors
    /// `INTERNAL` for elements that own memory, or in memory of a device.
    pub fn bytes(&self) -> Result<&[u8], KernelError> {
        if self.slot.dtype.needs_drop() || !self.slot.memory.is_host_address() {
            return Err(mismatch("kept tensor", 0, DType::UINT8, &self.slot));
        }
        // SAFETY: host memory of `bytes` bytes, not written while the tensor is kept.
        Ok(unsafe { slice::from_raw_parts(self.slot.data.cast(), self.slot.bytes as usize) })
    }

    /// Its strings.
    ///
    /// # Errors
    /// As [`Kept::view`].
    pub fn strings(&self) -> Result<Vec<&[u8]>, KernelError> {
        if self.slot.dtype != DType::STRING || !self.slot.memory.is_host_address() {
            return Err(mismatch("kept tensor", 0, DType::STRING, &self.slot));
        }
        // SAFETY: as in `view`.
        unsafe { strings(&self.slot) }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let entry = host().release.expect("the host fills every entry");
        // SAFETY: `keep` gave it, and it is given back once.
        unsafe { entry(self.raw.as_ptr()) };
    }
}

impl std::fmt::Debug for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Kept({} {:?})", self.dtype(), self.dims())
    }
}

/// Number of elements; `None` for dimensions of no tensor.
fn count(dims: &[i64]) -> Option<u64> {
    dims.iter().try_fold(1u64, |all, &dim| all.checked_mul(u64::try_from(dim).ok()?))
}

impl ComputeContext<'_> {
    /// Keeps a copy of consecutive elements of an input, from number `first` on, under a shape of their own.
    ///
    /// # Errors
    /// As [`Kept::part`].
    pub fn keep_part(&self, input: usize, first: u64, dims: &[i64]) -> Result<Kept, KernelError> {
        self.mark_read(input)?;
        // SAFETY: a filled slot of the running call.
        unsafe { Kept::part_of(self.slot(input)?, first, dims) }
    }

    /// Keeps an input beyond this call, without a copy. While it is kept, no kernel writes it: an output that would
    /// take over its buffer gets another one. Call this before an output shares the buffer.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when the input has no tensor; `INTERNAL` when an output has its buffer already, as
    /// that of an in-place pair may.
    pub fn keep(&self, input: usize) -> Result<Kept, KernelError> {
        let slot = self.slot(input)?;
        // The slot of an output that is not planned may still show what an earlier call returned.
        let is_planned = |slot: &&Slot| slot.flags & slot_flags::PLANNED != 0;
        let outputs = (0..self.output_count()).filter_map(|at| self.output_slot(at).ok());
        let mut planned = outputs.filter(is_planned);
        let has_an_output = planned.any(|output| output.buffer == slot.buffer);
        if self.is_lost(input) || !slot.buffer.is_null() && has_an_output {
            return Err(KernelError::internal(format!(
                "input {input} cannot be kept: an output has its buffer"
            )));
        }
        // SAFETY: a filled slot of the running call.
        unsafe { Kept::of(slot) }.ok_or_else(|| {
            KernelError::invalid_argument(format!("input {input}: there is no tensor to keep"))
        })
    }

    /// Returns a kept tensor as an output, without a copy.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when the output is of another type; `INTERNAL` when it was handed out already.
    pub fn output_kept(&self, output: usize, kept: &Kept) -> Result<(), KernelError> {
        self.output_slot(output)?;
        self.take(output)?;
        let entry = self.services().output_kept.expect("the host fills every entry");
        // SAFETY: an entry of the host's table with the record of this call; the tensor is kept.
        let code = unsafe { entry(self.raw().record, output as u32, kept.raw.as_ptr()) };
        self.check(code, "cannot return a kept tensor")
    }
}
