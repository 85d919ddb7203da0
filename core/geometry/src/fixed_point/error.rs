//! Errors of the output stages.

use tenon_abi::{Code, DType};
use tenon_framework::KernelError;

/// The error of a quantised op's parameters.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FixedPointError {
    /// An invalid scale.
    #[error(
        "{what} must be finite and above 0, got {found}: give the step between two quantised values"
    )]
    Scale {
        /// The argument.
        what: &'static str,
        /// The scale found.
        found: f32,
    },
    /// Scales with a quotient that no multiplier can represent.
    #[error(
        "{what}: the scales of the inputs over that of the output must be in [2^-32, 2^30), got {found:e}: check that the \
         output's scale fits the sums"
    )]
    Multiplier {
        /// The scale's argument.
        what: &'static str,
        /// The quotient.
        found: f64,
    },
    /// Scales with a product that is too small or too large for real results.
    #[error(
        "{what}: the product of the scales of the inputs must be in [2^-126, 2^97), so that sums of 32 bits are finite \
         in float, got {found:e}"
    )]
    Real {
        /// The scale's argument.
        what: &'static str,
        /// The product.
        found: f64,
    },
    /// A summand whose steps are too large for those of the sum.
    #[error(
        "{what}: the scale of a summand over that of the output must be below 2^20, got {found:e}: check that the \
         output's scale fits the sums"
    )]
    Summand {
        /// The scale's argument.
        what: &'static str,
        /// The quotient.
        found: f64,
    },
    /// A range that the values of the type cannot represent.
    #[error(
        "expected a range of finite numbers, its lower end first, found [{min}, {max}]: what is quantised must have no \
         NaN and no infinity"
    )]
    Range {
        /// The lower end.
        min: f32,
        /// The upper end.
        max: f32,
    },
    /// A zero point outside its type.
    #[error("{what} must be a value of {dtype}, in [{low}, {high}], got {found}")]
    ZeroPoint {
        /// The argument.
        what: &'static str,
        /// The type.
        dtype: DType,
        /// The least value of the type.
        low: i32,
        /// The greatest value of the type.
        high: i32,
        /// The zero point found.
        found: i32,
    },
    /// A type without a range of 32 bits or less.
    #[error(
        "{what} must be a quantised type (quint8, qint8, quint16, qint16, qint32), got {found}"
    )]
    Type {
        /// The argument.
        what: &'static str,
        /// The type found.
        found: DType,
    },
    /// A sum that may exceed 32 bits.
    #[error(
        "a sum of {depth} products of up to {left} * {right} and a bias of up to {bias} can leave 32 bits: these values \
         allow up to {most} products, split the sum or use less extreme zero points"
    )]
    Depth {
        /// The number of products in a sum.
        depth: usize,
        /// The greatest magnitude of a left factor minus its zero point.
        left: i64,
        /// The same for a right factor.
        right: i64,
        /// The greatest magnitude of the bias.
        bias: i64,
        /// The maximum number of products.
        most: i64,
    },
    /// Bounds of a clamp that leave no value.
    #[error("clamp_min must be below clamp_max and neither NaN, got {low} and {high}")]
    Clamp {
        /// The lower bound.
        low: f32,
        /// The upper bound.
        high: f32,
    },
    /// An unknown activation.
    #[error("activation must be one of NONE, RELU, RELU6, CLAMP, got {found:?}")]
    Activation {
        /// The name found.
        found: String,
    },
}

impl From<FixedPointError> for KernelError {
    fn from(error: FixedPointError) -> KernelError {
        KernelError::new(Code::INVALID_ARGUMENT, error.to_string())
    }
}
