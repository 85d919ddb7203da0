//! `Einsum`: operands are rearranged for a batched matrix product, unless they have its order
//! already, and the product is rearranged for the output.

use super::{
    matmul::{DOUBLE, FLOAT, convert_down, widen},
    product::{Factor, Multiply, Operand, Target},
};
use crate::{
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
            all.extents.push(extent)?;
            all.strides.push(stride)?;
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
    let offsets = |one: &EinsumBox, base| Offsets::new(&one.extents, &one.strides, base);
    if kept.count()? == 0 {
        return Ok(Vec::new());
    }
    growth::collected(offsets(kept, 0).map(|first| {
        let all = offsets(summed, first as i64);
        all.fold(T::default(), |sum, at| sum.plus(x[at]))
    }))
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
        scatter(&plan.target, &x.data, output);
        return Ok(());
    };
    let y = Matrices::new(operand, inputs[1])?;
    if in_order {
        return product(c, &x, &y, output);
    }
    let z = c.scratch_slice::<T>(plan.target.count()?)?;
    product(c, &x, &y, z)?;
    scatter(&plan.target, z, output);
    Ok(())
}

/// Writes elements to their places in the output, and zeros elsewhere.
fn scatter<T: Multiply>(target: &EinsumBox, x: &[T], y: &mut [T]) {
    if x.len() < y.len() {
        y.fill(T::default());
    }
    for (at, x) in Offsets::new(&target.extents, &target.strides, 0).zip(x) {
        y[at] = *x;
    }
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
