//! Powers, angles, products that treat zeros specially, next representable numbers, and special
//! functions of two numbers.

use crate::{
    arch::Isa,
    kernels::{
        elementary::{
            incomplete::{Side, incomplete_gamma},
            short::{self, unless_zero},
            zeta,
        },
        elementwise::{
            BinaryOp,
            any::{zip, zip_double},
            binary,
            blocks::zip_blocks,
        },
    },
    lane::Compute,
};
use half::{bf16, f16};
use tenon_reference::special;
use tenon_sdk::{
    DType, KernelError, author::ComputeContext, element::Number, reg::Numerics, register_kernel,
};

/// `(x - y)^2`.
pub struct SquaredDifference;

impl<W: Compute<Wide = W>> BinaryOp<W> for SquaredDifference {
    #[inline(always)]
    fn apply<I: Isa>(x: W, y: W) -> W {
        let difference = x.sub(y);
        difference.mul(difference)
    }
}

fn squared_difference<T: Compute>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    binary::<T, SquaredDifference>(c)
}

register_kernel!("SquaredDifference" on "CPU": fn squared_difference<T>
    for "T" in [i32, i64, f16, bf16, f32, f64],
    in_place = &[(0, 0)], numerics = Numerics::ulps(2.0));

macro_rules! in_double {
    ($($op:literal $name:ident, $cost:expr, $numerics:expr, [$($ty:ty),*],
        |$x:ident, $y:ident| $value:expr;)*) => {$(
        fn $name<T: Compute>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
            zip_double::<T>(c, $cost, |$x, $y| $value)
        }

        register_kernel!($op on "CPU": fn $name<T> for "T" in [$($ty),*], numerics = $numerics);
    )*};
}

in_double! {
    "Pow" pow, 20.0, Numerics::ulps(1.0), [f64], |x, y| x.powf(y);
    "Atan2" atan2, 12.0, Numerics::ulps(1.0), [f64], |y, x| y.atan2(x);
    "Xdivy" xdivy, 0.7, Numerics::ulps(1.0), [f64], |x, y| unless_zero(x, x / y);
    "Xlogy" xlogy, 8.0, Numerics::ulps(2.0), [f64], |x, y| unless_zero(x, x * y.ln());
    "Xlog1py" xlog1py, 8.0, Numerics::ulps(2.0), [f64], |x, y| unless_zero(x, x * y.ln_1p());
    "MulNoNan" mul_no_nan, 0.5, Numerics::ulps(1.0), [f64], |x, y| unless_zero(y, x * y);
    "DivNoNan" div_no_nan, 0.7, Numerics::ulps(1.0), [f64], |x, y| unless_zero(y, x / y);
    "Igamma" igamma, 200.0, Numerics::relative(1e-13, 1e-12), [f64],
        |a, x| special::igamma(a, x);
    "Igammac" igammac, 200.0, Numerics::relative(1e-13, 1e-12), [f64],
        |a, x| special::igammac(a, x);
    "IgammaGradA" igamma_grad_a, 300.0, Numerics::relative(1e-13, 1e-12), [f32, f64],
        |a, x| special::igamma_grad_a(a, x);
    "RandomGammaGrad" random_gamma_grad, 300.0, Numerics::relative(1e-13, 1e-12), [f32, f64],
        |a, x| special::random_gamma_grad(a, x);
    "Zeta" zeta, 200.0, Numerics::relative(1e-14, 1e-13), [f64],
        |x, q| special::zeta(x, q);
    "Polygamma" polygamma, 200.0, Numerics::relative(1e-14, 1e-13), [f64],
        |n, x| special::polygamma(n, x);
}

macro_rules! of_floats_together {
    ($($op:literal $name:ident, $cost:expr, |$x:ident, $y:ident, $z:ident| $body:expr;)*) => {$(
        fn $name(c: &ComputeContext<'_>) -> Result<(), KernelError> {
            zip_blocks(c, $cost, |$x: &[f32], $y: &[f32], $z: &mut [f32]| $body)
        }

        register_kernel!($op on "CPU": fn $name, types = ("T", &[DType::FLOAT]),
            numerics = Numerics::ulps(1.0));
    )*};
}

of_floats_together! {
    "Igamma" fast_igamma, 40.0, |a, x, y| incomplete_gamma(Side::Lower, a, x, y);
    "Igammac" fast_igammac, 40.0, |a, x, y| incomplete_gamma(Side::Upper, a, x, y);
    "Zeta" fast_zeta, 60.0, |x, q, y| zeta::zeta(x, q, y);
    "Polygamma" fast_polygamma, 60.0, |n, x, y| zeta::polygamma(n, x, y);
}

