//! `ResizeBilinear` and its gradient.

use crate::resize::{Resize, Sizes, Way, by_channels, check_grad, for_numbers, single};
use half::{bf16, f16};
use tenon_sdk::{
    KernelError, author::ComputeContext, element::Number, geometry::PixelGrid, growth,
    register_kernel,
};

/// The two pixels around a position, and the weight of the second.
#[derive(Clone, Copy)]
struct Between {
    low: usize,
    high: usize,
    weight: f32,
}

impl Between {
    fn new(grid: PixelGrid, pixel: usize, scale: f32, count: usize) -> Between {
        let place = grid.place(pixel, scale);
        let last = count as i64 - 1;
        let high = (place.ceil() as i64).clamp(0, last);
        let low = (place.floor() as i64).max(0).min(high);
        Between { low: low as usize, high: high as usize, weight: place - place.floor() }
    }

    fn all(grid: PixelGrid, from: usize, to: usize) -> Result<Vec<Between>, KernelError> {
        let scale = grid.scale(from as i64, to as i64);
        growth::collected((0..to).map(|pixel| Between::new(grid, pixel, scale, from)))
    }
}

struct Forward;
type Bilinear<T> = Resize<Forward, T>;

impl<T: Number> Way<T> for Forward {
    fn compute(grid: PixelGrid, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let sizes = Sizes::new(c)?;
        let x = c.input::<T>(0)?.data;
        let y = c.output::<f32>(0, &sizes.output)?.data;
        let rows = Between::all(grid, sizes.from[0], sizes.to[0])?;
        let columns = Between::all(grid, sizes.from[1], sizes.to[1])?;
        sizes.bands(c, x, y, 3.0, |image, first, y| {
            // The rows of the input around the current one, resized along the row: two neighbours
            // have different places.
            let len = sizes.to[1] * sizes.channels;
            let mut lines = growth::filled(2 * len, 0.0f32)?;
            let mut held = [usize::MAX; 2];
            for (between, y) in rows[first..].iter().zip(y.chunks_exact_mut(len)) {
                for row in [between.low, between.high] {
                    if held[row % 2] != row {
                        held[row % 2] = row;
                        let (line, to) = (&image[row * sizes.row()..], row % 2 * len);
                        let to = &mut lines[to..][..len];
                        by_channels!(
                            sizes.channels,
                            along_row(&line[..sizes.row()], &columns, sizes.channels, to)
                        );
                    }
                }
                let line = |row: usize| &lines[row % 2 * len..][..len];
                let both = line(between.low).iter().zip(line(between.high));
                for (y, (top, bottom)) in y.iter_mut().zip(both) {
                    *y = top + (bottom - top) * between.weight;
                }
            }
            Ok(())
        })
    }
}

/// Resizes a row of `C` channels, or of `channels` if `C` is 0.
fn along_row<T: Number, const C: usize>(
    row: &[T],
    columns: &[Between],
    channels: usize,
    to: &mut [f32],
) {
    let channels = if C == 0 { channels } else { C };
    for (column, to) in columns.iter().zip(to.chunks_exact_mut(channels)) {
        let left = &row[column.low * channels..][..channels];
        let right = &row[column.high * channels..][..channels];
        for ((to, &left), &right) in to.iter_mut().zip(left).zip(right) {
            let (left, right) = (single(left), single(right));
            *to = left + (right - left) * column.weight;
        }
    }
}

for_numbers!("ResizeBilinear", Bilinear);

/// The gradient: each pixel of `grads` is distributed to the four pixels from which it was
/// computed, in order. Sums of 16-bit floats are kept in single precision.
struct Backward;
type Grad<T> = Resize<Backward, T>;

impl<T: Number> Way<T> for Backward {
    fn compute(grid: PixelGrid, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (grads, output) = (c.dims(0), c.dims(1));
        check_grad(grads, output)?;
        let x = c.input::<f32>(0)?.data;
        let y = c.output::<T>(0, output)?.data;
        if x.is_empty() || y.is_empty() {
            y.fill(T::ZERO);
            return Ok(());
        }
        let size = |dims: &[i64], at: usize| dims[at] as usize;
        let rows = Between::all(grid, size(output, 1), size(grads, 1))?;
        let columns = Between::all(grid, size(output, 2), size(grads, 2))?;
        let (channels, width) = (size(output, 3), size(output, 2));
        let image = size(output, 1) * width * channels;
        let work = x.len() / size(grads, 0);
        let images = y.chunks_exact_mut(image).zip(x.chunks_exact(work));
        c.parallel_items(images, 8.0 * work as f64, |_, (y, x)| {
            let mut sums = growth::filled(image, T::Accumulator::ZERO)?;
            let places =
                rows.iter().flat_map(|row| columns.iter().map(move |column| (row, column)));
            for ((row, column), grad) in places.zip(x.chunks_exact(channels)) {
                spread(&mut sums, width, (row, column), grad);
            }
            y.iter_mut().zip(sums).for_each(|(y, sum)| *y = T::narrow(sum));
            Ok(())
        })
    }
}

fn spread<T: Number>(y: &mut [T], width: usize, (row, column): (&Between, &Between), grad: &[f32]) {
    let rows = [(row.low, 1.0 - row.weight), (row.high, row.weight)];
    let columns = [(column.low, 1.0 - column.weight), (column.high, column.weight)];
    let channels = grad.len();
    for (at, &grad) in grad.iter().enumerate() {
        for (row, row_weight) in rows {
            for (column, column_weight) in columns {
                let y = &mut y[(row * width + column) * channels + at];
                let part = grad * row_weight * column_weight;
                *y = y.add(T::from_f64(part.into()));
            }
        }
    }
}

register_kernel!("ResizeBilinearGrad" on "CPU": Grad<T> for "T" in [f32, f64, f16, bf16],
    numerics = crate::resize::NUMERICS);
