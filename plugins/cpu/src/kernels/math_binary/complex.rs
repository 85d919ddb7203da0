//! Arithmetic of pairs of complex numbers, and sums of many. Quotients, powers and logarithms are
//! computed in double precision, and rounded for complex64.

use super::arithmetic::{leading, same_shapes};
use crate::kernels::elementwise::any::zip;
use num_complex::Complex;
use tenon_reference::complex::{self as functions, Complex64, ComplexNumber};
use tenon_sdk::{KernelError, author::ComputeContext, reg::Numerics, register_kernel};

macro_rules! arithmetic {
    ($($name:ident: |$x:ident, $y:ident| $value:expr;)*) => {$(
        fn $name<T: ComplexNumber>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
            zip::<T, T>(c, 0.6, |$x, $y| $value)
        }
    )*};
}

arithmetic! {
    add: |x, y| x + y;
    sub: |x, y| x - y;
    mul: |x, y| x * y;
    squared_difference: |x, y| (x - y) * (x - y).conjugate();
    mul_no_nan: |x, y| if y == T::default() { y } else { x * y };
}

macro_rules! in_double {
    ($($name:ident: |$x:ident, $y:ident| $value:expr;)*) => {$(
        fn $name<T: ComplexNumber>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
            let function: fn(Complex64, Complex64) -> Complex64 = |$x, $y| $value;
            zip::<T, T>(c, 20.0, |x, y| T::narrow(function(x.widen(), y.widen())))
        }
    )*};
}

const ZERO: Complex64 = Complex::new(0.0, 0.0);

in_double! {
    div: |x, y| functions::div(x, y);
    div_no_nan: |x, y| if y == ZERO { ZERO } else { functions::div(x, y) };
    xdivy: |x, y| if x == ZERO { ZERO } else { functions::div(x, y) };
    xlogy: |x, y| if x == ZERO { ZERO } else { x * functions::ln(y) };
    xlog1py: |x, y| if x == ZERO { ZERO } else { x * functions::log1p(y) };
    pow: |x, y| functions::pow(x, y);
}

/// The sum, in the same order of additions as `AddN` of real numbers.
pub(super) fn add_n<T: ComplexNumber>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    same_shapes(c)?;
    let inputs = (0..c.input_count())
        .map(|at| Ok(c.input::<T>(at)?.data))
        .collect::<Result<Vec<&[T]>, KernelError>>()?;
    let (first, rest) = inputs.split_at(leading(inputs.len()));
    let sum = |inputs: &[&[T]], i: usize| {
        inputs.iter().map(|input| input[i]).reduce(|x, y| x + y).unwrap_or_default()
    };
    for (i, y) in c.output::<T>(0, c.dims(0))?.data.iter_mut().enumerate() {
        *y = rest.chunks(8).fold(sum(first, i), |total, eight| total + sum(eight, i));
    }
    Ok(())
}

macro_rules! register {
    ($($op:literal $name:ident $numerics:expr;)*) => {$(
        register_kernel!($op on "CPU": fn $name<T> for "T" in [Complex<f32>, Complex<f64>],
            numerics = $numerics);
    )*};
}

register! {
    "Add" add Numerics::EXACT;
    "AddV2" add Numerics::EXACT;
    "Sub" sub Numerics::EXACT;
    "Mul" mul Numerics::EXACT;
    "SquaredDifference" squared_difference Numerics::EXACT;
    "MulNoNan" mul_no_nan Numerics::EXACT;
    "RealDiv" div Numerics::relative(0.0, 1e-15);
    "Div" div Numerics::relative(0.0, 1e-15);
    "DivNoNan" div_no_nan Numerics::relative(0.0, 1e-15);
    "Xdivy" xdivy Numerics::relative(0.0, 1e-15);
    "Xlogy" xlogy Numerics::relative(0.0, 1e-14);
    "Xlog1py" xlog1py Numerics::relative(0.0, 1e-14);
    "Pow" pow Numerics::relative(0.0, 1e-14);
    "AddN" add_n Numerics::EXACT;
}
