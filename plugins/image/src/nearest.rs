//! `ResizeNearestNeighbor` and its gradient.

use crate::resize::{Resize, Sizes, Way};
use half::{bf16, f16};
use tenon_sdk::{
    KernelError, author::ComputeContext, element::Number, geometry::PixelGrid, growth,
    reg::Numerics, register_kernel,
};

/// For each pixel of a result, the nearest pixel of the input.
fn nearest(
    grid: PixelGrid,
    scale: f32,
    count: usize,
    of: usize,
) -> Result<Vec<usize>, KernelError> {
    growth::collected((0..of).map(|pixel| grid.nearest(pixel, scale, count as i64)))
}

struct Forward;
type Nearest<T> = Resize<Forward, T>;

impl<T: Number> Way<T> for Forward {
    fn compute(grid: PixelGrid, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let sizes = Sizes::new(c)?;
        let x = c.input::<T>(0)?.data;
        let y = c.output::<T>(0, &sizes.output)?.data;
        let axis = |at: usize| {
            let (from, to) = (sizes.from[at], sizes.to[at]);
            nearest(grid, grid.scale(from as i64, to as i64), from, to)
        };
        let (rows, columns, channels) = (axis(0)?, axis(1)?, sizes.channels);
        sizes.rows(c, x, y, 1.0, |image, number, row| {
            let from = &image[rows[number] * sizes.row()..][..sizes.row()];
            for (&column, pixel) in columns.iter().zip(row.chunks_exact_mut(channels)) {
                pixel.copy_from_slice(&from[column * channels..][..channels]);
            }
            Ok(())
        })
    }
}

register_kernel!("ResizeNearestNeighbor" on "CPU":
    Nearest<T> for "T" in [i8, u8, i16, u16, i32, i64, f16, bf16, f32, f64],
    host_memory = &["size"], numerics = Numerics::EXACT);

/// The gradient: each pixel is added to the one from which it was taken, in order, and rounded each
/// time.
struct Backward;
type Grad<T> = Resize<Backward, T>;

impl<T: Number> Way<T> for Backward {
    fn compute(grid: PixelGrid, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let sizes = Sizes::new(c)?;
        let x = c.input::<T>(0)?.data;
        let y = c.output::<T>(0, &sizes.output)?.data;
        y.fill(T::ZERO);
        if y.is_empty() || x.is_empty() {
            return Ok(());
        }
        let axis = |at: usize| {
            let (grads, original) = (sizes.from[at], sizes.to[at]);
            let scale = grid.scale(original as i64, grads as i64);
            nearest(grid, scale, original, grads)
        };
        let (rows, columns, channels) = (axis(0)?, axis(1)?, sizes.channels);
        let width = sizes.to[1];
        let image = sizes.to[0] * width * channels;
        let images = y.chunks_exact_mut(image).zip(x.chunks_exact(sizes.image()));
        c.parallel_items(images, sizes.image() as f64, |_, (y, x)| {
            let places =
                rows.iter().flat_map(|row| columns.iter().map(move |column| (row, column)));
            for ((row, column), grad) in places.zip(x.chunks_exact(channels)) {
                let pixel = &mut y[(row * width + column) * channels..][..channels];
                pixel.iter_mut().zip(grad).for_each(|(y, x)| *y = y.add(*x));
            }
            Ok(())
        })
    }
}

register_kernel!("ResizeNearestNeighborGrad" on "CPU":
    Grad<T> for "T" in [u8, i8, i32, f16, bf16, f32, f64],
    host_memory = &["size"], numerics = crate::resize::NUMERICS);
