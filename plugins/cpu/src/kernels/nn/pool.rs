//! `MaxPool`, `MaxPoolV2` and `AvgPool`.
//!
//! Channels are folded side by side. With channels first, each channel is an image of its own with
//! one channel.

use crate::{
    arch::vectorised,
    kernels::reduction::{Averaged, Fold, Mean},
    lane::Compute,
    lists,
    split::{Parts, for_units},
};
use half::{bf16, f16};
use std::{marker::PhantomData, ops::Range};
use tenon_reference::LowestFinite;
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::Element,
    geometry::{
        DataFormat, GeometryError, Pool2dGeometry, Pool2dParams, PoolAttributes, WindowDim,
    },
    reg::Numerics,
    register_kernel,
};

/// The number of channels that are folded side by side; there may be fewer at the end of a pixel.
const LANES: usize = 32;

/// The largest element, starting from the lowest finite value; NaN is passed over.
pub struct Largest;

impl<T: Compute<Wide: LowestFinite> + LowestFinite> Fold<T> for Largest {
    type State = T::Wide;
    const START: T::Wide = <T::Wide as LowestFinite>::LOWEST_FINITE;
    #[inline(always)]
    fn take(state: T::Wide, x: T) -> T::Wide {
        <Largest as Fold<T>>::merge(state, x.up())
    }
    #[inline(always)]
    fn merge(a: T::Wide, b: T::Wide) -> T::Wide {
        if b > a { b } else { a }
    }
    #[inline(always)]
    fn finish(state: T::Wide, _count: usize) -> T {
        // The lowest finite float would be rounded to an infinite 16-bit one.
        if state == <Largest as Fold<T>>::START { T::LOWEST_FINITE } else { T::down(state) }
    }
}

vectorised! {
    /// Row `y` of the output of one image: `[columns, channels]` from `[rows, columns, channels]`.
    fn pool_row[T: Copy, F: Fold<T>](
        g: &Pool2dGeometry, channels: usize, y: usize, image: &[T], output: &mut [T],
    ) {
        let width = g.width.input as usize;
        let rows = g.height.taps(y);
        let top = g.height.start(y).max(0) as usize;
        if channels < LANES && g.width.kernel as usize <= STATES / channels {
            let rows = top..top + rows.len();
            return Few { g, channels, rows, image }.row::<F>(output);
        }
        for (x, output) in output.chunks_exact_mut(channels).enumerate() {
            let columns = g.width.taps(x);
            let left = g.width.start(x).max(0) as usize;
            let count = rows.len() * columns.len();
            let window = Window {
                rows: top..top + rows.len(),
                columns: left..left + columns.len(),
                strides: [width * channels, channels],
            };
            let (blocks, rest) = output.as_chunks_mut::<LANES>();
            let done = blocks.len() * LANES;
            for (block, output) in blocks.iter_mut().enumerate() {
                let mut states = [F::START; LANES];
                window.fold::<T, F>(&image[block * LANES..], &mut states);
                for (output, &state) in output.iter_mut().zip(&states) {
                    *output = F::finish(state, count);
                }
            }
            if !rest.is_empty() {
                let mut states = [F::START; LANES];
                window.fold::<T, F>(&image[done..], &mut states[..rest.len()]);
                for (output, &state) in rest.iter_mut().zip(&states) {
                    *output = F::finish(state, count);
                }
            }
        }
    }
}

/// The number of states of [`Few`].
const STATES: usize = 2048;

/// Pixels of few channels. For some neighbouring outputs, the rows of their windows are folded
/// first, in one long loop over all columns that they read, and then the columns of each window.
struct Few<'a, T> {
    g: &'a Pool2dGeometry,
    channels: usize,
    rows: Range<usize>,
    image: &'a [T],
}

