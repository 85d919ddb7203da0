//! Errors of conversions between messages and framework types.

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
    /// The number is not that of an element type.
    #[error("expected the number of an element type, found {found}")]
    DataType {
        /// The number.
        found: i32,
    },
    /// The text is not a type of attributes.
    #[error("attribute '{attr}': expected a type such as int or list(shape), found '{found}'", attr = cut(.attr), found = cut(.found))]
    AttrTypeName {
        /// The attribute.
        attr: String,
        /// The text.
        found: String,
    },
    /// The element type of a tensor's value is a reference.
    #[error("the value of a tensor has a plain element type, found {found}")]
    Reference {
        /// The type.
        found: DType,
    },
    /// The dimensions are not a valid shape.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// A dimension is below -1.
    #[error("a dimension is at least 0, or -1 where unknown, found {value} as dimension {index}")]
    Dimension {
        /// Position.
        index: usize,
        /// What was found.
        value: i64,
    },
    /// A shape of unknown rank has dimensions.
    #[error("a shape of unknown rank has no dimensions, found {dims}")]
    UnknownRank {
        /// Number of dimensions.
        dims: usize,
    },
    /// The shape of a tensor's value is incomplete.
    #[error("the shape of a tensor's value is complete, found {shape}")]
    Incomplete {
        /// The shape.
        shape: PartialShape,
    },
    /// This version does not convert values of this type.
    #[error("values of {dtype} are not converted: use another element type")]
    Unsupported {
        /// The type.
        dtype: DType,
    },
    /// The length of `tensor_content` does not match shape and type.
    #[error(
        "tensor_content of {dtype} {shape} has {expected} bytes, found {found}: the data is cut or of another type"
    )]
    ContentLength {
        /// The type.
        dtype: DType,
        /// The shape.
        shape: PartialShape,
        /// Bytes required by shape and type.
        expected: usize,
        /// Bytes found.
        found: usize,
    },
    /// `tensor_content` does not hold as many strings as the shape requires.
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
    /// There are more values than elements.
    #[error("a tensor of {dtype} {shape} has at most {expected} values, found {found}")]
    TooManyValues {
        /// The type.
        dtype: DType,
        /// The shape.
        shape: PartialShape,
        /// Number of elements.
        expected: usize,
        /// Number of values found.
        found: usize,
    },
    /// Complex values do not come in pairs.
    #[error("values of {dtype} are pairs of real and imaginary parts, found {found} numbers")]
    OddComplex {
        /// The type.
        dtype: DType,
        /// Numbers found.
        found: usize,
    },
    /// An integer does not fit the type.
    #[error("value {index} of a tensor of {dtype} does not fit: found {value}")]
    ValueRange {
        /// The type.
        dtype: DType,
        /// Position.
        index: usize,
        /// The value.
        value: i64,
    },
    /// Few bytes represent too many.
    #[error(
        "{what} needs {needed} bytes beyond what is encoded, and {left} are left of what one graph may \
         expand to: fill large tensors by an op, or feed them",
        what = cut_text(.what)
    )]
    Expansion {
        /// What is expanded.
        what: String,
        /// Bytes required; the largest number if that overflows.
        needed: usize,
        /// Bytes left.
        left: usize,
    },
    /// The tensor cannot be created or read.
    #[error(transparent)]
    Tensor(Box<TensorError>),
    /// An attribute value has another kind.
    #[error("expected a value of type {expected}, found {found}", found = cut_text(.found))]
    AttrKind {
        /// The kind requested.
        expected: AttrType,
        /// The kind found.
        found: String,
    },
    /// The value is a placeholder, which is only defined once a function is instantiated.
    #[error(
        "expected a value of type {expected}, found the placeholder '{name}', which only bodies of functions have",
        name = cut(.name)
    )]
    Placeholder {
        /// The kind requested.
        expected: AttrType,
        /// Name of the function's attribute.
        name: String,
    },
    /// A nested message cannot be read or written.
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
