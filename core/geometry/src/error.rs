//! The error of the geometry functions.

use tenon_abi::{Code, MAX_RANK};
use tenon_framework::KernelError;

/// What is wrong with the shapes, axes or attributes of an op.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GeometryError {
    /// More dimensions than a tensor may have.
    #[error("a tensor has at most {MAX_RANK} dimensions, got {rank}")]
    RankTooLarge {
        /// Dimensions asked for.
        rank: usize,
    },
    /// Another number of dimensions than the op wants.
    #[error("{what} must have {expected} dimensions, got {found}")]
    Rank {
        /// Which argument.
        what: &'static str,
        /// Dimensions wanted.
        expected: usize,
        /// Dimensions found.
        found: usize,
    },
    /// Fewer dimensions than the op wants.
    #[error("{what} must have at least {expected} dimensions, got {found}")]
    RankTooSmall {
        /// Which argument.
        what: &'static str,
        /// Least number of dimensions.
        expected: usize,
        /// Dimensions found.
        found: usize,
    },
    /// A dimension below 0 (or below -1 where a dimension may be unknown).
    #[error("dimension {index} must be at least 0, got {value}")]
    NegativeDim {
        /// Which dimension.
        index: usize,
        /// Its size.
        value: i64,
    },
    /// The number of elements or bytes does not fit in 63 bits.
    #[error("shape {dims:?} has too many elements: its size must be below 2^63 bytes")]
    TooLarge {
        /// The dimensions.
        dims: Vec<i64>,
    },
    /// Two shapes that do not broadcast.
    #[error(
        "shapes {a:?} and {b:?} do not broadcast: each pair of dimensions must be equal or hold a 1"
    )]
    Incompatible {
        /// First shape.
        a: Vec<i64>,
        /// Second shape.
        b: Vec<i64>,
    },
    /// Two sizes that must agree.
    #[error("{what} must be {expected}, got {found}")]
    SizeMismatch {
        /// Which size.
        what: &'static str,
        /// Size wanted.
        expected: i64,
        /// Size found.
        found: i64,
    },
    /// An equation that cannot be read, or does not fit its inputs.
    #[error("equation {equation:?}: {problem}")]
    Equation {
        /// The equation.
        equation: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Batches that must be the same.
    #[error("x and y must have equal dimensions before the last two, got {a:?} and {b:?}")]
    Batches {
        /// Those of the first input.
        a: Vec<i64>,
        /// Those of the second.
        b: Vec<i64>,
    },
    /// Matrices that are not square where the op wants that.
    #[error("{what} must hold square matrices, got matrices of {rows} rows and {cols} columns")]
    NotSquare {
        /// Which argument.
        what: &'static str,
        /// Rows found.
        rows: i64,
        /// Columns found.
        cols: i64,
    },
    /// An input whose shape does not fit the first input's.
    #[error(
        "values[{input}] must have the shape of values[0] except along the joined axis: expected {expected:?}, got {found:?}"
    )]
    InputShape {
        /// Which input.
        input: usize,
        /// Shape of input 0.
        expected: Vec<i64>,
        /// Its shape.
        found: Vec<i64>,
    },
    /// An op over a list of inputs got none.
    #[error("values must hold at least one tensor, got none")]
    NoInputs,
    /// An axis that the tensor does not have.
    #[error("{what} must lie in [{low}, {high}), got {axis}")]
    Axis {
        /// Which argument.
        what: &'static str,
        /// Least axis.
        low: i64,
        /// One more than the greatest axis.
        high: i64,
        /// Axis found.
        axis: i64,
    },
    /// An axis named twice.
    #[error("{what} holds axis {axis} twice: name each axis once")]
    DuplicateAxis {
        /// Which argument.
        what: &'static str,
        /// The axis, counted from the front.
        axis: usize,
    },
    /// An attribute or argument list of the wrong length.
    #[error("{what} must hold {expected} values, got {found}")]
    Length {
        /// Which argument.
        what: &'static str,
        /// Values wanted.
        expected: usize,
        /// Values found.
        found: usize,
    },
    /// A value below its least.
    #[error("{what} must be at least {least}, got {found}")]
    TooSmall {
        /// Which value.
        what: &'static str,
        /// Least value.
        least: i64,
        /// Value found.
        found: i64,
    },
    /// A value above its greatest.
    #[error("{what} must be at most {most}, got {found}")]
    TooMuch {
        /// Which value.
        what: &'static str,
        /// Greatest value.
        most: i64,
        /// Value found.
        found: i64,
    },
    /// A window's attribute below 1, for which TensorFlow has another code than for other values.
    #[error("{what} must be at least 1, got {found}")]
    NotPositive {
        /// Which attribute.
        what: &'static str,
        /// Value found.
        found: i64,
    },
    /// A value of 0 where there must be another.
    #[error("{what} must not be 0")]
    Zero {
        /// Which value.
        what: &'static str,
    },
    /// A slice that reaches beyond its dimension.
    #[error(
        "a slice must lie in its dimension: dimension {index} has size {dim}, got begin {begin} and size {size}"
    )]
    SliceRange {
        /// Which dimension.
        index: usize,
        /// First index.
        begin: i64,
        /// Elements.
        size: i64,
        /// Size of the dimension.
        dim: i64,
    },
    /// Updates that are not one slice per index.
    #[error("updates must have shape {expected:?}, got {found:?}")]
    UpdateShape {
        /// Shape wanted.
        expected: Vec<i64>,
        /// Shape found.
        found: Vec<i64>,
    },
    /// A padding as large as the window, which would pool over padding only.
    #[error("{what} must be smaller than the window of {window}, got {found}")]
    PaddingTooLarge {
        /// Which padding.
        what: &'static str,
        /// Size of the window.
        window: i64,
        /// Padding found.
        found: i64,
    },
    /// A window larger than the padded input.
    #[error(
        "the window is larger than the input over the {dim}: {input} with a padding of {padding} is less than the dilated window's {window}; make the window smaller, or set padding to SAME"
    )]
    WindowTooLarge {
        /// Over which dimension.
        dim: &'static str,
        /// Size of the input.
        input: i64,
        /// Padding, both sides together.
        padding: i64,
        /// Size of the dilated window.
        window: i64,
    },
    /// Two sizes of which one must divide the other.
    #[error("{what} ({value}) must be a multiple of {divisor_name} ({divisor})")]
    NotDivisible {
        /// What must be a multiple.
        what: &'static str,
        /// Its value.
        value: i64,
        /// Of what.
        divisor_name: &'static str,
        /// The divisor.
        divisor: i64,
    },
    /// A name that is not one of the allowed ones.
    #[error("{what} must be one of {allowed}, got {found:?}")]
    Name {
        /// Which attribute.
        what: &'static str,
        /// Allowed names.
        allowed: &'static str,
        /// Name found.
        found: String,
    },
    /// Explicit paddings given with a padding that computes them.
    #[error("explicit_paddings must be empty unless padding is EXPLICIT, got {found} values")]
    UnexpectedExplicitPaddings {
        /// Values found.
        found: usize,
    },
    /// Something TensorFlow allows nowhere on a CPU: strides, dilations or windows over batch or depth.
    #[error("{what} must be 1 in the {dim} dimension, got {found}")]
    NotSpatial {
        /// Which attribute.
        what: &'static str,
        /// `batch` or `depth`.
        dim: &'static str,
        /// Value found.
        found: i64,
    },
    /// Pooling over depth together with rows or columns, or with another stride than window.
    #[error(
        "pooling over depth wants a ksize of 1 row and 1 column and strides over depth equal to it, got ksize {rows}x{cols}x{depth} and a stride of {stride} over depth"
    )]
    DepthPooling {
        /// Rows of the window.
        rows: i64,
        /// Columns of the window.
        cols: i64,
        /// Depth of the window.
        depth: i64,
        /// Stride over depth.
        stride: i64,
    },
    /// More than one value to be found in a list that gives all but one.
    #[error("{what} may hold one -1, got {dims:?}")]
    ManyUnknown {
        /// Which argument.
        what: &'static str,
        /// Its values.
        dims: Vec<i64>,
    },
    /// A reshape that changes the number of elements.
    #[error("shape must have as many elements as tensor, which is {elements}, got {dims:?}")]
    Reshape {
        /// Elements of the input.
        elements: i64,
        /// The shape asked for.
        dims: Vec<i64>,
    },
    /// Small elements whose last dimension does not make up a large one.
    #[error("the last dimension of input must be {}, of elements of {from} bytes that join to {to}, got {dims:?}", to / from)]
    Bitcast {
        /// Bytes of an element.
        from: usize,
        /// Bytes of an element of the output.
        to: usize,
        /// Dimensions of the input.
        dims: Vec<i64>,
    },
    /// Squeezing a dimension that is not 1.
    #[error("dimension {index} of input must be 1 to be squeezed, got {found}")]
    Squeeze {
        /// Which dimension.
        index: usize,
        /// Its size.
        found: i64,
    },
    /// A mask of a slice that is no `int32`.
    #[error("attribute {name}: expected a mask of 32 bits, found {found}")]
    WideMask {
        /// The attribute.
        name: &'static str,
        /// Its value.
        found: i64,
    },
    /// More than one ellipsis in a slice.
    #[error("ellipsis_mask must have at most one bit set, got {mask:#b}")]
    ManyEllipses {
        /// The mask.
        mask: u32,
    },
    /// A slice with more indices than the input has dimensions.
    #[error("begin, end and strides must index at most the {rank} dimensions of input, got more")]
    TooManyIndices {
        /// Dimensions of the input.
        rank: usize,
    },
    /// A stride of 0.
    #[error("strides[{index}] must not be 0")]
    ZeroStride {
        /// Which dimension.
        index: usize,
    },
    /// A single index with a stride below 1.
    #[error(
        "strides[{index}] must be positive for an index that removes its dimension, got {stride}"
    )]
    ShrinkStride {
        /// Which dimension.
        index: usize,
        /// The stride.
        stride: i64,
    },
    /// Two settings of which one at most may be on.
    #[error("{a} and {b} exclude each other, got both")]
    Exclusive {
        /// One attribute.
        a: &'static str,
        /// The other.
        b: &'static str,
    },
    /// A single index outside its dimension.
    #[error("begin must lie in dimension {index} of input, which has size {size}, got {found}")]
    IndexOutOfBounds {
        /// Which dimension.
        index: usize,
        /// Its size.
        size: i64,
        /// The index.
        found: i64,
    },
}

