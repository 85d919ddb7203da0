//! The error of the output stages.

use tenon_abi::{Code, DType};
use tenon_framework::KernelError;

/// What is wrong with the parameters of a quantised op.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FixedPointError {
    /// A scale that is none.
    #[error(
        "{what} must be finite and above 0, got {found}: give the step between two quantised values"
    )]
    Scale {
        /// Which one.
        what: &'static str,
        /// What it is.
        found: f32,
    },
    /// Scales whose quotient no multiplier stands for.
    #[error(
        "{what}: the scales of the inputs over that of the output must be in [2^-32, 2^30), got {found:e}: check that the \
         output's scale fits the sums"
    )]
    Multiplier {
        /// Which scale it came with.
        what: &'static str,
        /// The quotient.
        found: f64,
    },
    /// Scales whose product is none for real numbers.
    #[error(
        "{what}: the product of the scales of the inputs must be in [2^-126, 2^97), so that sums of 32 bits are finite \
         in float, got {found:e}"
    )]
    Real {
        /// Which scale it came with.
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
        /// Which scale.
        what: &'static str,
        /// The quotient.
        found: f64,
    },
    /// A range that no values stand for.
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
    /// A zero point that its type does not hold.
    #[error("{what} must be a value of {dtype}, in [{low}, {high}], got {found}")]
    ZeroPoint {
        /// Which one.
        what: &'static str,
        /// The type.
        dtype: DType,
        /// Its least value.
        low: i32,
        /// Its greatest value.
        high: i32,
        /// What it is.
        found: i32,
    },
    /// A type without a range of 32 bits or less.
    #[error(
        "{what} must be a quantised type (quint8, qint8, quint16, qint16, qint32), got {found}"
    )]
    Type {
        /// Which argument.
        what: &'static str,
        /// What it is.
        found: DType,
    },
    /// A sum that 32 bits may not hold.
    #[error(
        "a sum of {depth} products of up to {left} * {right} and a bias of up to {bias} can leave 32 bits: these values \
         allow up to {most} products, split the sum or use less extreme zero points"
    )]
    Depth {
        /// Products in a sum.
        depth: usize,
        /// Greatest magnitude of a left factor, less its zero point.
        left: i64,
        /// Of a right factor.
        right: i64,
        /// Of the bias.
        bias: i64,
        /// Most products that would be safe.
        most: i64,
    },
    /// Bounds of a clamp that hold no value.
    #[error("clamp_min must be below clamp_max and neither NaN, got {low} and {high}")]
    Clamp {
        /// The lower.
        low: f32,
        /// The upper.
        high: f32,
    },
    /// An activation that there is not.
    #[error("activation must be one of NONE, RELU, RELU6, CLAMP, got {found:?}")]
    Activation {
        /// What it is.
        found: String,
    },
}

impl From<FixedPointError> for KernelError {
    fn from(error: FixedPointError) -> KernelError {
        KernelError::new(Code::INVALID_ARGUMENT, error.to_string())
    }
}
