//! `ResizeArea`: each pixel is the mean of the part of the image that it covers.

use crate::resize::{NUMERICS, Sizes, single};
use half::{bf16, f16};
use std::marker::PhantomData;
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::Number,
    geometry::PixelGrid,
    growth, register_kernel,
};

struct Area<T> {
    grid: PixelGrid,
    of: PhantomData<fn() -> T>,
}

/// The pixels that a pixel of the result covers, of which those outside of the image are its edge, and
/// how much of each.
struct Cover {
    first: i64,
    weights: Vec<f32>,
}

impl Cover {
    fn new(pixel: usize, scale: f32) -> Result<Cover, KernelError> {
        let (from, to) = (pixel as f32 * scale, (pixel + 1) as f32 * scale);
        let (first, end) = (from.floor() as i64, to.ceil() as i64);
        let weight = |at: i64| {
            let (low, high) = (at as f32, (at + 1) as f32);
            match (low < from, high > to) {
                (true, true) => scale,
                (true, false) => high - from,
                (false, true) => to - low,
                (false, false) => 1.0,
            }
        };
        Ok(Cover { first, weights: growth::collected((first..end).map(weight))? })
    }

    fn all(grid: PixelGrid, from: usize, to: usize) -> Result<(Vec<Cover>, f32), KernelError> {
        let scale = grid.scale(from as i64, to as i64);
        // One pixel whose corners are those of all: each covers it.
        let scale = if scale > 0.0 { scale } else { 1.0 };
        Ok((growth::try_collected((0..to).map(|pixel| Cover::new(pixel, scale)))?, scale))
    }

    /// Each covered pixel of `count`, with its weight.
    fn of(&self, count: usize) -> impl Iterator<Item = (usize, f32)> + '_ {
        let place = move |at: usize| (self.first + at as i64).clamp(0, count as i64 - 1) as usize;
        self.weights.iter().enumerate().map(move |(at, &weight)| (place(at), weight))
    }
}

impl<T: Number> Kernel for Area<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Area { grid: PixelGrid::new(c.attr("align_corners")?, false)?, of: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let sizes = Sizes::new(c)?;
        let x = c.input::<T>(0)?.data;
        let y = c.output::<f32>(0, &sizes.output)?.data;
        let (rows, height) = Cover::all(self.grid, sizes.from[0], sizes.to[0])?;
        let (columns, width) = Cover::all(self.grid, sizes.from[1], sizes.to[1])?;
        let share = 1.0 / (height * width);
        let channels = sizes.channels;
        let work = f64::from((height.max(1.0) + 1.0) * (width.max(1.0) + 1.0));
        sizes.rows(c, x, y, 2.0 * work, |image, number, row| {
            for (column, pixel) in columns.iter().zip(row.chunks_exact_mut(channels)) {
                for (channel, y) in pixel.iter_mut().enumerate() {
                    let mut sum = 0.0;
                    for (line, weight) in rows[number].of(sizes.from[0]) {
                        let line = &image[line * sizes.row()..][..sizes.row()];
                        let of_line = column.of(sizes.from[1]);
                        let terms = of_line
                            .map(|(at, weight)| single(line[at * channels + channel]) * weight);
                        sum += terms.sum::<f32>() * weight;
                    }
                    *y = sum * share;
                }
            }
            Ok(())
        })
    }
}

register_kernel!("ResizeArea" on "CPU":
    Area<T> for "T" in [i8, u8, i16, u16, i32, i64, bf16, f16, f32, f64],
    host_memory = &["size"], numerics = NUMERICS);
