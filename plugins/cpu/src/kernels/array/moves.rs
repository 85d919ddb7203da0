//! Ops that move elements, written once for words of every size and for strings.

use super::{JOINED, NUMBERS, SLICED, Word, by_size, words, words_mut};
use tenon_sdk::{
    DType, KernelError, author::ComputeContext, element::Element, growth, reg::join_types,
};

/// [`NUMBERS`] and strings.
pub(super) const TEXTS: &[DType] = &join_types::<{ NUMBERS.len() + 1 }>(NUMBERS, &[DType::STRING]);
/// [`SLICED`] and strings.
pub(super) const SLICED_TEXTS: &[DType] =
    &join_types::<{ SLICED.len() + 1 }>(SLICED, &[DType::STRING]);
/// [`JOINED`] and strings.
pub(super) const JOINED_TEXTS: &[DType] =
    &join_types::<{ JOINED.len() + 1 }>(JOINED, &[DType::STRING]);

/// An item to move: a word, or the bytes of a string. The default is zero, or the empty string.
pub(super) trait Item: Copy + Default + Send + Sync {}
impl<T: Copy + Default + Send + Sync> Item for T {}

/// A way to make an output from elements of inputs.
pub(super) trait Move: Sync {
    /// Writes every element of the output, given the chosen inputs.
    fn run<T: Item>(
        &self,
        c: &ComputeContext<'_>,
        x: &[&[T]],
        y: &mut [T],
    ) -> Result<(), KernelError>;
}

/// Makes an output of this type and shape from inputs of the same type.
pub(super) fn make(
    c: &ComputeContext<'_>,
    dtype: DType,
    inputs: &[usize],
    (output, dims): (usize, &[i64]),
    how: &impl Move,
) -> Result<(), KernelError> {
    if dtype == DType::STRING {
        let values = inputs.iter().map(|&i| c.strings(i)).collect::<Result<Vec<_>, _>>()?;
        let x: Vec<&[&[u8]]> = values.iter().map(Vec::as_slice).collect();
        let mut result = Ok(());
        c.fill_strings(output, dims, |y| result = how.run(c, &x, y))?;
        return result;
    }
    let size = dtype.size().unwrap_or(0);
    by_size!(size, make_words(c, inputs, (output, dims), how))
}

/// Like [`make`], for output 0 with the type of the first of the inputs.
pub(super) fn produce(
    c: &ComputeContext<'_>,
    inputs: &[usize],
    dims: &[i64],
    how: &impl Move,
) -> Result<(), KernelError> {
    let first = inputs.first().copied().unwrap_or(0);
    make(c, c.slot(first)?.dtype, inputs, (0, dims), how)
}

fn make_words<W: Word>(
    c: &ComputeContext<'_>,
    inputs: &[usize],
    (output, dims): (usize, &[i64]),
    how: &impl Move,
) -> Result<(), KernelError> {
    let of = |input: usize| words::<W>(c.input_bytes(input)?);
    if let &[only] = inputs {
        let x = [of(only)?];
        return how.run(c, &x, words_mut::<W>(c.output_bytes(output, dims)?)?);
    }
    let x = inputs.iter().map(|&input| of(input)).collect::<Result<Vec<_>, KernelError>>()?;
    how.run(c, &x, words_mut::<W>(c.output_bytes(output, dims)?)?)
}

/// Integers of an input of indices, of any width.
pub(super) fn indices(c: &ComputeContext<'_>, input: usize) -> Result<Vec<i64>, KernelError> {
    fn widen<T: Element + Into<i64>>(
        c: &ComputeContext<'_>,
        input: usize,
    ) -> Result<Vec<i64>, KernelError> {
        growth::collected(c.input::<T>(input)?.data.iter().map(|&x| x.into()))
    }
    match c.slot(input)?.dtype {
        DType::INT8 => widen::<i8>(c, input),
        DType::UINT8 => widen::<u8>(c, input),
        DType::UINT16 => widen::<u16>(c, input),
        _ => c.integers(input),
    }
}

/// The only element of an integer input of any shape.
pub(super) fn one_integer(
    c: &ComputeContext<'_>,
    input: usize,
    name: &str,
) -> Result<i64, KernelError> {
    match indices(c, input)?[..] {
        [value] => Ok(value),
        _ => Err(KernelError::invalid_argument(format!(
            "{name} must hold one integer, found shape {:?}",
            c.dims(input)
        ))),
    }
}

/// Checks that an input is a vector.
pub(super) fn check_vector(
    c: &ComputeContext<'_>,
    input: usize,
    name: &str,
) -> Result<(), KernelError> {
    check_rank(c, input, name, 1)
}

/// Checks that an input has this many dimensions.
pub(super) fn check_rank(
    c: &ComputeContext<'_>,
    input: usize,
    name: &str,
    rank: usize,
) -> Result<(), KernelError> {
    if c.dims(input).len() == rank {
        return Ok(());
    }
    Err(KernelError::invalid_argument(format!(
        "{name} must have {rank} dimensions, found shape {:?}",
        c.dims(input)
    )))
}

/// Writes an output of type int32 or int64. The values must fit the type.
pub(in crate::kernels) fn write_integers(
    c: &ComputeContext<'_>,
    output: usize,
    dims: &[i64],
    values: impl Iterator<Item = i64>,
) -> Result<(), KernelError> {
    if c.output_slot(output)?.dtype == DType::INT32 {
        let y = c.output::<i32>(output, dims)?;
        y.data.iter_mut().zip(values).for_each(|(y, value)| *y = value as i32);
    } else {
        let y = c.output::<i64>(output, dims)?;
        y.data.iter_mut().zip(values).for_each(|(y, value)| *y = value);
    }
    Ok(())
}

/// The position of an element of a tensor, for messages: `[1,0]`, and nothing for a scalar.
pub(super) fn place(dims: &[i64], mut at: usize) -> String {
    if dims.is_empty() {
        return String::new();
    }
    let mut places = vec![0; dims.len()];
    for (place, &size) in places.iter_mut().zip(dims).rev() {
        let size = (size as usize).max(1);
        (*place, at) = (at % size, at / size);
    }
    let places: Vec<String> = places.iter().map(usize::to_string).collect();
    format!("[{}]", places.join(","))
}

/// Calls a function with the element type of a dtype, one of those listed.
macro_rules! by_type {
    ($dtype:expr, $function:ident $arguments:tt, [$($ty:ty),+ $(,)?]) => {
        match $dtype {
            $(dtype if dtype == <$ty as tenon_sdk::element::Element>::DTYPE => {
                $function::<$ty> $arguments
            })+
            other => Err(tenon_sdk::KernelError::internal(format!("no kernel for {other}"))),
        }
    };
}
pub(super) use by_type;
