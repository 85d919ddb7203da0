//! `ResizeBicubic` and its gradient: a cubic convolution (R. Keys, 1981) with weights from a table of 1024 steps, as
//! in TensorFlow.
//!
//! With `half_pixel_centers` its parameter is -1/2, and pixels outside the image have no weight;
//! otherwise it is -3/4, and the outermost pixels represent those outside.

use crate::resize::{Sizes, by_channels, check_grad, for_numbers, grid, single};
use std::marker::PhantomData;
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::Number,
    geometry::PixelGrid,
    growth, register_kernel,
};

const STEPS: usize = 1 << 10;

/// The weights of the nearer and the farther pixel, at each step of the distance to the nearer one.
struct Table(Vec<[f32; 2]>);

impl Table {
    fn new(a: f64) -> Table {
        let weights = |step: usize| {
            let x = f64::from((step as f64 / STEPS as f64) as f32);
            let near = ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
            let x = f64::from((x + 1.0) as f32);
            let far = ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a;
            [near as f32, far as f32]
        };
        Table((0..=STEPS).map(weights).collect())
    }
}

/// Four pixels along an axis with their weights.
#[derive(Clone, Copy)]
struct Four {
    pixels: [usize; 4],
    weights: [f32; 4],
}

impl Four {
    fn new(grid: PixelGrid, table: &Table, pixel: usize, scale: f32, count: usize) -> Four {
        let place = grid.place(pixel, scale);
        let first = place.floor();
        let step = ((place - first) * STEPS as f32).round_ties_even() as usize;
        let (near, far) = (table.0[step.min(STEPS)], table.0[STEPS - step.min(STEPS)]);
        let mut weights = [near[1], near[0], far[0], far[1]];
        let wanted = [-1, 0, 1, 2].map(|offset| first as i64 + offset);
        let pixels = wanted.map(|pixel| pixel.clamp(0, count as i64 - 1) as usize);
        if grid == PixelGrid::HalfPixelCenters {
            for (weight, (wanted, pixel)) in weights.iter_mut().zip(wanted.iter().zip(pixels)) {
                if *wanted != pixel as i64 {
                    *weight = 0.0;
                }
            }
            let sum = weights[0] + weights[1] + weights[2] + weights[3];
            if sum.abs() >= 1000.0 * f32::MIN_POSITIVE {
                let inverse = 1.0 / sum;
                weights = weights.map(|weight| weight * inverse);
            }
        }
        Four { pixels, weights }
    }

    fn all(
        grid: PixelGrid,
        table: &Table,
        from: usize,
        to: usize,
    ) -> Result<Vec<Four>, KernelError> {
        let scale = grid.scale(from as i64, to as i64);
        growth::collected((0..to).map(|pixel| Four::new(grid, table, pixel, scale, from)))
    }

    /// Adds `len` values times each weight to the pixels, of `len` elements each.
    fn spread<T: Number>(&self, len: usize, value: impl Fn(usize) -> T, to: &mut [T]) {
        for (&pixel, &weight) in self.pixels.iter().zip(&self.weights) {
            let weight = T::from_f64(weight.into());
            for (at, to) in to[pixel * len..][..len].iter_mut().enumerate() {
                *to = to.add(value(at).mul(weight));
            }
        }
    }

    #[inline(always)]
    fn weigh(&self, [p, q, r, s]: [f32; 4]) -> f32 {
        let [a, b, c, d] = self.weights;
        p * a + q * b + r * c + s * d
    }

    /// Writes the weighted sum of four rows of an image, of the length of `to`.
    fn mix<T: Number>(&self, image: &[T], to: &mut [f32]) {
        let len = to.len();
        let [p, q, r, s] = self.pixels.map(|row| &image[row * len..][..len]);
        for ((((to, &p), &q), &r), &s) in to.iter_mut().zip(p).zip(q).zip(r).zip(s) {
            *to = self.weigh([p, q, r, s].map(single));
        }
    }
}

struct Bicubic<T> {
    grid: PixelGrid,
    table: Table,
    of: PhantomData<fn() -> T>,
}

