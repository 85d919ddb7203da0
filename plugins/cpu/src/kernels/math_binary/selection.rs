//! Selection by a condition, clipping, and reinterpretation of bytes.

use crate::{
    kernels::{
        array::{Word, words, words_mut},
        elementwise::any::for_runs,
    },
    lane::Compute,
};
use half::{bf16, f16};
use num_complex::Complex;
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::Element,
    geometry::{BroadcastPlan, bitcast_dims},
    growth,
    reg::Numerics,
    register_kernel,
};

/// Elements that are moved, told apart by their size.
trait Moved: Copy + Send + Sync {
    fn input<'a>(c: &ComputeContext<'a>, input: usize) -> Result<&'a [Self], KernelError>;
    fn output<'a>(c: &ComputeContext<'a>, dims: &[i64]) -> Result<&'a mut [Self], KernelError>;
}

impl<W: Word> Moved for W {
    fn input<'a>(c: &ComputeContext<'a>, input: usize) -> Result<&'a [W], KernelError> {
        words(c.input_bytes(input)?)
    }
    fn output<'a>(c: &ComputeContext<'a>, dims: &[i64]) -> Result<&'a mut [W], KernelError> {
        words_mut(c.output_bytes(0, dims)?)
    }
}

impl Moved for Complex<f64> {
    fn input<'a>(c: &ComputeContext<'a>, input: usize) -> Result<&'a [Self], KernelError> {
        Ok(c.input::<Self>(input)?.data)
    }
    fn output<'a>(c: &ComputeContext<'a>, dims: &[i64]) -> Result<&'a mut [Self], KernelError> {
        Ok(c.output::<Self>(0, dims)?.data)
    }
}

/// Chooses elements of inputs 1 and 2 by the condition, broadcast as planned.
fn choose<T: Moved>(
    c: &ComputeContext<'_>,
    plan: &BroadcastPlan<3>,
    dims: &[i64],
) -> Result<(), KernelError> {
    let condition = c.input::<bool>(0)?.data;
    let (t, e) = (T::input(c, 1)?, T::input(c, 2)?);
    for_runs(c, plan, 0.5, T::output(c, dims)?, |run, z| {
        let [at, i, j] = run.offsets;
        match run.strides {
            [1, 1, 1] => {
                let both = t[i..].iter().zip(&e[j..]);
                for ((z, &condition), (&t, &e)) in z.iter_mut().zip(&condition[at..]).zip(both) {
                    *z = if condition { t } else { e };
                }
            }
            [0, 1, _] if condition[at] => z.copy_from_slice(&t[i..i + z.len()]),
            [0, _, 1] if !condition[at] => z.copy_from_slice(&e[j..j + z.len()]),
            [step, t_step, e_step] => {
                for (n, z) in z.iter_mut().enumerate() {
                    let condition = condition[at + n * step];
                    *z = if condition { t[i + n * t_step] } else { e[j + n * e_step] };
                }
            }
        }
    })
}

fn choose_strings(
    c: &ComputeContext<'_>,
    plan: &BroadcastPlan<3>,
    dims: &[i64],
) -> Result<(), KernelError> {
    let condition = c.input::<bool>(0)?.data;
    let (t, e) = (c.strings(1)?, c.strings(2)?);
    let mut z = growth::with_room(plan.len())?;
    for run in plan.runs() {
        z.extend((0..run.len).map(|n| {
            let [at, i, j] = [0, 1, 2].map(|side| run.offsets[side] + n * run.strides[side]);
            if condition[at] { t[i] } else { e[j] }
        }));
    }
    c.set_strings(0, dims, z.into_iter())
}

/// Calls [`choose`] for the type of the values.
fn choose_any(
    c: &ComputeContext<'_>,
    plan: &BroadcastPlan<3>,
    dims: &[i64],
) -> Result<(), KernelError> {
    let dtype = c.slot(1)?.dtype;
    match (dtype, dtype.size()) {
        (DType::STRING, _) => choose_strings(c, plan, dims),
        (_, Some(1)) => choose::<u8>(c, plan, dims),
        (_, Some(2)) => choose::<u16>(c, plan, dims),
        (_, Some(4)) => choose::<u32>(c, plan, dims),
        (_, Some(8)) => choose::<u64>(c, plan, dims),
        (DType::COMPLEX128, _) => choose::<Complex<f64>>(c, plan, dims),
        _ => Err(KernelError::unimplemented(format!("selection of {dtype} is not supported"))),
    }
}

fn select_v2(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let plan = BroadcastPlan::new([c.dims(0), c.dims(1), c.dims(2)])?;
    choose_any(c, &plan, plan.output_dims())
}

/// The older op, whose condition is a scalar, or has a value per row or per element.
fn select(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let [condition, t, e] = [0, 1, 2].map(|input| c.dims(input));
    let differs = |what: &str, found: &[i64]| {
        KernelError::invalid_argument(format!(
            "{what} must have the shape {t:?} of t, found {found:?}"
        ))
    };
    if t != e {
        return Err(differs("e", e));
    }
    if condition.is_empty() {
        return c.share(if c.input::<bool>(0)?.data[0] { 1 } else { 2 }, 0, t);
    }
    let by_rows = condition.len() == 1 && !t.is_empty() && condition[0] == t[0];
    if !by_rows && condition != t {
        return Err(differs("condition, unless it has a value per row,", condition));
    }
    let mut dims = vec![1; t.len()];
    dims[..condition.len()].copy_from_slice(condition);
    choose_any(c, &BroadcastPlan::new([&dims, t, e])?, t)
}

