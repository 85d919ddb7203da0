//! `Einsum`: operands are rearranged for a batched matrix product, unless they have its order
//! already, and the product is rearranged for the output.

use super::{
    matmul::{DOUBLE, FLOAT, convert_down, widen},
    product::{Factor, Multiply, Operand, Target},
};
use crate::{
    kernels::array::gather::gather,
    lane::Compute,
    split::{Parts, for_units},
};
use half::{bf16, f16};
use num_complex::Complex;
use std::{borrow::Cow, marker::PhantomData};
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    geometry::{EinsumBox, EinsumEquation, EinsumOperand, EinsumPlan, Offsets, row_major_strides},
    growth,
    reg::Numerics,
    register_kernel,
};

/// The matrices of an operand.
struct Matrices<'a, T: Clone> {
    data: Cow<'a, [T]>,
    batch: usize,
    /// Number of free elements, and of elements that are summed over.
    size: [usize; 2],
    strides: [usize; 2],
}

/// The concatenation of boxes as one box.
fn joined(boxes: &[&EinsumBox]) -> Result<EinsumBox, KernelError> {
    let mut all = EinsumBox::default();
    for one in boxes {
        for (&extent, &stride) in one.extents.iter().zip(&*one.strides) {
            all.push(extent, stride)?;
        }
    }
    Ok(all)
}

/// Whether the elements of a box are a whole tensor in order.
fn is_in_order(one: &EinsumBox) -> Result<bool, KernelError> {
    let dense = row_major_strides(&one.extents)?;
    let mut pairs = one.extents.iter().zip(one.strides.iter().zip(&*dense));
    Ok(pairs.all(|(&extent, (stride, dense))| extent == 1 || stride == dense))
}

impl<'a, T: Multiply> Matrices<'a, T> {
    fn new(operand: &EinsumOperand, x: &'a [T]) -> Result<Matrices<'a, T>, KernelError> {
        let EinsumOperand { batch, free, contracted, summed } = operand;
        let size = [free.count()?, contracted.count()?];
        let rows = joined(&[batch, free, contracted])?;
        let columns = joined(&[batch, contracted, free])?;
        let whole = summed.extents.is_empty();
        let (data, strides) = if whole && is_in_order(&rows)? {
            (Cow::Borrowed(x), [size[1], 1])
        } else if whole && is_in_order(&columns)? {
            (Cow::Borrowed(x), [1, size[0]])
        } else {
            (Cow::Owned(gathered(&rows, summed, x)?), [size[1], 1])
        };
        Ok(Matrices { data, batch: batch.count()?, size, strides })
    }

    fn get(&self, number: usize) -> Operand<'_, T> {
        let [rows, cols] = self.size;
        let data = &self.data[number * rows * cols..][..rows * cols];
        Operand { data, rows, cols, strides: self.strides }
    }
}

/// The elements of a box, each the sum over another box.
fn gathered<T: Multiply>(
    kept: &EinsumBox,
    summed: &EinsumBox,
    x: &[T],
) -> Result<Vec<T>, KernelError> {
    let mut y = growth::filled(kept.count()?, T::default())?;
    if y.is_empty() || summed.count()? == 0 {
        return Ok(y);
    }
    if summed.count()? == 1 {
        gather(&kept.extents, &kept.strides, 0, x, &mut y)?;
        return Ok(y);
    }
    let (rows, columns) = (Runs::new(kept)?, Runs::new(summed)?);
    if rows.step == 1 && rows.len >= LEAST_ROW {
        // Whole rows of results are added.
        for first in summed.offsets(0) {
            for (y, at) in y.chunks_exact_mut(rows.len).zip(rows.starts(first)) {
                y.iter_mut().zip(&x[at..]).for_each(|(y, &x)| *y = y.plus(x));
            }
        }
        return Ok(y);
    }
    for (y, first) in y.iter_mut().zip(kept.offsets(0)) {
        let runs = columns.starts(first).map(|at| run_sum(x, at, columns.len, columns.step));
        *y = runs.fold(T::default(), T::plus);
    }
    Ok(y)
}

/// The least number of results that are added side by side.
const LEAST_ROW: usize = 8;

/// A box as runs of its last dimension.
struct Runs {
    outer: EinsumBox,
    len: usize,
    step: i64,
}

impl Runs {
    fn new(all: &EinsumBox) -> Result<Runs, KernelError> {
        let last = all.extents.len().checked_sub(1);
        let mut outer = EinsumBox::default();
        for d in 0..last.unwrap_or(0) {
            outer.push(all.extents[d], all.strides[d])?;
        }
        let len = last.map_or(1, |last| all.extents[last] as usize);
        Ok(Runs { outer, len, step: last.map_or(1, |last| all.strides[last]) })
    }

    /// Where the runs begin.
    fn starts(&self, base: usize) -> Offsets {
        self.outer.offsets(base)
    }
}

/// The sum of elements that are `step` apart, in several partial sums.
fn run_sum<T: Multiply>(x: &[T], first: usize, len: usize, step: i64) -> T {
    const LANES: usize = 16;
    if step != 1 {
        let all = (0..len as i64).map(|k| x[(first as i64 + k * step) as usize]);
        return all.fold(T::default(), T::plus);
    }
    let (wide, rest) = x[first..first + len].as_chunks::<LANES>();
    let mut sums = [T::default(); LANES];
    for x in wide {
        sums.iter_mut().zip(x).for_each(|(sum, &x)| *sum = sum.plus(x));
    }
    sums.iter().chain(rest).fold(T::default(), |sum, &x| sum.plus(x))
}

