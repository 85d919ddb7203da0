//! Elementary and special functions.
//!
//! Float and the 16-bit floats have loops of their own over `elementary::short`; double calls the
//! functions of the C library and of `tenon_reference::special`, as the reference does for every
//! type.

use crate::{
    arch::Isa,
    kernels::{
        elementary::{self, Elementary, short},
        elementwise::{
            UnaryOp,
            any::{self, map_double},
            unary,
        },
    },
    lane::Compute,
};
use half::{bf16, f16};
use tenon_reference::special;
use tenon_sdk::{DType, KernelError, author::ComputeContext, reg::Numerics, register_kernel};

/// Defines a function that is computed in double.
macro_rules! in_double {
    ($op:literal $name:ident, $cost:expr, $ulps:expr, $function:expr) => {
        fn $name(c: &ComputeContext<'_>) -> Result<(), KernelError> {
            any::map_in_place::<f64>(c, $cost, $function)
        }

        register_kernel!($op on "CPU": fn $name, types = ("T", &[DType::DOUBLE]),
            in_place = &[(0, 0)], numerics = Numerics::ulps($ulps));
    };
}

/// Defines the op of a function of `elementary::short`.
macro_rules! short {
    ($fast:ident $name:ident, $cost:expr) => {
        struct $fast;

        impl UnaryOp<f32> for $fast {
            const COST_NS: f64 = $cost;
            const BY_ISA: bool = true;
            #[inline(always)]
            fn apply<I: Isa>(x: f32) -> f32 {
                short::$name::<I>(f64::from(x)) as f32
            }
        }
    };
}

macro_rules! functions {
    ($($op:literal $fast:ident $fast_name:ident $name:ident,
        $cost:expr, $ulps:expr, $function:expr;)*) => {$(
        in_double!($op $name, 4.0 * $cost, $ulps, $function);

        short!($fast $name, $cost);

        #[inline(always)]
        fn $fast_name<T: Compute<Wide = f32>>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
            unary::<T, $fast>(c)
        }

        register_kernel!($op on "CPU": fn $fast_name<T> for "T" in [f16, bf16, f32],
            in_place = &[(0, 0)], numerics = Numerics::ulps(1.0));
    )*};
}

functions! {
    "Expm1" Expm1 fast_expm1 expm1, 1.5, 1.0, f64::exp_m1;
    "Log1p" Log1p fast_log1p log1p, 1.5, 1.0, f64::ln_1p;
    "Asin" Asin fast_asin asin, 2.0, 1.0, f64::asin;
    "Acos" Acos fast_acos acos, 2.0, 1.0, f64::acos;
    "Atan" Atan fast_atan atan, 1.5, 1.0, f64::atan;
    "Sinh" Sinh fast_sinh sinh, 2.5, 2.0, f64::sinh;
    "Cosh" Cosh fast_cosh cosh, 2.5, 2.0, f64::cosh;
    "Asinh" Asinh fast_asinh asinh, 2.0, 2.0, special::asinh;
    "Acosh" Acosh fast_acosh acosh, 2.0, 2.0, special::acosh;
    "Atanh" Atanh fast_atanh atanh, 2.0, 2.0, special::atanh;
    "Erfc" Erfc fast_erfc erfc, 2.0, 1.0, special::erfc;
}

in_double!("Erf" erf, 8.0, 1.0, special::erf);
short!(Erf erf, 2.0);

fn fast_erf(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    unary::<f32, Erf>(c)
}

register_kernel!("Erf" on "CPU": fn fast_erf, types = ("T", &[DType::FLOAT]),
    in_place = &[(0, 0)], numerics = Numerics::ulps(1.0));

/// The error function for 16-bit floats.
struct ShortErf;

impl UnaryOp<f32> for ShortErf {
    const COST_NS: f64 = 0.8;
    const BY_ISA: bool = true;
    #[inline(always)]
    fn apply<I: Isa>(x: f32) -> f32 {
        elementary::short_erf::<I>(x)
    }
}

fn short_erf<T: Compute<Wide = f32>>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    unary::<T, ShortErf>(c)
}

register_kernel!("Erf" on "CPU": fn short_erf<T> for "T" in [f16, bf16],
    in_place = &[(0, 0)], numerics = Numerics::ulps(1.0));

