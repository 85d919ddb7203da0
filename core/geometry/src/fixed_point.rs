//! Output stages of quantised kernels: they convert a 32-bit sum of products to a quantised value.
//!
//! A quantised value `q` represents the real number `scale * (q - zero_point)`. A kernel sums
//! products of such values in `i32`, and converts the sum to the output's scale by a multiplier
//! `m = scale_a * scale_b / scale_out`:
//!
//! `q_out = clamp(round(m * sum) + zero_point_out, low, high)`
//!
//! There are two ways to multiply, each specified exactly:
//! - **in fixed point** ([`Multiplier`]), as gemmlowp defines it (`doc/quantization.md`, `fixedpoint/fixedpoint.h`): a
//!   [`saturating_rounding_doubling_high_mul`] and a [`rounding_divide_by_pot`], which rounds ties away from
//!   zero. Each of the two rounds;
//! - **by a float** ([`multiply_by_float`]): the sum as `f32`, times the scale, rounded once, ties to even.
//!
//! [`Addition`] is the sum of two values of different scales, [`Affine`] the scale and zero point
//! for a range of real numbers.
//!
//! Nothing here depends on an instruction set: kernels compile these functions for theirs, and
//! other implementations are tested against them. An invalid scale, zero point or number of terms
//! is an error here ([`FixedPointError`]), so it never gives a wrong result.
//!
//! ```
//! use tenon_geometry::fixed_point::{Multiplier, Scale, ZeroPoint};
//! use tenon_framework::DType;
//!
//! let scale = Scale::requantize(["a_scale", "b_scale"], 0.02, 0.5, 0.1)?;
//! let multiplier = Multiplier::new(scale)?;
//! let zero = ZeroPoint::new("out_zero_point", DType::QUINT8, 3)?;
//! assert_eq!(multiplier.apply(1000) + zero.value(), 100 + 3);
//! assert!(ZeroPoint::new("out_zero_point", DType::QUINT8, 256).is_err());
//! # Ok::<(), tenon_geometry::fixed_point::FixedPointError>(())
//! ```

mod activation;
mod addition;
mod affine;
mod error;
mod limits;
mod multiplier;

pub use activation::{Activation, QuantizedRange};
pub use addition::Addition;
pub use affine::Affine;
pub use error::FixedPointError;
pub use limits::{Depth, Scale, ZeroPoint, integer_range};
pub use multiplier::{
    Multiplier, multiply_by_float, rounding_divide_by_pot, saturating_rounding_doubling_high_mul,
    saturating_shift_left,
};

#[cfg(test)]
mod tests;
