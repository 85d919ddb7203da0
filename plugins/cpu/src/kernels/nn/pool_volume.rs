//! `MaxPool3D` and `AvgPool3D`. With channels first, each channel is an image of its own with one
//! channel.

use super::pool::Largest;
use crate::{
    kernels::reduction::{Averaged, Fold, Mean},
    lane::Compute,
    split::try_rows,
};
use half::bf16;
use std::marker::PhantomData;
use tenon_reference::LowestFinite;
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::Element,
    geometry::{DataFormat, Pool3dGeometry, PoolAttributes, WindowDim},
    growth,
    reg::Numerics,
    register_kernel,
};

/// The inputs inside a window along one dimension.
pub(super) fn held(window: &WindowDim, output: usize) -> std::ops::Range<usize> {
    let first = window.start(output).max(0) as usize;
    first..first + window.taps(output).len()
}

/// Computes one output row: `[columns, channels]` of plane `z` and row `y`.
fn pool_row<T: Element, F: Fold<T>>(
    g: &Pool3dGeometry,
    channels: usize,
    [z, y]: [usize; 2],
    image: &[T],
    (states, output): (&mut [F::State], &mut [T]),
) {
    let [_, height, width] = g.windows.map(|window| window.input as usize);
    let (planes, rows) = (held(&g.windows[0], z), held(&g.windows[1], y));
    for (x, output) in output.chunks_exact_mut(channels).enumerate() {
        let columns = held(&g.windows[2], x);
        states.fill(F::START);
        for plane in planes.clone() {
            for row in rows.clone() {
                let at = ((plane * height + row) * width + columns.start) * channels;
                let pixels = &image[at..at + columns.len() * channels];
                for pixel in pixels.chunks_exact(channels) {
                    for (state, &x) in states.iter_mut().zip(pixel) {
                        *state = F::take(*state, x);
                    }
                }
            }
        }
        let count = planes.len() * rows.len() * columns.len();
        for (output, &state) in output.iter_mut().zip(&*states) {
            *output = F::finish(state, count);
        }
    }
}

fn pool<T: Element, F: Fold<T>>(
    attributes: &PoolAttributes,
    c: &ComputeContext<'_>,
) -> Result<(), KernelError> {
    let x = c.input::<T>(0)?;
    let g = Pool3dGeometry::new(&attributes.params(x.dims))?;
    let output = c.output::<T>(0, &g.output_dims())?.data;
    let channels = match g.format {
        DataFormat::Nhwc => g.channels as usize,
        DataFormat::Nchw => 1,
    };
    let [planes, rows, columns] = g.windows.map(|window| window.output as usize);
    let image_len =
        g.windows.iter().map(|window| window.input as usize).product::<usize>() * channels;
    let window: f64 = g.windows.iter().map(|window| window.kernel as f64).product();
    let row_len = columns * channels;
    try_rows(c, output, row_len, (window + 2.0) * row_len as f64, |first, output| {
        let mut states = growth::filled(channels, F::START)?;
        for (unit, output) in (first..).zip(output.chunks_exact_mut(row_len)) {
            let image = &x.data[unit / rows / planes * image_len..][..image_len];
            let (place, to) = ([unit / rows % planes, unit % rows], (&mut states[..], output));
            pool_row::<T, F>(&g, channels, place, image, to);
        }
        Ok(())
    })
}

macro_rules! kernels {
    ($($name:ident<$bound:path> $fold:ident;)*) => {$(
        struct $name<T> {
            attributes: PoolAttributes,
            element: PhantomData<T>,
        }

        impl<T: $bound> Kernel for $name<T>
        where
            $fold: Fold<T>,
        {
            fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
                Ok($name { attributes: PoolAttributes::new(c)?, element: PhantomData })
            }

            fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
                pool::<T, $fold>(&self.attributes, c)
            }
        }
    )*};
}

/// Types among whose elements the largest is found.
trait Ordered: Compute<Wide: LowestFinite> + LowestFinite {}
impl<T: Compute<Wide: LowestFinite> + LowestFinite> Ordered for T {}

kernels! {
    MaxPool3d<Ordered> Largest;
    AvgPool3d<Averaged> Mean;
}

register_kernel!("MaxPool3D" on "CPU": MaxPool3d<T> for "T" in [bf16, f32], numerics = Numerics::EXACT);
register_kernel!("AvgPool3D" on "CPU": AvgPool3d<T> for "T" in [f32],
    numerics = Numerics::relative(1e-37, 2e-6).accumulation(DType::FLOAT));
register_kernel!("AvgPool3D" on "CPU": AvgPool3d<T> for "T" in [bf16],
    numerics = Numerics::relative(1e-37, 1.6e-2).accumulation(DType::FLOAT));
