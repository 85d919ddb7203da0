//! `MaxPoolGrad`, `MaxPoolGradV2`, `MaxPoolGradWithArgmax`, `AvgPoolGrad`.
//!
//! Channels are computed side by side; with channels first, each channel is an image of its own
//! with one channel. Gradients of overlapping windows are added in the order of the outputs, which
//! is TensorFlow's.

use super::{
    pool_volume::held,
    pool_volume_grad::{Equal, by_image},
};
use crate::{
    arch::vectorised,
    lane::Compute,
    lists,
    panels::{as_same, as_same_mut},
    split::for_rows,
};
use half::{bf16, f16};
use std::{marker::PhantomData, ops::Range};
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::Number,
    geometry::{DataFormat, Dims, Pool2dGeometry, Pool2dParams, PoolAttributes, validate_dims},
    reg::Numerics,
    register_kernel,
};

/// Refuses an input whose shape differs from that of the pooling's output.
pub(super) fn check_shape(name: &str, expected: &[i64], found: &[i64]) -> Result<(), KernelError> {
    if expected == found {
        return Ok(());
    }
    Err(KernelError::invalid_argument(format!(
        "{name} must have the shape of the pooling's output, {expected:?}, found {found:?}"
    )))
}

/// The sizes or steps of a window over four dimensions in an input, which must be a vector.
pub(super) fn window_list(
    c: &ComputeContext<'_>,
    input: usize,
    name: &str,
) -> Result<Dims, KernelError> {
    if c.dims(input) == [4] {
        return lists::short(c, input);
    }
    Err(KernelError::invalid_argument(format!(
        "{name} must be a vector of 4, found shape {:?}",
        c.dims(input)
    )))
}

/// The number of channels whose maxima are found side by side, where there are as many.
const LANES: usize = 32;

/// An image with channels last, and the gradient of its windows' maxima.
struct Image<'a, T> {
    g: &'a Pool2dGeometry,
    channels: usize,
    x: &'a [T],
    dy: &'a [T],
}

impl<T: Number> Image<'_, T> {
    /// Adds the gradient of each window to its greatest element.
    #[inline(always)]
    fn to_maxima(&self, dx: &mut [T]) {
        let (rows, columns) = (self.g.height.output as usize, self.g.width.output as usize);
        let whole = self.channels - self.channels % LANES;
        dx.fill(T::ZERO);
        for y in 0..rows {
            let lines = held(&self.g.height, y);
            for x in 0..columns {
                let window = [lines.clone(), held(&self.g.width, x)];
                let output = (y * columns + x) * self.channels;
                for channel in (0..whole).step_by(LANES) {
                    self.to_maximum::<LANES>(&window, output, channel, dx);
                }
                for channel in whole..self.channels {
                    self.to_maximum::<1>(&window, output, channel, dx);
                }
            }
        }
    }

    /// The same for one window and `N` channels. Of equal elements the first is the greatest. A NaN
    /// is if it is the first of all elements, and is skipped otherwise.
    #[inline(always)]
    fn to_maximum<const N: usize>(
        &self,
        [rows, columns]: &[Range<usize>; 2],
        output: usize,
        channel: usize,
        dx: &mut [T],
    ) {
        if rows.is_empty() || columns.is_empty() {
            return;
        }
        let width = self.g.width.input as usize;
        let at = |row: usize, column: usize| (row * width + column) * self.channels + channel;
        let mut maxima = some::<T, N>(self.x, at(rows.start, columns.start));
        let mut rest = some::<T, N>(self.dy, output + channel);
        for row in rows.clone() {
            for column in columns.clone() {
                let x = some::<T, N>(self.x, at(row, column));
                for (max, x) in maxima.iter_mut().zip(x) {
                    *max = if *max < x { x } else { *max };
                }
            }
        }
        for row in rows.clone() {
            for column in columns.clone() {
                let at = at(row, column);
                let (x, mut sums) = (some::<T, N>(self.x, at), some::<T, N>(dx, at));
                for i in 0..N {
                    let is_greatest = (x[i] == maxima[i]) | is_nan(&maxima[i]);
                    sums[i] = sums[i].add(if is_greatest { rest[i] } else { T::ZERO });
                    rest[i] = if is_greatest { T::ZERO } else { rest[i] };
                }
                dx[at..at + N].copy_from_slice(&sums);
            }
        }
    }
}

