//! Tensors that a plugin keeps beyond a call, without a copy.

use crate::{
    compute::ComputeContext,
    misuse::mismatch,
    slots::{strings, view},
};
use std::ptr::NonNull;
use tenon_abi::{DType, KeptTensor, Slot};
use tenon_framework::{KernelError, View, element::Element, plugin::host};

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
    /// What the host shows of it, for as long as it is kept.
    slot: Slot,
}

// SAFETY: the host's services for kept tensors take any thread, and a kept tensor is not changed.
unsafe impl Send for Kept {}
// SAFETY: as above.
unsafe impl Sync for Kept {}

impl Kept {
    /// Keeps the tensor of a slot; `None` when it shows none that can be kept.
    ///
    /// # Safety
    /// The slot is filled, of a running call, a kept tensor or a locked variable.
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

impl ComputeContext<'_> {
    /// Keeps an input beyond this call, without a copy. Nobody writes it meanwhile: what would be computed
    /// in its buffer gets another one. Ask before an output shares the buffer.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when the input has no tensor; `INTERNAL` when an output has its buffer already, as
    /// that of an in-place pair may.
    pub fn keep(&self, input: usize) -> Result<Kept, KernelError> {
        let slot = self.slot(input)?;
        let mut outputs = (0..self.output_count()).filter_map(|at| self.output_slot(at).ok());
        if !slot.buffer.is_null() && outputs.any(|output| output.buffer == slot.buffer) {
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
