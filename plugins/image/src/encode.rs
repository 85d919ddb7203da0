//! `EncodePng`, `EncodeJpeg` and `EncodeJpegVariableQuality`.
//!
//! A PNG preserves the pixels exactly. A JPEG is baseline with full colour resolution:
//! `progressive`, `optimize_size` and `chroma_downsampling`, which reduce its size, have no effect.

use image::{
    ExtendedColorType, ImageEncoder, ImageError,
    codecs::{
        jpeg::{JpegEncoder, PixelDensity, PixelDensityUnit},
        png::{CompressionType, FilterType, PngEncoder},
    },
};
use std::io::{self, Write};
use tenon_sdk::{
    Code, DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel, Mode},
    geometry::{GeometryError, element_count},
    growth,
    reg::Numerics,
    register_kernel,
};

/// Height, width and channels of images of at least one pixel.
fn sizes(dims: &[i64], most: i64) -> Result<[u32; 3], KernelError> {
    let (what, found) = ("image", dims.len());
    let &[.., height, width, channels] = dims else {
        return Err(GeometryError::RankTooSmall { what, expected: 3, found }.into());
    };
    let valid = |size: i64| (1..=most).contains(&size);
    if !valid(height) || !valid(width) || !(1..=4).contains(&channels) {
        return Err(KernelError::invalid_argument(format!(
            "image must have 1 to {most} rows and columns and 1 to 4 channels, found shape {dims:?}"
        )));
    }
    Ok([height as u32, width as u32, channels as u32])
}

/// Most memory that an encoder takes regardless of the image.
const LIBRARY_BYTES: usize = 1 << 20;

/// A file in memory, which may run out of it.
struct Growing<'f>(&'f mut Vec<u8>);

impl Write for Growing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        growth::append(self.0, bytes)
            .map_err(|error| io::Error::new(io::ErrorKind::OutOfMemory, error.message))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn refused(error: ImageError) -> KernelError {
    match error {
        ImageError::IoError(error) if error.kind() == io::ErrorKind::OutOfMemory => {
            KernelError::new(Code::RESOURCE_EXHAUSTED, error.to_string())
        }
        error => KernelError::invalid_argument(format!("image cannot be encoded: {error}")),
    }
}

struct Png {
    compression: CompressionType,
    wide: bool,
}

impl Kernel for Png {
    const MODE: Mode = Mode::Expensive;

    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let compression = match c.attr::<i64>("compression")? {
            -1 => CompressionType::Default,
            0 => CompressionType::Uncompressed,
            level @ 1..=9 => CompressionType::Level(level as u8),
            found => {
                return Err(KernelError::invalid_argument(format!(
                    "compression must lie in [-1, 9], found {found}"
                )));
            }
        };
        Ok(Png { compression, wide: c.input_types().first() == Some(&DType::UINT16) })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let dims = c.dims(0);
        let [height, width, channels] = sizes(dims, i64::from(i32::MAX))?;
        let bytes = c.input_bytes(0)?;
        let outer = &dims[..dims.len() - 3];
        let colour = match (channels, self.wide) {
            (1, false) => ExtendedColorType::L8,
            (2, false) => ExtendedColorType::La8,
            (3, false) => ExtendedColorType::Rgb8,
            (_, false) => ExtendedColorType::Rgba8,
            (1, true) => ExtendedColorType::L16,
            (2, true) => ExtendedColorType::La16,
            (3, true) => ExtendedColorType::Rgb16,
            (_, true) => ExtendedColorType::Rgba16,
        };
        let image_len = (bytes.len() / element_count(outer)?.max(1)).max(1);
        c.write_texts(0, outer, |at, file| {
            c.watch().check()?;
            let image = &bytes[at * image_len..][..image_len];
            // The library filters and compresses the whole image in its own memory.
            growth::foresee(image.len().saturating_mul(3).saturating_add(LIBRARY_BYTES))?;
            let quality = (self.compression, FilterType::Adaptive);
            let encoder = PngEncoder::new_with_quality(Growing(file), quality.0, quality.1);
            encoder.write_image(image, width, height, colour).map_err(refused)
        })
    }
}

register_kernel!("EncodePng" on "CPU": Png, numerics = Numerics::EXACT);

/// The first bytes of a segment of extensible metadata.
const XMP: &[u8] = b"http://ns.adobe.com/xap/1.0/\0";

