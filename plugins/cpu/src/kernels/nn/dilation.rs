//! `Dilation2D`: the largest sum of pixel and filter element over each window. Pixels outside the
//! image are ignored; NaN is skipped, and a window of NaN alone gives the type's lowest finite
//! value.

use crate::split::for_rows;
use half::{bf16, f16};
use std::marker::PhantomData;
use tenon_reference::LowestFinite;
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::Number,
    geometry::{Dilation2dGeometry, Dilation2dParams, Padding},
    reg::Numerics,
    register_kernel,
};

struct Dilation2d<T> {
    strides: Vec<i64>,
    rates: Vec<i64>,
    padding: Padding,
    element: PhantomData<T>,
}

/// Computes one output row of an image.
fn row<T: Number + LowestFinite>(
    g: &Dilation2dGeometry,
    y: usize,
    [image, filter]: [&[T]; 2],
    output: &mut [T],
) {
    let (channels, width) = (g.channels as usize, g.width.input as usize);
    let columns = g.width.kernel as usize;
    output.fill(T::LOWEST_FINITE);
    for (x, output) in output.chunks_exact_mut(channels).enumerate() {
        for ky in g.height.taps(y) {
            let iy = (g.height.start(y) + ky as i64 * g.height.dilation) as usize;
            for kx in g.width.taps(x) {
                let ix = (g.width.start(x) + kx as i64 * g.width.dilation) as usize;
                let pixel = &image[(iy * width + ix) * channels..][..channels];
                let element = &filter[(ky * columns + kx) * channels..][..channels];
                for ((best, &pixel), &element) in output.iter_mut().zip(pixel).zip(element) {
                    let sum = pixel.add(element);
                    *best = if sum > *best { sum } else { *best };
                }
            }
        }
    }
}

impl<T: Number + LowestFinite> Kernel for Dilation2d<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Dilation2d {
            strides: c.attr("strides")?,
            rates: c.attr("rates")?,
            padding: Padding::parse(c.attr("padding")?)?,
            element: PhantomData,
        })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (x, filter) = (c.input::<T>(0)?, c.input::<T>(1)?);
        let g = Dilation2dGeometry::new(&Dilation2dParams {
            input: x.dims,
            filter: filter.dims,
            strides: &self.strides,
            rates: &self.rates,
            padding: self.padding,
        })?;
        let output = c.output::<T>(0, &g.output_dims())?.data;
        let rows = g.height.output as usize;
        let row_len = (g.width.output * g.channels) as usize;
        let image_len = (g.height.input * g.width.input * g.channels) as usize;
        let cost = (row_len as i64 * g.height.kernel * g.width.kernel) as f64;
        for_rows(c, output, row_len, cost, |first, output| {
            for (unit, output) in (first..).zip(output.chunks_exact_mut(row_len)) {
                let image = &x.data[unit / rows * image_len..][..image_len];
                row(&g, unit % rows, [image, filter.data], output);
            }
        })
    }
}

register_kernel!("Dilation2D" on "CPU": Dilation2d<T>
    for "T" in [i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64], numerics = Numerics::EXACT);
