//! A call of a depthwise convolution: packs its filter, lays out its pixels, and shares the work.

use super::{Depthwise, Pixels, Weights};
use crate::{
    isa::Isa,
    output::Stage,
    product::Target,
    spread::{for_units, too_large},
};
use tenon_sdk::{DType, KernelError, author::ComputeContext, geometry::Conv2dGeometry};

/// Bytes of the images that a thread repeats at a time.
const BLOCK: usize = 1 << 13;

/// What is multiplied.
#[derive(Debug, Clone, Copy)]
pub struct Factors<'a> {
    /// Images and filter.
    pub data: [&'a [u8]; 2],
    /// Their types.
    pub types: [DType; 2],
    /// The zero point of the images: a value of their type where windows reach outside of them.
    pub left_zero: i32,
    /// Those of the filter: one, or one for each output channel.
    pub right_zeros: &'a [i32],
    /// One for each output channel, or none.
    pub bias: &'a [i32],
}

/// Computes a depthwise convolution. Its output, the results of `stage` for each channel, must not be empty.
///
/// # Errors
/// No memory.
pub fn compute<'a>(
    c: &ComputeContext<'a>,
    isa: &'static Isa,
    g: &Conv2dGeometry,
    factors: &Factors<'a>,
    stage: Stage<'a>,
    to: &'a mut [u8],
) -> Result<(), KernelError> {
    let channels = g.out_channels as usize;
    let padded = channels.next_multiple_of(isa.columns);
    let multiplier = channels / g.in_channels as usize;
    let images = expanded(c, factors.data[0], multiplier)?;
    let end = images.len().min(padded);
    let last = c.scratch_slice::<u8>(end + padded)?;
    last[..end].copy_from_slice(&images[images.len() - end..]);
    let padding = c.scratch_slice::<u8>(padded)?;
    padding.fill(factors.left_zero as u8);
    assert!(stage.covers(padded), "scales for all channels");
    let d = Depthwise {
        isa,
        geometry: *g,
        channels,
        padded,
        signed: factors.types[0] == DType::QINT8,
        pixels: Pixels { images, end: last, padding },
        weights: weights(c, factors, [channels, padded])?,
        stage,
        to: Target::new(to, channels * stage.value_bytes()),
    };
    // SAFETY: units of one split are disjoint, so are their results.
    for_units(c, d.units(), d.unit_ns(), |units, _| unsafe { isa.depthwise(&d, units) })
}

/// The images with every channel as often as it has outputs.
fn expanded<'a>(
    c: &ComputeContext<'a>,
    images: &'a [u8],
    multiplier: usize,
) -> Result<&'a [u8], KernelError> {
    if multiplier == 1 {
        return Ok(images);
    }
    let all = c.scratch_slice::<u8>(images.len().checked_mul(multiplier).ok_or_else(too_large)?)?;
    let parts = all.chunks_mut(BLOCK * multiplier).zip(images.chunks(BLOCK)).collect();
    c.parallel_items(parts, (BLOCK * multiplier) as f64, |_, (to, from): (&mut [u8], &[u8])| {
        let outputs = to.chunks_exact_mut(multiplier).zip(from);
        outputs.for_each(|(to, &from)| to.fill(from));
        Ok(())
    })?;
    Ok(all)
}

/// The filter's values less their zero points, and what sums begin with: `bias - left_zero * (sum of the channel's
/// weights)`, modulo 2^32.
fn weights<'a>(
    c: &ComputeContext<'a>,
    factors: &Factors<'_>,
    [channels, padded]: [usize; 2],
) -> Result<Weights<'a>, KernelError> {
    let (filter, signed) = (factors.data[1], factors.types[1] == DType::QINT8);
    let taps = filter.len() / channels;
    let words = c.scratch_slice::<i32>(taps.checked_mul(padded).ok_or_else(too_large)?)?;
    let begin = c.scratch_slice::<i32>(padded)?;
    for (words, values) in words.chunks_exact_mut(padded).zip(filter.chunks_exact(channels)) {
        for (at, (word, &value)) in words.iter_mut().zip(values).enumerate() {
            let zero = *factors.right_zeros.get(at).unwrap_or(&factors.right_zeros[0]);
            let value = if signed { value.cast_signed().into() } else { i32::from(value) };
            begin[at] = begin[at].wrapping_add(value - zero);
            *word = i32::from((value - zero) as u16);
        }
    }
    for (at, begin) in begin.iter_mut().enumerate() {
        let bias = factors.bias.get(at).copied().unwrap_or(0);
        *begin = bias.wrapping_sub(factors.left_zero.wrapping_mul(*begin));
    }
    Ok(Weights { words, begin })
}
