//! Scales and zero points of ops other than products: read by position, checked against a type.

use crate::kernels::range::scalar;
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext},
    element::Quantised,
    fixed_point::{Activation, Affine, Scale, ZeroPoint},
};

/// The scale at input `at`, and the zero point at the next one; `names` are their names.
///
/// # Errors
/// They are not scalars, the scale is invalid, or the zero point is outside the type.
pub fn affine<T: Quantised>(
    c: &ComputeContext<'_>,
    at: usize,
    [scale_name, zero_name]: [&'static str; 2],
) -> Result<Affine, KernelError> {
    let (scale, zero) = (scalar(c, at, scale_name)?, scalar(c, at + 1, zero_name)?);
    Scale::new(scale_name, scale)?;
    let zero_point = ZeroPoint::new(zero_name, T::DTYPE, zero)?.value();
    Ok(Affine { scale, zero_point })
}

/// Names of the output's parameters.
pub const OUT: [&str; 2] = ["out_scale", "out_zero_point"];

/// Attribute `activation` with its bounds.
///
/// # Errors
/// There is no activation of this name, or its bounds are invalid.
pub fn activation(c: &CreateContext<'_>) -> Result<Activation, KernelError> {
    Ok(Activation::parse(c.attr("activation")?, [c.attr("clamp_min")?, c.attr("clamp_max")?])?)
}
