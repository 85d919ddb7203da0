//! Plain loops over elements of any types, for ops without a loop of their own: input and output
//! types may differ, and the function may be a closure. The compiler vectorises them for the
//! baseline where the function permits.

use super::blocks::gathered;
use crate::{
    lane::Compute,
    split::{for_parts, for_rows},
};
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, InOut},
    element::{Element, Number},
    geometry::{BroadcastPlan, Run},
};

/// Runs of at most this length are put next to each other: a call for each would take longer.
const SHORT: usize = 16;

/// Writes `f(x)` for every element `x` of input 0.
pub fn map<X: Element, Y: Element>(
    c: &ComputeContext<'_>,
    cost_ns: f64,
    f: impl Fn(X) -> Y + Sync,
) -> Result<(), KernelError> {
    let x = c.input::<X>(0)?;
    let y = c.output::<Y>(0, x.dims)?.data;
    for_parts(c, y, cost_ns, |start, y| {
        for (y, &x) in y.iter_mut().zip(&x.data[start..]) {
            *y = f(x);
        }
    })
}

/// Like [`map`], between equal types; may take over the input's buffer.
pub fn map_in_place<T: Element>(
    c: &ComputeContext<'_>,
    cost_ns: f64,
    f: impl Fn(T) -> T + Sync,
) -> Result<(), KernelError> {
    match c.in_place::<T>(0, 0, c.dims(0))? {
        InOut::InPlace(y) => for_parts(c, y, cost_ns, |_, y| y.iter_mut().for_each(|y| *y = f(*y))),
        InOut::Separate(x, y) => for_parts(c, y, cost_ns, |start, y| {
            for (y, &x) in y.iter_mut().zip(&x[start..]) {
                *y = f(x);
            }
        }),
    }
}

/// Like [`map_in_place`], with a function of doubles. Narrower floats are rounded once, 16-bit ones
/// through float.
pub fn map_double<T: Compute>(
    c: &ComputeContext<'_>,
    cost_ns: f64,
    f: impl Fn(f64) -> f64 + Sync,
) -> Result<(), KernelError> {
    map_in_place::<T>(c, cost_ns, |x| from_double(f(to_double(x))))
}

/// Converts a number to double.
#[inline(always)]
pub fn to_double<T: Compute>(x: T) -> f64 {
    x.up().to_f64()
}

/// Converts a double to a number, with rounding.
#[inline(always)]
pub fn from_double<T: Compute>(x: f64) -> T {
    T::down(<T::Wide as Number>::from_f64(x))
}

/// Writes `f(x, y)` for every pair of elements of inputs 0 and 1, broadcast.
pub fn zip<X: Element, Z: Element>(
    c: &ComputeContext<'_>,
    cost_ns: f64,
    f: impl Fn(X, X) -> Z + Sync,
) -> Result<(), KernelError> {
    let (x, y) = (c.input::<X>(0)?, c.input::<X>(1)?);
    zip_slices(c, cost_ns, [x.data, y.data], f)
}

/// Like [`zip`], with a function of doubles, as in [`map_double`].
pub fn zip_double<T: Compute>(
    c: &ComputeContext<'_>,
    cost_ns: f64,
    f: impl Fn(f64, f64) -> f64 + Sync,
) -> Result<(), KernelError> {
    zip::<T, T>(c, cost_ns, |x, y| from_double(f(to_double(x), to_double(y))))
}

/// Like [`zip`], for elements that were read already, with the shapes of inputs 0 and 1.
pub fn zip_slices<X: Copy + Sync, Z: Element>(
    c: &ComputeContext<'_>,
    cost_ns: f64,
    [x, y]: [&[X]; 2],
    f: impl Fn(X, X) -> Z + Sync,
) -> Result<(), KernelError> {
    if c.dims(0) == c.dims(1) {
        let z = c.output::<Z>(0, c.dims(0))?.data;
        return for_parts(c, z, cost_ns, |start, z| pairs(&f, &x[start..], &y[start..], z));
    }
    let plan = BroadcastPlan::new([c.dims(0), c.dims(1)])?;
    let z = c.output::<Z>(0, plan.output_dims())?.data;
    if plan.run_count() > 1 && plan.run_len() <= SHORT {
        let all = |x: &[X], y: &[X], z: &mut [Z]| pairs(&f, x, y, z);
        return for_parts(c, z, cost_ns, |start, z| gathered(&plan, [x, y], start, z, &all));
    }
    for_runs(c, &plan, cost_ns, z, |run, z| {
        let [i, j] = run.offsets;
        match run.strides {
            [1, 1] => pairs(&f, &x[i..], &y[j..], z),
            [1, _] => with_right(&f, &x[i..], y[j], z),
            [_, 1] => with_right(&|y, x| f(x, y), &y[j..], x[i], z),
            _ => z.fill(f(x[i], y[j])),
        }
    })
}

/// Writes `f(x, y)` for every pair. It is not inlined, so that one loop serves equal shapes and runs.
#[inline(never)]
fn pairs<X: Copy, Z>(f: &impl Fn(X, X) -> Z, x: &[X], y: &[X], z: &mut [Z]) {
    for ((z, &x), &y) in z.iter_mut().zip(x).zip(y) {
        *z = f(x, y);
    }
}

/// Writes `f(x, y)` for every `x`.
#[inline(never)]
fn with_right<X: Copy, Z>(f: &impl Fn(X, X) -> Z, x: &[X], y: X, z: &mut [Z]) {
    for (z, &x) in z.iter_mut().zip(x) {
        *z = f(x, y);
    }
}

/// Computes the runs of a plan; a single run is computed in pieces.
pub fn for_runs<Z: Send, const N: usize>(
    c: &ComputeContext<'_>,
    plan: &BroadcastPlan<N>,
    cost_ns: f64,
    z: &mut [Z],
    body: impl Fn(Run<N>, &mut [Z]) + Sync,
) -> Result<(), KernelError> {
    if z.is_empty() {
        return Ok(());
    }
    let len = plan.run_len();
    match (plan.run_count(), plan.runs().next()) {
        (1, Some(run)) => for_parts(c, z, cost_ns, |start, z| {
            let offsets = std::array::from_fn(|n| run.offsets[n] + start * run.strides[n]);
            body(Run { output: start, len: z.len(), offsets, ..run }, z);
        }),
        _ => for_rows(c, z, len, cost_ns * len as f64 + 5.0, |first, z| {
            plan.runs_in(first..first + z.len() / len)
                .zip(z.chunks_exact_mut(len))
                .for_each(|(run, z)| body(run, z));
        }),
    }
}
