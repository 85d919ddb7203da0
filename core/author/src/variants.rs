//! Variant inputs and outputs of a call, variants in kept tensors, and variants of any type in encoded form.

use crate::{
    compute::ComputeContext,
    encoded::EncodedValue,
    kept::Kept,
    links::host_link,
    misuse::mismatch,
    variant::{Variant, VariantRef, VariantValue, destroy_element},
};
use std::{ffi::c_void, ptr};
use tenon_abi::{
    DType, ExtVariants, Slot, Str, VariantElement, VariantTake, ext_tags, layout::EXT_VARIANTS,
};
use tenon_framework::{KernelError, growth, plugin::guard};

impl<'a> ComputeContext<'a> {
    /// The elements of a variant input, of whatever types.
    ///
    /// # Errors
    /// As [`ComputeContext::input`].
    pub fn variants(&self, input: usize) -> Result<Vec<VariantRef<'a>>, KernelError> {
        let slot = self.slot(input)?;
        if slot.dtype != DType::VARIANT || !slot.memory.is_host_address() {
            return Err(mismatch("input", input, DType::VARIANT, slot));
        }
        self.mark_read(input)?;
        // SAFETY: a slot of variants, whose values live during the call.
        Ok(unsafe { VariantRef::all(slot) })
    }

    /// The value of the first element of a variant input.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when there is no value, or a value of another type; as [`ComputeContext::variants`].
    pub fn variant<T: VariantValue>(&self, input: usize) -> Result<&'a T, KernelError> {
        let first = self.variants(input)?.first().copied();
        first.and_then(|first| first.get()).ok_or_else(|| {
            let found = match first {
                None => "an empty tensor".to_owned(),
                Some(first) => format!("{first:?}"),
            };
            KernelError::invalid_argument(format!(
                "input {input}: expected a variant of type {} that this plugin made, found {found}",
                T::NAME
            ))
        })
    }

    /// Writes a variant output; `values` holds as many as the shape has elements.
    ///
    /// # Errors
    /// As [`ComputeContext::prepare`]; `INTERNAL` when the numbers differ.
    pub fn set_variants(
        &self,
        output: usize,
        dims: &[i64],
        values: impl ExactSizeIterator<Item = Variant>,
    ) -> Result<(), KernelError> {
        let slot = *self.prepare(output, dims)?;
        let fits = slot.dtype == DType::VARIANT && values.len() as u64 == slot.elements;
        if !fits || !slot.memory.is_host_address() {
            return Err(mismatch("output", output, DType::VARIANT, &slot));
        }
        self.take(output)?;
        let first = slot.data.cast::<VariantElement>();
        for (at, value) in values.enumerate().take(slot.elements as usize) {
            // SAFETY: element `at` of the output, which owns its value; the one before goes.
            unsafe { destroy_element(first.add(at).replace(value.into_element())) };
        }
        Ok(())
    }

    /// Writes a variant output: `make` gives the value of each element, or none.
    ///
    /// # Errors
    /// An error of `make`; as [`ComputeContext::prepare`].
    pub fn make_variants(
        &self,
        output: usize,
        dims: &[i64],
        mut make: impl FnMut(usize) -> Result<Option<Variant>, KernelError>,
    ) -> Result<(), KernelError> {
        let slot = *self.prepare(output, dims)?;
        if slot.dtype != DType::VARIANT || !slot.memory.is_host_address() {
            return Err(mismatch("output", output, DType::VARIANT, &slot));
        }
        self.take(output)?;
        let first = slot.data.cast::<VariantElement>();
        let none = VariantElement { value: ptr::null_mut(), table: ptr::null() };
        for at in 0..slot.elements as usize {
            let element = make(at)?.map_or(none, Variant::into_element);
            // SAFETY: element `at` of the output, which owns its value; the one before goes.
            unsafe { destroy_element(first.add(at).replace(element)) };
        }
        Ok(())
    }

    /// Changes the values of a variant input and returns them as an output: in place if nothing else holds the
    /// tensor, else clones. `change` is given the position of each. The input must not be read again in the call.
    ///
    /// ```
    /// use tenon_author::{ComputeContext, VariantValue};
    /// use tenon_framework::KernelError;
    ///
    /// #[derive(Clone)]
    /// struct Names(Vec<String>);
    ///
    /// impl VariantValue for Names {
    ///     const NAME: &'static str = "example.Names";
    /// }
    ///
    /// fn add(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    ///     c.change_variants(0, 0, |at, names: &mut Names| {
    ///         names.0.push(format!("name {at}"));
    ///         Ok(())
    ///     })
    /// }
    /// ```
    ///
    /// # Errors
    /// An error of `change`, after which the output is not to be used: a kernel returns it; `INVALID_ARGUMENT` unless
    /// each element has a value of this type; as [`ComputeContext::prepare`].
    pub fn change_variants<T: VariantValue>(
        &self,
        input: usize,
        output: usize,
        mut change: impl FnMut(usize, &mut T) -> Result<(), KernelError>,
    ) -> Result<(), KernelError> {
        // Other holders of the values may still read them.
        let unread = input < 64 && self.read.get() & (1 << input) == 0;
        let values = self.values::<T>(input)?;
        let dims = self.dims(input);
        if !unread || !self.forward(input, output, dims)? {
            return self.make_variants(output, dims, |at| {
                let mut value = values[at].clone();
                change(at, &mut value)?;
                Ok(Some(Variant::new(value)))
            });
        }
        let count = values.len();
        drop(values);
        self.lose(input);
        self.take(output)?;
        let first = self.output_slot(output)?.data.cast::<VariantElement>();
        for at in 0..count {
            // SAFETY: the output has the input's elements, each a boxed `T` as `values` found, and its buffer has no
            // other holder.
            change(at, unsafe { &mut *(*first.add(at)).value.cast::<T>() })?;
        }
        Ok(())
    }

    /// The values of a variant input, which are all of one type.
    fn values<T: VariantValue>(&self, input: usize) -> Result<Vec<&'a T>, KernelError> {
        let elements = self.variants(input)?;
        growth::try_collected(elements.into_iter().enumerate().map(|(at, element)| {
            element.get::<T>().ok_or_else(|| {
                KernelError::invalid_argument(format!(
                    "input {input}: expected variants of type {} that this plugin made, found {element:?} at {at}",
                    T::NAME
                ))
            })
        }))
    }

    /// Writes a variant output that is a scalar.
    ///
    /// # Errors
    /// As [`ComputeContext::set_variants`].
    pub fn set_variant(&self, output: usize, value: Variant) -> Result<(), KernelError> {
        self.set_variants(output, &[], std::iter::once(value))
    }
}