impl GeometryError {
    /// TensorFlow's code for this error.
    pub fn code(&self) -> Code {
        match self {
            GeometryError::RankTooLarge { .. }
            | GeometryError::NotSpatial { .. }
            | GeometryError::DepthPooling { .. } => Code::UNIMPLEMENTED,
            GeometryError::NotPositive { .. } => Code::OUT_OF_RANGE,
            _ => Code::INVALID_ARGUMENT,
        }
    }

    /// The error of an argument, for those that name none.
    pub fn of(&self, argument: &str) -> KernelError {
        KernelError::new(self.code(), format!("{argument}: {self}"))
    }
}

impl From<GeometryError> for KernelError {
    fn from(error: GeometryError) -> KernelError {
        KernelError::new(error.code(), error.to_string())
    }
}

/// Result of the geometry functions.
pub(crate) type Result<T> = std::result::Result<T, GeometryError>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_error_keeps_code_and_message() {
        let error = GeometryError::Axis { what: "axis", low: -2, high: 2, axis: 5 };
        let kernel = KernelError::from(error);
        assert_eq!(kernel.code(), Code::INVALID_ARGUMENT);
        assert_eq!(kernel.message, "axis must lie in [-2, 2), got 5");
        let error = GeometryError::RankTooLarge { rank: 17 };
        assert_eq!(error.code(), Code::UNIMPLEMENTED);
        assert_eq!(error.to_string(), "a tensor has at most 16 dimensions, got 17");
    }
}
