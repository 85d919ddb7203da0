//! `ImageSummary`: images as PNG files.

use super::message::{Growing, Message, give, text};
use png::{BitDepth, ColorType, Encoder, EncodingError};
use std::io;
use tenon_sdk::{growth, prelude::*};

/// Memory that an encoder takes regardless of the image.
const LIBRARY_BYTES: usize = 1 << 20;
/// The number of pixels that an image has less than.
const PIXELS: i64 = 1 << 29;
/// The scale of levels that are smaller than this is 0.
const LEAST: f32 = 1e-6;

/// A type of pixels.
pub trait Level: Element {
    /// Makes levels from 0 to 255 of an image's values; a pixel that is not finite gets the colour `bad`.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` without memory; `INVALID_ARGUMENT` for a colour of fewer channels.
    fn levels(values: &[Self], channels: usize, bad: &[u8]) -> Result<Vec<u8>, KernelError>;
}

impl Level for u8 {
    fn levels(values: &[u8], _: usize, _: &[u8]) -> Result<Vec<u8>, KernelError> {
        growth::copied(values)
    }
}

/// Scale and offset of the levels: values that are not negative are scaled so that the greatest is 255, others so that
/// 0 is 128, and the one that is furthest from it 1 or 255.
fn transform<T: Number>(values: &[T], channels: usize) -> (T, T) {
    let (mut least, mut greatest) = (f32::INFINITY, f32::NEG_INFINITY);
    for pixel in values.chunks_exact(channels).filter(|pixel| is_finite(pixel)) {
        for value in pixel {
            let value = value.to_f64() as f32;
            least = least.min(value);
            greatest = greatest.max(value);
        }
    }
    let (largest, whole, offset) = match least < 0.0 {
        true => (least.abs().max(greatest.abs()), 127.0, 128.0),
        false => (greatest, 255.0, 0.0),
    };
    let scale = if largest < LEAST { 0.0 } else { whole / largest };
    (T::from_f64(scale.into()), T::from_f64(offset))
}

fn is_finite<T: Number>(pixel: &[T]) -> bool {
    pixel.iter().all(|value| value.to_f64().is_finite())
}

macro_rules! float_levels {
    ($($ty:ty),*) => {$(
        impl Level for $ty {
            fn levels(values: &[$ty], channels: usize, bad: &[u8]) -> Result<Vec<u8>, KernelError> {
                scaled(values, channels, bad)
            }
        }
    )*};
}

float_levels!(f16, f32, f64);

fn scaled<T: Number>(values: &[T], channels: usize, bad: &[u8]) -> Result<Vec<u8>, KernelError> {
    let Some(bad) = bad.get(..channels) else {
        return Err(KernelError::invalid_argument(format!(
            "expected depth <= bad_color.size, got depth = {channels}, bad_color.size = {}",
            bad.len()
        )));
    };
    let (scale, offset) = transform(values, channels);
    let mut levels = growth::filled(values.len(), 0)?;
    let pixels = values.chunks_exact(channels).zip(levels.chunks_exact_mut(channels));
    for (pixel, levels) in pixels {
        match is_finite(pixel) {
            true => {
                for (value, level) in pixel.iter().zip(levels) {
                    *level = value.mul(scale).add(offset).to_f64() as u8;
                }
            }
            false => levels.copy_from_slice(bad),
        }
    }
    Ok(levels)
}

/// An image as a file.
fn encoded(levels: &[u8], [height, width, channels]: [u32; 3]) -> Result<Vec<u8>, KernelError> {
    // The library filters and compresses the whole image in its own memory.
    growth::foresee(levels.len().saturating_mul(3).saturating_add(LIBRARY_BYTES))?;
    let refused = |error: EncodingError| match error {
        EncodingError::IoError(error) if error.kind() == io::ErrorKind::OutOfMemory => {
            KernelError::new(Code::RESOURCE_EXHAUSTED, error.to_string())
        }
        error => KernelError::invalid_argument(format!("PNG encoding failed: {error}")),
    };
    let mut file = Vec::new();
    let mut encoder = Encoder::new(Growing(&mut file), width, height);
    encoder.set_depth(BitDepth::Eight);
    encoder.set_color(match channels {
        1 => ColorType::Grayscale,
        3 => ColorType::Rgb,
        _ => ColorType::Rgba,
    });
    let mut writer = encoder.write_header().map_err(refused)?;
    writer.write_image_data(levels).map_err(refused)?;
    writer.finish().map_err(refused)?;
    Ok(file)
}

/// A summary with at most `most` images of a batch.
///
/// # Errors
/// `INVALID_ARGUMENT` for a tensor that is not a batch of images with at least one pixel and 1, 3 or 4 channels, and for a
/// colour `bad` of fewer channels; `RESOURCE_EXHAUSTED` without memory.
pub fn images<T: Level>(
    c: &ComputeContext<'_>,
    tag: &[u8],
    tensor: View<'_, T>,
    bad: &[u8],
    most: i64,
) -> Result<Message, KernelError> {
    let &[batch, height, width, channels @ (1 | 3 | 4)] = tensor.dims else {
        return Err(KernelError::invalid_argument(format!(
            "Tensor must be 4-D with last dim 1, 3, or 4, not {:?}",
            tensor.dims
        )));
    };
    if height.max(width) > i64::from(i32::MAX) || height * width >= PIXELS {
        return Err(KernelError::invalid_argument(format!(
            "Tensor too large for summary {:?}",
            tensor.dims
        )));
    }
    let (size, tag) = ((height * width * channels) as usize, String::from_utf8_lossy(tag));
    let mut summary = Message::default();
    for at in 0..most.min(batch) {
        c.watch().check()?;
        let values = &tensor.data[at as usize * size..][..size];
        let levels = T::levels(values, channels as usize, bad)?;
        let mut image = Message::default();
        image.number(1, height as u64)?;
        image.number(2, width as u64)?;
        image.number(3, channels as u64)?;
        image.bytes(4, &encoded(&levels, [height as u32, width as u32, channels as u32])?)?;
        let name = if most > 1 { format!("{tag}/image/{at}") } else { format!("{tag}/image") };
        let mut entry = Message::default();
        entry.text(1, name.as_bytes())?;
        entry.message(4, &image)?;
        summary.message(1, &entry)?;
    }
    Ok(summary)
}

/// The attribute `max_images`.
///
/// # Errors
/// `INVALID_ARGUMENT` for one that does not fit 31 bits.
pub fn most_of(c: &CreateContext<'_>) -> Result<i64, KernelError> {
    match c.attr::<i64>("max_images")? {
        most if most < 1 << 31 => Ok(most),
        most => {
            Err(KernelError::invalid_argument(format!("max_images must be < 2^31, found {most}")))
        }
    }
}

struct Images<T> {
    most: i64,
    bad: Vec<u8>,
    of: std::marker::PhantomData<fn(T)>,
}

impl<T: Level> Kernel for Images<T> {
    const MODE: Mode = Mode::Expensive;

    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let bad: View<'_, u8> = c.attr("bad_color")?;
        if bad.dims.len() != 1 {
            return Err(KernelError::invalid_argument(format!(
                "bad_color must be a vector, got shape {:?}",
                bad.dims
            )));
        }
        Ok(Images { most: most_of(c)?, bad: growth::copied(bad.data)?, of: Default::default() })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let tag = text(c, 0, "Tags")?;
        give(c, &images::<T>(c, tag, c.input(1)?, &self.bad, self.most)?)
    }
}

register_kernel!("ImageSummary" on "CPU": Images<T> for "T" in [u8, f16, f32, f64]);