impl<T: Copy> Few<'_, T> {
    #[inline(always)]
    fn row<F: Fold<T>>(&self, output: &mut [T]) {
        let (w, channels) = (&self.g.width, self.channels);
        let mut states = [F::START; STATES];
        let at_once = (STATES / channels - w.kernel as usize) / w.stride as usize + 1;
        for (block, output) in output.chunks_mut(at_once * channels).enumerate() {
            let outputs = block * at_once..block * at_once + output.len() / channels;
            let from = w.start(outputs.start).clamp(0, w.input) as usize;
            let end = (w.start(outputs.end - 1) + w.kernel).clamp(from as i64, w.input) as usize;
            let states = &mut states[..(end - from) * channels];
            states.fill(F::START);
            for row in self.rows.clone() {
                let line = &self.image[(row * w.input as usize + from) * channels..];
                for (state, &x) in states.iter_mut().zip(line) {
                    *state = F::take(*state, x);
                }
            }
            self.columns::<F>(outputs, from, states, output);
        }
    }

    /// Folds the columns of the windows of some outputs; `states` begins with column `from`.
    #[inline(always)]
    fn columns<F: Fold<T>>(
        &self,
        outputs: Range<usize>,
        from: usize,
        states: &[F::State],
        output: &mut [T],
    ) {
        let (w, channels) = (&self.g.width, self.channels);
        let mut x = outputs.start;
        while x < outputs.end {
            let output = &mut output[(x - outputs.start) * channels..];
            let taps = w.taps(x);
            let count = taps.len() * self.rows.len();
            let left = (w.start(x).max(0) as usize).saturating_sub(from);
            if channels == 1 && taps.len() == w.kernel as usize {
                // All outputs from here on whose windows are inside.
                let inside = (w.input - w.kernel + w.pad_before) / w.stride + 1;
                let some = (inside as usize).clamp(x + 1, outputs.end) - x;
                fold_neighbours::<T, F>(&states[left..], w, count, &mut output[..some]);
                x += some;
                continue;
            }
            for (channel, y) in output[..channels].iter_mut().enumerate() {
                let taps = (0..taps.len()).map(|tap| states[(left + tap) * channels + channel]);
                *y = F::finish(taps.fold(F::START, F::merge), count);
            }
            x += 1;
        }
    }
}

/// Folds the columns of neighbouring windows of one channel.
#[inline(always)]
fn fold_neighbours<T: Copy, F: Fold<T>>(
    states: &[F::State],
    w: &WindowDim,
    count: usize,
    output: &mut [T],
) {
    #[inline(always)]
    fn by<T: Copy, F: Fold<T>, const KERNEL: usize, const STRIDE: usize>(
        states: &[F::State],
        count: usize,
        output: &mut [T],
    ) {
        let (last, whole) = (output.len() - 1, states.as_chunks::<STRIDE>().0);
        let (most, rest) = output.split_at_mut(last);
        if STRIDE == KERNEL {
            for (y, states) in most.iter_mut().zip(whole) {
                *y = F::finish(states[1..].iter().fold(states[0], |a, &b| F::merge(a, b)), count);
            }
        } else {
            for (x, y) in most.iter_mut().enumerate() {
                let states = &states[x * STRIDE..][..KERNEL];
                *y = F::finish(states[1..].iter().fold(states[0], |a, &b| F::merge(a, b)), count);
            }
        }
        let states = &states[last * STRIDE..][..KERNEL];
        rest[0] = F::finish(states[1..].iter().fold(states[0], |a, &b| F::merge(a, b)), count);
    }
    match (w.kernel, w.stride) {
        (2, 2) => by::<T, F, 2, 2>(states, count, output),
        (2, 1) => by::<T, F, 2, 1>(states, count, output),
        (3, 1) => by::<T, F, 3, 1>(states, count, output),
        (3, 2) => by::<T, F, 3, 2>(states, count, output),
        (kernel, stride) => {
            for (x, y) in output.iter_mut().enumerate() {
                let states = &states[x * stride as usize..][..kernel as usize];
                *y = F::finish(states.iter().fold(F::START, |a, &b| F::merge(a, b)), count);
            }
        }
    }
}

/// The pixels that are folded.
struct Window {
    rows: Range<usize>,
    columns: Range<usize>,
    strides: [usize; 2],
}

impl Window {
    /// Folds the first channels of each pixel, one per state.
    #[inline(always)]
    fn fold<T: Copy, F: Fold<T>>(&self, image: &[T], states: &mut [F::State]) {
        for row in self.rows.clone() {
            for column in self.columns.clone() {
                let at = row * self.strides[0] + column * self.strides[1];
                let pixel = &image[at..][..states.len()];
                for (state, &x) in states.iter_mut().zip(pixel) {
                    *state = F::take(*state, x);
                }
            }
        }
    }
}

/// Pools over rows and columns.
fn pool<T: Element, F: Fold<T>>(
    c: &ComputeContext<'_>,
    g: &Pool2dGeometry,
    x: &[T],
    y: &mut [T],
) -> Result<(), KernelError> {
    if y.is_empty() {
        return Ok(());
    }
    let (rows, columns) = (g.height.output as usize, g.width.output as usize);
    let (images, channels) = match g.format {
        DataFormat::Nhwc => (g.batch as usize, g.in_channels as usize),
        DataFormat::Nchw => (g.batch as usize * g.in_channels as usize, 1),
    };
    let image_len = g.height.input as usize * g.width.input as usize * channels;
    let row_len = columns * channels;
    let window = g.height.kernel as f64 * g.width.kernel as f64;
    let y = Parts::new(y);
    for_units(c, images * rows, (0.2 * window + 0.5) * row_len as f64, |range| {
        for unit in range {
            // SAFETY: each unit has a row of its own.
            let output = unsafe { y.part(unit * row_len..(unit + 1) * row_len) };
            let image = &x[unit / rows * image_len..][..image_len];
            pool_row::<T, F>(g, channels, unit % rows, image, output);
        }
    })
}

