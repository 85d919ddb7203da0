//! Lists of tensors: values of variants.
//!
//! A list is changed in place where nobody else has it, so that a loop over one costs what its steps
//! cost; else the one that changes it gets a list of its own, which shares the tensors. `change` and
//! `make` have the ops that give lists, `read` those that give tensors; `wire` is a list as bytes.

mod change;
mod make;
mod read;
mod wire;

pub use make::{cut, rows};

use crate::{
    shapes::merged,
    tensors::{Held, let_go, one_deeper, sum, zeros_like},
};
use std::sync::Arc;
use tenon_sdk::{
    author::{EncodedValue, TensorSink},
    growth,
    prelude::*,
};

/// A list. Its clones share the elements until one of them is changed.
#[derive(Clone)]
pub struct TensorList {
    /// Type of every element.
    pub dtype: DType,
    /// What the shapes of all elements agree with.
    pub shape: PartialShape,
    /// How many elements there may be; -1 for any number.
    pub limit: i32,
    elements: Arc<Elements>,
}

/// The elements of a list; `None` is one that is not set.
struct Elements(Vec<Option<Held>>);

impl Drop for Elements {
    fn drop(&mut self) {
        // A list of numbers has nothing that lies in it, and takes no memory to go.
        if self.0.iter().flatten().next().is_some_and(|first| first.dtype() == DType::VARIANT) {
            let_go(std::mem::take(&mut self.0).into_iter().flatten().collect());
        }
    }
}

impl TensorList {
    /// A list of these elements.
    pub fn new(dtype: DType, shape: PartialShape, elements: Vec<Option<Held>>) -> TensorList {
        TensorList { dtype, shape, limit: -1, elements: Arc::new(Elements(elements)) }
    }

    /// The elements.
    pub fn elements(&self) -> &[Option<Held>] {
        &self.elements.0
    }

    /// The elements, to be changed: those of this list alone.
    pub fn elements_mut(&mut self) -> Result<&mut Vec<Option<Held>>, KernelError> {
        if Arc::get_mut(&mut self.elements).is_none() {
            self.elements = Arc::new(Elements(growth::copied(self.elements())?));
        }
        // The list is borrowed for writing, so that nobody clones it meanwhile.
        let own = Arc::get_mut(&mut self.elements);
        own.map(|own| &mut own.0)
            .ok_or_else(|| KernelError::internal("a new list of elements is shared"))
    }

    /// Checks that an op and the list agree on the type of the elements.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when they do not.
    pub fn check_type(&self, expected: DType) -> Result<(), KernelError> {
        if self.dtype == expected {
            return Ok(());
        }
        Err(KernelError::invalid_argument(format!(
            "the list: expected elements of {expected}, found a list of {}",
            self.dtype
        )))
    }

    /// Checks the shape of an element that comes.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when it does not agree with that of the elements.
    pub fn check_shape(&self, dims: &[i64]) -> Result<(), KernelError> {
        if self.shape.accepts(dims) {
            return Ok(());
        }
        Err(KernelError::invalid_argument(format!(
            "the list: expected an element of a shape that agrees with {}, found {dims:?}",
            self.shape
        )))
    }

    /// What a shape says together with the shapes of elements that are set.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when they contradict each other.
    pub fn with_elements(
        &self,
        shape: PartialShape,
        elements: impl IntoIterator<Item = usize>,
    ) -> Result<PartialShape, KernelError> {
        let mut all = shape;
        for at in elements {
            if let Some(Some(element)) = self.elements().get(at)
                && !(all.full().is_some() && all.accepts(element.dims()))
            {
                let own = PartialShape::new(element.dims())
                    .map_err(|error| KernelError::internal(error.to_string()))?;
                all = merged(&all, &own, &format!("element {at} of the list"))?;
            }
        }
        Ok(all)
    }

    /// Makes the list longer by elements that are not set, or shorter.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` without memory.
    pub fn resize(&mut self, len: usize) -> Result<(), KernelError> {
        let elements = self.elements_mut()?;
        let more = len.saturating_sub(elements.len());
        growth::reserve(elements, more)?;
        elements.resize(len, None);
        Ok(())
    }
}

impl VariantValue for TensorList {
    const NAME: &'static str = "tensorflow::TensorList";

    fn encode(&self, tensors: &mut TensorSink<'_>) -> Result<Vec<u8>, KernelError> {
        wire::encode(self, tensors)
    }

    fn decode(encoded: &EncodedValue<'_>) -> Result<TensorList, KernelError> {
        wire::decode(encoded)
    }

    fn zeros_like(&self) -> Result<TensorList, KernelError> {
        let zeros = self.elements().iter().map(|element| element.as_deref().map(zeros_like));
        let zeros = one_deeper(|| growth::try_collected(zeros.map(Option::transpose)))?;
        Ok(TensorList::new(self.dtype, self.shape.clone(), zeros))
    }

    fn add(&self, other: &TensorList) -> Result<TensorList, KernelError> {
        other.check_type(self.dtype)?;
        let shape = merged(&self.shape, &other.shape, "the other list")?;
        let (left, right) = (self.elements(), other.elements());
        if left.len() != right.len() {
            return Err(KernelError::invalid_argument(format!(
                "cannot add lists of {} and of {} elements",
                left.len(),
                right.len()
            )));
        }
        let sums = left.iter().zip(right).map(|pair| match pair {
            (Some(a), Some(b)) => sum(a, b).map(Some),
            (one, other) => Ok(one.clone().or_else(|| other.clone())),
        });
        Ok(TensorList::new(self.dtype, shape, one_deeper(|| growth::try_collected(sums))?))
    }
}

register_variant!(TensorList);

/// The list that is an input.
///
/// # Errors
/// `INVALID_ARGUMENT` for anything but a scalar with a list.
fn list_in<'c>(c: &ComputeContext<'c>, input: usize) -> Result<&'c TensorList, KernelError> {
    check_scalar(c, input)?;
    c.variant::<TensorList>(input)
}

/// Changes the list that is input 0, and returns it as output 0.
///
/// # Errors
/// As [`list_in`]; an error of `change`.
fn change_list(
    c: &ComputeContext<'_>,
    mut change: impl FnMut(&mut TensorList) -> Result<(), KernelError>,
) -> Result<(), KernelError> {
    check_scalar(c, 0)?;
    c.change_variants(0, 0, |_, list| change(list))
}

fn check_scalar(c: &ComputeContext<'_>, input: usize) -> Result<(), KernelError> {
    match c.dims(input) {
        [] => Ok(()),
        found => Err(KernelError::invalid_argument(format!(
            "input {input}: expected a list, a scalar, found shape {found:?}"
        ))),
    }
}

/// Position of an element.
///
/// # Errors
/// `INVALID_ARGUMENT` when the list has none there.
fn position(index: i64, len: usize) -> Result<usize, KernelError> {
    usize::try_from(index).ok().filter(|&at| at < len).ok_or_else(|| {
        KernelError::invalid_argument(format!(
            "index {index} is out of range: the list has {len} elements"
        ))
    })
}

/// A kernel whose only attribute is the type of the elements.
macro_rules! of_elements {
    ($name:ident: $compute:path) => {
        struct $name {
            dtype: DType,
        }

        impl Kernel for $name {
            fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
                Ok($name { dtype: c.attr("element_dtype")? })
            }

            fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
                $compute(c, self.dtype)
            }
        }
    };
}

use of_elements;
