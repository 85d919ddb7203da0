//! The error of the geometry functions.

use tenon_abi::{Code, MAX_RANK};
use tenon_framework::KernelError;

/// The error of an op's shapes, axes or attributes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GeometryError {
    /// More dimensions than a tensor may have.
    #[error("a tensor has at most {MAX_RANK} dimensions, got {rank}")]
    RankTooLarge {
        /// The number of dimensions requested.
        rank: usize,
    },
    /// A number of dimensions other than the op expects.
    #[error("{what} must have {expected} dimensions, got {found}")]
    Rank {
        /// The argument.
        what: &'static str,
        /// The expected number of dimensions.
        expected: usize,
        /// The number of dimensions found.
        found: usize,
    },
    /// Fewer dimensions than the op expects.
    #[error("{what} must have at least {expected} dimensions, got {found}")]
    RankTooSmall {
        /// The argument.
        what: &'static str,
        /// The least number of dimensions.
        expected: usize,
        /// The number of dimensions found.
        found: usize,
    },
    /// A dimension below 0 (or below -1 where a dimension may be unknown).
    #[error("dimension {index} must be at least 0, got {value}")]
    NegativeDim {
        /// The index of the dimension.
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
        /// The name of the size.
        what: &'static str,
        /// The expected size.
        expected: i64,
        /// The size found.
        found: i64,
    },
    /// An equation that cannot be parsed, or does not fit its inputs.
    #[error("equation {equation:?}: {problem}")]
    Equation {
        /// The equation.
        equation: String,
        /// The problem.
        problem: String,
    },
    /// Batch dimensions that must be equal.
    #[error("x and y must have equal dimensions before the last two, got {a:?} and {b:?}")]
    Batches {
        /// The dimensions of the first input.
        a: Vec<i64>,
        /// The dimensions of the second input.
        b: Vec<i64>,
    },
    /// Matrices that must be square.
    #[error("{what} must hold square matrices, got matrices of {rows} rows and {cols} columns")]
    NotSquare {
        /// The argument.
        what: &'static str,
        /// The number of rows.
        rows: i64,
        /// The number of columns.
        cols: i64,
    },
    /// An input whose shape does not fit the first input's.
    #[error(
        "values[{input}] must have the shape of values[0] except along the joined axis: expected {expected:?}, got {found:?}"
    )]
    InputShape {
        /// The number of the input.
        input: usize,
        /// Shape of input 0.
        expected: Vec<i64>,
        /// Its shape.
        found: Vec<i64>,
    },
    /// An empty list of inputs.
    #[error("values must hold at least one tensor, got none")]
    NoInputs,
    /// An axis that the tensor does not have.
    #[error("{what} must lie in [{low}, {high}), got {axis}")]
    Axis {
        /// The argument.
        what: &'static str,
        /// The least axis.
        low: i64,
        /// One more than the greatest axis.
        high: i64,
        /// The axis found.
        axis: i64,
    },
    /// An axis named twice.
    #[error("{what} holds axis {axis} twice: name each axis once")]
    DuplicateAxis {
        /// The argument.
        what: &'static str,
        /// The axis, counted from the front.
        axis: usize,
    },
    /// An attribute or argument list of the wrong length.
    #[error("{what} must hold {expected} values, got {found}")]
    Length {
        /// The argument.
        what: &'static str,
        /// The expected number of values.
        expected: usize,
        /// The number of values found.
        found: usize,
    },
    /// A value below its minimum.
    #[error("{what} must be at least {least}, got {found}")]
    TooSmall {
        /// The name of the value.
        what: &'static str,
        /// The minimum.
        least: i64,
        /// The value found.
        found: i64,
    },
    /// A value above its maximum.
    #[error("{what} must be at most {most}, got {found}")]
    TooMuch {
        /// The name of the value.
        what: &'static str,
        /// The maximum.
        most: i64,
        /// The value found.
        found: i64,
    },
    /// A window attribute below 1, for which TensorFlow uses another code than for other values.
    #[error("{what} must be at least 1, got {found}")]
    NotPositive {
        /// The attribute.
        what: &'static str,
        /// The value found.
        found: i64,
    },
    /// A value that must not be 0.
    #[error("{what} must not be 0")]
    Zero {
        /// The name of the value.
        what: &'static str,
    },
    /// A slice that reaches beyond its dimension.
    #[error(
        "a slice must lie in its dimension: dimension {index} has size {dim}, got begin {begin} and size {size}"
    )]
    SliceRange {
        /// The index of the dimension.
        index: usize,
        /// The first index.
        begin: i64,
        /// The number of elements.
        size: i64,
        /// The size of the dimension.
        dim: i64,
    },
    /// Updates with another shape than one slice per index.
    #[error("updates must have shape {expected:?}, got {found:?}")]
    UpdateShape {
        /// The expected shape.
        expected: Vec<i64>,
        /// The shape found.
        found: Vec<i64>,
    },
    /// A padding as large as the window, which would pool over padding only.
    #[error("{what} must be smaller than the window of {window}, got {found}")]
    PaddingTooLarge {
        /// The padding.
        what: &'static str,
        /// The size of the window.
        window: i64,
        /// The padding found.
        found: i64,
    },
    /// A window larger than the padded input.
    #[error(
        "the window is larger than the input over the {dim}: {input} with a padding of {padding} is less than the dilated window's {window}; make the window smaller, or set padding to SAME"
    )]
    WindowTooLarge {
        /// The name of the dimension.
        dim: &'static str,
        /// The size of the input.
        input: i64,
        /// The padding on both sides together.
        padding: i64,
        /// The size of the dilated window.
        window: i64,
    },
    /// Ratios that give no windows.
    #[error("pooling_ratio must {expected}, got {found}")]
    PoolingRatio {
        /// What is expected of the ratios.
        expected: &'static str,
        /// The ratios found, with what they are compared with.
        found: String,
    },
    /// Ratios of batch or depth other than 1, which TensorFlow does not support.
    #[error("pooling_ratio must be 1 in batch and depth, got {found}")]
    RatioOutside {
        /// The ratios found.
        found: String,
    },
    /// A size that is not a multiple of another.
    #[error("{what} ({value}) must be a multiple of {divisor_name} ({divisor})")]
    NotDivisible {
        /// The name of the size.
        what: &'static str,
        /// The size.
        value: i64,
        /// The name of the divisor.
        divisor_name: &'static str,
        /// The divisor.
        divisor: i64,
    },
    /// A name that is not one of the allowed ones.
    #[error("{what} must be one of {allowed}, got {found:?}")]
    Name {
        /// The attribute.
        what: &'static str,
        /// The allowed names.
        allowed: &'static str,
        /// The name found.
        found: String,
    },
    /// Explicit paddings with a `padding` that computes them.
    #[error("explicit_paddings must be empty unless padding is EXPLICIT, got {found} values")]
    UnexpectedExplicitPaddings {
        /// The number of values found.
        found: usize,
    },
    /// Strides, dilations or windows over batch or depth, which TensorFlow does not support on a
    /// CPU.
    #[error("{what} must be 1 in the {dim} dimension, got {found}")]
    NotSpatial {
        /// The attribute.
        what: &'static str,
        /// `batch` or `depth`.
        dim: &'static str,
        /// The value found.
        found: i64,
    },
    /// Pooling over depth together with rows or columns, or with a stride other than the window.
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
    /// More than one -1 in a list that may have one.
    #[error("{what} may hold one -1, got {dims:?}")]
    ManyUnknown {
        /// The argument.
        what: &'static str,
        /// Its values.
        dims: Vec<i64>,
    },
    /// A reshape that changes the number of elements.
    #[error("shape must have as many elements as tensor, which is {elements}, got {dims:?}")]
    Reshape {
        /// The number of elements of the input.
        elements: i64,
        /// The requested shape.
        dims: Vec<i64>,
    },
    /// Small elements whose last dimension does not make up one large element.
    #[error("the last dimension of input must be {}, of elements of {from} bytes that join to {to}, got {dims:?}", to / from)]
    Bitcast {
        /// Bytes of an element.
        from: usize,
        /// Bytes of an element of the output.
        to: usize,
        /// Dimensions of the input.
        dims: Vec<i64>,
    },
    /// Squeezing a dimension other than 1.
    #[error("dimension {index} of input must be 1 to be squeezed, got {found}")]
    Squeeze {
        /// The index of the dimension.
        index: usize,
        /// Its size.
        found: i64,
    },
    /// A mask of a slice that is not an `int32`.
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
        /// The index of the dimension.
        index: usize,
    },
    /// A single index with a stride below 1.
    #[error(
        "strides[{index}] must be positive for an index that removes its dimension, got {stride}"
    )]
    ShrinkStride {
        /// The index of the dimension.
        index: usize,
        /// The stride.
        stride: i64,
    },
    /// Two settings that exclude each other.
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
        /// The index of the dimension.
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
            | GeometryError::RatioOutside { .. }
            | GeometryError::DepthPooling { .. } => Code::UNIMPLEMENTED,
            GeometryError::NotPositive { .. } => Code::OUT_OF_RANGE,
            _ => Code::INVALID_ARGUMENT,
        }
    }

    /// The error with the name of the argument, for errors that do not have one.
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
