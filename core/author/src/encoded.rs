//! Variants as bytes and tensors: for their types, and for kernels that store variants of any type.

use crate::{
    compute::ComputeContext,
    kept::Kept,
    links::host_link,
    variant::{Variant, VariantRef},
};
use std::{ffi::c_void, marker::PhantomData, ptr, slice};
use tenon_abi::{
    Code, ExtVariants, Slot, Str, TensorGive, VariantElement, VariantParts, VariantTake, ext_tags,
    layout::EXT_VARIANTS,
};
use tenon_framework::{KernelError, growth, plugin::guard};

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

/// A variant in its encoded form, which is not of this plugin's types only.
#[derive(Debug)]
pub struct EncodedVariant {
    /// Name of the type; empty for an element without a value.
    pub type_name: String,
    /// Bytes in the type's own format.
    pub bytes: Vec<u8>,
    /// Tensors, in host memory; those of variants may be encoded in turn.
    pub tensors: Vec<Kept>,
}

/// The place of an encoded variant that the host gives.
type Taken = Option<Result<EncodedVariant, KernelError>>;

impl ComputeContext<'_> {
    /// Encodes an element of a variant tensor, of whatever plugin's type, to be stored.
    ///
    /// # Errors
    /// What the type says; `UNIMPLEMENTED` for a type that cannot encode, and in a host without the service, as in the
    /// process of an isolated plugin; `RESOURCE_EXHAUSTED` without memory.
    pub fn encode_variant(&self, variant: &VariantRef<'_>) -> Result<EncodedVariant, KernelError> {
        let entry = variants_link()?.encode.expect("the host fills every entry");
        let (element, mut taken) = (variant.element(), Taken::None);
        let take = VariantTake { run: Some(take) };
        // SAFETY: the record of this call, an element whose value lives, and a function that stores into `taken`.
        let code =
            unsafe { entry(self.raw().record, &raw const element, take, (&raw mut taken).cast()) };
        self.check(code, "cannot encode a variant")?;
        taken.unwrap_or_else(|| Err(KernelError::internal("the host encoded no variant")))
    }

    /// Makes a variant of its encoded form, by the plugin that registered its type; `None` for an element without a
    /// value.
    ///
    /// # Errors
    /// `NOT_FOUND` if no plugin has registered the type; what the type says; `UNIMPLEMENTED` as for
    /// [`ComputeContext::encode_variant`].
    pub fn decode_variant(&self, encoded: &EncodedVariant) -> Result<Option<Variant>, KernelError> {
        let entry = variants_link()?.decode.expect("the host fills every entry");
        let slots: Vec<Slot> = growth::collected(encoded.tensors.iter().map(|one| *one.slot()))?;
        let mut made = VariantElement { value: ptr::null_mut(), table: ptr::null() };
        // SAFETY: the record of this call, readable texts, as many slots of kept tensors, and a place for an element.
        let code = unsafe {
            entry(
                self.raw().record,
                Str::new(&encoded.type_name),
                Str::from_bytes(&encoded.bytes),
                slots.as_ptr(),
                slots.len(),
                &raw mut made,
            )
        };
        self.check(code, "cannot decode a variant")?;
        // SAFETY: the host gave the element to this call.
        Ok((!made.value.is_null()).then(|| unsafe { Variant::from_element(made) }))
    }
}

fn variants_link() -> Result<&'static ExtVariants, KernelError> {
    host_link(ext_tags::VARIANTS, &EXT_VARIANTS, "encoding of variants")
}

/// Copies an encoded variant to its place, a [`Taken`].
///
/// # Safety
/// `data` is the place that [`ComputeContext::encode_variant`] passed; texts and slots are readable.
unsafe extern "C" fn take(
    data: *mut c_void,
    type_name: Str,
    bytes: Str,
    tensors: *const Slot,
    tensor_count: usize,
) {
    // SAFETY: the host passes the data that it was given, and texts and slots that live until this returns.
    let (taken, name, encoded) = unsafe {
        let taken = &mut *data.cast::<Taken>();
        (taken, type_name.text(), EncodedValue::new(bytes, tensors, tensor_count))
    };
    let copied = guard(|| {
        let bytes = growth::copied(encoded.bytes())?;
        let tensors = (0..encoded.tensor_count()).map(|at| encoded.tensor(at));
        let type_name = name.unwrap_or_default().to_owned();
        Ok(EncodedVariant { type_name, bytes, tensors: growth::try_collected(tensors)? })
    });
    *taken = Some(copied.unwrap_or_else(|panic| Err(KernelError::internal(panic))));
}
