//! `DecodePng` and `DecodeJpeg`. Either reads both formats, which it tells apart by their first bytes, as TensorFlow's do.
//!
//! PNG is exact. JPEG is decoded by another library than TensorFlow's (`zune-jpeg`), with an integer transform and
//! smooth upsampling, whatever `dct_method` and `fancy_upscaling` say: levels differ by a few. `ratio` takes the mean
//! of squares of pixels, where TensorFlow leaves out frequencies. Grey of a colour JPEG is computed from its colours. Of a
//! truncated JPEG, the fraction that was read is not known: with `try_recover_truncated` any is accepted.

use image::{
    ColorType, DynamicImage, ImageDecoder, ImageError, ImageResult,
    codecs::{jpeg::JpegDecoder, png::PngDecoder},
};
use std::{fmt, io::Cursor};
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext, Kernel, Mode},
    growth,
    reg::Numerics,
    register_kernel,
};

/// The largest image that is decoded, in bytes of its pixels: a small file may claim a size that takes all memory.
pub const MOST_BYTES: u64 = 1 << 30;

/// Memory that a decoder takes whatever the image, at most.
const LIBRARY_BYTES: usize = 1 << 20;

struct Decode {
    channels: usize,
    ratio: usize,
    /// Whether a JPEG may end early.
    truncated: bool,
    wide: bool,
}

impl Decode {
    fn create(c: &CreateContext<'_>, allowed: &[i64]) -> Result<Decode, KernelError> {
        let channels: i64 = c.attr("channels")?;
        if !allowed.contains(&channels) {
            return Err(KernelError::invalid_argument(format!(
                "channels must be one of {allowed:?}, found {channels}"
            )));
        }
        let wide = c.output_types().first() == Some(&tenon_sdk::DType::UINT16);
        Ok(Decode { channels: channels as usize, ratio: 1, truncated: false, wide })
    }

    fn run(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (&[contents], []) = (&c.strings(0)?[..], c.dims(0)) else {
            return Err(KernelError::invalid_argument(format!(
                "contents must be a scalar, found shape {:?}",
                c.dims(0)
            )));
        };
        let image = decoded(contents, self.truncated)?;
        let channels = match self.channels {
            0 => usize::from(image.color().channel_count()),
            channels => channels,
        };
        if self.wide {
            let pixels = Pixels::<u16>::new(&image, channels)?;
            return pixels.reduced(self.ratio, |dims, pixels| {
                c.output::<u16>(0, dims)?.data.copy_from_slice(pixels);
                Ok(())
            });
        }
        Pixels::<u8>::new(&image, channels)?.reduced(self.ratio, |dims, pixels| {
            c.output::<u8>(0, dims)?.data.copy_from_slice(pixels);
            Ok(())
        })
    }
}

/// What is wrong, without the crate's words for the format.
fn said(error: ImageError) -> KernelError {
    refused(error.to_string().to_lowercase())
}

fn refused(why: impl fmt::Display) -> KernelError {
    KernelError::invalid_argument(format!("contents are no image that can be decoded: {why}"))
}

fn decoded(contents: &[u8], truncated: bool) -> Result<DynamicImage, KernelError> {
    if contents.starts_with(b"\x89PNG") {
        return checked(PngDecoder::new(Cursor::new(contents)));
    }
    if !contents.starts_with(b"\xff\xd8\xff") {
        return Err(refused("neither the signature of PNG nor that of JPEG"));
    }
    // The library fills what is missing with grey.
    if !truncated && !contents.windows(2).any(|pair| pair == b"\xff\xd9") {
        return Err(refused("a jpeg without its end"));
    }
    checked(JpegDecoder::new(Cursor::new(contents)))
}

fn checked<D: ImageDecoder>(decoder: ImageResult<D>) -> Result<DynamicImage, KernelError> {
    let decoder = decoder.map_err(said)?;
    let (width, height) = decoder.dimensions();
    if width == 0 || height == 0 {
        return Err(refused(format!("an image of {width} x {height} pixels")));
    }
    // Widened to four channels of 16 bits, as an output may be.
    let bytes = u64::from(width) * u64::from(height) * 8;
    if bytes > MOST_BYTES * 2 || decoder.total_bytes() > MOST_BYTES {
        return Err(refused(format!(
            "{width} x {height} pixels are more than the {MOST_BYTES} bytes that are decoded"
        )));
    }
    // The library takes memory for the pixels, and for the file as it is expanded, itself.
    growth::foresee(decoder.total_bytes() as usize * 2 + LIBRARY_BYTES)?;
    DynamicImage::from_decoder(decoder).map_err(said)
}

/// A level of 8 or 16 bits.
trait Level: Copy + Default + Into<u32> {
    fn from_wide(level: u32) -> Self;
    /// Of a level of 16 bits.
    fn of_16(level: u16) -> Self;
    /// Of a level of 8 bits.
    fn of_8(level: u8) -> Self;
    const FULL: Self;
}

impl Level for u8 {
    const FULL: u8 = u8::MAX;

    fn from_wide(level: u32) -> u8 {
        level as u8
    }

    fn of_16(level: u16) -> u8 {
        (level >> 8) as u8
    }

    fn of_8(level: u8) -> u8 {
        level
    }
}

impl Level for u16 {
    const FULL: u16 = u16::MAX;

