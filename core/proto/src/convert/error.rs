//! What can go wrong between messages and framework types.

use tenon_framework::attr::AttrType;
use tenon_framework::shape::{PartialShape, ShapeError};
use tenon_framework::tensor::TensorError;
use tenon_framework::text::{cut, cut_text};
use tenon_framework::{Code, DType};

use crate::ProtoError;

/// Why a message has no framework value, or a value no message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConvertError {
    /// A number that names no element type.
    #[error("expected the number of an element type, found {found}")]
    DataType {
        /// The number.
        found: i32,
    },
    /// The type of a tensor's value is a reference.
    #[error("the value of a tensor has a plain element type, found {found}")]
    Reference {
        /// The type.
        found: DType,
    },
    /// Dimensions that no shape has.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// A dimension below -1.
    #[error("a dimension is at least 0, or -1 where unknown, found {value} as dimension {index}")]
    Dimension {
        /// Position.
        index: usize,
        /// What was found.
        value: i64,
    },
    /// Dimensions beside an unknown rank.
    #[error("a shape of unknown rank has no dimensions, found {dims}")]
    UnknownRank {
        /// Number of dimensions.
        dims: usize,
    },
    /// A tensor's value needs a complete shape.
    #[error("the shape of a tensor's value is complete, found {shape}")]
    Incomplete {
        /// The shape.
        shape: PartialShape,
    },
    /// Values of a type that this version does not convert.
    #[error("values of {dtype} are not converted: use another element type")]
    Unsupported {
        /// The type.
        dtype: DType,
    },
    /// `tensor_content` of another length than shape and type say.
    #[error(
        "tensor_content of {dtype} {shape} has {expected} bytes, found {found}: the data is cut or of another type"
    )]
    ContentLength {
        /// The type.
        dtype: DType,
        /// The shape.
        shape: PartialShape,
        /// Bytes that it needs.
        expected: usize,
        /// Bytes that there are.
        found: usize,
    },
    /// `tensor_content` that does not hold as many strings as the shape says.
    #[error(
        "tensor_content of string {shape} holds {expected} lengths and then the bytes, found {problem}"
    )]
    StringContent {
        /// The shape.
        shape: PartialShape,
        /// Number of strings.
        expected: usize,
        /// What is wrong.
        problem: &'static str,
    },
    /// More values than elements.
    #[error("a tensor of {dtype} {shape} has at most {expected} values, found {found}")]
    TooManyValues {
        /// The type.
        dtype: DType,
        /// The shape.
        shape: PartialShape,
        /// Its elements.
        expected: usize,
        /// Values given.
        found: usize,
    },
    /// Complex values come in pairs.
    #[error("values of {dtype} are pairs of real and imaginary parts, found {found} numbers")]
    OddComplex {
        /// The type.
        dtype: DType,
        /// Numbers given.
        found: usize,
    },
    /// An integer that the type cannot hold.
    #[error("value {index} of a tensor of {dtype} does not fit: found {value}")]
    ValueRange {
        /// The type.
        dtype: DType,
        /// Position.
        index: usize,
        /// The value.
        value: i64,
    },
    /// Few bytes that stand for too many.
    #[error(
        "{what} needs {needed} bytes beyond what is encoded, and {left} are left of what one graph may \
         expand to: fill large tensors by an op, or feed them",
        what = cut_text(.what)
    )]
    Expansion {
        /// What is expanded.
        what: String,
        /// Bytes that it needs; the largest number when it does not fit.
        needed: usize,
        /// Bytes that are left.
        left: usize,
    },
    /// The tensor cannot be made or read.
    #[error(transparent)]
    Tensor(Box<TensorError>),
    /// An attribute value of another kind.
    #[error("expected a value of type {expected}, found {found}", found = cut_text(.found))]
    AttrKind {
        /// What was asked for.
        expected: AttrType,
        /// What there is.
        found: String,
    },
    /// A placeholder, which has a value only once a function is instantiated.
    #[error(
        "expected a value of type {expected}, found the placeholder '{name}', which only bodies of functions have",
        name = cut(.name)
    )]
    Placeholder {
        /// What was asked for.
        expected: AttrType,
        /// Name of the function's attribute.
        name: String,
    },
    /// A nested message that cannot be read or written.
    #[error(transparent)]
    Message(#[from] ProtoError),
}

impl From<TensorError> for ConvertError {
    fn from(error: TensorError) -> Self {
        Self::Tensor(Box::new(error))
    }
}

impl ConvertError {
    /// The canonical code.
    #[must_use]
    pub fn code(&self) -> Code {
        match self {
            Self::Unsupported { .. } => Code::UNIMPLEMENTED,
            Self::Expansion { .. } => Code::RESOURCE_EXHAUSTED,
            Self::Shape(error) => error.code(),
            Self::Tensor(error) => error.code(),
            Self::Message(error) => error.code(),
            _ => Code::INVALID_ARGUMENT,
        }
    }
}