impl<T: Number> Kernel for Bicubic<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let grid = grid(c)?;
        let a = if grid == PixelGrid::HalfPixelCenters { -0.5 } else { -0.75 };
        Ok(Bicubic { grid, table: Table::new(a), of: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let sizes = Sizes::new(c)?;
        let x = c.input::<T>(0)?.data;
        let y = c.output::<f32>(0, &sizes.output)?.data;
        let rows = Four::all(self.grid, &self.table, sizes.from[0], sizes.to[0])?;
        let columns = Four::all(self.grid, &self.table, sizes.from[1], sizes.to[1])?;
        sizes.bands(c, x, y, 6.0, |image, first, y| {
            let mut mixed = growth::filled(sizes.row(), 0.0)?;
            let len = sizes.to[1] * sizes.channels;
            for (row, y) in rows[first..].iter().zip(y.chunks_exact_mut(len)) {
                // The columns of the input, weighted once for the whole row of the result.
                row.mix(image, &mut mixed);
                by_channels!(sizes.channels, along_row(&mixed[..], &columns, sizes.channels, y));
            }
            Ok(())
        })
    }
}

/// Resizes a row of `C` channels, or of `channels` if `C` is 0.
fn along_row<T: Number, const C: usize>(
    row: &[T],
    columns: &[Four],
    channels: usize,
    to: &mut [f32],
) {
    let channels = if C == 0 { channels } else { C };
    for (column, to) in columns.iter().zip(to.chunks_exact_mut(channels)) {
        let pixels = column.pixels.map(|pixel| &row[pixel * channels..][..channels]);
        for (at, to) in to.iter_mut().enumerate() {
            *to = column.weigh(pixels.map(|pixel| single(pixel[at])));
        }
    }
}

for_numbers!("ResizeBicubic", Bicubic);

/// The gradient: each pixel of `grads` is distributed to the sixteen pixels from which it was
/// computed, first along its row, then to four rows.
struct Grad<T> {
    grid: PixelGrid,
    table: Table,
    of: PhantomData<fn() -> T>,
}

impl<T: Number> Kernel for Grad<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let Bicubic { grid, table, .. } = Bicubic::<T>::new(c)?;
        Ok(Grad { grid, table, of: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (grads, output) = (c.dims(0), c.dims(1));
        check_grad(grads, output)?;
        let x = c.input::<f32>(0)?.data;
        let y = c.output::<T>(0, output)?.data;
        if x.is_empty() || y.is_empty() {
            y.fill(T::ZERO);
            return Ok(());
        }
        let size = |dims: &[i64], at: usize| dims[at] as usize;
        let rows = Four::all(self.grid, &self.table, size(output, 1), size(grads, 1))?;
        let columns = Four::all(self.grid, &self.table, size(output, 2), size(grads, 2))?;
        let channels = size(output, 3);
        let line = size(output, 2) * channels;
        let (image, work) = (size(output, 1) * line, x.len() / size(grads, 0));
        let images = y.chunks_exact_mut(image).zip(x.chunks_exact(work));
        c.parallel_items(images, 12.0 * work as f64, |_, (y, x)| {
            let mut mixed = growth::filled(line, T::ZERO)?;
            y.fill(T::ZERO);
            for (row, grads) in rows.iter().zip(x.chunks_exact(columns.len() * channels)) {
                mixed.fill(T::ZERO);
                for (column, grad) in columns.iter().zip(grads.chunks_exact(channels)) {
                    column.spread(channels, |at| T::from_f64(f64::from(grad[at])), &mut mixed);
                }
                row.spread(line, |at| mixed[at], y);
            }
            Ok(())
        })
    }
}

register_kernel!("ResizeBicubicGrad" on "CPU": Grad<T> for "T" in [f32, f64],
    numerics = crate::resize::NUMERICS);

#[cfg(test)]
mod tests {
    use super::{Four, PixelGrid, Table};

    #[test]
    fn weights_sum_to_one() {
        for (grid, a) in [(PixelGrid::Legacy, -0.75), (PixelGrid::HalfPixelCenters, -0.5)] {
            for four in Four::all(grid, &Table::new(a), 5, 13).unwrap() {
                let sum: f32 = four.weights.iter().sum();
                assert!((sum - 1.0).abs() < 1e-6, "{grid:?}: {:?}", four.weights);
                assert!(four.pixels.iter().all(|&pixel| pixel < 5));
            }
        }
    }
}
