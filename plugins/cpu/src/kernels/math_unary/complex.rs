//! Complex numbers: their parts, and functions of one number. Functions other than arithmetic are
//! computed in double precision, and rounded for complex64.

use crate::kernels::elementwise::any::{map, map_in_place, zip};
use num_complex::Complex;
use tenon_reference::complex::{self as functions, Complex64, ComplexNumber};
use tenon_sdk::{
    DType, KernelError, author::ComputeContext, element::Element, reg::Numerics, register_kernel,
};

macro_rules! arithmetic {
    ($($op:literal $name:ident: |$x:ident| $value:expr;)*) => {$(
        fn $name<T: ComplexNumber>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
            map_in_place::<T>(c, 0.5, |$x| $value)
        }

        register_kernel!($op on "CPU": fn $name<T> for "T" in [Complex<f32>, Complex<f64>],
            in_place = &[(0, 0)], numerics = Numerics::EXACT);
    )*};
}

arithmetic! {
    "Neg" neg: |x| -x;
    "Square" square: |x| x * x;
    "Conj" conj: |x| x.conjugate();
}

macro_rules! in_double {
    ($($op:literal $name:ident: $function:expr;)*) => {$(
        fn $name<T: ComplexNumber>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
            let function: fn(Complex64) -> Complex64 = $function;
            map_in_place::<T>(c, 40.0, |x| T::narrow(function(x.widen())))
        }

        register_kernel!($op on "CPU": fn $name<T> for "T" in [Complex<f32>, Complex<f64>],
            in_place = &[(0, 0)], numerics = Numerics::relative(0.0, 1e-15));
    )*};
}

in_double! {
    "Sign" sign: functions::sign;
    "Reciprocal" reciprocal: functions::reciprocal;
    "Inv" inv: functions::reciprocal;
    "Sqrt" sqrt: functions::sqrt;
    "Rsqrt" rsqrt: |x| functions::reciprocal(functions::sqrt(x));
    "Exp" exp: |x| x.exp();
    "Expm1" expm1: functions::expm1;
    "Log" log: functions::ln;
    "Log1p" log1p: functions::log1p;
    "Sigmoid" sigmoid: functions::sigmoid;
    "Sin" sin: |x| x.sin();
    "Cos" cos: |x| x.cos();
    "Tan" tan: functions::tan;
    "Asin" asin: functions::asin;
    "Acos" acos: functions::acos;
    "Atan" atan: functions::atan;
    "Sinh" sinh: |x| x.sinh();
    "Cosh" cosh: |x| x.cosh();
    "Tanh" tanh: functions::tanh;
    "Asinh" asinh: functions::asinh;
    "Acosh" acosh: functions::acosh;
    "Atanh" atanh: functions::atanh;
}

/// Lists the types of an op between complex numbers and real ones.
macro_rules! parts {
    ($($op:literal $name:ident($whole:literal, $part:literal) $numerics:expr;)*) => {$(
        register_kernel!($op on "CPU": fn $name::<f32>, types = ($whole, &[DType::COMPLEX64]),
            types = ($part, &[DType::FLOAT]), numerics = $numerics);
        register_kernel!($op on "CPU": fn $name::<f64>, types = ($whole, &[DType::COMPLEX128]),
            types = ($part, &[DType::DOUBLE]), numerics = $numerics);
    )*};
}

/// A real type that has a complex type.
trait Part: Element {
    fn modulus(x: Complex<Self>) -> Self;
    fn argument(x: Complex<Self>) -> Self;
}

impl Part for f32 {
    fn modulus(x: Complex<f32>) -> f32 {
        f64::from(x.re).hypot(x.im.into()) as f32
    }
    fn argument(x: Complex<f32>) -> f32 {
        f64::from(x.im).atan2(x.re.into()) as f32
    }
}

impl Part for f64 {
    fn modulus(x: Complex<f64>) -> f64 {
        x.re.hypot(x.im)
    }
    fn argument(x: Complex<f64>) -> f64 {
        x.im.atan2(x.re)
    }
}

fn real<R: Part>(c: &ComputeContext<'_>) -> Result<(), KernelError>
where
    Complex<R>: Element,
{
    map(c, 0.3, |x: Complex<R>| x.re)
}

fn imag<R: Part>(c: &ComputeContext<'_>) -> Result<(), KernelError>
where
    Complex<R>: Element,
{
    map(c, 0.3, |x: Complex<R>| x.im)
}

fn modulus<R: Part>(c: &ComputeContext<'_>) -> Result<(), KernelError>
where
    Complex<R>: Element,
{
    map(c, 5.0, R::modulus)
}

fn angle<R: Part>(c: &ComputeContext<'_>) -> Result<(), KernelError>
where
    Complex<R>: Element,
{
    map(c, 15.0, R::argument)
}

fn complex<R: Part>(c: &ComputeContext<'_>) -> Result<(), KernelError>
where
    Complex<R>: Element,
{
    zip(c, 0.5, Complex::<R>::new)
}

parts! {
    "Real" real("T", "Tout") Numerics::EXACT;
    "Imag" imag("T", "Tout") Numerics::EXACT;
    "ComplexAbs" modulus("T", "Tout") Numerics::ulps(1.0);
    "Angle" angle("T", "Tout") Numerics::ulps(1.0);
    "Complex" complex("Tout", "T") Numerics::EXACT;
}
