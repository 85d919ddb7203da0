//! `DecodeImage`, `DecodeGif` and `DecodeBmp`: files whose first bytes say how they are decoded.

use crate::{
    bmp,
    decode::{Decode, Pixels, is_jpeg, refused},
    gif::{self, Frames},
};
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext, Kernel, Mode},
    element::Element,
    reg::Numerics,
    register_kernel,
};

/// A type of levels that files of any format become.
trait Of: Element {
    /// Converts a level of 8 bits.
    fn of_8(level: u8) -> Self;
    /// Decodes a PNG.
    fn of_png(decode: &Decode, contents: &[u8]) -> Result<Pixels<Self>, KernelError>;
}

impl Of for u8 {
    fn of_8(level: u8) -> u8 {
        level
    }

    fn of_png(decode: &Decode, contents: &[u8]) -> Result<Pixels<u8>, KernelError> {
        decode.pixels(contents)
    }
}

impl Of for u16 {
    fn of_8(level: u8) -> u16 {
        u16::from(level) << 8
    }

    fn of_png(decode: &Decode, contents: &[u8]) -> Result<Pixels<u16>, KernelError> {
        decode.pixels(contents)
    }
}

impl Of for f32 {
    fn of_8(level: u8) -> f32 {
        f32::from(level) * (1.0 / 255.0)
    }

    fn of_png(decode: &Decode, contents: &[u8]) -> Result<Pixels<f32>, KernelError> {
        let Pixels { width, height, channels, levels } = decode.pixels::<u16>(contents)?;
        let levels = levels.into_iter().map(|level| f32::from(level) * (1.0 / 65535.0));
        Ok(Pixels { width, height, channels, levels: tenon_sdk::growth::collected(levels)? })
    }
}

/// The one file of a call.
fn contents<'c>(c: &ComputeContext<'c>) -> Result<&'c [u8], KernelError> {
    match (&c.strings(0)?[..], c.dims(0)) {
        (&[contents], []) => Ok(contents),
        (_, dims) => Err(KernelError::invalid_argument(format!(
            "contents must be a scalar, found shape {dims:?}"
        ))),
    }
}

fn write<T: Of>(c: &ComputeContext<'_>, dims: &[i64], levels: &[u8]) -> Result<(), KernelError> {
    let y = c.output::<T>(0, dims)?.data;
    y.iter_mut().zip(levels).for_each(|(y, &level)| *y = T::of_8(level));
    Ok(())
}

fn image_dims<L>(pixels: &Pixels<L>) -> [i64; 3] {
    [pixels.height, pixels.width, pixels.channels].map(|size| size as i64)
}

/// A file of any format, as an image, or as frames if there are several.
struct Any<T> {
    decode: Decode,
    channels: usize,
    is_all: bool,
    of: std::marker::PhantomData<fn() -> T>,
}

impl<T: Of> Kernel for Any<T> {
    const MODE: Mode = Mode::Expensive;

    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Any {
            decode: Decode::create(c, &[0, 1, 3, 4])?,
            channels: c.attr::<i64>("channels")? as usize,
            is_all: c.attr("expand_animations")?,
            of: std::marker::PhantomData,
        })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let contents = contents(c)?;
        if contents.starts_with(gif::SIGNATURE) {
            return self.frames(c, contents);
        }
        if contents.starts_with(bmp::SIGNATURE) {
            let pixels = bmp::decode(contents, self.channels)?;
            return write::<T>(c, &image_dims(&pixels), &pixels.levels);
        }
        if is_jpeg(contents) {
            if self.channels == 4 {
                return Err(channels_refused("jpeg", "0, 1 or 3", 4));
            }
            let pixels = self.decode.pixels::<u8>(contents)?;
            return write::<T>(c, &image_dims(&pixels), &pixels.levels);
        }
        let pixels = T::of_png(&self.decode, contents)?;
        c.output::<T>(0, &image_dims(&pixels))?.data.copy_from_slice(&pixels.levels);
        Ok(())
    }
}

fn channels_refused(format: &str, expected: &str, found: usize) -> KernelError {
    KernelError::invalid_argument(format!(
        "channels: expected {expected} for a {format}, found {found}"
    ))
}

impl<T: Of> Any<T> {
    fn frames(&self, c: &ComputeContext<'_>, contents: &[u8]) -> Result<(), KernelError> {
        if ![0, 3].contains(&self.channels) {
            return Err(channels_refused("gif", "0 or 3", self.channels));
        }
        let Frames { count, height, width, levels } = gif::decode(contents, self.is_all)?;
        let dims = [count, height, width, 3].map(|size| size as i64);
        write::<T>(c, if self.is_all { &dims } else { &dims[1..] }, &levels)
    }
}

register_kernel!("DecodeImage" on "CPU": Any<T> for "dtype" in [u8, u16, f32],
    host_memory = &["contents"], numerics = Numerics::EXACT);

/// The frames of a GIF; another file is one frame.
struct Gif(Decode);

impl Kernel for Gif {
    const MODE: Mode = Mode::Expensive;

    fn new(_: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Gif(Decode::of_colours()))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let contents = contents(c)?;
        if contents.starts_with(gif::SIGNATURE) {
            let Frames { count, height, width, levels } = gif::decode(contents, true)?;
            let dims = [count, height, width, 3].map(|size| size as i64);
            return write::<u8>(c, &dims, &levels);
        }
        let pixels = self.0.pixels::<u8>(contents)?;
        let [height, width, channels] = image_dims(&pixels);
        write::<u8>(c, &[1, height, width, channels], &pixels.levels)
    }
}

register_kernel!("DecodeGif" on "CPU": Gif, host_memory = &["contents"], numerics = Numerics::EXACT);

/// The pixels of a BMP.
struct Bmp(usize);

impl Kernel for Bmp {
    const MODE: Mode = Mode::Expensive;

    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        match c.attr::<i64>("channels")? {
            found @ (0 | 1 | 3 | 4) => Ok(Bmp(found as usize)),
            found => Err(KernelError::invalid_argument(format!(
                "channels must be one of [0, 1, 3, 4], found {found}"
            ))),
        }
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let contents = contents(c)?;
        if !contents.starts_with(bmp::SIGNATURE) {
            return Err(refused("not the signature of BMP: use DecodeImage for other formats"));
        }
        let pixels = bmp::decode(contents, self.0)?;
        write::<u8>(c, &image_dims(&pixels), &pixels.levels)
    }
}

register_kernel!("DecodeBmp" on "CPU": Bmp, host_memory = &["contents"], numerics = Numerics::EXACT);
