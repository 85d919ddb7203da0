//! Ops that create tensors: `Range`, `LinSpace`, `OneHot`, `Empty`, `ZerosLike`, `OnesLike`; and
//! one that checks them, `CheckNumerics`.

use super::moves::{
    Item, Move, TEXTS, by_type, check_rank, check_vector, indices, make, one_integer, produce,
};
use super::{NUMBERS, numbers::Term};
use half::{bf16, f16};
use num_complex::Complex;
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::{Element, Float, Number},
    geometry::{GeometryError, element_count, float_range_len, one_hot_dims, range_len},
    reg::Numerics,
    register_kernel,
};

/// The scalars of a call, which are its first inputs.
fn scalars<T: Element, const N: usize>(
    c: &ComputeContext<'_>,
    names: [&str; N],
) -> Result<[T; N], KernelError> {
    let mut values = [T::default(); N];
    for (input, (value, name)) in values.iter_mut().zip(names).enumerate() {
        check_rank(c, input, name, 0)?;
        *value = c.input::<T>(input)?.data[0];
    }
    Ok(values)
}

fn range_of_integers<T: Number + Into<i64>>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let [start, limit, delta] = scalars::<T, 3>(c, ["start", "limit", "delta"])?;
    let len = range_len(start.into(), limit.into(), delta.into())?;
    let mut value = start;
    for y in c.output::<T>(0, &[len])?.data {
        *y = value;
        value = value.add(delta);
    }
    Ok(())
}

/// As in TensorFlow, number, product and sum are each rounded to the type itself.
fn range_of_floats<T: Float>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let [start, limit, delta] = scalars::<T, 3>(c, ["start", "limit", "delta"])?;
    let refused = |what: String| Err(KernelError::invalid_argument(what));
    let (from, to, by) = (start.to_f64(), limit.to_f64(), delta.to_f64());
    if by == 0.0 {
        return Err(GeometryError::Zero { what: "delta" }.into());
    }
    if by > 0.0 && from > to {
        return refused(format!("limit must be at least {from}, got {to}"));
    }
    if by < 0.0 && from < to {
        return refused(format!("limit must be at most {from}, got {to}"));
    }
    let Some(len) = float_range_len(T::DTYPE, from, to, by) else {
        return refused(format!("a range from {from} to {to} in steps of {by} has no end"));
    };
    for (at, y) in c.output::<T>(0, &[len])?.data.iter_mut().enumerate() {
        *y = start.add(T::from_f64(at as f64).mul(delta));
    }
    Ok(())
}

fn lin_space<T: Number>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let [start, stop] = scalars::<T, 2>(c, ["start", "stop"])?;
    check_rank(c, 2, "num", 0)?;
    let num = c.integer(2, "num")?;
    if num < 1 {
        return Err(GeometryError::TooSmall { what: "num", least: 1, found: num }.into());
    }
    let (from, to) = (start.to_f64(), stop.to_f64());
    let rounded = |value: f64| T::from_f64(value).to_f64();
    let step = if num > 1 { rounded(rounded(to - from) / (num - 1) as f64) } else { 0.0 };
    // The ends are given: an infinite or NaN step would turn the first one into NaN.
    let y = c.output::<T>(0, &[num])?.data;
    if let [first, rest @ ..] = y {
        *first = start;
        for (at, y) in (1usize..).zip(rest.iter_mut()) {
            *y = T::from_f64(from + rounded(step * at as f64));
        }
        if let [.., last] = rest {
            *last = stop;
        }
    }
    Ok(())
}

/// For each index, rows of `depth` elements that are `inner` apart.
struct Hot<'a> {
    indices: &'a [i64],
    depth: usize,
    inner: usize,
}

impl Move for Hot<'_> {
    fn run<T: Item>(
        &self,
        _: &ComputeContext<'_>,
        x: &[&[T]],
        y: &mut [T],
    ) -> Result<(), KernelError> {
        y.fill(x[1][0]);
        for (at, &index) in self.indices.iter().enumerate() {
            if (0..self.depth as i64).contains(&index) {
                let (outer, inner) = (at / self.inner, at % self.inner);
                y[(outer * self.depth + index as usize) * self.inner + inner] = x[0][0];
            }
        }
        Ok(())
    }
}

/// `OneHot`.
struct OneHot {
    axis: i64,
}

