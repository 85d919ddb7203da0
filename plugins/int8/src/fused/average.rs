//! `_QuantizedFusedAvgPool`.

use super::mean::Means;
use crate::kernels::pool::inputs;
use std::marker::PhantomData;
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::{Element, QInt8, QUInt8, Quantised},
    geometry::{DataFormat, Padding, Pool2dGeometry, Pool2dParams},
    growth,
    reg::Numerics,
    register_kernel,
};

struct AvgPool<T> {
    ksize: Vec<i64>,
    strides: Vec<i64>,
    padding: Padding,
    of: PhantomData<fn() -> T>,
}

impl<T: Quantised> Kernel for AvgPool<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let padding = Padding::parse(c.attr("padding")?)?;
        let (ksize, strides) = (c.attr("ksize")?, c.attr("strides")?);
        Ok(AvgPool { ksize, strides, padding, of: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let means = Means::<T>::read(c, 1)?;
        let geometry = Pool2dGeometry::average(&Pool2dParams {
            input: c.dims(0),
            ksize: &self.ksize,
            strides: &self.strides,
            padding: self.padding,
            explicit_paddings: &[],
            format: DataFormat::Nhwc,
        })?;
        let taps = (geometry.height.kernel).saturating_mul(geometry.width.kernel) as usize;
        means.factor(taps)?;
        let (x, y) = (c.input::<T>(0)?.data, c.output::<T>(0, &geometry.output_dims())?.data);
        if y.is_empty() {
            return Ok(());
        }
        let row = (geometry.width.output * geometry.out_channels) as usize;
        let rows = y.chunks_exact_mut(row);
        c.parallel_items(rows, 0.3 * row as f64 * taps as f64, |number, y| {
            pool_row(&geometry, &means, x, number, y)
        })
    }
}

/// Computes row `number` of the output, counted over all images.
fn pool_row<T: Quantised>(
    g: &Pool2dGeometry,
    means: &Means<T>,
    x: &[T],
    number: usize,
    y: &mut [T],
) -> Result<(), KernelError> {
    let (height, width) = (g.height.input as usize, g.width.input as usize);
    let channels = g.in_channels as usize;
    let (image, row) = (number / g.height.output as usize, number % g.height.output as usize);
    let rows = inputs(&g.height, row);
    let mut sums = growth::filled(channels, 0i32)?;
    for (column, y) in y.chunks_exact_mut(channels).enumerate() {
        let columns = inputs(&g.width, column);
        sums.fill(0);
        for row in rows.clone() {
            let line = &x[((image * height + row) * width) * channels..];
            for pixel in
                line[columns.start * channels..columns.end * channels].chunks_exact(channels)
            {
                sums.iter_mut().zip(pixel).for_each(|(sum, x)| *sum += x.code());
            }
        }
        let count = rows.len() * columns.len();
        let factor = means.factor(count)?;
        y.iter_mut().zip(&sums).for_each(|(y, &sum)| *y = means.mean(sum, count, factor));
    }
    Ok(())
}

register_kernel!("_QuantizedFusedAvgPool" on "CPU": AvgPool<QUInt8>, types = ("T", &[<QUInt8 as Element>::DTYPE]),
    numerics = Numerics::EXACT);
register_kernel!("_QuantizedFusedAvgPool" on "CPU": AvgPool<QInt8>, types = ("T", &[<QInt8 as Element>::DTYPE]),
    numerics = Numerics::EXACT);