    fn from_wide(level: u32) -> u16 {
        level as u16
    }

    fn of_16(level: u16) -> u16 {
        level
    }

    fn of_8(level: u8) -> u16 {
        u16::from(level) * 257
    }
}

struct Pixels<L> {
    width: usize,
    height: usize,
    channels: usize,
    levels: Vec<L>,
}

impl<L: Level> Pixels<L> {
    fn new(image: &DynamicImage, channels: usize) -> Result<Pixels<L>, KernelError> {
        let (width, height) = (image.width() as usize, image.height() as usize);
        let found = usize::from(image.color().channel_count());
        let wide = matches!(
            image.color(),
            ColorType::L16 | ColorType::La16 | ColorType::Rgb16 | ColorType::Rgba16
        );
        let bytes = image.as_bytes();
        let levels: Vec<L> = if wide {
            let pairs = bytes.chunks_exact(2);
            growth::collected(pairs.map(|pair| L::of_16(u16::from_ne_bytes([pair[0], pair[1]]))))?
        } else {
            growth::collected(bytes.iter().map(|level| L::of_8(*level)))?
        };
        let levels = if found == channels {
            levels
        } else {
            let pixels = levels.chunks_exact(found);
            let mut all = growth::with_room(pixels.len() * channels)?;
            all.extend(pixels.flat_map(|pixel| converted(pixel, channels)));
            all
        };
        Ok(Pixels { width, height, channels, levels })
    }

    /// The means of squares of so many pixels; those at the edges are of fewer.
    fn reduced(
        self,
        ratio: usize,
        write: impl FnOnce(&[i64], &[L]) -> Result<(), KernelError>,
    ) -> Result<(), KernelError> {
        if ratio == 1 {
            let dims = [self.height, self.width, self.channels].map(|size| size as i64);
            return write(&dims, &self.levels);
        }
        let (height, width) = (self.height.div_ceil(ratio), self.width.div_ceil(ratio));
        let mut levels = growth::with_room(height * width * self.channels)?;
        for (y, x) in (0..height).flat_map(|y| (0..width).map(move |x| (y, x))) {
            let rows = y * ratio..((y + 1) * ratio).min(self.height);
            let columns = x * ratio..((x + 1) * ratio).min(self.width);
            let count = (rows.len() * columns.len()) as u32;
            for channel in 0..self.channels {
                let level = |row: usize, column: usize| -> u32 {
                    self.levels[(row * self.width + column) * self.channels + channel].into()
                };
                let sum: u32 = rows
                    .clone()
                    .flat_map(|row| columns.clone().map(move |column| (row, column)))
                    .map(|(row, column)| level(row, column))
                    .sum();
                levels.push(L::from_wide((sum + count / 2) / count));
            }
        }
        write(&[height as i64, width as i64, self.channels as i64], &levels)
    }
}

/// A pixel with another number of channels: 1 and 2 are grey, 2 and 4 have an opacity.
fn converted<L: Level>(pixel: &[L], channels: usize) -> impl Iterator<Item = L> + use<L> {
    let opacity = if pixel.len().is_multiple_of(2) { pixel[pixel.len() - 1] } else { L::FULL };
    let colours = if pixel.len() < 3 { [pixel[0]; 3] } else { [pixel[0], pixel[1], pixel[2]] };
    let grey = if pixel.len() < 3 { pixel[0] } else { grey(colours) };
    let [red, green, blue] = colours;
    let all = match channels {
        1 | 2 => [grey, opacity, opacity, opacity],
        _ => [red, green, blue, opacity],
    };
    all.into_iter().take(channels)
}

/// The luminance of BT.601.
fn grey<L: Level>([red, green, blue]: [L; 3]) -> L {
    let (red, green, blue): (u32, u32, u32) = (red.into(), green.into(), blue.into());
    L::from_wide((299 * red + 587 * green + 114 * blue + 500) / 1000)
}

struct Png(Decode);

impl Kernel for Png {
    const MODE: Mode = Mode::Expensive;

    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Decode::create(c, &[0, 1, 3, 4]).map(Png)
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        self.0.run(c)
    }
}

register_kernel!("DecodePng" on "CPU": Png, host_memory = &["contents"], numerics = Numerics::EXACT);

struct Jpeg(Decode);

impl Kernel for Jpeg {
    const MODE: Mode = Mode::Expensive;

    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let mut decode = Decode::create(c, &[0, 1, 3])?;
        let ratio: i64 = c.attr("ratio")?;
        if ![1, 2, 4, 8].contains(&ratio) {
            return Err(KernelError::invalid_argument(format!(
                "ratio must be 1, 2, 4 or 8, found {ratio}"
            )));
        }
        let method: &str = c.attr("dct_method")?;
        if !["", "INTEGER_FAST", "INTEGER_ACCURATE"].contains(&method) {
            return Err(KernelError::invalid_argument(format!(
                "dct_method must be empty, 'INTEGER_FAST' or 'INTEGER_ACCURATE', found '{method}'"
            )));
        }
        decode.ratio = ratio as usize;
        decode.truncated = c.attr("try_recover_truncated")?;
        Ok(Jpeg(decode))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        self.0.run(c)
    }
}

register_kernel!("DecodeJpeg" on "CPU": Jpeg, host_memory = &["contents"], numerics = Numerics::relative(40.0, 0.0));