impl Kernel for OneHot {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(OneHot { axis: c.attr("axis")? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        for (input, name) in [(1, "depth"), (2, "on_value"), (3, "off_value")] {
            check_rank(c, input, name, 0)?;
        }
        let (dims, depth) = (c.dims(0), one_integer(c, 1, "depth")?);
        if depth < 0 {
            return Err(GeometryError::TooSmall { what: "depth", least: 0, found: depth }.into());
        }
        let output = one_hot_dims(dims, depth, self.axis)?;
        let place = if self.axis == -1 { dims.len() } else { self.axis as usize };
        let inner = element_count(&dims[place..])?;
        let indices = indices(c, 0)?;
        let how = Hot { indices: &indices, depth: depth as usize, inner };
        produce(c, &[2, 3], &output, &how)
    }
}

/// Produces zeros, empty strings, or false.
struct Zeros;

impl Move for Zeros {
    fn run<T: Item>(
        &self,
        _: &ComputeContext<'_>,
        _: &[&[T]],
        y: &mut [T],
    ) -> Result<(), KernelError> {
        y.fill(T::default());
        Ok(())
    }
}

fn zeros_like(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    make(c, c.slot(0)?.dtype, &[], (0, c.dims(0)), &Zeros)
}

/// `Empty`. Without `init` the contents are zeros here, although they are unspecified: no step sees
/// data of another in memory.
struct Empty {
    dtype: DType,
}

impl Kernel for Empty {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Empty { dtype: c.attr("dtype")? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        check_vector(c, 0, "shape")?;
        make(c, self.dtype, &[], (0, &c.integers(0)?), &Zeros)
    }
}

fn ones_like<T: Term>(c: &ComputeContext<'_>, one: T) -> Result<(), KernelError> {
    c.output::<T>(0, c.dims(0))?.data.fill(one);
    Ok(())
}

fn ones_of<T: Number + Term>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    ones_like(c, T::ONE)
}

fn ones(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    match c.slot(0)?.dtype {
        DType::BOOL => ones_like(c, true),
        DType::COMPLEX64 => ones_like(c, Complex::<f32>::new(1.0, 0.0)),
        DType::COMPLEX128 => ones_like(c, Complex::<f64>::new(1.0, 0.0)),
        dtype => {
            by_type!(dtype, ones_of(c), [i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64])
        }
    }
}

/// `CheckNumerics`.
struct CheckNumerics {
    message: String,
}

impl Kernel for CheckNumerics {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(CheckNumerics { message: String::from_utf8_lossy(c.attr("message")?).into_owned() })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (nan, infinite) = by_type!(c.slot(0)?.dtype, not_finite(c), [f16, bf16, f32, f64])?;
        let what = match (nan, infinite) {
            (false, false) => return c.share(0, 0, c.dims(0)),
            (true, false) => "NaN",
            (false, true) => "Inf",
            (true, true) => "Inf and NaN",
        };
        let message = format!("{} : Tensor had {what} values", self.message);
        Err(KernelError::invalid_argument(message))
    }
}

/// Whether there is a NaN, and whether there is an infinity.
fn not_finite<T: Float>(c: &ComputeContext<'_>) -> Result<(bool, bool), KernelError> {
    let mut found = (false, false);
    for &x in c.input::<T>(0)?.data {
        found.0 |= x.is_nan();
        found.1 |= x == T::HIGHEST || x == T::LOWEST;
    }
    Ok(found)
}

register_kernel!("Range" on "CPU": fn range_of_integers<T> for "Tidx" in [i32, i64],
    host_memory = &["start", "limit", "delta"], numerics = Numerics::EXACT);
register_kernel!("Range" on "CPU": fn range_of_floats<T> for "Tidx" in [f16, bf16, f32, f64],
    host_memory = &["start", "limit", "delta"], numerics = Numerics::EXACT);
register_kernel!("LinSpace" on "CPU": fn lin_space<T> for "T" in [f32, f64],
    host_memory = &["start", "stop", "num"], numerics = Numerics::relative(0.0, 1e-6));
register_kernel!("OneHot" on "CPU": OneHot, types = ("T", TEXTS), host_memory = &["depth"],
    numerics = Numerics::EXACT);
register_kernel!("Empty" on "CPU": Empty, types = ("dtype", TEXTS), host_memory = &["shape"],
    numerics = Numerics::EXACT);
register_kernel!("ZerosLike" on "CPU": fn zeros_like, types = ("T", TEXTS),
    numerics = Numerics::EXACT);
register_kernel!("OnesLike" on "CPU": fn ones, types = ("T", NUMBERS), numerics = Numerics::EXACT);
register_kernel!("CheckNumerics" on "CPU": CheckNumerics, numerics = Numerics::EXACT,
    types = ("T", &[DType::BFLOAT16, DType::HALF, DType::FLOAT, DType::DOUBLE]));
