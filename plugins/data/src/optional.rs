//! Optional values: variants that hold tensors, or nothing.

use crate::{
    dataset::Spec,
    queue::Component,
    tensors::{Held, let_go, one_deeper, sum, zeros_like},
};
use std::sync::Arc;
use tenon_sdk::{
    author::{EncodedValue, TensorSink},
    growth,
    prelude::*,
};

/// An optional value. Its clones share the tensors.
#[derive(Clone, Default)]
pub struct Optional {
    /// What it holds, which is at least one tensor; `None` for nothing.
    components: Option<Arc<Components>>,
}

struct Components(Vec<Held>);

impl Drop for Components {
    fn drop(&mut self) {
        let_go(std::mem::take(&mut self.0));
    }
}

impl Optional {
    /// The components of an element of a dataset.
    ///
    /// # Errors
    /// As [`Component::kept`].
    pub fn of_element(element: &[Component]) -> Result<Optional, KernelError> {
        growth::try_collected(element.iter().map(Component::kept)).map(Optional::of)
    }

    /// Returns it as output 0.
    ///
    /// # Errors
    /// As [`ComputeContext::set_variant`].
    pub fn output(self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        c.set_variant(0, Variant::new(self))
    }

    fn of(components: Vec<Held>) -> Optional {
        Optional { components: Some(Arc::new(Components(components))) }
    }

    fn tensors(&self) -> Option<&[Held]> {
        self.components.as_deref().map(|components| components.0.as_slice())
    }
}

impl VariantValue for Optional {
    const NAME: &'static str = "tensorflow::data::Optional";

    /// The tensors; none for nothing. The bytes are one, as TensorFlow writes it: whether there is a value.
    fn encode(&self, tensors: &mut TensorSink<'_>) -> Result<Vec<u8>, KernelError> {
        for tensor in self.tensors().unwrap_or_default() {
            tensors.give(tensor)?;
        }
        growth::copied(&[u8::from(self.tensors().is_some())])
    }

    fn decode(encoded: &EncodedValue<'_>) -> Result<Optional, KernelError> {
        match (encoded.bytes(), encoded.tensor_count()) {
            ([0], 0) => return Ok(Optional::default()),
            ([1], 1..) => {}
            (bytes, count) => {
                return Err(KernelError::invalid_argument(format!(
                    "an optional: expected 1 and its components, or 0 and none, found bytes {bytes:?} and {count} components"
                )));
            }
        }
        let tensors = (0..encoded.tensor_count()).map(|at| encoded.tensor(at).map(Arc::new));
        growth::try_collected(tensors).map(Optional::of)
    }

    /// Zeros like the tensors; nothing for nothing.
    fn zeros_like(&self) -> Result<Optional, KernelError> {
        let Some(tensors) = self.tensors() else { return Ok(Optional::default()) };
        let zeros = one_deeper(|| growth::try_collected(tensors.iter().map(|one| zeros_like(one))));
        zeros.map(Optional::of)
    }

    fn add(&self, other: &Optional) -> Result<Optional, KernelError> {
        let (a, b) = match (self.tensors(), other.tensors()) {
            (None, None) => return Ok(Optional::default()),
            (Some(a), Some(b)) => (a, b),
            _ => {
                return Err(KernelError::invalid_argument(
                    "cannot add optional values of which one holds tensors and the other holds nothing",
                ));
            }
        };
        if a.len() != b.len() {
            return Err(KernelError::invalid_argument(format!(
                "cannot add optional values of {} and {} tensors",
                a.len(),
                b.len()
            )));
        }
        let sums = a.iter().zip(b).map(|(a, b)| sum(a, b));
        one_deeper(|| growth::try_collected(sums)).map(Optional::of)
    }
}

register_variant!(Optional);

fn from_value(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let tensors = (0..c.input_count()).map(|input| c.keep(input).map(Arc::new));
    let tensors = growth::try_collected(tensors)?;
    Optional::of(tensors).output(c)
}

register_kernel!("OptionalFromValue" on "CPU": fn from_value);

fn none(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    Optional::default().output(c)
}

register_kernel!("OptionalNone" on "CPU": fn none);

fn optional_in<'c>(c: &ComputeContext<'c>) -> Result<&'c Optional, KernelError> {
    match c.dims(0) {
        [] => c.variant(0),
        found => Err(KernelError::invalid_argument(format!(
            "optional: expected an optional value, a scalar, found shape {found:?}"
        ))),
    }
}

fn has_value(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    c.output::<bool>(0, &[])?.data[0] = optional_in(c)?.tensors().is_some();
    Ok(())
}

register_kernel!("OptionalHasValue" on "CPU": fn has_value);

struct GetValue(Spec);

impl Kernel for GetValue {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Spec::new(c).map(GetValue)
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let tensors = optional_in(c)?.tensors().ok_or_else(|| {
            KernelError::invalid_argument(
                "optional: expected tensors, found nothing: ask OptionalHasValue first",
            )
        })?;
        self.0.check_element(&growth::collected(tensors.iter().map(Component::whole))?)?;
        tensors.iter().enumerate().try_for_each(|(output, tensor)| c.output_kept(output, tensor))
    }
}

register_kernel!("OptionalGetValue" on "CPU": GetValue);
