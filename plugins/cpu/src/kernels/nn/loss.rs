//! `SoftmaxCrossEntropyWithLogits`, `SparseSoftmaxCrossEntropyWithLogits`, `L2Loss`.
//!
//! With `s = ln(sum e^(x - max))`, the loss of a row is `sum label (s - (x - max))` and its
//! gradient `e^(x - max) / sum - label`.

use super::softmax::exponentials;
use crate::{
    arch::Baseline,
    kernels::{
        elementary::Elementary,
        reduction::{Fold, Max, reduce, row},
    },
    lane::Compute,
    lists,
    panels::Panels,
    split::{Parts, for_units},
};
use half::{bf16, f16};
use tenon_sdk::{
    DType, KernelError,
    author::ComputeContext,
    element::Number,
    geometry::{BroadcastPlan, ReducePlan},
    reg::Numerics,
    register_kernel,
};

/// A matrix whose rows, and the elements of a row, may be repeated by broadcasting.
struct Matrix<'a, T> {
    data: &'a [T],
    strides: [usize; 2],
}

impl<'a, T: Compute> Matrix<'a, T> {
    /// Returns a tensor of up to two dimensions as it is broadcast to a matrix.
    fn new(data: &'a [T], dims: &[i64]) -> Matrix<'a, T> {
        let (rows, columns) = match dims {
            [.., rows, columns] => (*rows, *columns),
            [columns] => (1, *columns),
            [] => (1, 1),
        };
        let stride = |size: i64, stride: i64| if size == 1 { 0 } else { stride as usize };
        Matrix { data, strides: [stride(rows, columns), stride(columns, 1)] }
    }

    fn at(&self, row: usize, column: usize) -> T::Wide {
        self.data[row * self.strides[0] + column * self.strides[1]].up()
    }
}

/// `e^(x - max)` in place; returns the largest element, the sum, and the sum's logarithm.
fn row_terms<W: Elementary>(x: &mut [W]) -> [W; 3] {
    let max = row::<W, Max>(x);
    let sum = exponentials(x, max);
    [max, sum, sum.ln::<Baseline>()]
}

/// Computes rows: `body` gets the number of a row, a buffer for its logits, its loss and its
/// gradient.
fn for_examples<T: Compute<Wide: Elementary>>(
    c: &ComputeContext<'_>,
    dims: &[i64],
    body: impl Fn(usize, &mut [T::Wide], &mut T, &mut [T]) + Sync,
) -> Result<(), KernelError> {
    let loss = c.output::<T>(0, &dims[..1])?.data;
    let gradient = c.output::<T>(1, dims)?.data;
    let (rows, columns) = (dims[0] as usize, dims[1] as usize);
    if gradient.is_empty() {
        loss.fill(T::ZERO);
        return Ok(());
    }
    let (loss, gradient) = (Parts::new(loss), Parts::new(gradient));
    let cost = (T::Wide::COST_NS + 2.0) * columns as f64 + 20.0;
    let panels = Panels::new(c, rows, columns)?;
    for_units(c, rows, cost, |range| {
        let mut buffer = panels.take();
        for row in range {
            // SAFETY: each unit has a row of its own.
            let loss = unsafe { loss.part(row..row + 1) };
            // SAFETY: each unit has a row of its own.
            let gradient = unsafe { gradient.part(row * columns..(row + 1) * columns) };
            body(row, &mut buffer, &mut loss[0], gradient);
        }
    })
}

fn cross_entropy<T: Compute<Wide: Elementary>>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let (x, labels) = (c.input::<T>(0)?, c.input::<T>(1)?);
    let plan = BroadcastPlan::new([x.dims, labels.dims])?;
    let dims = plan.output_dims();
    if dims.len() != 2 {
        return Err(KernelError::invalid_argument(format!(
            "features and labels must broadcast to 2 dimensions, found shapes {:?} and {:?}",
            x.dims, labels.dims
        )));
    }
    let (logits, labels) = (Matrix::new(x.data, x.dims), Matrix::new(labels.data, labels.dims));
    for_examples::<T>(c, dims, |row, terms, loss, gradient| {
        terms.iter_mut().enumerate().for_each(|(j, term)| *term = logits.at(row, j));
        let [max, sum, log] = row_terms(terms);
        let mut total = T::Wide::ZERO;
        for (j, (gradient, term)) in gradient.iter_mut().zip(&*terms).enumerate() {
            let label = labels.at(row, j);
            total = total.add(label.mul(log.sub(logits.at(row, j).sub(max))));
            *gradient = T::down(term.div(sum).sub(label));
        }
        *loss = T::down(total);
    })
}