const SELECTED: &[DType] = &[
    DType::BOOL,
    DType::INT8,
    DType::INT16,
    DType::INT32,
    DType::INT64,
    DType::UINT8,
    DType::UINT16,
    DType::UINT32,
    DType::UINT64,
    DType::HALF,
    DType::BFLOAT16,
    DType::FLOAT,
    DType::DOUBLE,
    DType::COMPLEX64,
    DType::COMPLEX128,
    DType::STRING,
];

register_kernel!("Select" on "CPU": fn select, types = ("T", SELECTED),
    numerics = Numerics::EXACT);
register_kernel!("SelectV2" on "CPU": fn select_v2, types = ("T", SELECTED),
    numerics = Numerics::EXACT);

/// Numbers that can be clipped; complex ones part by part.
trait Clip: Element {
    /// Clips to between `low` and `high`; `low` wins where they contradict.
    fn clip(self, low: Self, high: Self) -> Self;
}

#[inline(always)]
fn clip_number<T: Compute>(x: T, low: T, high: T) -> T {
    let below = if high.up() < x.up() { high } else { x };
    if below.up() < low.up() { low } else { below }
}

macro_rules! clip {
    ($($ty:ty),*) => {$(
        impl Clip for $ty {
            #[inline(always)]
            fn clip(self, low: $ty, high: $ty) -> $ty {
                clip_number(self, low, high)
            }
        }
    )*};
}

clip!(i8, i16, i32, i64, u8, u16, f16, bf16, f32, f64);

macro_rules! clip_parts {
    ($($ty:ty),*) => {$(
        impl Clip for Complex<$ty> {
            #[inline(always)]
            fn clip(self, low: Self, high: Self) -> Self {
                Complex::new(
                    clip_number(self.re, low.re, high.re),
                    clip_number(self.im, low.im, high.im),
                )
            }
        }
    )*};
}

clip_parts!(f32, f64);

fn clip_by_value<T: Clip>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let (x, low, high) = (c.input::<T>(0)?, c.input::<T>(1)?, c.input::<T>(2)?);
    for (name, limit) in [("clip_value_min", low.dims), ("clip_value_max", high.dims)] {
        if !limit.is_empty() && limit != x.dims {
            return Err(KernelError::invalid_argument(format!(
                "{name} must be a scalar or have the shape {:?} of t, found {limit:?}",
                x.dims
            )));
        }
    }
    let plan = BroadcastPlan::new([x.dims, low.dims, high.dims])?;
    for_runs(c, &plan, 0.4, c.output::<T>(0, x.dims)?.data, |run, y| {
        let [i, j, k] = run.offsets;
        let x = &x.data[i..];
        if let [_, 0, 0] = run.strides {
            let (low, high) = (low.data[j], high.data[k]);
            y.iter_mut().zip(x).for_each(|(y, x)| *y = x.clip(low, high));
            return;
        }
        for (n, (y, x)) in y.iter_mut().zip(x).enumerate() {
            *y = x.clip(low.data[j + n * run.strides[1]], high.data[k + n * run.strides[2]]);
        }
    })
}

register_kernel!("ClipByValue" on "CPU": fn clip_by_value<T>
    for "T" in [i8, i16, i32, i64, u8, u16, f16, bf16, f32, f64, Complex<f32>, Complex<f64>],
    numerics = Numerics::EXACT);

/// The sizes of an element before and after the conversion.
struct Bitcast {
    from: usize,
    to: usize,
}

impl Kernel for Bitcast {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let size = |name: &str| {
            let dtype: DType = c.attr(name)?;
            dtype.size().ok_or_else(|| {
                KernelError::unimplemented(format!("{name} must have a fixed size, found {dtype}"))
            })
        };
        Ok(Bitcast { from: size("T")?, to: size("type")? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let dims = bitcast_dims(c.dims(0), self.from, self.to)?;
        c.output_bytes(0, &dims)?.copy_from_slice(c.input_bytes(0)?);
        Ok(())
    }
}

const CAST: &[DType] = &[
    DType::BFLOAT16,
    DType::HALF,
    DType::FLOAT,
    DType::DOUBLE,
    DType::INT64,
    DType::INT32,
    DType::UINT8,
    DType::UINT16,
    DType::UINT32,
    DType::UINT64,
    DType::INT8,
    DType::INT16,
    DType::COMPLEX64,
    DType::COMPLEX128,
    DType::QINT8,
    DType::QUINT8,
    DType::QINT16,
    DType::QUINT16,
    DType::QINT32,
];

register_kernel!("Bitcast" on "CPU": Bitcast, types = ("T", CAST), types = ("type", CAST),
    numerics = Numerics::EXACT);