struct Jpeg {
    /// Number of channels; 0 for that of the image.
    channels: u32,
    quality: u8,
    density: PixelDensity,
    metadata: Vec<u8>,
}

impl Kernel for Jpeg {
    const MODE: Mode = Mode::Expensive;

    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let quality: i64 = c.attr("quality")?;
        if !(0..=100).contains(&quality) {
            return Err(KernelError::invalid_argument(format!(
                "quality must lie in [0, 100], found {quality}"
            )));
        }
        let density = |name: &str| {
            let found: i64 = c.attr(name)?;
            u16::try_from(found).map_err(|_| {
                KernelError::invalid_argument(format!(
                    "{name} must lie in [0, 65535], found {found}"
                ))
            })
        };
        let unit = match c.attr::<&str>("density_unit")? {
            "cm" => PixelDensityUnit::Centimeters,
            _ => PixelDensityUnit::Inches,
        };
        let metadata = c.attr::<&[u8]>("xmp_metadata")?.to_vec();
        if metadata.len() + XMP.len() + 2 > usize::from(u16::MAX) {
            let found = metadata.len();
            return Err(KernelError::invalid_argument(format!(
                "xmp_metadata must fit in a segment of 65535 bytes, found {found} bytes"
            )));
        }
        let channels = match c.attr::<&str>("format")? {
            "grayscale" => 1,
            "rgb" => 3,
            _ => 0,
        };
        let density =
            PixelDensity { density: (density("x_density")?, density("y_density")?), unit };
        Ok(Jpeg { channels, quality: quality.max(1) as u8, density, metadata })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        self.write(c)
    }
}

impl Jpeg {
    fn write(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let dims = c.dims(0);
        if dims.len() != 3 {
            let (what, found) = ("image", dims.len());
            return Err(GeometryError::Rank { what, expected: 3, found }.into());
        }
        let [height, width, channels] = sizes(dims, i64::from(u16::MAX))?;
        let wanted = if self.channels == 0 { channels } else { self.channels };
        let colour = match (wanted, channels) {
            (1, 1) => ExtendedColorType::L8,
            (3, 3) => ExtendedColorType::Rgb8,
            _ => {
                return Err(KernelError::invalid_argument(format!(
                    "image must have {} channels, found {channels}",
                    if self.channels == 0 { "1 or 3".to_owned() } else { wanted.to_string() }
                )));
            }
        };
        let image = c.input_bytes(0)?;
        c.write_texts(0, &[], |_, file| {
            growth::foresee(LIBRARY_BYTES)?;
            let mut encoder = JpegEncoder::new_with_quality(Growing(file), self.quality);
            encoder.set_pixel_density(self.density);
            encoder.encode(image, width, height, colour).map_err(refused)?;
            if self.metadata.is_empty() { Ok(()) } else { add_metadata(file, &self.metadata) }
        })
    }
}

/// `EncodeJpegVariableQuality`, whose file has the density that `EncodeJpeg` writes by default.
fn of_quality(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let quality = c.integer(1, "quality")?;
    let Some(quality) = u8::try_from(quality).ok().filter(|&quality| quality <= 100) else {
        return Err(KernelError::invalid_argument(format!(
            "quality must lie in [0, 100], found {quality}"
        )));
    };
    let density = PixelDensity { density: (300, 300), unit: PixelDensityUnit::Inches };
    Jpeg { channels: 0, quality: quality.max(1), density, metadata: Vec::new() }.write(c)
}

register_kernel!("EncodeJpegVariableQuality" on "CPU": fn of_quality, host_memory = &["quality"],
    numerics = Numerics::EXACT);

/// Inserts a segment after the start and the first segment of a file, which holds the density.
fn add_metadata(file: &mut Vec<u8>, metadata: &[u8]) -> Result<(), KernelError> {
    let first = match &file[..] {
        [_, _, 0xff, 0xe0, high, low, ..] => 2 + usize::from(u16::from_be_bytes([*high, *low])),
        _ => 0,
    };
    let at = (2 + first).min(file.len());
    let len = (2 + XMP.len() + metadata.len()) as u16;
    growth::reserve(file, usize::from(len) + 2)?;
    let (mark, len) = ([0xff, 0xe1], len.to_be_bytes());
    let segment = [&mark[..], &len, XMP, metadata].into_iter().flatten().copied();
    file.splice(at..at, segment);
    Ok(())
}

register_kernel!("EncodeJpeg" on "CPU": Jpeg, numerics = Numerics::EXACT);