/// Refuses shapes that do not match, and labels that are not classes.
fn check_labels(c: &ComputeContext<'_>, labels: &[i64]) -> Result<i64, KernelError> {
    let (&[rows, classes], &[count]) = (c.dims(0), c.dims(1)) else {
        return Err(KernelError::invalid_argument(format!(
            "features must have 2 dimensions and labels 1, found shapes {:?} and {:?}",
            c.dims(0),
            c.dims(1)
        )));
    };
    if rows != count {
        return Err(KernelError::invalid_argument(format!(
            "labels must be as many as features has rows, which is {rows}, found {count}"
        )));
    }
    if classes == 0 {
        return Err(KernelError::invalid_argument(format!(
            "features must have at least 1 class, found shape {:?}",
            c.dims(0)
        )));
    }
    match labels.iter().position(|label| !(0..classes).contains(label)) {
        Some(at) => Err(KernelError::invalid_argument(format!(
            "labels must lie in [0, {classes}), the classes of features, found {} at position {at}",
            labels[at]
        ))),
        None => Ok(classes),
    }
}

fn sparse_cross_entropy<T: Compute<Wide: Elementary>>(
    c: &ComputeContext<'_>,
) -> Result<(), KernelError> {
    let labels = lists::long(c, 1)?;
    let classes = check_labels(c, labels)? as usize;
    let x = c.input::<T>(0)?;
    for_examples::<T>(c, x.dims, |row, terms, loss, gradient| {
        let logits = &x.data[row * classes..(row + 1) * classes];
        terms.iter_mut().zip(logits).for_each(|(term, x)| *term = x.up());
        let [max, sum, log] = row_terms(terms);
        let label = labels[row] as usize;
        *loss = T::down(log.sub(logits[label].up().sub(max)));
        for (j, (gradient, term)) in gradient.iter_mut().zip(&*terms).enumerate() {
            let one = if j == label { T::Wide::ONE } else { T::Wide::ZERO };
            *gradient = T::down(term.div(sum).sub(one));
        }
    })
}

/// Half the sum of squares.
struct HalfSquares;

impl<T: Compute> Fold<T> for HalfSquares {
    type State = T::Wide;
    const START: T::Wide = T::Wide::ZERO;
    #[inline(always)]
    fn take(state: T::Wide, x: T) -> T::Wide {
        state.add(x.up().mul(x.up()))
    }
    #[inline(always)]
    fn merge(a: T::Wide, b: T::Wide) -> T::Wide {
        a.add(b)
    }
    #[inline(always)]
    fn finish(state: T::Wide, _count: usize) -> T {
        T::down(state.mul(<T::Wide as Number>::from_f64(0.5)))
    }
}

fn l2_loss<T: Compute>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let x = c.input::<T>(0)?;
    let plan = ReducePlan::new(&[x.data.len() as i64], &[0], false)?;
    let y = c.output::<T>(0, &[])?.data;
    reduce::<T, HalfSquares>(c, &plan, x.data, y)
}

/// Relative to the sum of the absolute terms.
macro_rules! losses {
    ($($op:literal $kernel:ident;)*) => {$(
        register_kernel!($op on "CPU": fn $kernel<T> for "T" in [f32],
            numerics = Numerics::relative(1e-6, 1e-5).accumulation(DType::FLOAT));
        register_kernel!($op on "CPU": fn $kernel<T> for "T" in [f64],
            numerics = Numerics::relative(1e-15, 1e-13).accumulation(DType::DOUBLE));
        register_kernel!($op on "CPU": fn $kernel<T> for "T" in [f16],
            numerics = Numerics::relative(1e-3, 2e-3).accumulation(DType::FLOAT));
        register_kernel!($op on "CPU": fn $kernel<T> for "T" in [bf16],
            numerics = Numerics::relative(1e-2, 1.6e-2).accumulation(DType::FLOAT));
    )*};
}

losses! {
    "SoftmaxCrossEntropyWithLogits" cross_entropy;
    "SparseSoftmaxCrossEntropyWithLogits" sparse_cross_entropy;
    "L2Loss" l2_loss;
}
