//! `ExtractImagePatches`.

use super::{
    NUMBERS, copy,
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

/// `ExtractImagePatches`.
struct ExtractImagePatches {
    ksizes: Vec<i64>,
    strides: Vec<i64>,
    rates: Vec<i64>,
    padding: Padding,
}

/// Images of `depth` channels, and the windows over them.
struct Windows {
    patches: PatchGeometry,
    depth: usize,
}

impl Windows {
    /// Writes window number `at`, with zeros for positions outside the image.
    fn write<T: Item>(&self, at: usize, x: &[T], y: &mut [T]) {
        let (height, width) = (&self.patches.height, &self.patches.width);
        let [rows, columns] = [height.output as usize, width.output as usize];
        let (image, row, column) = (at / columns / rows, at / columns % rows, at % columns);
        let taps = width.kernel as usize;
        for (tap, y) in y.chunks_exact_mut(self.depth).enumerate() {
            let place = height.input_at(row, tap / taps).zip(width.input_at(column, tap % taps));
            match place {
                Some((h, w)) => {
                    let pixel = (image * height.input as usize + h) * width.input as usize + w;
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
        let window = self.patches.output[3] as usize;
        for_rows(c, y, window, 3.0 * window as f64, |first, y| {
            for (at, y) in y.chunks_exact_mut(window).enumerate() {
                self.write(first + at, x[0], y);
            }
        })
    }
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
        let patches = PatchGeometry::new(c.dims(0), lists, self.padding)?;
        validate_dims(&patches.output)?;
        let depth = c.dims(0)[3] as usize;
        produce(c, &[0], &patches.output, &Windows { patches, depth })
    }
}

/// Numbers that TensorFlow supports: those of [`NUMBERS`] without bool, its first.
const IMAGES: &[DType] = NUMBERS.split_at(1).1;

register_kernel!("ExtractImagePatches" on "CPU": ExtractImagePatches, types = ("T", IMAGES),
    numerics = Numerics::EXACT);
