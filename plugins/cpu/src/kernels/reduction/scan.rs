//! `Cumsum`, `Cumprod`, `CumulativeLogsumexp`: reductions of all elements so far along an axis.

use super::{Fold, Prod, Sum, rounding_kernels};
use crate::{lane::Compute, split::try_rows};
use half::{bf16, f16};
use num_complex::Complex;
use std::marker::PhantomData;
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::Element,
    geometry::AxisSplit,
    growth,
    reg::Numerics,
    register_kernel,
};

/// Approximate nanoseconds of an element.
const COST_NS: f64 = 1.0;

struct Scan<T, F> {
    exclusive: bool,
    reverse: bool,
    kind: PhantomData<fn(T, F)>,
}

impl<T: Element, F: Fold<T>> Scan<T, F> {
    /// Scans one (axis, inner) block.
    fn block(&self, split: &AxisSplit, x: &[T], y: &mut [T], states: &mut [F::State]) {
        states.fill(F::START);
        for step in 0..split.len {
            let at = if self.reverse { split.len - 1 - step } else { step };
            let rows = at * split.inner..(at + 1) * split.inner;
            let row = x[rows.clone()].iter().zip(&mut y[rows]).zip(states.iter_mut());
            for ((&x, y), state) in row {
                let before = *state;
                *state = F::take(before, x);
                *y = F::finish(if self.exclusive { before } else { *state }, step + 1);
            }
        }
    }
}

impl<T: Element, F: Fold<T>> Kernel for Scan<T, F> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let (exclusive, reverse) = (c.attr("exclusive")?, c.attr("reverse")?);
        Ok(Scan { exclusive, reverse, kind: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let x = c.input::<T>(0)?;
        let split = AxisSplit::new("axis", x.dims, c.integer(1, "axis")?)?;
        let y = c.output::<T>(0, x.dims)?.data;
        let size = split.len * split.inner;
        try_rows(c, y, size, COST_NS * size as f64, |first, y| {
            let mut states = growth::filled(split.inner, F::START)?;
            for (outer, y) in y.chunks_exact_mut(size).enumerate() {
                let x = &x.data[(first + outer) * size..][..size];
                self.block(&split, x, y, &mut states);
            }
            Ok(())
        })
    }
}

/// `ln(e^x + e^y + ...)`, in double precision; negative infinity of no elements. For two positive
/// infinities it is NaN, as in TensorFlow, because of their difference.
struct LogSumExp;

impl<T: Compute> Fold<T> for LogSumExp {
    type State = f64;
    const START: f64 = f64::NEG_INFINITY;
    fn take(state: f64, x: T) -> f64 {
        <LogSumExp as Fold<T>>::merge(state, x.to_f64())
    }
    fn merge(a: f64, b: f64) -> f64 {
        let (low, high) = if a < b { (a, b) } else { (b, a) };
        if low == f64::NEG_INFINITY {
            return high;
        }
        high + (low - high).exp().ln_1p()
    }
    fn finish(state: f64, _count: usize) -> T {
        T::from_f64(state)
    }
}

type Cumsum<T> = Scan<T, Sum>;
type Cumprod<T> = Scan<T, Prod>;
type CumulativeLogsumexp<T> = Scan<T, LogSumExp>;

rounding_kernels! {
    "Cumsum": [Cumsum, host_memory = &["axis"]];
    "Cumprod": [Cumprod, host_memory = &["axis"]];
}

register_kernel!("CumulativeLogsumexp" on "CPU": CumulativeLogsumexp<T>
    for "T" in [f16, bf16, f32, f64], host_memory = &["axis"], numerics = Numerics::ulps(1.0));
