//! Values of any type, copied from place to place.

use tenon_sdk::{growth, prelude::*};

/// The types of values that are copied.
pub const MOVED: &[DType] = &tenon_sdk::reg::join_types::<{ tenon_sdk::reg::COPYABLE.len() + 1 }>(
    tenon_sdk::reg::COPYABLE,
    &[DType::STRING],
);

/// A value: the number of the input among those that are read, and its element.
pub type From = (usize, usize);

/// The values of some inputs of one type.
pub enum Values<'c> {
    /// Texts, input by input.
    Texts(Vec<Vec<&'c [u8]>>),
    /// Elements of one size, input by input.
    Bytes(Vec<&'c [u8]>, usize),
}

impl<'c> Values<'c> {
    /// Reads inputs.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for types that are not copied.
    pub fn new(
        c: &ComputeContext<'c>,
        inputs: impl IntoIterator<Item = usize> + Clone,
    ) -> Result<Values<'c>, KernelError> {
        let all = || inputs.clone().into_iter();
        let Some(first) = all().next() else {
            return Err(KernelError::internal("values of no input"));
        };
        let dtype = c.slot(first)?.dtype;
        if dtype == DType::STRING {
            return growth::try_collected(all().map(|at| c.strings(at))).map(Values::Texts);
        }
        let size = dtype.size().filter(|&size| size > 0).ok_or_else(|| {
            KernelError::invalid_argument(format!(
                "values: expected a type of plain elements, found {dtype}"
            ))
        })?;
        let bytes = growth::try_collected(all().map(|at| c.input_bytes(at)))?;
        Ok(Values::Bytes(bytes, size))
    }

    /// Writes an output of this shape, element by element.
    ///
    /// # Errors
    /// Those of the output.
    pub fn write(
        &self,
        c: &ComputeContext<'_>,
        output: usize,
        dims: &[i64],
        from: impl ExactSizeIterator<Item = From>,
    ) -> Result<(), KernelError> {
        match self {
            Values::Texts(texts) => {
                c.set_strings(output, dims, from.map(|(input, at)| texts[input][at]))
            }
            Values::Bytes(bytes, size) => {
                let y = c.output_bytes(output, dims)?;
                for (y, (input, at)) in y.chunks_exact_mut(*size).zip(from) {
                    y.copy_from_slice(&bytes[input][at * size..][..*size]);
                }
                Ok(())
            }
        }
    }

    /// Writes an output of this shape: runs of elements of the first input, which fill it.
    ///
    /// # Errors
    /// Those of the output; `RESOURCE_EXHAUSTED` without memory for a list of texts.
    pub fn write_runs(
        &self,
        c: &ComputeContext<'_>,
        output: usize,
        dims: &[i64],
        runs: impl Iterator<Item = std::ops::Range<usize>>,
    ) -> Result<(), KernelError> {
        match self {
            Values::Texts(texts) => {
                let mut all = Vec::new();
                for run in runs {
                    growth::append(&mut all, &texts[0][run])?;
                }
                c.set_strings(output, dims, all.into_iter())
            }
            Values::Bytes(bytes, size) => {
                let mut rest = c.output_bytes(output, dims)?;
                for run in runs {
                    let (part, after) = rest.split_at_mut(run.len() * size);
                    part.copy_from_slice(&bytes[0][run.start * size..run.end * size]);
                    rest = after;
                }
                Ok(())
            }
        }
    }

    /// Writes a vector of elements of the first input.
    ///
    /// # Errors
    /// Those of the output.
    pub fn pick(
        &self,
        c: &ComputeContext<'_>,
        output: usize,
        elements: &[usize],
    ) -> Result<(), KernelError> {
        let dims = [elements.len() as i64];
        self.write(c, output, &dims, elements.iter().map(|&element| (0, element)))
    }
}