/// The `N` elements from a position on.
#[inline(always)]
fn some<T: Copy, const N: usize>(from: &[T], at: usize) -> [T; N] {
    let (elements, _) = from[at..].split_first_chunk().expect("as many elements as channels");
    *elements
}

#[expect(clippy::eq_op, reason = "it differs from itself, and numbers have no other test")]
#[inline(always)]
fn is_nan<T: Number>(x: &T) -> bool {
    x != x
}

vectorised! {
    /// [`Image::to_maxima`] of floats.
    fn floats_to_maxima[T: Number](image: &Image<'_, T>, dx: &mut [T]) {
        image.to_maxima(dx);
    }
}

struct MaxPoolGrad<T> {
    attributes: PoolAttributes,
    element: PhantomData<T>,
}

impl<T: Number> Kernel for MaxPoolGrad<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(MaxPoolGrad { attributes: PoolAttributes::new(c)?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        max_pool_grad::<T>(c, &self.attributes.params(c.dims(0)))
    }
}

struct MaxPoolGradV2<T> {
    attributes: PoolAttributes,
    element: PhantomData<T>,
}

impl<T: Number> Kernel for MaxPoolGradV2<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(MaxPoolGradV2 { attributes: PoolAttributes::new(c)?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (ksize, strides) = (window_list(c, 3, "ksize")?, window_list(c, 4, "strides")?);
        let params = self.attributes.params(c.dims(0));
        let params = Pool2dParams { ksize: &ksize, strides: &strides, ..params };
        max_pool_grad::<T>(c, &params)
    }
}

/// Adds the gradient of each window to its greatest element.
fn max_pool_grad<T: Number>(
    c: &ComputeContext<'_>,
    params: &Pool2dParams<'_>,
) -> Result<(), KernelError> {
    let g = planar_max(params)?;
    check_shape("orig_output", &g.output_dims(), c.dims(1))?;
    check_shape("grad", &g.output_dims(), c.dims(2))?;
    let (x, dy) = (c.input::<T>(0)?, c.input::<T>(2)?);
    let dx = c.output::<T>(0, x.dims)?.data;
    let (images, channels) = match g.format {
        DataFormat::Nhwc => (g.batch as usize, g.in_channels as usize),
        DataFormat::Nchw => (g.batch as usize * g.in_channels as usize, 1),
    };
    let lens = [dx.len() / images.max(1), dy.data.len() / images.max(1)];
    let cost = lens[1] as f64 * (g.height.kernel * g.width.kernel) as f64;
    for_rows(c, dx, lens[0], 0.2 * cost, |first, dx| {
        for (n, dx) in (first..).zip(dx.chunks_exact_mut(lens[0])) {
            let (x, dy) = (&x.data[n * lens[0]..][..lens[0]], &dy.data[n * lens[1]..][..lens[1]]);
            match (as_same(x), as_same(dy), as_same_mut(&mut *dx)) {
                (Some(x), Some(dy), Some(dx)) => {
                    floats_to_maxima::<f32>(&Image { g: &g, channels, x, dy }, dx);
                }
                _ => Image { g: &g, channels, x, dy }.to_maxima(dx),
            }
        }
    })
}

/// The geometry of a maximum over rows and columns; there is no gradient of one over depth.
pub(super) fn planar_max(params: &Pool2dParams<'_>) -> Result<Pool2dGeometry, KernelError> {
    let g = Pool2dGeometry::max(params)?;
    match g.depth_window {
        1 => Ok(g),
        found => Err(KernelError::unimplemented(format!(
            "ksize must be 1 in the depth dimension for a gradient, found {found}"
        ))),
    }
}

