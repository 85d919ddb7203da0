//! `MaxPoolGrad`, `MaxPoolGradV2`, `MaxPoolGradWithArgmax`, `AvgPoolGrad`.
//!
//! Gradients of overlapping windows are added in the order of the outputs, which is TensorFlow's.

use super::pool_argmax::strongest;
use crate::{
    lane::Compute,
    split::{for_rows, try_rows},
};
use half::{bf16, f16};
use std::marker::PhantomData;
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::Number,
    geometry::{Pool2dGeometry, Pool2dParams, PoolAttributes, validate_dims},
    growth,
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
) -> Result<Vec<i64>, KernelError> {
    if c.dims(input) == [4] {
        return c.integers(input);
    }
    Err(KernelError::invalid_argument(format!(
        "{name} must be a vector of 4, found shape {:?}",
        c.dims(input)
    )))
}

/// Iterates over row, column and channel of a pooling's outputs, with their position in the image,
/// in the order of memory where channels are last.
fn outputs(g: &Pool2dGeometry) -> impl Iterator<Item = ([usize; 3], usize)> + use<> {
    let [rows, columns] = [g.height.output as usize, g.width.output as usize];
    let channels = g.in_channels as usize;
    let [_, by_row, by_column, by_channel] = g.format.strides(rows, columns, channels);
    (0..rows * columns * channels).map(move |at| {
        let (pixel, channel) = (at / channels, at % channels);
        let (row, column) = (pixel / columns, pixel % columns);
        ([row, column, channel], row * by_row + column * by_column + channel * by_channel)
    })
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
    let images = (g.batch as usize).max(1);
    let (image_len, dy_len) = (dx.len() / images, dy.data.len() / images);
    let cost = dy_len as f64 * (g.height.kernel * g.width.kernel) as f64;
    for_rows(c, dx, image_len, cost, |first, dx| {
        for (n, dx) in (first..).zip(dx.chunks_exact_mut(image_len)) {
            let (x, dy) = (&x.data[n * image_len..][..image_len], &dy.data[n * dy_len..]);
            dx.fill(T::ZERO);
            for (output, from) in outputs(&g) {
                if let Some(to) = strongest(&g, output, x) {
                    dx[to] = dx[to].add(dy[from]);
                }
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
        let dims = c.integers(0)?;
        if c.dims(0) != [4] {
            return Err(KernelError::invalid_argument(format!(
                "orig_input_shape must be a vector of 4, found shape {:?}",
                c.dims(0)
            )));
        }
        validate_dims(&dims)?;
        let g = Pool2dGeometry::average(&self.attributes.params(&dims))?;
        check_shape("grad", &g.output_dims(), c.dims(1))?;
        let dy = c.input::<T>(1)?.data;
        let dx = c.output::<T>(0, &dims)?.data;
        let images = (g.batch as usize).max(1);
        let (image_len, dy_len) = (dx.len() / images, dy.len() / images);
        let cost = dy_len as f64 * (g.height.kernel * g.width.kernel) as f64;
        try_rows(c, dx, image_len, cost, |first, dx| {
            let mut sums = growth::filled(image_len, T::Wide::ZERO)?;
            for (n, dx) in (first..).zip(dx.chunks_exact_mut(image_len)) {
                sums.fill(T::Wide::ZERO);
                spread(&g, &dy[n * dy_len..], &mut sums);
                dx.iter_mut().zip(&sums).for_each(|(dx, &sum)| *dx = T::down(sum));
            }
            Ok(())
        })
    }
}

/// Adds each output's gradient to its inputs in equal parts.
fn spread<T: Compute>(g: &Pool2dGeometry, dy: &[T], sums: &mut [T::Wide]) {
    let (height, width) = (g.height.input as usize, g.width.input as usize);
    let [_, by_row, by_column, by_channel] =
        g.format.strides(height, width, g.in_channels as usize);
    for ([row, column, channel], from) in outputs(g) {
        let (top, left) =
            (g.height.start(row).max(0) as usize, g.width.start(column).max(0) as usize);
        let (rows, columns) = (g.height.taps(row).len(), g.width.taps(column).len());
        let share = 1.0 / (rows * columns) as f64;
        let part = dy[from].up().mul(<T::Wide as Number>::from_f64(share));
        for y in top..top + rows {
            for x in left..left + columns {
                let sum = &mut sums[y * by_row + x * by_column + channel * by_channel];
                *sum = sum.add(part);
            }
        }
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
