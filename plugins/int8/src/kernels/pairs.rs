//! `QuantizedAdd` and `QuantizedMul`, whose operands broadcast.

use super::{
    products::{Side, check_terms},
    range::{Range, product_range},
};
use tenon_sdk::{
    DType, KernelError,
    author::ComputeContext,
    element::{QInt32, QUInt8, Quantised},
    geometry::BroadcastPlan,
    reg::Numerics,
    register_kernel,
};

/// Writes a value for each pair of codes that broadcasting combines.
pub fn for_pairs<T: Quantised, Z: Quantised>(
    c: &ComputeContext<'_>,
    f: impl Fn(T, T) -> Z + Sync,
) -> Result<(), KernelError> {
    for_runs(c, 0.5, |x: &[T], y: &[T], strides, z: &mut [Z]| match strides {
        [0, _] => z.iter_mut().zip(y).for_each(|(z, &y)| *z = f(x[0], y)),
        [_, 0] => z.iter_mut().zip(x).for_each(|(z, &x)| *z = f(x, y[0])),
        _ => z.iter_mut().zip(x.iter().zip(y)).for_each(|(z, (&x, &y))| *z = f(x, y)),
    })
}

/// Writes adjacent elements of the output from adjacent elements of both inputs, or from one
/// element of an input with stride 0; an element costs about `cost` nanoseconds.
pub fn for_runs<T: Quantised, Z: Quantised>(
    c: &ComputeContext<'_>,
    cost: f64,
    write: impl Fn(&[T], &[T], [usize; 2], &mut [Z]) + Sync,
) -> Result<(), KernelError> {
    let plan = BroadcastPlan::new([c.dims(0), c.dims(1)])?;
    let (x, y) = (c.input::<T>(0)?.data, c.input::<T>(1)?.data);
    let z = c.output::<Z>(0, plan.output_dims())?.data;
    if z.is_empty() {
        return Ok(());
    }
    let (runs, run) = (plan.run_count(), plan.run_len());
    // A few thousand elements at a time.
    let group = 4096usize.div_ceil(run).min(runs);
    let parts = z.chunks_mut(group * run);
    c.parallel_items(parts, cost * (group * run) as f64, |number, z| {
        let runs = plan.runs_in(number * group..(number + 1) * group);
        for (z, from) in z.chunks_exact_mut(run).zip(runs) {
            write(&x[from.offsets[0]..], &y[from.offsets[1]..], from.strides, z);
        }
        Ok(())
    })
}

/// The ranges of both operands.
fn ranges(c: &ComputeContext<'_>) -> Result<[Range; 2], KernelError> {
    Ok([Range::wide(c, 2, ["min_x", "max_x"])?, Range::wide(c, 4, ["min_y", "max_y"])?])
}

/// A summand in the range of the sums: a line through the codes of the numbers 0 and 1.
#[derive(Clone, Copy)]
struct Summand {
    start: i64,
    step: i64,
}

impl Summand {
    fn new(from: Range, sums: Range) -> Summand {
        let code = |code| sums.unclamped::<QInt32>(from.real(QUInt8(code)));
        Summand { start: code(0), step: code(1) - code(0) }
    }

    #[inline(always)]
    fn code(self, x: QUInt8) -> i32 {
        (self.start + i64::from(x.0) * self.step).clamp(i32::MIN.into(), i32::MAX.into()) as i32
    }
}

/// The code of a single summand, which is rounded separately.
fn alone(from: Range, sums: Range, x: QUInt8) -> i32 {
    sums.code::<QInt32>(from.real(x)).0
}

/// TensorFlow rounds an operand with one element separately; if both have one, the first operand.
fn add(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let [x, y] = ranges(c)?;
    let end = x.min.min(y.min).abs().max(x.max.max(y.max).abs());
    let sums = Range::symmetric(end * (1u32 << 14) as f32)?;
    let (left, right) = (Summand::new(x, sums), Summand::new(y, sums));
    let counts = [c.input::<QUInt8>(0)?.data.len(), c.input::<QUInt8>(1)?.data.len()];
    match counts {
        [1, _] => for_pairs(c, |a, b| sum(alone(x, sums, a), right.code(b)))?,
        [_, 1] => for_pairs(c, |a, b| sum(left.code(a), alone(y, sums, b)))?,
        _ => for_pairs(c, |a, b| sum(left.code(a), right.code(b)))?,
    }
    sums.write(c, 1)
}

#[inline(always)]
fn sum(a: i32, b: i32) -> QInt32 {
    QInt32(a.saturating_add(b))
}

fn mul(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let [x, y] = ranges(c)?;
    let (left, right) = (Side::of::<QUInt8>(x)?, Side::of::<QUInt8>(y)?);
    check_terms(1, left, right)?;
    let products = product_range(x.level::<QUInt8>(), y.level::<QUInt8>())?;
    for_pairs(c, |x: QUInt8, y: QUInt8| {
        QInt32((i32::from(x.0) - left.zero) * (i32::from(y.0) - right.zero))
    })?;
    products.write(c, 1)
}

macro_rules! pairs {
    ($($op:literal, $function:path;)*) => {$(
        register_kernel!($op on "CPU": fn $function,
            types = ("T1", &[DType::QUINT8]), types = ("T2", &[DType::QUINT8]), types = ("Toutput", &[DType::QINT32]),
            host_memory = &["min_x", "max_x", "min_y", "max_y"], numerics = Numerics::EXACT);
    )*};
}

pairs! {
    "QuantizedAdd", add;
    "QuantizedMul", mul;
}
