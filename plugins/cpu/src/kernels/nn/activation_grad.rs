//! Gradients of elementwise functions: `ReluGrad` and similar ops from the function's input,
//! `SigmoidGrad` and similar ops from its output. The formulas and the order of their factors are
//! TensorFlow's, so that infinities and NaN agree with it; complex gradients are computed in double
//! precision. TensorFlow takes the conjugate of the output for `SqrtGrad`, `RsqrtGrad`,
//! `ReciprocalGrad`, and the output itself for `SigmoidGrad` and `TanhGrad`.

use super::elu::{SELU_SCALE, SELU_SCALED_ALPHA, rounded};
use crate::{arch::Baseline, kernels::elementary::Elementary, lane::Compute, split::for_parts};
use half::{bf16, f16};
use num_complex::Complex;
use std::marker::PhantomData;
use tenon_reference::complex::{Complex64, ComplexNumber, div};
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext, InOut, Kernel},
    element::{Element, Number},
    reg::Numerics,
    register_kernel,
};

/// Writes `f(x, y)` for the elements of both inputs, which have equally many; the first input's
/// memory may be reused for the output.
fn pairs<T: Element>(
    c: &ComputeContext<'_>,
    cost_ns: f64,
    f: impl Fn(T, T) -> T + Sync,
) -> Result<(), KernelError> {
    let len = |input: usize| c.slot(input).map(|slot| slot.elements);
    if len(0)? != len(1)? {
        return Err(KernelError::invalid_argument(format!(
            "both inputs must have the same number of elements, found shapes {:?} and {:?}",
            c.dims(0),
            c.dims(1)
        )));
    }
    match c.in_place::<T>(0, 0, c.dims(0))? {
        InOut::InPlace(z) => {
            let y = c.input::<T>(1)?.data;
            for_parts(c, z, cost_ns, |start, z| {
                z.iter_mut().zip(&y[start..]).for_each(|(z, &y)| *z = f(*z, y));
            })
        }
        InOut::Separate(x, z) => {
            let y = c.input::<T>(1)?.data;
            for_parts(c, z, cost_ns, |start, z| {
                let both = x[start..].iter().zip(&y[start..]);
                z.iter_mut().zip(both).for_each(|(z, (&x, &y))| *z = f(x, y));
            })
        }
    }
}

/// [`pairs`] of inputs with one shape.
fn alike<T: Element>(
    c: &ComputeContext<'_>,
    cost_ns: f64,
    f: impl Fn(T, T) -> T + Sync,
) -> Result<(), KernelError> {
    if c.dims(0) != c.dims(1) {
        return Err(KernelError::invalid_argument(format!(
            "both inputs must have the same shape, found {:?} and {:?}",
            c.dims(0),
            c.dims(1)
        )));
    }
    pairs(c, cost_ns, f)
}

macro_rules! gradients {
    ($($by:ident $op:literal $name:ident: $bound:ident, [$($ty:ty),*], $cost:expr, $numerics:expr,
        |$x:ident, $y:ident| $value:expr;)*) => {$(
        fn $name<T: Compute<Wide: $bound>>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
            #[inline(always)]
            fn of<W: $bound>($x: W, $y: W) -> W {
                $value
            }
            $by::<T>(c, $cost, |x, y| T::down(of(x.up(), y.up())))
        }

        register_kernel!($op on "CPU": fn $name<T> for "T" in [$($ty),*],
            in_place = &[(0, 0)], numerics = $numerics);
    )*};
}

/// Returns `x` if `keep`, else 0 times `x`, which is NaN for NaN and infinities.
#[inline(always)]
fn masked<W: Number>(x: W, keep: bool) -> W {
    x.mul(if keep { W::ONE } else { W::ZERO })
}

/// Returns the gradient, or 0 where the gradient of the output is 0, even where the output is
/// infinite or NaN.
#[inline(always)]
fn unless_zero<W: Number>(dy: W, gradient: W) -> W {
    if dy == W::ZERO { W::ZERO } else { gradient }
}

#[inline(always)]
fn constant<W: Number>(value: f64) -> W {
    W::from_f64(value)
}

#[inline(always)]
fn magnitude<W: Number>(x: W) -> W {
    if x < W::ZERO { x.neg() } else { x }
}

