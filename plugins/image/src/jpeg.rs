//! JPEG files to levels, by the arithmetic of libjpeg-turbo, whose levels TensorFlow's are: inverse transforms in integers,
//! images reduced by leaving frequencies out, and colours with and without smoothing.
//!
//! Here are files with Huffman codes, baseline and progressive, of 8 bits and one or three components, which is what there
//! is. Others ([`Problem::Other`]) are left to the library of the other formats. `header` reads what stands before the
//! pixels, `bits` and `scan` make coefficients of codes, `transform` blocks of them, `upsample` whole planes, `colour` pixels.
//!
//! Safe code throughout: files come from anywhere. Nothing is allocated by what a header says before it is compared with
//! [`MOST_BYTES`](crate::decode::MOST_BYTES).

mod bits;
mod colour;
mod header;
mod scan;
mod transform;
mod upsample;

use header::Frame;
use tenon_sdk::{KernelError, growth};

/// How a file is decoded.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// 1, 2, 4 or 8: width and height are divided by it.
    pub ratio: usize,
    /// Whether the transform is the accurate one.
    pub accurate: bool,
    /// Whether colours that were stored at fewer places are smoothed between them.
    pub fancy: bool,
    /// 1 or 3; 0 for as many as there are.
    pub channels: usize,
    /// Whether a file may end anywhere; what is missing is grey.
    pub recovers: bool,
    /// Else the part of the rows that must be there; what is missing is black.
    pub acceptable: f32,
}

/// Levels by rows.
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
    /// A kind of file that is not read here.
    Other,
    /// A file that is wrong.
    Wrong(String),
    /// There is no memory for the image.
    Memory(KernelError),
}

impl From<&str> for Problem {
    fn from(why: &str) -> Problem {
        Problem::Wrong(why.to_owned())
    }
}

/// So many times that value.
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
    // Grey is the first component, unless the file has colours as they are.
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

/// Whether enough rows were read before a file ended.
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
