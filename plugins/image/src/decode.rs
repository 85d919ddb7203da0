//! `DecodePng` and `DecodeJpeg`. As in TensorFlow, each reads both formats and detects them by
//! their first bytes. `DecodeAndCropJpeg` and `ExtractJpegShape` read JPEG alone.
//!
//! PNG is exact, and so is JPEG with one or three components and Huffman codes, which
//! [`crate::jpeg`] decodes. Other JPEG files (with four components, or with samples that do not
//! divide each other) are decoded by a library other than TensorFlow's (`zune-jpeg`): levels differ
//! by a few, and `ratio` takes the mean of squares of pixels. For such files `fancy_upscaling =
//! false` and a missing end are refused.

use crate::jpeg::{self, Problem};
use image::{
    ColorType, DynamicImage, ImageDecoder, ImageError, ImageResult,
    codecs::{jpeg::JpegDecoder, png::PngDecoder},
};
use std::{fmt, io::Cursor};
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext, Kernel, Mode},
    element::Element,
    growth,
    reg::Numerics,
    register_kernel,
};

/// Most bytes of pixels of an image that is decoded: a small file may claim a size that takes all
/// memory.
pub const MOST_BYTES: u64 = 1 << 30;

/// Most memory that a decoder takes regardless of the image.
const LIBRARY_BYTES: usize = 1 << 20;

/// How a file is decoded.
pub struct Decode {
    /// Options for JPEG; `DecodePng`, which has no such attributes, uses TensorFlow's defaults.
    jpeg: jpeg::Options,
    channels: usize,
    wide: bool,
}

impl Decode {
    /// Reads the attributes of a node; `allowed` are the numbers of channels that it may ask for.
    pub fn create(c: &CreateContext<'_>, allowed: &[i64]) -> Result<Decode, KernelError> {
        let channels: i64 = c.attr("channels")?;
        if !allowed.contains(&channels) {
            return Err(KernelError::invalid_argument(format!(
                "channels must be one of {allowed:?}, found {channels}"
            )));
        }
        let wide = c.output_types().first() == Some(&tenon_sdk::DType::UINT16);
        let own = if [1, 3].contains(&channels) { channels as usize } else { 0 };
        let jpeg = jpeg::Options { channels: own, ..Decode::of_colours().jpeg };
        Ok(Decode { jpeg, channels: channels as usize, wide })
    }

    /// Decodes to red, green and blue of 8 bits.
    pub fn of_colours() -> Decode {
        let jpeg = jpeg::Options {
            ratio: 1,
            accurate: false,
            fancy: true,
            channels: 3,
            recovers: false,
            acceptable: 1.0,
        };
        Decode { jpeg, channels: 3, wide: false }
    }

    fn run(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let contents = contents(c)?;
        match self.wide {
            true => write(c, &self.pixels::<u16>(contents)?),
            false => write(c, &self.pixels::<u8>(contents)?),
        }
    }

    /// Decodes a PNG or a JPEG.
    pub fn pixels<L: Level>(&self, contents: &[u8]) -> Result<Pixels<L>, KernelError> {
        if is_jpeg(contents) {
            match jpeg::decode(contents, self.jpeg) {
                Ok(image) => return Pixels::of_jpeg(image, self.channels),
                Err(Problem::Wrong(why)) => return Err(refused(why)),
                Err(Problem::Memory(error)) => return Err(error),
                Err(Problem::Other) if !self.jpeg.fancy => {
                    let why = "fancy_upscaling = false is for jpeg files of one or three components, with 8 bits \
                               and huffman codes";
                    return Err(refused(why));
                }
                Err(Problem::Other) => {}
            }
        }
        let image = decoded(contents)?;
        let channels = match self.channels {
            0 => usize::from(image.color().channel_count()),
            channels => channels,
        };
        Pixels::new(&image, channels)?.reduced(self.jpeg.ratio)
    }
}

