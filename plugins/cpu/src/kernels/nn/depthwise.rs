//! `DepthwiseConv2dNative`: each channel with filters of its own, directly.

pub mod slabs;
mod tiles;

use super::{
    conv::{After, Ending},
    volume::wide,
};
use crate::{
    arch::{Isa, vectorised},
    kernels::linalg::{gemm::ending::Finish, product::Factor},
    lane::Compute,
    panels::{Panels, as_same, as_same_mut},
    split::{Parts, for_rows, for_units},
};
use half::{bf16, f16};
use std::{marker::PhantomData, ops::Range};
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::Number,
    geometry::{Conv2dGeometry, ConvAttributes, DataFormat},
    reg::Numerics,
    register_kernel,
};
use tiles::Tiles;

/// The number of output rows that [`Tiles`] computes at once, so that the following functions find
/// them in the second-level cache.
const ROWS: usize = 8;
/// The number of channels that are summed side by side for `OUTPUTS` or `FEW_OUTPUTS` neighbouring
/// outputs, where there are as many. Their sums take 12 registers of 8 floats, and 6 outputs share
/// the other costs of a tap besides its products.
const CHANNELS: usize = 16;
const OUTPUTS: usize = 6;
const FEW_OUTPUTS: usize = 2;
/// The number of channels that are summed side by side elsewhere.
const LANES: usize = 64;

/// A row of the output of one image, channels last.
struct Row<'a, T> {
    image: &'a [T],
    filter: &'a [T],
    /// The taps that are inside the image: their rows for this row, and their columns for an
    /// output.
    rows: Range<usize>,
    columns: Range<usize>,
    /// The position of the first channel of an output's first tap; a wrapped position beyond the
    /// image's end where that tap is outside.
    first: usize,
    /// Elements from a tap to the one below and to the one beside it, in the image and in the
    /// filter. The position of a tap outside may wrap around, and is not used.
    image_steps: [usize; 2],
    filter_steps: [usize; 2],
    /// Elements from an output's pixels to those of the next output.
    next: usize,
}

impl<'a, T: Compute> Row<'a, T> {
    fn new(g: &Conv2dGeometry, y: usize, image: &'a [T], filter: &'a [T]) -> Row<'a, T> {
        let (channels, outputs) = (g.in_channels as usize, g.out_channels as usize);
        let line = g.width.input as usize * channels;
        Row {
            image,
            filter,
            rows: g.height.taps(y),
            columns: 0..0,
            first: (g.height.start(y) as usize).wrapping_mul(line),
            image_steps: [
                (g.height.dilation as usize).wrapping_mul(line),
                (g.width.dilation as usize).wrapping_mul(channels),
            ],
            filter_steps: [g.width.kernel as usize * outputs, outputs],
            next: (g.width.stride as usize).wrapping_mul(channels),
        }
    }

    /// The row at output `x`, of whose row of taps `columns` are inside the image.
    fn at(&self, g: &Conv2dGeometry, x: usize, columns: Range<usize>) -> Row<'a, T> {
        let left = (g.width.start(x) as usize).wrapping_mul(g.in_channels as usize);
        Row { rows: self.rows.clone(), columns, first: self.first.wrapping_add(left), ..*self }
    }

    /// The position in image and filter of the first tap of a row of taps.
    #[inline(always)]
    fn tap(&self, ky: usize) -> (usize, usize) {
        let [down, right] = self.image_steps;
        let image = self
            .first
            .wrapping_add(ky.wrapping_mul(down))
            .wrapping_add(self.columns.start.wrapping_mul(right));
        (image, ky * self.filter_steps[0] + self.columns.start * self.filter_steps[1])
    }

    /// Computes [`CHANNELS`] channels, from `channel` on, of `N` outputs whose taps are the same.
    #[inline(always)]
    fn block<I: Isa, const N: usize>(&self, channel: usize, output: &mut [T]) {
        let mut sums = [[T::Wide::ZERO; CHANNELS]; N];
        let ([_, right], [_, beside]) = (self.image_steps, self.filter_steps);
        let last = self.columns.len().saturating_sub(1);
        for ky in self.rows.clone().filter(|_| !self.columns.is_empty()) {
            let (image, filter) = self.tap(ky);
            // Once for all taps of the row that the last one of the last output is inside.
            let pixels =
                &self.image[image + channel..][..last * right + (N - 1) * self.next + CHANNELS];
            let weights = &self.filter[filter + channel..][..last * beside + CHANNELS];
            let (mut weight, mut pixel) = (0, 0);
            for _ in 0..=last {
                // SAFETY: `last` steps from a tap to the next and `N - 1` steps from an output to
                // the next stay inside the slice, which was cut to that length.
                let at =
                    |x: &[T], at: usize| unsafe { *x.as_ptr().add(at).cast::<[T; CHANNELS]>() };
                let weights = at(weights, weight);
                for (n, sums) in sums.iter_mut().enumerate() {
                    let pixel = at(pixels, pixel + n * self.next);
                    for ((sum, x), w) in sums.iter_mut().zip(pixel).zip(weights) {
                        *sum = x.up().mul_add::<I>(w.up(), *sum);
                    }
                }
                (weight, pixel) = (weight.wrapping_add(beside), pixel.wrapping_add(right));
            }
        }
        let outputs = output.len() / N;
        for (n, sums) in sums.iter().enumerate() {
            let output = &mut output[n * outputs + channel..][..CHANNELS];
            for (output, &sum) in output.iter_mut().zip(sums) {
                *output = T::down(sum);
            }
        }
    }

    /// Computes the channels from `from` on of an output.
    #[inline(always)]
    fn rest<I: Isa>(&self, from: usize, output: &mut [T]) {
        for (block, output) in output[from..].chunks_mut(LANES).enumerate() {
            let from = from + block * LANES;
            let mut sums = [T::Wide::ZERO; LANES];
            for ky in self.rows.clone() {
                let (image, filter) = self.tap(ky);
                let (mut image, mut filter) = (image.wrapping_add(from), filter + from);
                for _ in self.columns.clone() {
                    let weights = &self.filter[filter..][..output.len()];
                    let pixel = &self.image[image..];
                    for ((sum, x), w) in sums.iter_mut().zip(pixel).zip(weights) {
                        *sum = x.up().mul_add::<I>(w.up(), *sum);
                    }
                    image = image.wrapping_add(self.image_steps[1]);
                    filter += self.filter_steps[1];
                }
            }
            for (output, &sum) in output.iter_mut().zip(&sums) {
                *output = T::down(sum);
            }
        }
    }
}

