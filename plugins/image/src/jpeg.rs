//! Decodes JPEG files to levels with the arithmetic of libjpeg-turbo, whose levels TensorFlow's
//! equal: integer inverse transforms, reduced images by omitting frequencies, and colours with and
//! without smoothing.
//!
//! It decodes files with Huffman codes, baseline and progressive, of 8 bits and one or three
//! components, which are the usual ones. Others ([`Problem::Other`]) are left to the library of the
//! other formats. `header` reads what precedes the pixels, `bits` and `scan` turn codes into
//! coefficients, `transform` turns these into blocks, `upsample` into whole planes, `colour` into
//! pixels.
//!
//! The code is entirely safe, since files come from anywhere. A size in a header causes no
//! allocation before it is compared with [`MOST_BYTES`](crate::decode::MOST_BYTES).

mod bits;
mod colour;
mod header;
mod scan;
mod transform;
mod upsample;

use header::Frame;
pub use header::shape;
use tenon_sdk::{KernelError, growth};

/// Options of decoding.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// 1, 2, 4 or 8: divides width and height.
    pub ratio: usize,
    /// Whether the transform is the accurate one.
    pub accurate: bool,
    /// Whether colours that are stored at a lower resolution are interpolated smoothly.
    pub fancy: bool,
    /// 1 or 3; 0 keeps the file's number.
    pub channels: usize,
    /// Whether a truncated file is accepted at any place; missing pixels are grey.
    pub recovers: bool,
    /// Otherwise, the fraction of rows that must be present; missing pixels are black.
    pub acceptable: f32,
}

/// Levels in row order.
#[derive(Debug)]
pub struct Image {
    pub width: usize,
    pub height: usize,
    pub channels: usize,
    pub levels: Vec<u8>,
}

/// Why there is no image.
#[derive(Debug)]
pub enum Problem {
    /// A kind of file that this module does not read.
    Other,
    /// An invalid file.
    Wrong(String),
    /// Out of memory for the image.
    Memory(KernelError),
}

impl From<&str> for Problem {
    fn from(why: &str) -> Problem {
        Problem::Wrong(why.to_owned())
    }
}

/// A vector of `count` copies of a value.
fn filled<T: Clone>(count: usize, value: T) -> Result<Vec<T>, Problem> {
    growth::filled(count, value).map_err(Problem::Memory)
}

/// Decodes a file.
pub fn decode(contents: &[u8], options: Options) -> Result<Image, Problem> {
    let mut frame = Frame::default();
    let whole = header::read(contents, &mut frame)?;
    let channels = match options.channels {
        0 => frame.components.len(),
        channels => channels,
    };
    let size = |whole: usize| whole.div_ceil(options.ratio);
    let (width, height) = (size(frame.width), size(frame.height));
    let mut planes = Vec::new();
    // Grey is the first component, unless the file stores red, green and blue.
    let is_luma = frame.is_luma();
    let wanted = if channels == 1 && is_luma { 1 } else { frame.components.len() };
    for at in 0..wanted {
        planes.push(upsample::plane(&frame, at, options, width, height)?);
    }
    let mut levels = colour::pixels(&planes, channels, is_luma, width * height)?;
    if let Some(groups) = whole.filter(|_| !options.recovers) {
        let each = 8 / options.ratio * frame.most[1];
        let unknown = if planes.iter().any(|plane| plane.looks_down) { 2 } else { 0 };
        let rows = (groups * each).saturating_sub(unknown);
        check_rows(rows, height, options.acceptable)?;
        levels[rows * width * channels..].fill(0);
    }
    Ok(Image { width, height, channels, levels })
}

/// Checks that enough rows were read before a file ended.
fn check_rows(rows: usize, height: usize, acceptable: f32) -> Result<(), Problem> {
    let fraction = rows as f32 / height as f32;
    match rows > 0 && fraction >= acceptable {
        true => Ok(()),
        false => Err(Problem::Wrong(format!(
            "a jpeg without its end, {rows} of whose {height} rows are whole, a fraction of {fraction}, while \
             acceptable_fraction is {acceptable}: set try_recover_truncated to take it as it is"
        ))),
    }
}

#[cfg(test)]
mod tests;