/// The batched product, in the order batch, rows, columns.
fn product<T: Multiply>(
    c: &ComputeContext<'_>,
    x: &Matrices<'_, T>,
    y: &Matrices<'_, T>,
    z: &mut [T],
) -> Result<(), KernelError> {
    let (m, n, k) = (x.size[0], y.size[0], x.size[1]);
    if z.is_empty() {
        return Ok(());
    }
    if x.batch == 1 {
        // SAFETY: the target is the whole of z.
        let target = unsafe { Target::new(z.as_mut_ptr(), m, n, [n, 1]) };
        return T::parallel(c, x.get(0), y.get(0).transposed(), target, [false; 2]);
    }
    let z = Parts::new(z);
    for_units(c, x.batch, T::cost_ns(m, n, k), |range| {
        for at in range {
            // SAFETY: each product writes a matrix of its own, inside z.
            let target = unsafe { Target::new(z.as_mut_ptr().add(at * m * n), m, n, [n, 1]) };
            T::multiply(x.get(at), y.get(at).transposed(), target, [false; 2]);
        }
    })
}

/// Computes the output of a plan.
fn compute<T: Multiply>(
    c: &ComputeContext<'_>,
    plan: &EinsumPlan,
    inputs: &[&[T]],
    output: &mut [T],
) -> Result<(), KernelError> {
    let in_order = is_in_order(&plan.target)? && plan.target.count()? == output.len();
    let x = Matrices::new(&plan.operands[0], inputs[0])?;
    let Some(operand) = plan.operands.get(1) else {
        return scatter(&plan.target, &x.data, output);
    };
    let y = Matrices::new(operand, inputs[1])?;
    if in_order {
        return product(c, &x, &y, output);
    }
    let z = c.scratch_slice::<T>(plan.target.count()?)?;
    product(c, &x, &y, z)?;
    scatter(&plan.target, z, output)
}

/// Writes elements to their places in the output, and zeros elsewhere.
fn scatter<T: Multiply>(target: &EinsumBox, x: &[T], y: &mut [T]) -> Result<(), KernelError> {
    if let Some(order) = permutation(target, y.len())? {
        return gather(&order.extents, &order.strides, 0, x, y);
    }
    if x.len() < y.len() {
        y.fill(T::default());
    }
    for (at, x) in target.offsets(0).zip(x) {
        y[at] = *x;
    }
    Ok(())
}

/// The box of the elements in the order of the output, if the target is a permutation of all its
/// dimensions.
fn permutation(target: &EinsumBox, len: usize) -> Result<Option<EinsumBox>, KernelError> {
    let own = row_major_strides(&target.extents)?;
    let mut dims: Vec<usize> = (0..target.extents.len()).collect();
    dims.sort_by_key(|&d| std::cmp::Reverse(target.strides[d]));
    let (mut order, mut places) = (EinsumBox::default(), EinsumBox::default());
    for d in dims.into_iter().filter(|&d| target.extents[d] != 1) {
        order.push(target.extents[d], own[d])?;
        places.push(target.extents[d], target.strides[d])?;
    }
    let is_all = target.count()? == len && is_in_order(&places)?;
    Ok(is_all.then_some(order))
}

fn plan(c: &ComputeContext<'_>, equation: &EinsumEquation) -> Result<EinsumPlan, KernelError> {
    let shapes: Vec<&[i64]> = (0..c.input_count()).map(|at| c.dims(at)).collect();
    Ok(EinsumPlan::new(equation, &shapes)?)
}

/// The kernel for types that are their own type of computation.
struct Einsum<T> {
    equation: EinsumEquation,
    element: PhantomData<T>,
}

impl<T: Multiply> Kernel for Einsum<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let equation = EinsumEquation::new(c.attr("equation")?)?;
        Ok(Einsum { equation, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let plan = plan(c, &self.equation)?;
        let inputs = (0..c.input_count()).map(|at| Ok(c.input::<T>(at)?.data));
        let inputs: Vec<&[T]> = inputs.collect::<Result<_, KernelError>>()?;
        compute(c, &plan, &inputs, c.output::<T>(0, &plan.output)?.data)
    }
}

/// The kernel for 16-bit floats: operands are converted, and sums are rounded once.
struct NarrowEinsum<T> {
    equation: EinsumEquation,
    element: PhantomData<T>,
}

impl<T: Compute<Wide: Factor>> Kernel for NarrowEinsum<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let equation = EinsumEquation::new(c.attr("equation")?)?;
        Ok(NarrowEinsum { equation, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let plan = plan(c, &self.equation)?;
        let inputs = (0..c.input_count()).map(|at| Ok(&*widen(c, c.input::<T>(at)?.data)?));
        let inputs: Vec<&[T::Wide]> = inputs.collect::<Result<_, KernelError>>()?;
        let output = c.output::<T>(0, &plan.output)?.data;
        let wide = c.scratch_slice::<T::Wide>(output.len())?;
        compute(c, &plan, &inputs, wide)?;
        convert_down(wide, output);
        Ok(())
    }
}

register_kernel!("Einsum" on "CPU": Einsum<T> for "T" in [f32, Complex<f32>], numerics = FLOAT);
register_kernel!("Einsum" on "CPU": Einsum<T> for "T" in [f64, Complex<f64>], numerics = DOUBLE);
register_kernel!("Einsum" on "CPU": Einsum<T> for "T" in [i32, i64], numerics = Numerics::EXACT);
register_kernel!("Einsum" on "CPU": NarrowEinsum<T> for "T" in [f16],
    numerics = Numerics::relative(6e-8, 2e-3).accumulation(DType::FLOAT));
register_kernel!("Einsum" on "CPU": NarrowEinsum<T> for "T" in [bf16],
    numerics = Numerics::relative(1e-30, 1.6e-2).accumulation(DType::FLOAT));