/// The outputs of a row all of whose taps are inside the image; they are neighbours.
fn inside(g: &Conv2dGeometry) -> Range<usize> {
    let columns = g.width.output as usize;
    let is_inside = |x: &usize| g.width.taps(*x).len() == g.width.kernel as usize;
    let first = (0..columns).find(is_inside).unwrap_or(columns);
    let last = (first..columns).rfind(is_inside);
    first..last.map_or(first, |last| last + 1)
}

vectorised! {
    /// Computes row `y` of the output of one image, channels last.
    fn row_channels_last[T: Compute](g: &Conv2dGeometry, y: usize, image: &[T], filter: &[T], output: &mut [T]) {
        let (outputs, columns) = (g.out_channels as usize, g.width.output as usize);
        let row = Row::new(g, y, image, filter);
        let in_blocks = outputs - outputs % CHANNELS;
        let inside = inside(g);
        let mut x = 0;
        while x < columns {
            let left = if x < inside.start { 0 } else { inside.end.saturating_sub(x) };
            let taps = if left > 0 { 0..g.width.kernel as usize } else { g.width.taps(x) };
            let here = row.at(g, x, taps);
            let count = match left {
                OUTPUTS.. => OUTPUTS,
                FEW_OUTPUTS.. => FEW_OUTPUTS,
                _ => 1,
            };
            let output = &mut output[x * outputs..][..count * outputs];
            for channel in (0..in_blocks).step_by(CHANNELS) {
                match count {
                    OUTPUTS => here.block::<I, OUTPUTS>(channel, output),
                    FEW_OUTPUTS => here.block::<I, FEW_OUTPUTS>(channel, output),
                    _ => here.block::<I, 1>(channel, output),
                }
            }
            if in_blocks < outputs {
                for (n, output) in output.chunks_exact_mut(outputs).enumerate() {
                    row.at(g, x + n, here.columns.clone()).rest::<I>(in_blocks, output);
                }
            }
            x += count;
        }
    }
}

