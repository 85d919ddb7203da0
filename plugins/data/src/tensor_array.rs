//! Arrays of tensors, which go with the step.
//!
//! An element is written once and, unless the array keeps them, read once. In the array of the
//! gradients of another one, what is written to an index again is added, and an element that was not written
//! is zeros of the shape that the element has in the other array. `make` has the ops that make arrays
//! and find them, `read` and `write` those of elements.
//!
//! # Invariants
//! - All that changes is behind one lock, which no kernel holds while it makes tensors of its own but
//!   sums.
//! - A closed array holds nothing.

mod make;
mod read;
mod write;

use crate::{
    shapes::merged,
    tensors::{Held, sum},
};
use std::sync::{Arc, Mutex, MutexGuard};
use tenon_sdk::{growth, prelude::*};

/// What an array is made with.
#[derive(Clone)]
pub struct Form {
    /// Its name, under which it is in the container of the step.
    pub name: String,
    pub dtype: DType,
    /// Whether an element goes once it is read.
    pub clears: bool,
    /// Whether all elements have the shape of the first one that is written.
    pub identical: bool,
    /// Whether it is the array of the gradients of another one.
    pub is_gradient: bool,
}

/// An array.
pub struct TensorArray {
    pub form: Form,
    state: Mutex<State>,
}

/// What changes in an array.
pub struct State {
    elements: Vec<Element>,
    /// What the shapes of all elements agree with.
    shape: PartialShape,
    /// Whether it grows with what is written.
    is_dynamic: bool,
    is_closed: bool,
    /// How many elements it was split into last.
    split: Option<usize>,
    /// Whether something was added: then the array has no gradient.
    has_sums: bool,
}

/// An element.
#[derive(Clone, Default)]
struct Element {
    /// Its shape, once it is written; without a tensor it is zeros of that shape.
    dims: Option<Vec<i64>>,
    tensor: Option<Held>,
    is_read: bool,
    is_cleared: bool,
}

/// What is read of an element.
pub enum Value {
    Tensor(Held),
    /// Zeros of this shape.
    Zeros(Vec<i64>),
}

impl Value {
    pub fn dims(&self) -> &[i64] {
        match self {
            Value::Tensor(tensor) => tensor.dims(),
            Value::Zeros(dims) => dims,
        }
    }
}

impl ResourceValue for TensorArray {
    const NAME: &'static str = "tensorflow::TensorArray";
}

impl TensorArray {
    fn new(form: Form, shape: PartialShape, elements: Vec<Element>) -> TensorArray {
        let state = State {
            elements,
            shape,
            is_dynamic: false,
            is_closed: false,
            split: None,
            has_sums: false,
        };
        TensorArray { form, state: Mutex::new(state) }
    }

    fn refuse(&self, why: &str) -> KernelError {
        KernelError::invalid_argument(format!("TensorArray '{}': {why}", self.form.name))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Its users return errors before they change it.
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The array, unless it is closed.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when it is.
    fn open(&self) -> Result<MutexGuard<'_, State>, KernelError> {
        let state = self.lock();
        if state.is_closed { Err(self.refuse("it is closed")) } else { Ok(state) }
    }

    /// Checks that an op and the array agree on the type of the elements.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when they do not.
    pub fn check_type(&self, found: DType) -> Result<(), KernelError> {
        if found == self.form.dtype {
            return Ok(());
        }
        Err(self.refuse(&format!("its elements are {}, the op's {found}", self.form.dtype)))
    }

    /// Writes elements, in order, up to the first error.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for an index that the array does not have, a shape that does not agree, and what was
    /// written or read before.
    pub fn write(
        &self,
        elements: impl IntoIterator<Item = (i32, Held)>,
    ) -> Result<(), KernelError> {
        let mut state = self.open()?;
        elements.into_iter().try_for_each(|(index, tensor)| self.put(&mut state, index, tensor))
    }

    fn put(&self, state: &mut State, index: i32, tensor: Held) -> Result<(), KernelError> {
        let at = self.room_for(state, index)?;
        let found = PartialShape::new(tensor.dims())
            .map_err(|error| KernelError::internal(error.to_string()))?;
        if !state.shape.accepts(tensor.dims()) {
            return Err(self.refuse(&format!(
                "element {index}: expected a shape that agrees with {}, found {found}",
                state.shape
            )));
        }
        if self.form.identical && state.shape.full().is_none() {
            state.shape = found;
        }
        let element = &mut state.elements[at];
        if element.is_read {
            return Err(self.refuse(&format!("element {index} cannot be written: it was read")));
        }
        let Some(dims) = &element.dims else {
            (element.dims, element.tensor) = (Some(tensor.dims().to_vec()), Some(tensor));
            return Ok(());
        };
        if !self.form.is_gradient {
            let message = format!("element {index} cannot be written: it was written before");
            return Err(self.refuse(&message));
        }
        if dims != tensor.dims() {
            return Err(self.refuse(&format!(
                "element {index}: cannot add shape {:?} to shape {dims:?}",
                tensor.dims()
            )));
        }
        match &mut element.tensor {
            Some(before) if before.slot().elements > 0 => {
                *before = sum(before, &tensor)?;
                state.has_sums = true;
            }
            zeros => *zeros = Some(tensor),
        }
        Ok(())
    }