/// Pools over neighbouring channels.
fn pool_depth<T: Element, F: Fold<T>>(g: &Pool2dGeometry, x: &[T], y: &mut [T]) {
    let [rows, columns] = [g.height.output as usize, g.width.output as usize];
    let depth = g.depth_window as usize;
    let at =
        g.format.strides(g.height.input as usize, g.width.input as usize, g.in_channels as usize);
    let out = g.format.strides(rows, columns, g.out_channels as usize);
    for n in 0..g.batch as usize {
        for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)))
        {
            let pixel = match (g.height.input_at(row, 0), g.width.input_at(column, 0)) {
                (Some(row), Some(column)) => Some(n * at[0] + row * at[1] + column * at[2]),
                _ => None,
            };
            for channel in 0..g.out_channels as usize {
                let taken = if pixel.is_some() { depth } else { 0 };
                let first = pixel.unwrap_or(0) + channel * depth * at[3];
                let state =
                    (0..taken).fold(F::START, |state, d| F::take(state, x[first + d * at[3]]));
                y[n * out[0] + row * out[1] + column * out[2] + channel * out[3]] =
                    F::finish(state, taken);
            }
        }
    }
}

type Geometry = fn(&Pool2dParams<'_>) -> Result<Pool2dGeometry, GeometryError>;

fn compute<T: Element, F: Fold<T>>(
    params: &Pool2dParams<'_>,
    geometry: Geometry,
    c: &ComputeContext<'_>,
) -> Result<(), KernelError> {
    let x = c.input::<T>(0)?;
    let g = geometry(params)?;
    let y = c.output::<T>(0, &g.output_dims())?.data;
    if g.depth_window != 1 {
        pool_depth::<T, F>(&g, x.data, y);
        return Ok(());
    }
    pool::<T, F>(c, &g, x.data, y)
}

struct MaxPool<T> {
    attributes: PoolAttributes,
    element: PhantomData<T>,
}

impl<T: Compute<Wide: LowestFinite> + LowestFinite> Kernel for MaxPool<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(MaxPool { attributes: PoolAttributes::new(c)?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        compute::<T, Largest>(&self.attributes.params(c.dims(0)), Pool2dGeometry::max, c)
    }
}

struct MaxPoolV2<T> {
    attributes: PoolAttributes,
    element: PhantomData<T>,
}

impl<T: Compute<Wide: LowestFinite> + LowestFinite> Kernel for MaxPoolV2<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(MaxPoolV2 { attributes: PoolAttributes::new(c)?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (ksize, strides) = (lists::short(c, 1)?, lists::short(c, 2)?);
        let params = self.attributes.params(c.dims(0));
        let params = Pool2dParams { ksize: &ksize, strides: &strides, ..params };
        compute::<T, Largest>(&params, Pool2dGeometry::max, c)
    }
}

struct AvgPool<T> {
    attributes: PoolAttributes,
    element: PhantomData<T>,
}

impl<T: Averaged> Kernel for AvgPool<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(AvgPool { attributes: PoolAttributes::new(c)?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        compute::<T, Mean>(&self.attributes.params(c.dims(0)), Pool2dGeometry::average, c)
    }
}

register_kernel!("MaxPool" on "CPU": MaxPool<T>
    for "T" in [i8, i16, i32, i64, u8, u16, f16, bf16, f32, f64], numerics = Numerics::EXACT);
register_kernel!("MaxPoolV2" on "CPU": MaxPoolV2<T>
    for "T" in [i8, i16, i32, i64, u8, u16, f16, bf16, f32, f64],
    host_memory = &["ksize", "strides"], numerics = Numerics::EXACT);
register_kernel!("AvgPool" on "CPU": AvgPool<T> for "T" in [f32],
    numerics = Numerics::relative(1e-37, 2e-6).accumulation(DType::FLOAT));
register_kernel!("AvgPool" on "CPU": AvgPool<T> for "T" in [f64],
    numerics = Numerics::relative(1e-300, 4e-15).accumulation(DType::DOUBLE));
register_kernel!("AvgPool" on "CPU": AvgPool<T> for "T" in [f16],
    numerics = Numerics::relative(6e-8, 2e-3).accumulation(DType::FLOAT));
register_kernel!("AvgPool" on "CPU": AvgPool<T> for "T" in [bf16],
    numerics = Numerics::relative(1e-37, 1.6e-2).accumulation(DType::FLOAT));

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_close, values};
    use tenon_reference::nn as reference;
    use tenon_sdk::geometry::Padding;

    /// Attributes and input of a case.
    type Case = ([i64; 4], [i64; 4], [i64; 4], Padding, DataFormat);

    const CASES: [Case; 10] = [
        ([1, 5, 3000, 1], [1, 2, 2, 1], [1, 2, 2, 1], Padding::Same, DataFormat::Nhwc),
        ([1, 5, 2999, 1], [1, 3, 3, 1], [1, 2, 2, 1], Padding::Same, DataFormat::Nhwc),
        ([1, 5, 2999, 1], [1, 3, 3, 1], [1, 1, 1, 1], Padding::Valid, DataFormat::Nhwc),
        ([1, 5, 600, 17], [1, 2, 5, 1], [1, 1, 7, 1], Padding::Same, DataFormat::Nhwc),
        ([1, 2, 5, 9], [1, 1, 3, 9], [1, 1, 1, 2], Padding::Same, DataFormat::Nchw),
        ([2, 7, 8, 3], [1, 3, 3, 1], [1, 2, 2, 1], Padding::Same, DataFormat::Nhwc),
        ([1, 9, 6, 70], [1, 2, 3, 1], [1, 1, 2, 1], Padding::Valid, DataFormat::Nhwc),
        ([2, 3, 7, 8], [1, 1, 3, 2], [1, 1, 1, 2], Padding::Same, DataFormat::Nchw),
        ([1, 2, 3, 6], [1, 1, 1, 2], [1, 1, 1, 2], Padding::Valid, DataFormat::Nhwc),
        ([1, 6, 4, 3], [1, 3, 1, 1], [1, 3, 2, 1], Padding::Valid, DataFormat::Nchw),
    ];

    fn params(case: &Case) -> Pool2dParams<'_> {
        let (input, ksize, strides, padding, format) = case;
        Pool2dParams {
            input,
            ksize,
            strides,
            padding: *padding,
            explicit_paddings: &[],
            format: *format,
        }
    }

    fn alone<F: Fold<f32>>(g: &Pool2dGeometry, x: &[f32], y: &mut [f32]) {
        if g.depth_window != 1 {
            return pool_depth::<f32, F>(g, x, y);
        }
        let rows = g.height.output as usize;
        let channels = if g.format == DataFormat::Nhwc { g.in_channels as usize } else { 1 };
        let image = (g.height.input * g.width.input) as usize * channels;
        let row_len = g.width.output as usize * channels;
        for (unit, y) in y.chunks_exact_mut(row_len).enumerate() {
            let x = &x[unit / rows * image..][..image];
            pool_row::<f32, F>(g, channels, unit % rows, x, y);
        }
    }

    #[test]
    fn pools_agree_with_the_reference() {
        for case in &CASES {
            let g = Pool2dGeometry::max(&params(case)).unwrap();
            let len = g.output_dims().iter().product::<i64>() as usize;
            let x = values::<f32>(case.0.iter().product::<i64>() as usize, 3);
            let (mut expected, mut found) = (vec![0.0; len], vec![0.0; len]);
            reference::max_pool(&g, &x, &mut expected);
            alone::<Largest>(&g, &x, &mut found);
            assert_close(&found, &expected, 0.0, 0.0);
            reference::avg_pool(&g, &x, &mut expected);
            alone::<Mean>(&g, &x, &mut found);
            assert_close(&found, &expected, 1e-6, 1e-6);
        }
    }

    #[test]
    fn a_window_of_negative_infinities_gives_the_lowest_value_of_its_own_type() {
        fn of<T: Compute<Wide: LowestFinite> + LowestFinite>(x: T) -> T {
            let state = <Largest as Fold<T>>::take(<Largest as Fold<T>>::START, x);
            <Largest as Fold<T>>::finish(state, 1)
        }
        assert_eq!(of(f32::NEG_INFINITY), f32::MIN);
        assert_eq!(of(f16::NEG_INFINITY), f16::MIN);
        assert_eq!(of(bf16::NEG_INFINITY), bf16::MIN);
        assert_eq!(of(f16::from_f32(-3.0)), f16::from_f32(-3.0));
    }
}
