//! What is known of a value of a graph before it exists: its shape, in symbols, and perhaps its elements.
//!
//! Shape inference ([`infer`](crate::infer)) carries it from the inputs of a node to its outputs.

mod shape;
mod value;

pub use shape::{Dimension, Symbol, SymbolicShape, Symbols};
pub(crate) use value::MAX_ITEMS;
pub use value::{Item, SymbolicValue};

use crate::{PartialShape, Tensor};
use tenon_abi::DType;

/// A part of what is known of the value behind a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandlePart {
    /// Element type.
    pub dtype: DType,
    /// Shape.
    pub shape: SymbolicShape,
}

/// What is known of one value of a graph before it exists.
#[derive(Debug, Clone, Default)]
pub struct ValueInfo {
    /// Shape.
    pub shape: SymbolicShape,
    /// The value, when it is the same in every step.
    pub constant: Option<Tensor>,
    /// What is known of the integers of a scalar or vector that is not constant.
    pub value: Option<SymbolicValue>,
    /// For a resource: what is known of the value behind it.
    pub handle: Vec<HandlePart>,
}

impl ValueInfo {
    /// A value of which only the shape is known. Each unknown dimension is a new symbol.
    pub fn of_shape(shape: &PartialShape, symbols: &mut Symbols) -> ValueInfo {
        ValueInfo { shape: SymbolicShape::from_partial(shape, symbols), ..ValueInfo::default() }
    }

    /// A constant.
    pub fn of_constant(tensor: Tensor) -> ValueInfo {
        ValueInfo {
            shape: SymbolicShape::from_known(tensor.shape().dims()),
            value: SymbolicValue::from_tensor(&tensor),
            constant: Some(tensor),
            handle: Vec::new(),
        }
    }

    /// What is known of the integers of a scalar or vector.
    pub fn symbolic_value(&self) -> Option<SymbolicValue> {
        self.value.clone().or_else(|| SymbolicValue::from_tensor(self.constant.as_ref()?))
    }
}
