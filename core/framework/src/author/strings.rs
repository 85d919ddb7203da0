//! String inputs and outputs of a call.

use super::{ComputeContext, host::host, misuse::mismatch, slots};
use crate::KernelError;
use tenon_abi::{Code, DType, Slot, Str, StringElement};

impl<'a> ComputeContext<'a> {
    /// The values of a string input.
    ///
    /// # Errors
    /// As [`ComputeContext::input`].
    pub fn strings(&self, input: usize) -> Result<Vec<&'a [u8]>, KernelError> {
        let slot = self.slot(input)?;
        if slot.dtype != DType::STRING {
            return Err(mismatch("input", input, DType::STRING, slot));
        }
        self.mark_read(input)?;
        // SAFETY: a string slot in host memory, not written during the call.
        Ok(unsafe { slots::strings(slot) })
    }

    /// Writes a string output; `values` holds as many as the shape has elements.
    ///
    /// # Errors
    /// As [`ComputeContext::prepare`]; `INTERNAL` when the numbers differ.
    pub fn set_strings<S: AsRef<[u8]>>(
        &self,
        output: usize,
        dims: &[i64],
        values: impl ExactSizeIterator<Item = S>,
    ) -> Result<(), KernelError> {
        let slot = *self.prepare(output, dims)?;
        self.write_strings(output, &slot, values)
    }

    /// Writes a string output, whose values `choose` picks: it is given one place per element, each empty.
    ///
    /// # Errors
    /// As [`ComputeContext::prepare`]; `RESOURCE_EXHAUSTED` when there is no memory for the places.
    pub fn fill_strings<'v>(
        &self,
        output: usize,
        dims: &[i64],
        choose: impl FnOnce(&mut [&'v [u8]]),
    ) -> Result<(), KernelError> {
        let slot = *self.prepare(output, dims)?;
        let (len, mut values) = (slot.elements as usize, Vec::<&[u8]>::new());
        values.try_reserve_exact(len).map_err(|_| {
            let message = format!("output {output}: no memory for {len} strings");
            KernelError::new(Code::RESOURCE_EXHAUSTED, message)
        })?;
        values.resize(len, b"");
        choose(&mut values);
        self.write_strings(output, &slot, values.into_iter())
    }

    fn write_strings<S: AsRef<[u8]>>(
        &self,
        output: usize,
        slot: &Slot,
        values: impl ExactSizeIterator<Item = S>,
    ) -> Result<(), KernelError> {
        if slot.dtype != DType::STRING || values.len() as u64 != slot.elements {
            return Err(mismatch("output", output, DType::STRING, slot));
        }
        self.take(output)?;
        let first = slot.data.cast::<StringElement>();
        // SAFETY: the host fills the table and its entries.
        let set = unsafe { &*host().strings }.set.expect("the host fills every entry");
        for (at, value) in values.enumerate() {
            // SAFETY: element `at` of the output, which nobody else uses during the call.
            let code = unsafe { set(first.add(at), Str::from_bytes(value.as_ref())) };
            self.check(code, "cannot set a string")?;
        }
        Ok(())
    }
}