/// The file in the first input.
fn contents<'c>(c: &ComputeContext<'c>) -> Result<&'c [u8], KernelError> {
    match (&c.strings(0)?[..], c.dims(0)) {
        (&[contents], []) => Ok(contents),
        (_, dims) => Err(KernelError::invalid_argument(format!(
            "contents must be a scalar, found shape {dims:?}"
        ))),
    }
}

fn write<L: Level>(c: &ComputeContext<'_>, pixels: &Pixels<L>) -> Result<(), KernelError> {
    let dims = [pixels.height, pixels.width, pixels.channels].map(|size| size as i64);
    c.output::<L>(0, &dims)?.data.copy_from_slice(&pixels.levels);
    Ok(())
}

/// Whether a file has the signature of JPEG.
pub fn is_jpeg(contents: &[u8]) -> bool {
    contents.starts_with(b"\xff\xd8\xff")
}

/// The error, without the crate's words for the format.
fn said(error: ImageError) -> KernelError {
    refused(error.to_string().to_lowercase())
}

/// The error for contents that are no image.
pub fn refused(why: impl fmt::Display) -> KernelError {
    KernelError::invalid_argument(format!("contents are not an image that can be decoded: {why}"))
}

fn decoded(contents: &[u8]) -> Result<DynamicImage, KernelError> {
    if contents.starts_with(b"\x89PNG") {
        return checked(PngDecoder::new(Cursor::new(contents)));
    }
    if !is_jpeg(contents) {
        return Err(refused("neither the signature of PNG nor that of JPEG"));
    }
    // The library fills missing parts with grey.
    if !contents.windows(2).any(|pair| pair == b"\xff\xd9") {
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
    // Widened to four channels of 16 bits, the widest output.
    let bytes = u64::from(width) * u64::from(height) * 8;
    if bytes > MOST_BYTES * 2 || decoder.total_bytes() > MOST_BYTES {
        return Err(refused(format!(
            "{width} x {height} pixels are more than the {MOST_BYTES} bytes that are decoded"
        )));
    }
    // The library itself allocates memory for the pixels, and for the file as it is expanded.
    growth::foresee(decoder.total_bytes() as usize * 2 + LIBRARY_BYTES)?;
    DynamicImage::from_decoder(decoder).map_err(said)
}

/// A pixel level of 8 or 16 bits.
pub trait Level: Element + Into<u32> {
    /// Takes a level that fits.
    fn from_wide(level: u32) -> Self;
    /// Converts a level of 16 bits.
    fn of_16(level: u16) -> Self;
    /// Converts a level of 8 bits.
    fn of_8(level: u8) -> Self;
    /// The greatest level.
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

/// A decoded image.
pub struct Pixels<L> {
    /// Columns.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Levels of a pixel.
    pub channels: usize,
    /// All levels, row by row.
    pub levels: Vec<L>,
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
        Pixels { width, height, channels: found, levels }.with_channels(channels)
    }

    /// The pixels of a JPEG with `channels` channels; 0 keeps those of the file.
    fn of_jpeg(image: jpeg::Image, channels: usize) -> Result<Pixels<L>, KernelError> {
        let jpeg::Image { width, height, channels: found, levels } = image;
        let levels = growth::collected(levels.into_iter().map(L::of_8))?;
        let pixels = Pixels { width, height, channels: found, levels };
        if channels == 0 { Ok(pixels) } else { pixels.with_channels(channels) }
    }

    /// The pixels with another number of channels: colours become grey, grey becomes colours, and all is opaque.
    pub fn with_channels(self, channels: usize) -> Result<Pixels<L>, KernelError> {
        if self.channels == channels {
            return Ok(self);
        }
        let pixels = self.levels.chunks_exact(self.channels);
        let mut levels = growth::with_room(pixels.len() * channels)?;
        levels.extend(pixels.flat_map(|pixel| converted(pixel, channels)));
        Ok(Pixels { channels, levels, ..self })
    }

    /// The means of squares of `ratio` pixels on a side; squares at the edges have fewer pixels.
    fn reduced(self, ratio: usize) -> Result<Pixels<L>, KernelError> {
        if ratio == 1 {
            return Ok(self);
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
        Ok(Pixels { width, height, channels: self.channels, levels })
    }
}

/// A pixel with another number of channels: 1 and 2 are grey, 2 and 4 have opacity.
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

/// The luminance by BT.601.
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

impl Jpeg {
    fn create(c: &CreateContext<'_>) -> Result<Jpeg, KernelError> {
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
        decode.jpeg.ratio = ratio as usize;
        // TensorFlow's default is the fast one.
        decode.jpeg.accurate = method == "INTEGER_ACCURATE";
        decode.jpeg.fancy = c.attr("fancy_upscaling")?;
        decode.jpeg.recovers = c.attr("try_recover_truncated")?;
        decode.jpeg.acceptable = c.attr("acceptable_fraction")?;
        Ok(Jpeg(decode))
    }
}

impl Kernel for Jpeg {
    const MODE: Mode = Mode::Expensive;

    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Jpeg::create(c)
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        self.0.run(c)
    }
}

register_kernel!("DecodeJpeg" on "CPU": Jpeg, host_memory = &["contents"], numerics = Numerics::EXACT);

/// `DecodeAndCropJpeg`.
struct Crop(Jpeg);

impl Kernel for Crop {
    const MODE: Mode = Mode::Expensive;

    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Jpeg::create(c).map(Crop)
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (contents, window) = (only_jpeg(c)?, c.integers(1)?);
        let (&[row, column, height, width], [4]) = (&window[..], c.dims(1)) else {
            return Err(KernelError::invalid_argument(format!(
                "crop_window must be a vector of 4, found shape {:?}",
                c.dims(1)
            )));
        };
        let pixels = self.0.0.pixels::<u8>(contents)?;
        let fits = |first: i64, size: i64, all: usize| {
            first >= 0 && size > 0 && first.checked_add(size).is_some_and(|end| end <= all as i64)
        };
        if !fits(row, height, pixels.height) || !fits(column, width, pixels.width) {
            return Err(KernelError::invalid_argument(format!(
                "crop_window: expected a window of one pixel or more inside of {} x {}, found {window:?}",
                pixels.height, pixels.width
            )));
        }
        let y = c.output::<u8>(0, &[height, width, pixels.channels as i64])?.data;
        let line = width as usize * pixels.channels;
        for (at, y) in y.chunks_exact_mut(line).enumerate() {
            let first = (row as usize + at) * pixels.width + column as usize;
            y.copy_from_slice(&pixels.levels[first * pixels.channels..][..line]);
        }
        Ok(())
    }
}

/// The JPEG file in the first input.
fn only_jpeg<'c>(c: &ComputeContext<'c>) -> Result<&'c [u8], KernelError> {
    let contents = contents(c)?;
    match is_jpeg(contents) {
        true => Ok(contents),
        false => Err(refused("not the signature of JPEG")),
    }
}

/// `ExtractJpegShape`.
fn extract_shape(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let contents = only_jpeg(c)?;
    let shape =
        jpeg::shape(contents).ok_or_else(|| refused("a jpeg without a frame before its pixels"))?;
    if c.output_slot(0)?.dtype == tenon_sdk::DType::INT64 {
        c.output::<i64>(0, &[3])?.data.copy_from_slice(&shape.map(i64::from));
    } else {
        c.output::<i32>(0, &[3])?.data.copy_from_slice(&shape.map(i32::from));
    }
    Ok(())
}

register_kernel!("DecodeAndCropJpeg" on "CPU": Crop, host_memory = &["contents", "crop_window"],
    numerics = Numerics::EXACT);
register_kernel!("ExtractJpegShape" on "CPU": fn extract_shape, host_memory = &["contents"],
    numerics = Numerics::EXACT);