/// The outputs whose tap `kx` reads an input instead of padding, and the input that the first of
/// them reads.
pub fn readers(g: &Conv2dGeometry, kx: usize) -> (Range<usize>, usize) {
    let w = &g.width;
    let shift = kx as i64 * w.dilation - w.pad_before;
    // First and last `x` with `0 <= x * stride + shift < input`.
    let ceil = |a: i64| if a <= 0 { 0 } else { (a - 1) / w.stride + 1 };
    let first = ceil(-shift).min(w.output);
    let end = ceil(w.input - shift).clamp(first, w.output);
    let start = if first < end { (first * w.stride + shift) as usize } else { 0 };
    (first as usize..end as usize, start)
}

vectorised! {
    /// Computes one plane of the output, channels first; `sums` is as large as the plane.
    fn plane_channels_first[T: Compute](
        g: &Conv2dGeometry, plane: &[T], filter: &[T], step: usize, sums: &mut [T::Wide],
    ) {
        let (width, columns) = (g.width.input as usize, g.width.output as usize);
        let stride = g.width.stride as usize;
        sums.fill(T::Wide::ZERO);
        for (y, sums) in sums.chunks_exact_mut(columns).enumerate() {
            for ky in g.height.taps(y) {
                let iy = (g.height.start(y) + ky as i64 * g.height.dilation) as usize;
                let row = &plane[iy * width..][..width];
                for kx in 0..g.width.kernel as usize {
                    let w = filter[(ky * g.width.kernel as usize + kx) * step].up();
                    let (range, first) = readers(g, kx);
                    let sums = &mut sums[range];
                    if stride == 1 {
                        for (sum, x) in sums.iter_mut().zip(&row[first..]) {
                            *sum = x.up().mul_add::<I>(w, *sum);
                        }
                    } else {
                        for (sum, x) in sums.iter_mut().zip(row[first..].iter().step_by(stride)) {
                            *sum = x.up().mul_add::<I>(w, *sum);
                        }
                    }
                }
            }
        }
    }
}

/// The finish of float sums in registers; `None` where tiles do not support it.
fn on_floats<'a, S: Number>(finish: &Finish<'a, S>) -> Option<Finish<'a, f32>> {
    if finish.other.is_some() {
        return None;
    }
    Some(Finish {
        bias: match finish.bias {
            Some(bias) => Some(as_same(bias)?),
            None => None,
        },
        affine: match finish.affine {
            Some([means, factors, offsets]) => {
                Some([as_same(means)?, as_same(factors)?, as_same(offsets)?])
            }
            None => None,
        },
        other: None,
        high: finish.high.map(|high| high.to_f64() as f32),
    })
}

/// Images with channels last and one output for each channel, the filter, and the way the rows of
/// the output are computed.
pub struct Rows<'a, T> {
    g: &'a Conv2dGeometry,
    x: &'a [T],
    filter: &'a [T],
    tiles: Option<Tiles<'a>>,
    after: Option<&'a After<'a, T>>,
}

impl<'a, T: Compute> Rows<'a, T> {
    /// Returns the rows of a convolution.
    pub fn new(
        g: &'a Conv2dGeometry,
        x: &'a [T],
        filter: &'a [T],
        ending: Ending<'a, T>,
    ) -> Rows<'a, T> {
        let finish = on_floats(&ending.finish);
        let tiles = as_same(filter)
            .and_then(|filter| Tiles::new(g, filter, finish.unwrap_or(Finish::NONE)));
        let is_finished = tiles.is_some() && finish.is_some();
        let after = if is_finished { ending.rest } else { ending.all };
        Rows { g, x, filter, tiles, after }
    }

    /// The number of elements of a row.
    pub fn len(&self) -> usize {
        (self.g.width.output * self.g.out_channels) as usize
    }

    /// Approximate nanoseconds of a row.
    pub fn cost(&self) -> f64 {
        let window = (self.g.height.kernel * self.g.width.kernel) as f64;
        let each = if self.tiles.is_some() { 0.03 * window + 0.2 } else { 0.2 * window + 0.5 };
        self.len() as f64 * each
    }

    /// Computes the rows of these numbers, counted through all images.
    pub fn compute(&self, units: Range<usize>, output: &mut [T]) {
        let (g, rows, len) = (self.g, self.g.height.output as usize, self.len());
        let image_len = (g.height.input * g.width.input * g.in_channels) as usize;
        let at_once = if self.tiles.is_some() { ROWS } else { 1 };
        let (mut unit, mut output) = (units.start, output);
        while unit < units.end {
            let (image, y) = (unit / rows, unit % rows);
            let count = at_once.min(rows - y).min(units.end - unit);
            let (here, rest) = output.split_at_mut(count * len);
            let image = &self.x[image * image_len..][..image_len];
            match (&self.tiles, as_same(image), as_same_mut(here)) {
                (Some(tiles), Some(image), Some(here)) => tiles.rows(image, y..y + count, here),
                _ => row_channels_last(g, y, image, self.filter, here),
            }
            if let Some(after) = self.after {
                after(unit * len, here);
            }
            (unit, output) = (unit + count, rest);
        }
    }
}

