//! `ExtractImagePatches` and `ExtractVolumePatches`.

use super::{
    NUMBERS, REAL, copy,
    moves::{Item, Move, check_rank, produce},
};
use crate::split::for_rows;
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    geometry::{Padding, PatchGeometry, validate_dims},
    reg::Numerics,
    register_kernel,
};

/// Images or volumes of `depth` channels, and the windows over them.
struct Windows {
    patches: PatchGeometry,
    depth: usize,
}

impl Windows {
    /// Writes window number `at`, with zeros for positions outside the image.
    fn write<T: Item>(&self, at: usize, x: &[T], y: &mut [T]) {
        let windows = &self.patches.windows;
        let [planes, rows, columns] = windows.map(|window| window.output as usize);
        let [_, tap_rows, tap_columns] = windows.map(|window| window.kernel as usize);
        let [depth, height, width] = windows.map(|window| window.input as usize);
        let (image, plane) = (at / columns / rows / planes, at / columns / rows % planes);
        let (row, column) = (at / columns % rows, at % columns);
        for (tap, y) in y.chunks_exact_mut(self.depth).enumerate() {
            let taps =
                [tap / tap_columns / tap_rows, tap / tap_columns % tap_rows, tap % tap_columns];
            let place = |axis: usize, output| windows[axis].input_at(output, taps[axis]);
            let place = place(0, plane).zip(place(1, row)).zip(place(2, column));
            match place {
                Some(((d, h), w)) => {
                    let pixel = ((image * depth + d) * height + h) * width + w;
                    copy(&x[pixel * self.depth..][..self.depth], y);
                }
                None => y.fill(T::default()),
            }
        }
    }
}

impl Move for Windows {
    fn run<T: Item>(
        &self,
        c: &ComputeContext<'_>,
        x: &[&[T]],
        y: &mut [T],
    ) -> Result<(), KernelError> {
        let window = self.patches.output.last().copied().unwrap_or(0) as usize;
        for_rows(c, y, window, 3.0 * window as f64, |first, y| {
            for (at, y) in y.chunks_exact_mut(window).enumerate() {
                self.write(first + at, x[0], y);
            }
        })
    }
}

/// Writes the windows over the first input.
fn write(c: &ComputeContext<'_>, patches: PatchGeometry) -> Result<(), KernelError> {
    validate_dims(&patches.output)?;
    let depth = c.dims(0).last().copied().unwrap_or(0) as usize;
    produce(c, &[0], &patches.output, &Windows { patches, depth })
}

struct ExtractImagePatches {
    ksizes: Vec<i64>,
    strides: Vec<i64>,
    rates: Vec<i64>,
    padding: Padding,
}

impl Kernel for ExtractImagePatches {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(ExtractImagePatches {
            ksizes: c.attr("ksizes")?,
            strides: c.attr("strides")?,
            rates: c.attr("rates")?,
            padding: Padding::parse(c.attr("padding")?)?,
        })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        check_rank(c, 0, "images", 4)?;
        let lists = [&self.ksizes[..], &self.strides, &self.rates];
        write(c, PatchGeometry::new(c.dims(0), lists, self.padding)?)
    }
}

struct ExtractVolumePatches {
    ksizes: Vec<i64>,
    strides: Vec<i64>,
    padding: Padding,
}

impl Kernel for ExtractVolumePatches {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(ExtractVolumePatches {
            ksizes: c.attr("ksizes")?,
            strides: c.attr("strides")?,
            padding: Padding::parse(c.attr("padding")?)?,
        })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        check_rank(c, 0, "input", 5)?;
        let lists = [&self.ksizes[..], &self.strides];
        write(c, PatchGeometry::of_volumes(c.dims(0), lists, self.padding)?)
    }
}

/// Numbers that TensorFlow supports: those of [`NUMBERS`] without bool, its first.
const IMAGES: &[DType] = NUMBERS.split_at(1).1;
/// Real numbers: those of [`REAL`] without bool, its first.
const VOLUMES: &[DType] = REAL.split_at(1).1;

register_kernel!("ExtractImagePatches" on "CPU": ExtractImagePatches, types = ("T", IMAGES),
    numerics = Numerics::EXACT);
register_kernel!("ExtractVolumePatches" on "CPU": ExtractVolumePatches, types = ("T", VOLUMES),
    numerics = Numerics::EXACT);
