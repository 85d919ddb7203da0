//! `ResizeArea`: each pixel is the mean of the part of the image that it covers.

use crate::resize::{NUMERICS, Sizes, by_channels, single};
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

/// The pixels that a pixel of the result covers, in order, and how much of each. Those outside of the
/// image are its edge.
struct Cover(Vec<(usize, f32)>);

impl Cover {
    fn new(pixel: usize, scale: f32, count: usize) -> Result<Cover, KernelError> {
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
        let place = |at: i64| at.clamp(0, count as i64 - 1) as usize;
        Ok(Cover(growth::collected((first..end).map(|at| (place(at), weight(at))))?))
    }

    fn all(grid: PixelGrid, from: usize, to: usize) -> Result<(Vec<Cover>, f32), KernelError> {
        let scale = grid.scale(from as i64, to as i64);
        // One pixel whose corners are those of all: each covers it.
        let scale = if scale > 0.0 { scale } else { 1.0 };
        Ok((growth::try_collected((0..to).map(|pixel| Cover::new(pixel, scale, from)))?, scale))
    }
}

/// Adds the weighted sums of a line of `C` channels, or of `channels` if `C` is 0, to a row of the
/// result.
fn add_line<T: Number, const C: usize>(
    line: &[T],
    columns: &[Cover],
    (channels, weight): (usize, f32),
    row: &mut [f32],
) {
    let channels = if C == 0 { channels } else { C };
    for (column, row) in columns.iter().zip(row.chunks_exact_mut(channels)) {
        for (channel, y) in row.iter_mut().enumerate() {
            let terms =
                column.0.iter().map(|(at, part)| single(line[at * channels + channel]) * part);
            *y += terms.sum::<f32>() * weight;
        }
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
            row.fill(0.0);
            for &(line, weight) in &rows[number].0 {
                let line = &image[line * sizes.row()..][..sizes.row()];
                by_channels!(channels, add_line(line, &columns, (channels, weight), row));
            }
            row.iter_mut().for_each(|y| *y *= share);
            Ok(())
        })
    }
}

register_kernel!("ResizeArea" on "CPU":
    Area<T> for "T" in [i8, u8, i16, u16, i32, i64, bf16, f16, f32, f64],
    host_memory = &["size"], numerics = NUMERICS);
