//! `_AffineQuantize`, `_AffineDequantize` and `_AffineRange`: real numbers to 8 bits and back.

use super::scales::affine;
use crate::kernels::channels::map;
use std::marker::PhantomData;
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::{Element, QInt8, QUInt8, Quantised},
    fixed_point::Affine,
    reg::Numerics,
    register_kernel,
};

const NAMES: [&str; 2] = ["scale", "zero_point"];

/// Adding it to a float of at most 2^22 rounds that to an integer, ties to even, in the low bits of
/// the sum.
const ROUNDS: f32 = 1.5 * (1u32 << 23) as f32;

fn quantize<T: Quantised>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let Affine { scale, zero_point } = affine::<T>(c, 1, NAMES)?;
    let x = c.input::<f32>(0)?;
    let y = c.output::<T>(0, x.dims)?;
    let (low, high) = ((T::LOWEST - zero_point) as f32, (T::HIGHEST - zero_point) as f32);
    let shift = zero_point - ROUNDS.to_bits().cast_signed();
    map(c, (x.data, y.data), 0.5, |x| {
        let steps = x / scale;
        // In this order, so that NaN yields the least value.
        let steps = if steps > low { steps } else { low };
        let steps = if steps < high { steps } else { high };
        T::saturated((steps + ROUNDS).to_bits().cast_signed().wrapping_add(shift).into())
    })
}

fn dequantize<T: Quantised>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let affine = affine::<T>(c, 1, NAMES)?;
    let x = c.input::<T>(0)?;
    let y = c.output::<f32>(0, x.dims)?;
    map(c, (x.data, y.data), 0.3, |x| affine.real(x.code()))
}

/// Number of values examined side by side.
const LANES: usize = 16;

struct Range<T>(PhantomData<fn() -> T>);

impl<T: Quantised> Kernel for Range<T> {
    fn new(_: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Range(PhantomData))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let [min, max] = ends(c.input::<f32>(0)?.data);
        let Affine { scale, zero_point } = Affine::of_range(T::DTYPE, min, max)?;
        c.output::<f32>(0, &[])?.data[0] = scale;
        c.output::<i32>(1, &[])?.data[0] = zero_point;
        Ok(())
    }
}

/// The least and the greatest of these numbers and 0; NaN if any of them is NaN or infinite.
fn ends(x: &[f32]) -> [f32; 2] {
    let (mut least, mut greatest) = ([0f32; LANES], [0f32; LANES]);
    let mut sums = [0f32; LANES];
    let mut take = |lane: usize, x: f32| {
        least[lane] = if x < least[lane] { x } else { least[lane] };
        greatest[lane] = if x > greatest[lane] { x } else { greatest[lane] };
        // The sum is 0 for finite numbers, and NaN if one is NaN or infinite.
        sums[lane] += x * 0.0;
    };
    let (lines, rest) = x.as_chunks::<LANES>();
    for line in lines {
        line.iter().enumerate().for_each(|(lane, &x)| take(lane, x));
    }
    rest.iter().enumerate().for_each(|(lane, &x)| take(lane, x));
    if sums.iter().any(|sum| sum.is_nan()) {
        return [x.iter().copied().find(|x| !x.is_finite()).unwrap_or(f32::NAN); 2];
    }
    [least.into_iter().fold(0.0, f32::min), greatest.into_iter().fold(0.0, f32::max)]
}

register_kernel!("_AffineQuantize" on "CPU": fn quantize<T> for "T" in [QUInt8, QInt8], numerics = Numerics::EXACT);
register_kernel!("_AffineDequantize" on "CPU": fn dequantize<T> for "T" in [QUInt8, QInt8],
    numerics = Numerics::EXACT);
register_kernel!("_AffineRange" on "CPU": Range<QUInt8>, types = ("T", &[<QUInt8 as Element>::DTYPE]),
    numerics = Numerics::EXACT);
register_kernel!("_AffineRange" on "CPU": Range<QInt8>, types = ("T", &[<QInt8 as Element>::DTYPE]),
    numerics = Numerics::EXACT);