    /// The position of an index that is written: the array grows where it may.
    fn room_for(&self, state: &mut State, index: i32) -> Result<usize, KernelError> {
        let len = state.elements.len();
        let at = usize::try_from(index).ok().filter(|&at| at < len || state.is_dynamic);
        let at = at.ok_or_else(|| {
            self.refuse(&format!(
                "index {index} cannot be written: it has {len} elements and does not grow"
            ))
        })?;
        if at >= len {
            state.grow(at + 1)?;
        }
        Ok(at)
    }

    /// Reads elements, in order, up to the first error.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for an index that the array does not have, an element that was never written or is gone.
    pub fn read(&self, indices: &[i32]) -> Result<Vec<Value>, KernelError> {
        let mut state = self.open()?;
        growth::try_collected(indices.iter().map(|&index| self.take(&mut state, index)))
    }

    fn take(&self, state: &mut State, index: i32) -> Result<Value, KernelError> {
        let len = state.elements.len();
        let at = usize::try_from(index).ok().filter(|&at| at < len || self.form.is_gradient);
        let at = at.ok_or_else(|| {
            self.refuse(&format!("index {index} cannot be read: it has {len} elements"))
        })?;
        if state.elements.get(at).is_none_or(|element| element.dims.is_none()) {
            self.make_zeros(state, at)?;
        }
        let element = &mut state.elements[at];
        if element.is_cleared {
            return Err(self.refuse(&format!(
                "element {index} is gone: it was read, and clear_after_read is set"
            )));
        }
        let value = match (&element.tensor, &element.dims) {
            (Some(tensor), _) => Value::Tensor(Arc::clone(tensor)),
            (None, dims) => Value::Zeros(dims.clone().unwrap_or_default()),
        };
        element.is_read = true;
        if self.form.clears {
            (element.tensor, element.is_cleared) = (None, true);
        }
        Ok(value)
    }

    /// Sets an element that was not written to zeros, and those before it that the array lacks.
    fn make_zeros(&self, state: &mut State, at: usize) -> Result<(), KernelError> {
        let Some(shape) = state.shape.full() else {
            return Err(self.refuse(&format!(
                "element {at} was not written, and zeros for it need a full element_shape, found {}",
                state.shape
            )));
        };
        let first = state.elements.len().min(at);
        if at >= state.elements.len() {
            state.grow(at + 1)?;
        }
        for element in &mut state.elements[first..=at] {
            if element.dims.is_none() {
                element.dims = Some(shape.dims().to_vec());
            }
        }
        Ok(())
    }

    /// Takes what a gather says of the shapes of the elements.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when it contradicts what is known.
    pub fn learn(&self, shape: &PartialShape) -> Result<(), KernelError> {
        let mut state = self.lock();
        let what = format!("TensorArray '{}': element_shape", self.form.name);
        state.shape = merged(&state.shape, shape, &what)?;
        Ok(())
    }

    /// How many elements it has.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when it is closed.
    pub fn len(&self) -> Result<usize, KernelError> {
        Ok(self.open()?.elements.len())
    }

    /// How many elements it has once index `needed - 1` is written.
    ///
    /// # Errors
    /// As [`TensorArray::len`].
    pub fn len_for(&self, needed: usize) -> Result<usize, KernelError> {
        let state = self.open()?;
        let len = state.elements.len();
        Ok(if state.is_dynamic { len.max(needed) } else { len })
    }

    /// Notes that a tensor was split into this number of elements.
    ///
    /// # Errors
    /// As [`TensorArray::len`].
    pub fn mark_split(&self, count: usize) -> Result<(), KernelError> {
        let mut state = self.open()?;
        if !self.form.is_gradient {
            state.split = Some(count);
        }
        Ok(())
    }

    /// How many elements a concatenation has: those that the forward array was split into.
    ///
    /// # Errors
    /// As [`TensorArray::len`].
    pub fn len_of_concat(&self) -> Result<usize, KernelError> {
        let state = self.open()?;
        let len = state.elements.len();
        Ok(if self.form.is_gradient { state.split.unwrap_or(len) } else { len })
    }

    /// Drops what it holds, and refuses what comes.
    pub fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        let held = std::mem::take(&mut state.elements);
        // Tensors go after the lock does.
        drop(state);
        drop(held);
    }
}

impl State {
    fn grow(&mut self, len: usize) -> Result<(), KernelError> {
        let more = len.saturating_sub(self.elements.len());
        growth::reserve(&mut self.elements, more)?;
        self.elements.resize(len, Element::default());
        Ok(())
    }
}
