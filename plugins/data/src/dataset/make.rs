//! How kernels make datasets, and find those that are their inputs.

use super::{Shared, Spec, context::check_depth};
use crate::queue::Component;
use std::sync::Arc;
use tenon_sdk::prelude::*;

/// A dataset as the value of a variant.
#[derive(Clone)]
pub struct DatasetValue {
    /// The dataset.
    pub dataset: Shared,
    /// What its elements are.
    pub spec: Arc<Spec>,
    /// How many datasets are one inside of the other in it.
    pub depth: usize,
}

impl VariantValue for DatasetValue {
    const NAME: &'static str = "tensorflow::DatasetVariantWrapper";
}

/// The dataset that an input is.
///
/// # Errors
/// `INVALID_ARGUMENT` for anything but a scalar with a dataset.
pub fn dataset_in<'c>(
    c: &ComputeContext<'c>,
    input: usize,
) -> Result<&'c DatasetValue, KernelError> {
    match c.dims(input) {
        [] => c.variant::<DatasetValue>(input),
        found => Err(KernelError::invalid_argument(format!(
            "input {input}: expected a dataset, a scalar, found shape {found:?}"
        ))),
    }
}

/// The dataset in a tensor.
///
/// # Errors
/// `INVALID_ARGUMENT` for anything but a scalar with a dataset; `what` names the tensor.
pub fn dataset_of(tensor: &Kept, what: &str) -> Result<DatasetValue, KernelError> {
    let found = match (tensor.dtype(), tensor.dims()) {
        (DType::VARIANT, []) => tensor.variants()?.first().and_then(|first| first.get()).cloned(),
        _ => None,
    };
    found.ok_or_else(|| {
        KernelError::invalid_argument(format!(
            "{what}: expected a dataset, a scalar variant, found {tensor:?}"
        ))
    })
}

/// The dataset that a function returned.
///
/// # Errors
/// As [`dataset_of`], and `INVALID_ARGUMENT` for more or fewer results than one; `what` names the function.
pub fn only_dataset(results: &[Component], what: &str) -> Result<DatasetValue, KernelError> {
    match results {
        [dataset] => dataset_of(&*dataset.kept()?, what),
        _ => Err(KernelError::invalid_argument(format!(
            "{what}: expected a function that returns one dataset, found {} results",
            results.len()
        ))),
    }
}

/// Makes datasets of one kind.
pub trait Build: Send + Sync + Sized + 'static {
    /// As [`Kernel::new`].
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError>;

    /// The dataset of one call.
    fn build(&self, c: &ComputeContext<'_>) -> Result<Shared, KernelError>;
}

/// The kernel of a [`Build`].
pub struct Make<B> {
    build: B,
    spec: Arc<Spec>,
}

impl<B: Build> Kernel for Make<B> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Make { build: B::new(c)?, spec: Arc::new(Spec::new(c)?) })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let depth = 1 + deepest_input(c)?;
        check_depth(depth)?;
        let value =
            DatasetValue { dataset: self.build.build(c)?, spec: Arc::clone(&self.spec), depth };
        c.set_variant(0, Variant::new(value))
    }
}

/// The depth of the deepest dataset among the inputs.
fn deepest_input(c: &ComputeContext<'_>) -> Result<usize, KernelError> {
    let mut deepest = 0;
    for input in 0..c.input_count() {
        if c.slot(input)?.dtype == DType::VARIANT {
            let values = c.variants(input)?;
            let depths = values.iter().filter_map(|value| value.get::<DatasetValue>());
            deepest = depths.map(|value| value.depth).fold(deepest, usize::max);
        }
    }
    Ok(deepest)
}

/// The one number that an input is.
///
/// # Errors
/// `INVALID_ARGUMENT` when there are several; `name` says which input.
pub fn number(c: &ComputeContext<'_>, input: usize, name: &str) -> Result<i64, KernelError> {
    c.integer(input, name)
}

/// The one truth value that an input is.
///
/// # Errors
/// As [`number`].
pub fn truth(c: &ComputeContext<'_>, input: usize, name: &str) -> Result<bool, KernelError> {
    match c.input::<bool>(input)?.data {
        &[value] if c.dims(input).is_empty() => Ok(value),
        _ => Err(scalar_expected(name, c.dims(input))),
    }
}

/// The one text that an input is.
///
/// # Errors
/// As [`number`].
pub fn text<'c>(c: &ComputeContext<'c>, input: usize, name: &str) -> Result<&'c [u8], KernelError> {
    match c.strings(input)?[..] {
        [text] if c.dims(input).is_empty() => Ok(text),
        _ => Err(scalar_expected(name, c.dims(input))),
    }
}

/// A number of elements; `chosen` for -1.
///
/// # Errors
/// `INVALID_ARGUMENT` for another number below 0; as [`number`].
pub fn count_or(
    c: &ComputeContext<'_>,
    input: usize,
    name: &str,
    chosen: usize,
) -> Result<usize, KernelError> {
    match number(c, input, name)? {
        -1 => Ok(chosen),
        found => {
            usize::try_from(found).map_err(|_| unexpected(name, "at least 0, or -1 for any", found))
        }
    }
}

fn scalar_expected(name: &str, dims: &[i64]) -> KernelError {
    KernelError::invalid_argument(format!("{name}: expected a scalar, found shape {dims:?}"))
}

/// The error for a number that an op does not take.
pub fn unexpected(name: &str, expected: &str, found: i64) -> KernelError {
    KernelError::invalid_argument(format!("{name}: expected {expected}, found {found}"))
}
