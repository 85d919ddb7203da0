//! `ExtractGlimpse` and `ExtractGlimpseV2`: windows of images, with noise where a window is outside of its image.
//!
//! The noise has no seed: it differs from call to call, as TensorFlow's does.

use std::f32::consts::TAU;
use tenon_philox::{Philox, Words};
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    geometry::{GeometryError, byte_size},
    growth,
    reg::Numerics,
    register_kernel,
};

/// What is outside of an image.
#[derive(Clone, Copy, PartialEq)]
enum Noise {
    Zero,
    /// Between the least and the greatest element of the image.
    Uniform,
    /// With the mean and the deviation of each channel, and within its ends.
    Normal,
}

struct Glimpse {
    centered: bool,
    normalized: bool,
    noise: Noise,
    /// Whether offsets are those of the middle of a window, whatever they are relative to.
    is_first: bool,
}

/// An image and the window over it, of rows and columns.
struct Window<'a> {
    image: &'a [f32],
    size: [usize; 2],
    channels: usize,
    /// The first row and column, which may be outside.
    first: [i64; 2],
    window: [usize; 2],
}

impl Glimpse {
    /// The first row, or column, of a window of so many over an image of so many, for an offset.
    fn first(&self, offset: f32, size: usize, window: usize) -> i64 {
        let (size, half) = (size as f32, window as f32 / 2.0);
        let mut first = if self.normalized { offset * size } else { offset };
        if self.centered {
            // Without a scale, offsets from the middle count whole in the second version.
            let scale = if self.is_first || self.normalized { 2.0 } else { 1.0 };
            first = first / scale + size / 2.0;
        }
        if self.is_first || (self.normalized && self.centered) {
            first -= half;
        }
        first as i64
    }
}

impl Window<'_> {
    /// The part of the window that is in the image, in one dimension, as pixels of the window.
    fn inside(&self, axis: usize) -> std::ops::Range<usize> {
        let (first, window) = (self.first[axis], self.window[axis] as i64);
        let start = first.saturating_neg().clamp(0, window);
        let end = (self.size[axis] as i64).saturating_sub(first).clamp(start, window);
        start as usize..end as usize
    }

    fn is_whole(&self) -> bool {
        (0..2).all(|axis| self.inside(axis).len() == self.window[axis])
    }

    /// Copies what is in the image.
    fn copy(&self, y: &mut [f32]) {
        let (rows, columns, channels) = (self.inside(0), self.inside(1), self.channels);
        if columns.is_empty() {
            return;
        }
        for row in rows {
            let place =
                |[row, column]: [i64; 2], width: usize| row as usize * width + column as usize;
            let at = [row as i64 + self.first[0], columns.start as i64 + self.first[1]];
            let x = &self.image[place(at, self.size[1]) * channels..][..columns.len() * channels];
            let to = place([row as i64, columns.start as i64], self.window[1]) * channels;
            y[to..][..x.len()].copy_from_slice(x);
        }
    }

    fn fill(&self, noise: Noise, y: &mut [f32]) -> Result<(), KernelError> {
        let ends = |least: f32, x: f32| (least.min(x), least.max(x));
        let range = |values: &mut dyn Iterator<Item = f32>| {
            let first = values.next().unwrap_or(0.0);
            values.fold((first, first), |(low, high), x| (ends(low, x).0, ends(high, x).1))
        };
        let mut words = Words::new(Philox::seeded(0, 0));
        match noise {
            Noise::Zero => y.fill(0.0),
            Noise::Uniform => {
                let (low, high) = range(&mut self.image.iter().copied());
                y.iter_mut().for_each(|y| *y = low + words.next_f32() * (high - low));
            }
            Noise::Normal => {
                let each = self.image.chunks_exact(self.channels);
                let count = each.len().max(1) as f64;
                let mut moments = growth::with_room(self.channels)?;
                for channel in 0..self.channels {
                    let of_channel = || each.clone().map(|pixel| pixel[channel]);
                    let mean = of_channel().map(f64::from).sum::<f64>() / count;
                    let squares: f64 = of_channel().map(|x| (f64::from(x) - mean).powi(2)).sum();
                    let (low, high) = range(&mut of_channel());
                    moments.push((mean as f32, (squares / count).sqrt() as f32, low, high));
                }
                for pixel in y.chunks_exact_mut(self.channels) {
                    for (y, &(mean, deviation, low, high)) in pixel.iter_mut().zip(&moments) {
                        let radius = (-2.0 * (1.0 - words.next_f32()).ln()).sqrt();
                        let normal = radius * (TAU * words.next_f32()).cos();
                        // As comparisons, which hold of no NaN.
                        *y = (mean + normal * deviation).min(high).max(low);
                    }
                }
            }
        }
        Ok(())
    }
}

