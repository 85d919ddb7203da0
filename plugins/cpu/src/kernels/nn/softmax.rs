//! `Softmax` over the last dimension: `e^(x - max) / sum e^(x - max)`; `LogSoftmax`: `x - max -
//! ln(sum e^(x - max))`.

mod short;

use crate::{
    arch::{Baseline, vectorised},
    kernels::{
        elementary::Elementary,
        linalg::matmul::{convert_down, convert_up},
        reduction::{Max, Sum, row},
    },
    lane::Compute,
    panels::Panels,
    split::{Parts, for_units},
    stream::map_ahead,
};
use half::{bf16, f16};
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, InOut},
    element::Number,
    reg::Numerics,
    register_kernel,
};

vectorised! {
    /// `y[i] = e^(y[i] - max)`, no element being above `max`.
    fn exponentials_in_place[W: Elementary](y: &mut [W], max: W) {
        if are_close(y) {
            return y.iter_mut().for_each(|y| *y = y.sub(max).exp_near::<I>());
        }
        y.iter_mut().for_each(|y| *y = y.sub(max).exp_of_negative::<I>());
    }
}

vectorised! {
    /// `y[i] = e^(x[i] - max)`, no element being above `max`.
    fn exponentials_of[W: Elementary](x: &[W], max: W, y: &mut [W]) {
        // The next row is read meanwhile.
        if are_close(x) {
            return map_ahead(x, y, x.len(), |x| x.sub(max).exp_near::<I>());
        }
        map_ahead(x, y, x.len(), |x| x.sub(max).exp_of_negative::<I>());
    }
}

/// Whether the difference between any two elements is small.
#[inline(always)]
fn are_close<W: Elementary>(x: &[W]) -> bool {
    W::are_within(x, W::NEAR.mul(W::from_f64(0.5)))
}

/// `y[i] = e^(y[i] - max)`, no element being above `max`; returns their sum. Two loops, because one
/// that did both would need more constants than there are registers.
pub fn exponentials<W: Elementary>(y: &mut [W], max: W) -> W {
    exponentials_in_place(y, max);
    row::<W, Sum>(y)
}

vectorised! {
    /// `y[i] = y[i] * factor`.
    fn scale[W: Elementary](y: &mut [W], factor: W) {
        for y in y.iter_mut() {
            *y = y.mul(factor);
        }
    }
}

/// Computes one row, in place.
pub fn softmax_row<W: Elementary>(y: &mut [W]) {
    let max = row::<W, Max>(y);
    let sum = exponentials(y, max);
    scale(y, W::ONE.div(sum));
}

/// Computes one row of `x` into one of `y`.
fn softmax_to<W: Elementary>(x: &[W], y: &mut [W]) {
    exponentials_of(x, row::<W, Max>(x), y);
    let sum = row::<W, Sum>(y);
    scale(y, W::ONE.div(sum));
}

/// The length of a row, at least 1.
fn columns(c: &ComputeContext<'_>) -> Result<usize, KernelError> {
    match c.dims(0).last() {
        Some(&cols) => Ok(cols as usize),
        None => Err(KernelError::invalid_argument(
            "logits must have at least 1 dimension, found a scalar",
        )),
    }
}

/// Splits rows over threads.
fn rows<T: Compute<Wide: Elementary>>(
    c: &ComputeContext<'_>,
    y: &mut [T],
    cols: usize,
    body: impl Fn(std::ops::Range<usize>, &mut [T]) + Sync,
) -> Result<(), KernelError> {
    if y.is_empty() {
        return Ok(());
    }
    let count = y.len() / cols;
    let y = Parts::new(y);
    let cost = (T::Wide::COST_NS + 0.5) * cols as f64 + 10.0;
    for_units(c, count, cost, |range| {
        let at = range.start * cols..range.end * cols;
        // SAFETY: ranges of one split are disjoint.
        body(at.clone(), unsafe { y.part(at) });
    })
}

fn softmax<T: Elementary>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let cols = columns(c)?;
    if cols <= short::MOST {
        return short_rows::<T>(c, cols);
    }
    match c.in_place::<T>(0, 0, c.dims(0))? {
        InOut::InPlace(y) => {
            rows(c, y, cols, |_, y| y.chunks_exact_mut(cols).for_each(softmax_row))
        }
        InOut::Separate(x, y) => rows(c, y, cols, |at, y| {
            let both = x[at].chunks_exact(cols).zip(y.chunks_exact_mut(cols));
            both.for_each(|(x, y)| softmax_to(x, y));
        }),
    }
}

