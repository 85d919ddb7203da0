//! A call of a depthwise convolution: packs its filter, lays out its pixels, and distributes the
//! work.

use super::{Depthwise, Pixels, Weights};
use crate::{
    isa::Isa,
    output::Stage,
    product::Target,
    spread::{for_units, too_large},
};
use tenon_sdk::{DType, KernelError, author::ComputeContext, geometry::Conv2dGeometry};

/// Bytes of the images that a thread expands at a time.
const BLOCK: usize = 1 << 13;

/// The images of a convolution.
#[derive(Debug, Clone, Copy)]
pub struct Images<'a> {
    /// Their channels.
    pub data: &'a [u8],
    /// The type of the values.
    pub dtype: DType,
    /// The code of 0, of that type if windows reach outside of the images.
    pub zero: i32,
}

/// Computes a depthwise convolution. Its output, the results of `stage` for each channel, must not
/// be empty.
///
/// # Errors
/// Out of memory.
pub fn compute<'a>(
    c: &ComputeContext<'a>,
    isa: &'static Isa,
    g: &Conv2dGeometry,
    from: Images<'a>,
    weights: Weights<'a>,
    stage: Stage<'a>,
    to: &'a mut [u8],
) -> Result<(), KernelError> {
    let channels = g.out_channels as usize;
    let padded = channels.next_multiple_of(isa.columns);
    let multiplier = channels / g.in_channels as usize;
    let images = expanded(c, from.data, multiplier)?;
    let end = images.len().min(padded);
    let last = c.scratch_slice::<u8>(end + padded)?;
    last[..end].copy_from_slice(&images[images.len() - end..]);
    let padding = c.scratch_slice::<u8>(padded)?;
    padding.fill(from.zero as u8);
    assert_eq!(weights.begin.len(), padded, "weights for all channels");
    assert!(stage.covers(padded), "scales for all channels");
    let d = Depthwise {
        isa,
        geometry: *g,
        channels,
        padded,
        signed: from.dtype == DType::QINT8,
        pixels: Pixels { images, end: last, padding },
        weights,
        stage,
        to: Target::new(to, channels * stage.value_bytes()),
    };
    // SAFETY: units of one split are disjoint, so are their results.
    for_units(c, d.units(), d.unit_ns(), |units, _| unsafe { isa.depthwise(&d, units) })
}

/// The images with each channel repeated for each of its outputs.
fn expanded<'a>(
    c: &ComputeContext<'a>,
    images: &'a [u8],
    multiplier: usize,
) -> Result<&'a [u8], KernelError> {
    if multiplier == 1 {
        return Ok(images);
    }
    let all = c.scratch_slice::<u8>(images.len().checked_mul(multiplier).ok_or_else(too_large)?)?;
    let parts = all.chunks_mut(BLOCK * multiplier).zip(images.chunks(BLOCK));
    c.parallel_items(parts, (BLOCK * multiplier) as f64, |_, (to, from): (&mut [u8], &[u8])| {
        let outputs = to.chunks_exact_mut(multiplier).zip(from);
        outputs.for_each(|(to, &from)| to.fill(from));
        Ok(())
    })?;
    Ok(all)
}