impl Kernel for Glimpse {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let (is_uniform, noise): (bool, &str) = (c.attr("uniform_noise")?, c.attr("noise")?);
        let noise = match (noise, is_uniform) {
            ("uniform", _) | ("", true) => Noise::Uniform,
            ("gaussian", false) | ("", false) => Noise::Normal,
            ("zero", false) => Noise::Zero,
            (found, _) => {
                return Err(KernelError::invalid_argument(format!(
                    "noise must be 'uniform', or without uniform_noise 'gaussian' or 'zero', found '{found}'"
                )));
            }
        };
        let (centered, normalized) = (c.attr("centered")?, c.attr("normalized")?);
        Ok(Glimpse { centered, normalized, noise, is_first: c.op() == "ExtractGlimpse" })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (x, offsets) = (c.input::<f32>(0)?, c.input::<f32>(2)?);
        let &[batch, rows, columns, channels] = x.dims else {
            let (what, found) = ("input", x.dims.len());
            return Err(GeometryError::Rank { what, expected: 4, found }.into());
        };
        let (&[height, width], [2]) = (&c.integers(1)?[..], c.dims(1)) else {
            let dims = c.dims(1);
            let message = format!("size must be a vector of 2, found shape {dims:?}");
            return Err(KernelError::invalid_argument(message));
        };
        if let Some(found) = [height, width].into_iter().find(|&size| size < 0) {
            return Err(GeometryError::TooSmall { what: "size", least: 0, found }.into());
        }
        if offsets.dims != [batch, 2] {
            return Err(KernelError::invalid_argument(format!(
                "offsets must have shape {:?}, two numbers for each image, found shape {:?}",
                [batch, 2],
                offsets.dims
            )));
        }
        let dims = [batch, height, width, channels];
        byte_size(&dims, 4)?;
        let y = c.output::<f32>(0, &dims)?.data;
        if y.is_empty() {
            return Ok(());
        }
        let channels = channels as usize;
        let (size, window) = ([rows as usize, columns as usize], [height as usize, width as usize]);
        let (image, glimpse) = (size[0] * size[1] * channels, y.len() / batch as usize);
        c.parallel_items(y.chunks_exact_mut(glimpse), 2.0 * glimpse as f64, |number, y| {
            let offset = &offsets.data[2 * number..][..2];
            let first = [0, 1].map(|axis| self.first(offset[axis], size[axis], window[axis]));
            let image = &x.data[number * image..][..image];
            let window = Window { image, size, channels, first, window };
            if !window.is_whole() {
                window.fill(self.noise, y)?;
            }
            window.copy(y);
            Ok(())
        })
    }
}

register_kernel!("ExtractGlimpse" on "CPU": Glimpse, host_memory = &["size", "offsets"],
    numerics = Numerics::EXACT);
register_kernel!("ExtractGlimpseV2" on "CPU": Glimpse, host_memory = &["size", "offsets"],
    numerics = Numerics::EXACT);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_within_the_image() {
        let image: Vec<f32> = (0..24).map(|x| x as f32 - 7.0).collect();
        let window =
            Window { image: &image, size: [3, 4], channels: 2, first: [-2, 3], window: [3, 3] };
        assert!(!window.is_whole());
        for noise in [Noise::Uniform, Noise::Normal, Noise::Zero] {
            let mut y = [f32::NAN; 18];
            window.fill(noise, &mut y).unwrap();
            window.copy(&mut y);
            assert!(y.iter().all(|y| (-7.0..=16.0).contains(y)), "{y:?}");
            // The last row's first pixel is the image's last of its first row.
            assert_eq!(y[12..14], image[6..8]);
        }
    }
}