/// Computes rows of few elements.
fn short_rows<T: Compute<Wide: Elementary>>(
    c: &ComputeContext<'_>,
    cols: usize,
) -> Result<(), KernelError> {
    match c.in_place::<T>(0, 0, c.dims(0))? {
        InOut::InPlace(y) => rows(c, y, cols, |_, y| short::rows_in_place(y, cols, false)),
        InOut::Separate(x, y) => rows(c, y, cols, |at, y| short::rows(&x[at], cols, false, y)),
    }
}

/// Computes 16-bit floats, a row at a time in the type of computation.
fn narrow_softmax<T: Compute<Wide: Elementary>>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let cols = columns(c)?;
    let x = c.input::<T>(0)?;
    let y = c.output::<T>(0, x.dims)?.data;
    if cols <= short::MOST {
        return rows(c, y, cols, |at, y| short::rows(&x.data[at], cols, false, y));
    }
    let panels = Panels::new(c, y.len() / cols.max(1), cols)?;
    rows(c, y, cols, |at, y| {
        let mut wide = panels.take();
        for (x, y) in x.data[at].chunks_exact(cols).zip(y.chunks_exact_mut(cols)) {
            convert_up(x, &mut wide);
            softmax_row(&mut wide);
            convert_down(&wide, y);
        }
    })
}

/// Computes a row at a time in the type of computation, in the buffer of the exponentials.
fn log_softmax<T: Compute<Wide: Elementary>>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let cols = columns(c)?;
    let x = c.input::<T>(0)?;
    let y = c.output::<T>(0, x.dims)?.data;
    if cols <= short::MOST {
        return rows(c, y, cols, |at, y| short::rows(&x.data[at], cols, true, y));
    }
    let panels = Panels::new(c, y.len() / cols.max(1), cols)?;
    rows(c, y, cols, |at, y| {
        let mut wide = panels.take();
        for (x, y) in x.data[at].chunks_exact(cols).zip(y.chunks_exact_mut(cols)) {
            convert_up(x, &mut wide);
            let max = row::<T::Wide, Max>(&wide);
            let log = exponentials(&mut wide, max).ln::<Baseline>();
            y.iter_mut().zip(x).for_each(|(y, x)| *y = T::down(x.up().sub(max).sub(log)));
        }
    })
}

register_kernel!("LogSoftmax" on "CPU": fn log_softmax<T> for "T" in [f32],
    numerics = Numerics::relative(1e-6, 1e-5).accumulation(DType::FLOAT));
register_kernel!("LogSoftmax" on "CPU": fn log_softmax<T> for "T" in [f64],
    numerics = Numerics::relative(1e-15, 1e-13).accumulation(DType::DOUBLE));
register_kernel!("LogSoftmax" on "CPU": fn log_softmax<T> for "T" in [f16],
    numerics = Numerics::relative(1e-3, 2e-3).accumulation(DType::FLOAT));
register_kernel!("LogSoftmax" on "CPU": fn log_softmax<T> for "T" in [bf16],
    numerics = Numerics::relative(1e-2, 1.6e-2).accumulation(DType::FLOAT));
register_kernel!("Softmax" on "CPU": fn softmax<T> for "T" in [f32], in_place = &[(0, 0)],
    numerics = Numerics::relative(1e-37, 1e-5).accumulation(DType::FLOAT));
register_kernel!("Softmax" on "CPU": fn softmax<T> for "T" in [f64], in_place = &[(0, 0)],
    numerics = Numerics::relative(1e-300, 1e-13).accumulation(DType::DOUBLE));
register_kernel!("Softmax" on "CPU": fn narrow_softmax<T> for "T" in [f16],
    numerics = Numerics::relative(6e-8, 2e-3).accumulation(DType::FLOAT));
register_kernel!("Softmax" on "CPU": fn narrow_softmax<T> for "T" in [bf16],
    numerics = Numerics::relative(1e-37, 1.6e-2).accumulation(DType::FLOAT));

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_close, values};
    use tenon_reference::nn::softmax as reference;

    #[test]
    fn rows_agree_with_the_reference() {
        for cols in [1, 2, 31, 32, 100, 5000] {
            let x = values::<f32>(cols, 1);
            let mut expected = vec![0.0; cols];
            reference(cols, &x, &mut expected);
            let (mut found, mut apart) = (x.clone(), vec![0.0; cols]);
            softmax_row(&mut found);
            softmax_to(&x, &mut apart);
            assert_eq!(found, apart);
            assert_close(&found, &expected, 0.0, 4e-6);
        }
    }

    #[test]
    fn large_and_infinite_logits() {
        let mut y = [1000.0f32, 1000.0, f32::NEG_INFINITY];
        softmax_row(&mut y);
        assert_eq!(y, [0.5, 0.5, 0.0]);
        let mut y = [f32::NEG_INFINITY; 2];
        softmax_row(&mut y);
        assert!(y.iter().all(|y| y.is_nan()));
    }
}