impl Kept {
    /// A tensor of variants, with clones of these.
    ///
    /// # Errors
    /// As [`Kept::new`]; a type that cannot clone a value counts as no memory.
    pub fn from_variants(dims: &[i64], variants: &[Variant]) -> Result<Kept, KernelError> {
        let elements = growth::collected(variants.iter().map(Variant::element))?;
        // SAFETY: as many elements, whose values `variants` keeps alive.
        unsafe { Kept::copy(DType::VARIANT, dims, elements.as_ptr().cast(), elements.len() as u64) }
    }

    /// A tensor of variants, with clones of these; `None` is an element without a value.
    ///
    /// # Errors
    /// As [`Kept::from_variants`].
    pub fn from_optional_variants(
        dims: &[i64],
        variants: &[Option<Variant>],
    ) -> Result<Kept, KernelError> {
        let none = VariantElement { value: ptr::null_mut(), table: ptr::null() };
        let element = |one: &Option<Variant>| one.as_ref().map_or(none, Variant::element);
        let elements = growth::collected(variants.iter().map(element))?;
        // SAFETY: as many elements, whose values `variants` keeps alive.
        unsafe { Kept::copy(DType::VARIANT, dims, elements.as_ptr().cast(), elements.len() as u64) }
    }

    /// Its variants.
    ///
    /// # Errors
    /// As [`Kept::view`].
    pub fn variants(&self) -> Result<Vec<VariantRef<'_>>, KernelError> {
        if self.slot().dtype != DType::VARIANT || !self.slot().memory.is_host_address() {
            return Err(mismatch("kept tensor", 0, DType::VARIANT, self.slot()));
        }
        // SAFETY: a kept tensor of variants, which is not written while it is kept.
        Ok(unsafe { VariantRef::all(self.slot()) })
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
