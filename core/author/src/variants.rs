//! Variant inputs and outputs of a call, and variants in kept tensors.

use crate::{
    compute::ComputeContext,
    kept::Kept,
    misuse::mismatch,
    variant::{Variant, VariantRef, VariantValue, destroy_element},
};
use std::ptr;
use tenon_abi::{DType, VariantElement};
use tenon_framework::{KernelError, growth};

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
