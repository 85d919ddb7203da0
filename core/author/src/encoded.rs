//! Variants as bytes and tensors, for their types.

use crate::kept::Kept;
use std::{marker::PhantomData, slice};
use tenon_abi::{Code, Slot, Str, TensorGive, VariantParts};
use tenon_framework::KernelError;

/// The receiver of the tensors of a value that is encoded.
pub struct TensorSink<'a> {
    parts: *mut VariantParts,
    give: TensorGive,
    lent: PhantomData<&'a VariantParts>,
}

impl<'a> TensorSink<'a> {
    /// Wraps what the host gives.
    ///
    /// # Safety
    /// `give` is null, or may be called with `parts` for `'a`.
    pub(super) unsafe fn new(parts: *mut VariantParts, give: TensorGive) -> TensorSink<'a> {
        TensorSink { parts, give, lent: PhantomData }
    }

    /// Gives a tensor, without a copy.
    ///
    /// # Errors
    /// The error of the host; `INVALID_ARGUMENT` if no receiver takes tensors.
    pub fn give(&mut self, tensor: &Kept) -> Result<(), KernelError> {
        let code = match self.give.run {
            // SAFETY: the host's entry with its own object, during the call that lent both; a slot that is kept.
            Some(run) => unsafe { run(self.parts, tensor.slot()) },
            None => Code::INVALID_ARGUMENT,
        };
        match code {
            Code::OK => Ok(()),
            code => Err(KernelError::new(code, "the tensor of a variant cannot be taken")),
        }
    }
}

/// The encoded form of a value.
pub struct EncodedValue<'a> {
    bytes: &'a [u8],
    tensors: &'a [Slot],
}

impl<'a> EncodedValue<'a> {
    /// Wraps what the host gives.
    ///
    /// # Safety
    /// The bytes and `count` filled slots are readable for `'a`.
    pub(super) unsafe fn new(bytes: Str, tensors: *const Slot, count: usize) -> EncodedValue<'a> {
        // SAFETY: the caller gives bytes and `count` slots that are readable for `'a`.
        unsafe {
            let tensors = if count == 0 { &[] } else { slice::from_raw_parts(tensors, count) };
            EncodedValue { bytes: bytes.bytes(), tensors }
        }
    }

    /// The bytes.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// How many tensors there are.
    pub fn tensor_count(&self) -> usize {
        self.tensors.len()
    }

    /// The tensor at a place, which the value may keep.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if there is no tensor at this place.
    pub fn tensor(&self, at: usize) -> Result<Kept, KernelError> {
        // SAFETY: the host lends filled slots.
        let kept = self.tensors.get(at).and_then(|slot| unsafe { Kept::of(slot) });
        kept.ok_or_else(|| {
            KernelError::invalid_argument(format!(
                "an encoded variant: expected more than {at} tensors, found {}",
                self.tensors.len()
            ))
        })
    }
}