fn compute<T: Compute<Wide: Factor>>(
    c: &ComputeContext<'_>,
    g: &Conv2dGeometry,
    x: &[T],
    filter: &[T],
    y: &mut [T],
    ending: Ending<'_, T>,
) -> Result<(), KernelError> {
    let (rows, columns) = (g.height.output as usize, g.width.output as usize);
    let outputs = g.out_channels as usize;
    let plane_len = (g.height.input * g.width.input) as usize;
    let image_len = plane_len * g.in_channels as usize;
    let window = (g.height.kernel * g.width.kernel) as f64;
    // Without pixels there is no line to repeat; all taps are in the padding.
    if g.format == DataFormat::Nhwc && slabs::are_needed::<T>(g) && !x.is_empty() {
        return slabs::compute(c, g, x, wide::<T>(c, 1)?, y, ending.all);
    }
    if g.format == DataFormat::Nhwc {
        let all = Rows::new(g, x, filter, ending);
        return for_rows(c, y, all.len(), all.cost(), |first, y| {
            all.compute(first..first + y.len() / all.len(), y);
        });
    }
    let y = Parts::new(y);
    let (len, multiplier) = (rows * columns, outputs / g.in_channels as usize);
    let units = g.batch as usize * outputs;
    let panels = Panels::new(c, units, len)?;
    for_units(c, units, len as f64 * (0.3 * window + 0.5), |range| {
        let mut sums = panels.take();
        for unit in range {
            let (image, output) = (unit / outputs, unit % outputs);
            let plane = &x[image * image_len + output / multiplier * plane_len..][..plane_len];
            plane_channels_first(g, plane, &filter[output..], outputs, &mut sums);
            // SAFETY: each unit has a plane of its own.
            let y = unsafe { y.part(unit * len..(unit + 1) * len) };
            crate::kernels::linalg::matmul::convert_down(&sums, y);
            ending.all.iter().for_each(|after| after(unit * len, y));
        }
    })
}

struct Depthwise<T> {
    attributes: ConvAttributes,
    element: PhantomData<T>,
}

impl<T: Compute<Wide: Factor>> Kernel for Depthwise<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Depthwise { attributes: ConvAttributes::depthwise(c)?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let g = Conv2dGeometry::depthwise(&self.attributes.params(c.dims(0), c.dims(1)))?;
        convolve::<T>(c, &g, Ending::NONE)
    }
}

/// Computes the depthwise convolution of inputs 0 and 1 into output 0, and applies `ending` to the
/// results.
///
/// # Errors
/// No memory; or the call was cancelled.
pub fn convolve<T: Compute<Wide: Factor>>(
    c: &ComputeContext<'_>,
    g: &Conv2dGeometry,
    ending: Ending<'_, T>,
) -> Result<(), KernelError> {
    let (x, filter) = (c.input::<T>(0)?, c.input::<T>(1)?);
    let y = c.output::<T>(0, &g.output_dims())?.data;
    if y.is_empty() { Ok(()) } else { compute(c, g, x.data, filter.data, y, ending) }
}

register_kernel!("DepthwiseConv2dNative" on "CPU": Depthwise<T> for "T" in [f32],
    numerics = Numerics::relative(1e-37, 4e-6).accumulation(DType::FLOAT));
register_kernel!("DepthwiseConv2dNative" on "CPU": Depthwise<T> for "T" in [f64],
    numerics = Numerics::relative(1e-300, 8e-15).accumulation(DType::DOUBLE));
register_kernel!("DepthwiseConv2dNative" on "CPU": Depthwise<T> for "T" in [f16],
    numerics = Numerics::relative(6e-8, 2e-3).accumulation(DType::FLOAT));
register_kernel!("DepthwiseConv2dNative" on "CPU": Depthwise<T> for "T" in [bf16],
    numerics = Numerics::relative(1e-37, 1.6e-2).accumulation(DType::FLOAT));

#[cfg(test)]
mod tests;
