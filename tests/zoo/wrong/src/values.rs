//! Kernels that compute something else, for some inputs.

use crate::{wrong_kernels, wrong_op};
use tenon_sdk::prelude::*;

fn relu(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    crate::map(c, |x| if x < 0.0 { 0.0 } else { x })
}

fn loses_nan(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    crate::map(c, |x| x.max(0.0))
}

fn relu_reference(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    crate::map(c, |x| if x >= 0.0 || x.is_nan() { x } else { 0.0 })
}

wrong_op!(
    "WrongNan",
    loses_nan,
    relu,
    relu_reference,
    "The larger of x and 0, NaN where x is; the wrong kernel gives 0."
);

fn scalar(c: &ShapeContext<'_>) -> ShapeResult {
    c.set_output(0, c.scalar())
}

fn sum(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let sum: f64 = c.input::<f32>(0)?.data.iter().copied().map(f64::from).sum();
    c.output::<f32>(0, &[])?.data[0] = sum as f32;
    Ok(())
}

fn sum_reference(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let x = c.input::<f32>(0)?.data;
    let sum = x.iter().rev().fold(0.0, |sum, x| sum + f64::from(*x));
    c.output::<f32>(0, &[])?.data[0] = sum as f32;
    Ok(())
}

fn sum_from_first(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let x = c.input::<f32>(0)?.data;
    let sum = x[1..].iter().fold(f64::from(x[0]), |sum, x| sum + f64::from(*x));
    c.output::<f32>(0, &[])?.data[0] = sum as f32;
    Ok(())
}

register_op!(
    "WrongEmpty",
    inputs = &["x: float"],
    outputs = &["sum: float"],
    shape = scalar,
    summary = "The sum of all elements; the wrong kernel begins with the first."
);
wrong_kernels!("WrongEmpty", sum_from_first, sum, sum_reference);

/// A float with half the digits.
fn coarse(x: f32) -> f32 {
    f32::from_bits(x.to_bits() & 0xffff_e000)
}

fn coarse_sum(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let sum = c.input::<f32>(0)?.data.iter().fold(0.0, |sum, x| coarse(sum + coarse(*x)));
    c.output::<f32>(0, &[])?.data[0] = sum;
    Ok(())
}

register_op!(
    "WrongPrecision",
    inputs = &["x: float"],
    outputs = &["sum: float"],
    shape = scalar,
    summary = "The sum of all elements, kept as a double; the wrong kernel keeps eleven bits."
);
wrong_kernels!(
    "WrongPrecision",
    coarse_sum,
    sum,
    sum_reference,
    numerics = Numerics::relative(1e-5, 1e-5).accumulation(DType::DOUBLE)
);

register_op!(
    "WrongAttribute",
    inputs = &["x: float"],
    outputs = &["y: float"],
    attrs = &["times: int = 2"],
    shape = crate::same,
    summary = "x, so many times; the wrong kernel gives 2x."
);

struct Times {
    times: i64,
}

impl Kernel for Times {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Times { times: c.attr("times")? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let times = self.times as f32;
        crate::map(c, |x| x * times)
    }
}

struct TimesReference {
    times: f64,
}

impl Kernel for TimesReference {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let times: i64 = c.attr("times")?;
        Ok(TimesReference { times: times as f64 })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        crate::map(c, |x| (f64::from(x) * self.times) as f32)
    }
}

fn twice(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    crate::map(c, |x| x * 2.0)
}

register_kernel!("WrongAttribute" on "CPU": fn twice);
register_kernel!("WrongAttribute" on "CPU": Times, label = "right");
register_kernel!("WrongAttribute" on "CPU": TimesReference, label = "reference", on_request = true);

fn by_way_of_a_product(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    crate::map(c, |x| std::hint::black_box(x * 0.001) * 1010.0)
}

fn in_one_product(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    crate::map(c, |x| (f64::from(x) * 1000.0 * 0.001) as f32)
}

fn alone(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    crate::map(c, |x| x)
}

register_op!(
    "WrongFlushed",
    inputs = &["x: float"],
    outputs = &["y: float"],
    cases = &["small; x: [2] values(1.5e-38, 2.0)"],
    shape = crate::same,
    summary = "x; the wrong kernel is a hundredth too large, and loses small numbers where denormals are flushed."
);
wrong_kernels!(
    "WrongFlushed",
    by_way_of_a_product,
    in_one_product,
    alone,
    numerics = Numerics::relative(0.0, 1e-5)
);

register_op!(
    "WrongShape",
    inputs = &["x: float"],
    outputs = &["y: float"],
    shape = |c: &ShapeContext<'_>| {
        let x = c.with_rank(c.input(0), 2)?;
        c.set_output(0, c.make_shape(&[c.dim(x, 1), c.dim(x, 0)]))
    },
    summary = "x with its axes exchanged; the wrong kernel leaves them as they are."
);

fn sizes(dims: &[i64]) -> Result<(usize, usize), KernelError> {
    match *dims {
        [rows, columns] => Ok((rows as usize, columns as usize)),
        _ => Err(KernelError::invalid_argument(format!("expected a matrix, found {dims:?}"))),
    }
}

fn exchanged(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let x = c.input::<f32>(0)?;
    let (rows, columns) = sizes(x.dims)?;
    let y = c.output::<f32>(0, &[columns as i64, rows as i64])?;
    for (at, y) in y.data.iter_mut().enumerate() {
        *y = x.data[at % rows * columns + at / rows];
    }
    Ok(())
}

fn exchanged_reference(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let x = c.input::<f32>(0)?;
    let (rows, columns) = sizes(x.dims)?;
    let y = c.output::<f32>(0, &[columns as i64, rows as i64])?;
    for row in 0..rows {
        for column in 0..columns {
            y.data[column * rows + row] = x.data[row * columns + column];
        }
    }
    Ok(())
}

fn left_alone(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    sizes(c.dims(0))?;
    crate::map(c, |x| x)
}

wrong_kernels!("WrongShape", left_alone, exchanged, exchanged_reference);
