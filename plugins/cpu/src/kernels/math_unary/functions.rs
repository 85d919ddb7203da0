//! Elementary and special functions that are computed in double, whatever the type: narrower floats are right to
//! their last place. The functions themselves are those of the C library and of `tenon_reference::special`.

use crate::{kernels::elementwise::any::map_double, lane::Compute};
use half::{bf16, f16};
use tenon_reference::special;
use tenon_sdk::{KernelError, author::ComputeContext, reg::Numerics, register_kernel};

macro_rules! in_double {
    ($($op:literal $name:ident, $cost:expr, $ulps:expr, [$($ty:ty),*], $function:expr;)*) => {$(
        fn $name<T: Compute>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
            map_double::<T>(c, $cost, $function)
        }

        register_kernel!($op on "CPU": fn $name<T> for "T" in [$($ty),*],
            in_place = &[(0, 0)], numerics = Numerics::ulps($ulps));
    )*};
}

in_double! {
    "Reciprocal" reciprocal, 0.5, 1.0, [f16, bf16, f32, f64], |x: f64| 1.0 / x;
    "Inv" inv, 0.5, 1.0, [f16, bf16, f32, f64], |x: f64| 1.0 / x;
    "Expm1" expm1, 8.0, 1.0, [f16, bf16, f32, f64], f64::exp_m1;
    "Log1p" log1p, 8.0, 1.0, [f16, bf16, f32, f64], f64::ln_1p;
    "Sin" sin, 8.0, 1.0, [f16, bf16, f32, f64], f64::sin;
    "Cos" cos, 8.0, 1.0, [f16, bf16, f32, f64], f64::cos;
    "Tan" tan, 12.0, 1.0, [f16, bf16, f32, f64], f64::tan;
    "Asin" asin, 8.0, 1.0, [f16, bf16, f32, f64], f64::asin;
    "Acos" acos, 8.0, 1.0, [f16, bf16, f32, f64], f64::acos;
    "Atan" atan, 8.0, 1.0, [f16, bf16, f32, f64], f64::atan;
    "Sinh" sinh, 12.0, 2.0, [f16, bf16, f32, f64], f64::sinh;
    "Cosh" cosh, 12.0, 2.0, [f16, bf16, f32, f64], f64::cosh;
    "Asinh" asinh, 12.0, 2.0, [f16, bf16, f32, f64], special::asinh;
    "Acosh" acosh, 12.0, 2.0, [f16, bf16, f32, f64], special::acosh;
    "Atanh" atanh, 12.0, 2.0, [f16, bf16, f32, f64], special::atanh;
    "Erf" erf, 10.0, 1.0, [f16, bf16, f32, f64], special::erf;
    "Erfc" erfc, 12.0, 1.0, [f16, bf16, f32, f64], special::erfc;
}

macro_rules! special {
    ($($op:literal $name:ident, $cost:expr, $relative:expr, [$($ty:ty),*], $function:expr;)*) => {$(
        fn $name<T: Compute>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
            map_double::<T>(c, $cost, $function)
        }

        register_kernel!($op on "CPU": fn $name<T> for "T" in [$($ty),*],
            in_place = &[(0, 0)], numerics = Numerics::relative($relative, $relative));
    )*};
}

special! {
    "Erfinv" erfinv, 60.0, 1e-14, [f32, f64], special::erfinv;
    "Ndtri" ndtri, 60.0, 1e-14, [f32, f64], special::ndtri;
    "Lgamma" lgamma, 25.0, 1e-14, [f16, f32, f64], special::lgamma;
    "Digamma" digamma, 40.0, 1e-14, [f16, f32, f64], special::digamma;
}