struct MaxPoolGradWithArgmax<T> {
    attributes: PoolAttributes,
    include_batch: bool,
    element: PhantomData<T>,
}

impl<T: Number> Kernel for MaxPoolGradWithArgmax<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(MaxPoolGradWithArgmax {
            attributes: PoolAttributes::new(c)?,
            include_batch: c.attr("include_batch_in_index")?,
            element: PhantomData,
        })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let g = Pool2dGeometry::average(&self.attributes.params(c.dims(0)))?;
        check_shape("grad", &g.output_dims(), c.dims(1))?;
        check_shape("argmax", &g.output_dims(), c.dims(2))?;
        let (dy, places) = (c.input::<T>(1)?.data, c.input::<i64>(2)?.data);
        let dx = c.output::<T>(0, c.dims(0))?.data;
        dx.fill(T::ZERO);
        let images = (g.batch as usize).max(1);
        let (image_len, dy_len) = (dx.len() / images, (dy.len() / images).max(1));
        for (at, (&dy, &place)) in dy.iter().zip(places).enumerate() {
            let (range, skipped) = match self.include_batch {
                true => (dx.len(), 0),
                false => (image_len, at / dy_len * image_len),
            };
            let Some(place) = usize::try_from(place).ok().filter(|&place| place < range) else {
                return Err(KernelError::invalid_argument(format!(
                    "argmax must lie in [0, {range}), the elements of an image or with \
                     include_batch_in_index of the input, found {place} at position {at}"
                )));
            };
            let dx = &mut dx[skipped + place];
            *dx = dx.add(dy);
        }
        Ok(())
    }
}

struct AvgPoolGrad<T> {
    attributes: PoolAttributes,
    element: PhantomData<T>,
}

impl<T: Compute> Kernel for AvgPoolGrad<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(AvgPoolGrad { attributes: PoolAttributes::new(c)?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        if c.dims(0) != [4] {
            return Err(KernelError::invalid_argument(format!(
                "orig_input_shape must be a vector of 4, found shape {:?}",
                c.dims(0)
            )));
        }
        let dims = lists::short(c, 0)?;
        validate_dims(&dims)?;
        let g = Pool2dGeometry::average(&self.attributes.params(&dims))?;
        check_shape("grad", &g.output_dims(), c.dims(1))?;
        let (dy, dx) = (c.input::<T>(1)?.data, c.output::<T>(0, &dims)?.data);
        by_image(c, &g.into(), dy, dx, |_, _| Equal)
    }
}

register_kernel!("MaxPoolGrad" on "CPU": MaxPoolGrad<T>
    for "T" in [i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64], numerics = Numerics::EXACT);
register_kernel!("MaxPoolGradV2" on "CPU": MaxPoolGradV2<T>
    for "T" in [i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64],
    host_memory = &["ksize", "strides"], numerics = Numerics::EXACT);
register_kernel!("MaxPoolGradWithArgmax" on "CPU": MaxPoolGradWithArgmax<T>
    for "T" in [i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64],
    types = ("Targmax", &[DType::INT64]), numerics = Numerics::EXACT);
register_kernel!("AvgPoolGrad" on "CPU": AvgPoolGrad<T> for "T" in [f32],
    host_memory = &["orig_input_shape"], numerics = Numerics::relative(1e-37, 2e-6).accumulation(DType::FLOAT));
register_kernel!("AvgPoolGrad" on "CPU": AvgPoolGrad<T> for "T" in [f64],
    host_memory = &["orig_input_shape"], numerics = Numerics::relative(1e-300, 4e-15).accumulation(DType::DOUBLE));
register_kernel!("AvgPoolGrad" on "CPU": AvgPoolGrad<T> for "T" in [f16],
    host_memory = &["orig_input_shape"], numerics = Numerics::relative(6e-8, 2e-3).accumulation(DType::FLOAT));
register_kernel!("AvgPoolGrad" on "CPU": AvgPoolGrad<T> for "T" in [bf16],
    host_memory = &["orig_input_shape"], numerics = Numerics::relative(1e-37, 1.6e-2).accumulation(DType::FLOAT));
