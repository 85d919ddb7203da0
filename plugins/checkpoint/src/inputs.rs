//! Texts and tensors among the inputs.

use crate::variants;
use tenon_bundle::{BundleError, Content};
use tenon_sdk::{growth, prelude::*};

/// The only text of an input; `name` is the argument's name.
pub fn text<'c>(c: &ComputeContext<'c>, input: usize, name: &str) -> Result<&'c [u8], KernelError> {
    match (&c.strings(input)?[..], c.dims(input)) {
        (&[text], []) => Ok(text),
        (_, dims) => Err(KernelError::invalid_argument(format!(
            "{name}: expected a scalar, found shape {dims:?}"
        ))),
    }
}

/// The texts of an input, of which there is one for each of `count` tensors.
pub fn texts<'c>(
    c: &ComputeContext<'c>,
    input: usize,
    name: &str,
    count: usize,
) -> Result<Vec<&'c [u8]>, KernelError> {
    let texts = c.strings(input)?;
    match c.dims(input) {
        [_] if texts.len() == count => Ok(texts),
        dims => Err(KernelError::invalid_argument(format!(
            "{name}: expected a text for each of {count} tensors, found shape {dims:?}"
        ))),
    }
}

/// The element type of an input that can be saved.
fn dtype_of(c: &ComputeContext<'_>, input: usize) -> Result<DType, BundleError> {
    let dtype = c.slot(input)?.dtype.base();
    match dtype {
        DType::RESOURCE => Err(BundleError::Argument(format!(
            "input {input}: expected a tensor of values, found a resource, which cannot be saved: save what it holds"
        ))),
        dtype if dtype != DType::STRING && dtype.size().is_none() => {
            Err(BundleError::Unsupported(format!(
                "input {input}: type {} has elements below one byte, which cannot be saved",
                dtype.name()
            )))
        }
        dtype => Ok(dtype),
    }
}

/// Calls `use_it` with the type and the elements of an input.
pub fn with_input<R>(
    c: &ComputeContext<'_>,
    input: usize,
    use_it: impl FnOnce(DType, Content<'_>) -> Result<R, BundleError>,
) -> Result<R, BundleError> {
    match dtype_of(c, input)? {
        DType::STRING => use_it(DType::STRING, Content::Strings(&c.strings(input)?)),
        DType::VARIANT => {
            let messages = variants::messages(c, input)?;
            let messages: Vec<&[u8]> = growth::collected(messages.iter().map(Vec::as_slice))?;
            use_it(DType::VARIANT, Content::Strings(&messages))
        }
        dtype => use_it(dtype, Content::Bytes(c.input_bytes(input)?)),
    }
}

/// The types and elements of all inputs from `first` on. Those that are strings are listed in `texts`.
pub fn contents<'t>(
    c: &ComputeContext<'t>,
    first: usize,
    texts: &'t [Vec<&'t [u8]>],
) -> Result<Vec<(DType, Content<'t>)>, BundleError> {
    let mut found = growth::with_room(texts.len())?;
    for (at, texts) in texts.iter().enumerate() {
        let dtype = dtype_of(c, first + at)?;
        if dtype == DType::VARIANT {
            return Err(BundleError::Unsupported(format!(
                "input {}: files of the first format have no variants: save them by SaveV2",
                first + at
            )));
        }
        let content = match dtype {
            DType::STRING => Content::Strings(texts),
            _ => Content::Bytes(c.input_bytes(first + at)?),
        };
        found.push((dtype, content));
    }
    Ok(found)
}

/// The strings of each input from `first` on; none for other types.
pub fn all_strings<'c>(
    c: &ComputeContext<'c>,
    first: usize,
) -> Result<Vec<Vec<&'c [u8]>>, KernelError> {
    let mut found = growth::with_room(c.input_count() - first)?;
    for input in first..c.input_count() {
        found.push(match c.slot(input)?.dtype.base() {
            DType::STRING => c.strings(input)?,
            _ => Vec::new(),
        });
    }
    Ok(found)
}