struct Reciprocal;

impl<W: Elementary> UnaryOp<W> for Reciprocal {
    const COST_NS: f64 = 0.3;
    #[inline(always)]
    fn apply<I: Isa>(x: W) -> W {
        W::ONE.div(x)
    }
}

#[inline(always)]
fn reciprocal<T: Compute<Wide: Elementary>>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    unary::<T, Reciprocal>(c)
}

register_kernel!("Reciprocal" on "CPU": fn reciprocal<T> for "T" in [f16, bf16, f32, f64],
    in_place = &[(0, 0)], numerics = Numerics::EXACT);
register_kernel!("Inv" on "CPU": fn reciprocal<T> for "T" in [f16, bf16, f32, f64],
    in_place = &[(0, 0)], numerics = Numerics::EXACT);

macro_rules! special {
    ($($op:literal $name:ident, $cost:expr, $relative:expr, [$($ty:ty),*], $function:expr;)*) => {$(
        fn $name<T: Compute>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
            map_double::<T>(c, $cost, $function)
        }

        register_kernel!($op on "CPU": fn $name<T> for "T" in [$($ty),*],
            in_place = &[(0, 0)], numerics = Numerics::relative($relative, $relative));
    )*};
}

macro_rules! inverses {
    ($($op:literal $fast:ident $fast_name:ident $name:ident;)*) => {$(
        in_double!($op $name, 60.0, 1.0, special::$name);

        short!($fast $name, 6.0);

        fn $fast_name(c: &ComputeContext<'_>) -> Result<(), KernelError> {
            unary::<f32, $fast>(c)
        }

        register_kernel!($op on "CPU": fn $fast_name, types = ("T", &[DType::FLOAT]),
            in_place = &[(0, 0)], numerics = Numerics::ulps(1.0));
    )*};
}

inverses! {
    "Erfinv" Erfinv fast_erfinv erfinv;
    "Ndtri" Ndtri fast_ndtri ndtri;
}

special! {
    "Lgamma" lgamma, 25.0, 1e-14, [f16, f32, f64], special::lgamma;
    "Digamma" digamma, 40.0, 1e-14, [f16, f32, f64], special::digamma;
    "BesselI0" bessel_i0, 60.0, 1e-13, [f16, f32, f64], special::bessel_i0;
    "BesselI0e" bessel_i0e, 60.0, 1e-13, [f16, f32, f64], special::bessel_i0e;
    "BesselI1" bessel_i1, 60.0, 1e-13, [f16, f32, f64], special::bessel_i1;
    "BesselI1e" bessel_i1e, 60.0, 1e-13, [f16, f32, f64], special::bessel_i1e;
    "BesselK0" bessel_k0, 60.0, 1e-13, [f16, f32, f64], special::bessel_k0;
    "BesselK0e" bessel_k0e, 60.0, 1e-13, [f16, f32, f64], special::bessel_k0e;
    "BesselK1" bessel_k1, 60.0, 1e-13, [f16, f32, f64], special::bessel_k1;
    "BesselK1e" bessel_k1e, 60.0, 1e-13, [f16, f32, f64], special::bessel_k1e;
    "BesselJ0" bessel_j0, 60.0, 1e-13, [f16, f32, f64], special::bessel_j0;
    "BesselJ1" bessel_j1, 60.0, 1e-13, [f16, f32, f64], special::bessel_j1;
    "BesselY0" bessel_y0, 60.0, 1e-13, [f16, f32, f64], special::bessel_y0;
    "BesselY1" bessel_y1, 60.0, 1e-13, [f16, f32, f64], special::bessel_y1;
    "Dawsn" dawsn, 60.0, 1e-13, [f32, f64], special::dawsn;
    "Expint" expint, 60.0, 1e-13, [f32, f64], special::expint;
    "FresnelCos" fresnel_cos, 60.0, 1e-13, [f32, f64], special::fresnel_cos;
    "FresnelSin" fresnel_sin, 60.0, 1e-13, [f32, f64], special::fresnel_sin;
    "Spence" spence, 60.0, 1e-13, [f32, f64], special::spence;
}
