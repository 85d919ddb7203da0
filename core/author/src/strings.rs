//! String inputs and outputs of a call.

use crate::{ComputeContext, StepWatch, misuse::mismatch, slots};
use tenon_abi::{Code, DType, Slot, Str, StringElement, StringTable};
use tenon_framework::{KernelError, growth, plugin::host};

/// The number of elements after which a kernel looks again at whether the step needs the results.
const LOOK: usize = 1024;

/// The elements of a string output, each set once.
struct Writer<'a> {
    output: usize,
    first: *mut StringElement,
    count: usize,
    table: &'a StringTable,
    watch: StepWatch<'a>,
}

impl Writer<'_> {
    fn set(&self, at: usize, value: &[u8]) -> Result<(), KernelError> {
        debug_assert!(at < self.count);
        if at.is_multiple_of(LOOK) {
            self.watch.check()?;
        }
        let set = self.table.set.expect("the host fills every entry");
        // SAFETY: element `at` of the output, which no other code uses during the call.
        let code = unsafe { set(self.first.add(at), Str::from_bytes(value)) };
        if code.is_ok() { Ok(()) } else { Err(self.failed(at, value.len(), code)) }
    }

    /// The written strings are freed first: if they took all memory, the error needs some.
    #[cold]
    fn failed(&self, at: usize, bytes: usize, code: Code) -> KernelError {
        let destroy = self.table.destroy.expect("the host fills every entry");
        for before in 0..=at {
            // SAFETY: as in `set`; an element that is destroyed is an empty one.
            unsafe { destroy(self.first.add(before)) };
        }
        let (output, count) = (self.output, self.count);
        let message = format!(
            "output {output}: no memory for string {at} of {count}: asked for {bytes} bytes"
        );
        KernelError::new(code, message)
    }
}

impl<'a> ComputeContext<'a> {
    /// The values of a string input.
    ///
    /// # Errors
    /// As [`ComputeContext::input`]; `RESOURCE_EXHAUSTED` when there is no memory for the list.
    pub fn strings(&self, input: usize) -> Result<Vec<&'a [u8]>, KernelError> {
        let slot = self.slot(input)?;
        if slot.dtype != DType::STRING {
            return Err(mismatch("input", input, DType::STRING, slot));
        }
        self.mark_read(input)?;
        // SAFETY: a string slot in host memory, not written during the call.
        unsafe { slots::strings(slot) }
    }

    /// Writes a string output; `values` holds as many as the shape has elements.
    ///
    /// # Errors
    /// As [`ComputeContext::prepare`]; `RESOURCE_EXHAUSTED` when there is no memory for a value; `INTERNAL` when
    /// the numbers differ; `CANCELLED` or `DEADLINE_EXCEEDED` when the step no longer needs the output.
    pub fn set_strings<S: AsRef<[u8]>>(
        &self,
        output: usize,
        dims: &[i64],
        values: impl ExactSizeIterator<Item = S>,
    ) -> Result<(), KernelError> {
        let slot = *self.prepare(output, dims)?;
        self.write_strings(output, &slot, values)
    }

    /// Writes a string output, each of whose values `write` appends to a text that is empty at first: the same
    /// memory serves all.
    ///
    /// ```
    /// use tenon_author::ComputeContext;
    /// use tenon_framework::{KernelError, growth};
    ///
    /// /// Each string twice.
    /// fn twice(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    ///     let x = c.strings(0)?;
    ///     c.write_texts(0, c.dims(0), |at, text| {
    ///         growth::append(text, x[at])?;
    ///         growth::append(text, x[at])
    ///     })
    /// }
    /// ```
    ///
    /// # Errors
    /// An error of `write`; as [`ComputeContext::set_strings`].
    pub fn write_texts(
        &self,
        output: usize,
        dims: &[i64],
        mut write: impl FnMut(usize, &mut Vec<u8>) -> Result<(), KernelError>,
    ) -> Result<(), KernelError> {
        let slot = *self.prepare(output, dims)?;
        let writer = self.writer(output, &slot)?;
        let mut text = Vec::new();
        for at in 0..writer.count {
            text.clear();
            write(at, &mut text)?;
            writer.set(at, &text)?;
        }
        Ok(())
    }

    /// Writes a string output, whose values `choose` picks: it is given one place per element, each empty.
    ///
    /// # Errors
    /// As [`ComputeContext::set_strings`]; `RESOURCE_EXHAUSTED` when there is no memory for the places.
    pub fn fill_strings<'v>(
        &self,
        output: usize,
        dims: &[i64],
        choose: impl FnOnce(&mut [&'v [u8]]),
    ) -> Result<(), KernelError> {
        let slot = *self.prepare(output, dims)?;
        let mut values = growth::filled::<&[u8]>(slot.elements as usize, b"")?;
        choose(&mut values);
        self.write_strings(output, &slot, values.into_iter())
    }

    fn writer(&self, output: usize, slot: &Slot) -> Result<Writer<'a>, KernelError> {
        if slot.dtype != DType::STRING {
            return Err(mismatch("output", output, DType::STRING, slot));
        }
        self.take(output)?;
        // SAFETY: the host fills the table, which lives as long as the process.
        let table = unsafe { &*host().strings };
        let (first, count) = (slot.data.cast(), slot.elements as usize);
        Ok(Writer { output, first, count, table, watch: self.watch() })
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
        let writer = self.writer(output, slot)?;
        for (at, value) in values.enumerate() {
            writer.set(at, value.as_ref())?;
        }
        Ok(())
    }
}