macro_rules! short {
    ($($op:literal $fast:ident $fast_name:ident $name:ident, $cost:expr, [$($ty:ty),*];)*) => {$(
        struct $fast;

        impl BinaryOp<f32> for $fast {
            const COST_NS: f64 = $cost;
            const BY_ISA: bool = true;
            #[inline(always)]
            fn apply<I: Isa>(x: f32, y: f32) -> f32 {
                short::$name::<I>(f64::from(x), f64::from(y)) as f32
            }
        }

        fn $fast_name<T: Compute<Wide = f32>>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
            binary::<T, $fast>(c)
        }

        register_kernel!($op on "CPU": fn $fast_name<T> for "T" in [$($ty),*],
            in_place = &[(0, 0)], numerics = Numerics::ulps(1.0));
    )*};
}

short! {
    "Pow" Pow fast_pow pow, 4.0, [f16, f32];
    "Atan2" Atan2 fast_atan2 atan2, 2.5, [f16, bf16, f32];
    "Xdivy" Xdivy fast_xdivy xdivy, 0.5, [f16, bf16, f32];
    "Xlogy" Xlogy fast_xlogy xlogy, 1.5, [f16, bf16, f32];
    "Xlog1py" Xlog1py fast_xlog1py xlog1py, 1.5, [f16, bf16, f32];
    "MulNoNan" MulNoNan fast_mul_no_nan mul_no_nan, 0.3, [f16, bf16, f32];
    "DivNoNan" DivNoNan fast_div_no_nan div_no_nan, 0.5, [f16, bf16, f32];
}

/// [`Pow`] of bfloat16. TensorFlow does not flush its exponents: a denormal exponent differs from
/// 0, for which the result is 1 whatever the base.
struct ShortPow;

impl BinaryOp<f32> for ShortPow {
    const COST_NS: f64 = <Pow as BinaryOp<f32>>::COST_NS;
    const BY_ISA: bool = true;
    #[inline(always)]
    fn apply<I: Isa>(x: f32, y: f32) -> f32 {
        Pow::apply::<I>(x, at_least_normal(y))
    }
}

/// The least normal number of the same sign for a denormal; as an exponent, it gives the same
/// power.
#[inline(always)]
fn at_least_normal(y: f32) -> f32 {
    // By its bits, because arithmetic flushes denormals.
    const LEAST: u32 = 1 << (f32::MANTISSA_DIGITS - 1);
    let magnitude = y.to_bits() & 0x7fff_ffff;
    let is_denormal = magnitude.wrapping_sub(1) < LEAST - 1;
    let bits = if is_denormal { LEAST | y.to_bits() & 0x8000_0000 } else { y.to_bits() };
    f32::from_bits(bits)
}

fn short_pow(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    binary::<bf16, ShortPow>(c)
}

register_kernel!("Pow" on "CPU": fn short_pow, types = ("T", &[DType::BFLOAT16]),
    in_place = &[(0, 0)], numerics = Numerics::ulps(1.0));

/// Integers that can be raised to a power.
trait Power: Number {
    fn power(self, exponent: Self) -> Self;
}

macro_rules! power {
    ($($ty:ty),*) => {$(
        impl Power for $ty {
            fn power(self, exponent: $ty) -> $ty {
                let (mut power, mut base, mut rest) = (1, self, exponent);
                while rest > 0 {
                    if rest & 1 == 1 {
                        power = <$ty>::wrapping_mul(power, base);
                    }
                    base = base.wrapping_mul(base);
                    rest >>= 1;
                }
                power
            }
        }
    )*};
}

power!(i8, i16, i32, i64);

fn integer_pow<T: Power>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let (x, y) = (c.input::<T>(0)?, c.input::<T>(1)?);
    if let Some(y) = y.data.iter().find(|&&y| y < T::ZERO && !x.data.is_empty()) {
        return Err(KernelError::invalid_argument(format!(
            "integers to negative integer powers are not allowed: y must be at least 0, found {y:?}"
        )));
    }
    zip(c, 10.0, T::power)
}

register_kernel!("Pow" on "CPU": fn integer_pow<T> for "T" in [i8, i16, i32, i64],
    numerics = Numerics::EXACT);

fn next_after(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    zip(c, 2.0, special::next_after)
}

fn next_after_f32(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    zip(c, 2.0, special::next_after_f32)
}

register_kernel!("NextAfter" on "CPU": fn next_after,
    types = ("T", &[DType::DOUBLE]), numerics = Numerics::EXACT);
register_kernel!("NextAfter" on "CPU": fn next_after_f32,
    types = ("T", &[DType::FLOAT]), numerics = Numerics::EXACT);