gradients! {
    alike "ReluGrad" relu_grad: Compute, [i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64],
        0.3, Numerics::EXACT, |dy, x| masked(dy, x > W::ZERO);
    alike "Relu6Grad" relu6_grad: Compute, [i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64],
        0.3, Numerics::EXACT, |dy, x| masked(dy, x > W::ZERO && x < constant(6.0));
    alike "EluGrad" elu_grad: Compute, [f16, bf16, f32, f64],
        0.3, Numerics::ulps(2.0), |dy, y| if y < W::ZERO { y.add(W::ONE).mul(dy) } else { dy };
    alike "SeluGrad" selu_grad: Compute, [f16, bf16, f32, f64],
        0.3, Numerics::ulps(2.0), |dy, y| if y < W::ZERO {
            dy.mul(y.add(constant(SELU_SCALED_ALPHA)))
        } else {
            dy.mul(constant(SELU_SCALE))
        };
    alike "SoftplusGrad" softplus_grad: Elementary, [f16, bf16, f32, f64],
        1.5, Numerics::ulps(4.0), |dy, x| dy.div(x.neg().exp::<Baseline>().add(W::ONE));
    alike "SoftsignGrad" softsign_grad: Elementary, [f16, bf16, f32, f64],
        0.8, Numerics::ulps(3.0), |dy, x| {
            let root = magnitude(x).add(W::ONE);
            dy.div(root.mul(root))
        };
    pairs "SigmoidGrad" sigmoid_grad: Compute, [f16, bf16, f32, f64],
        0.3, Numerics::ulps(3.0), |y, dy| y.mul(W::ONE.sub(y)).mul(dy);
    pairs "TanhGrad" tanh_grad: Compute, [f16, bf16, f32, f64],
        0.3, Numerics::ulps(3.0), |y, dy| dy.mul(W::ONE.sub(y.mul(y)));
    pairs "SqrtGrad" sqrt_grad: Elementary, [f16, bf16, f32, f64],
        0.5, Numerics::ulps(1.0), |y, dy| unless_zero(dy, constant::<W>(0.5).mul(dy).div(y));
    pairs "RsqrtGrad" rsqrt_grad: Compute, [f16, bf16, f32, f64],
        0.4, Numerics::ulps(3.0), |y, dy| unless_zero(dy, constant::<W>(-0.5).mul(dy.mul(y)).mul(y.mul(y)));
    pairs "ReciprocalGrad" reciprocal_grad: Compute, [f16, bf16, f32, f64],
        0.3, Numerics::ulps(2.0), |y, dy| unless_zero(dy, y.neg().mul(y.mul(dy)));
    pairs "InvGrad" inv_grad: Compute, [f16, bf16, f32, f64],
        0.3, Numerics::ulps(2.0), |y, dy| unless_zero(dy, y.neg().mul(y.mul(dy)));
}

macro_rules! complex_gradients {
    ($($op:literal $name:ident: |$y:ident, $dy:ident| $value:expr;)*) => {$(
        fn $name<T: ComplexNumber>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
            let function: fn(Complex64, Complex64) -> Complex64 = |$y, $dy| $value;
            pairs::<T>(c, 5.0, |y, dy| T::narrow(function(y.widen(), dy.widen())))
        }

        register_kernel!($op on "CPU": fn $name<T> for "T" in [Complex<f32>, Complex<f64>],
            in_place = &[(0, 0)], numerics = Numerics::relative(0.0, 1e-15));
    )*};
}

complex_gradients! {
    "SigmoidGrad" complex_sigmoid_grad: |y, dy| y * (1.0 - y) * dy;
    "TanhGrad" complex_tanh_grad: |y, dy| dy * (1.0 - y * y);
    "SqrtGrad" complex_sqrt_grad: |y, dy| div(dy * 0.5, y.conj());
    "RsqrtGrad" complex_rsqrt_grad: |y, dy| dy * -0.5 * y.conj().powu(3);
    "ReciprocalGrad" complex_reciprocal_grad: |y, dy| -dy * y.conj().powu(2);
    "InvGrad" complex_inv_grad: |y, dy| -dy * y.conj().powu(2);
}

struct LeakyReluGrad<T> {
    alpha: f32,
    element: PhantomData<T>,
}

impl<T: Compute> Kernel for LeakyReluGrad<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(LeakyReluGrad { alpha: c.attr("alpha")?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let alpha = rounded::<T>(self.alpha);
        alike::<T>(c, 0.3, |dy, x| if x > T::ZERO { dy } else { T::down(dy.up().mul(alpha)) })
    }
}

register_kernel!("LeakyReluGrad" on "CPU": LeakyReluGrad<T> for "T" in [f16, bf16, f32, f64],
    in_place = &[(0, 0)], numerics = Numerics::EXACT);
