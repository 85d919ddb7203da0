//! Decodes GIF files to their frames, each drawn over the one before, as TensorFlow does: the size is that of the largest
//! frame, and what says how a frame is removed counts for nothing.

use crate::decode::{MOST_BYTES, refused};
use gif::{ColorOutput, DecodeOptions, Frame, MemoryLimit};
use std::num::NonZeroU64;
use tenon_sdk::{KernelError, growth};

/// The first bytes of a file.
pub const SIGNATURE: &[u8] = b"GIF8";

/// Frames of three channels.
pub struct Frames {
    /// How many there are.
    pub count: usize,
    /// Rows of each.
    pub height: usize,
    /// Columns of each.
    pub width: usize,
    /// All levels.
    pub levels: Vec<u8>,
}

/// A frame as the file has it.
struct Part {
    /// Left and top, then columns and rows.
    place: [usize; 4],
    transparent: Option<u8>,
    palette: Vec<u8>,
    indices: Vec<u8>,
}

impl Part {
    fn new(frame: &Frame<'_>, shared: Option<&[u8]>) -> Result<Part, KernelError> {
        let palette = frame.palette.as_deref().or(shared);
        let palette = palette.ok_or_else(|| refused("a gif without colours"))?;
        Ok(Part {
            place: [frame.left, frame.top, frame.width, frame.height].map(usize::from),
            transparent: frame.transparent,
            palette: growth::copied(palette)?,
            indices: growth::copied(&frame.buffer)?,
        })
    }

    /// Draws the pixels that are inside an image of this many columns.
    fn draw(&self, image: &mut [u8], width: usize) -> Result<(), KernelError> {
        let [left, top, columns, _] = self.place;
        let colours = self.palette.len() / 3;
        let lines = self.indices.chunks_exact(columns.max(1));
        for (line, indices) in image.chunks_exact_mut(width * 3).skip(top).zip(lines) {
            for (pixel, &index) in line.chunks_exact_mut(3).skip(left).zip(indices) {
                if Some(index) == self.transparent {
                    continue;
                }
                let from = usize::from(index) * 3;
                let colour = self.palette.get(from..from + 3).ok_or_else(|| {
                    refused(format!("a gif whose colour {index} is not among its {colours}"))
                })?;
                pixel.copy_from_slice(colour);
            }
        }
        Ok(())
    }
}

/// The frames of a file, or its first one.
fn parts(contents: &[u8], is_all: bool) -> Result<Vec<Part>, KernelError> {
    let mut options = DecodeOptions::new();
    options.set_color_output(ColorOutput::Indexed);
    options.set_memory_limit(MemoryLimit::Bytes(
        NonZeroU64::new(MOST_BYTES).unwrap_or(NonZeroU64::MIN),
    ));
    let said = |error: gif::DecodingError| refused(error.to_string().to_lowercase());
    let mut decoder = options.read_info(contents).map_err(said)?;
    let shared = decoder.global_palette().map(growth::copied).transpose()?;
    let (mut parts, mut bytes) = (Vec::new(), 0);
    loop {
        let frame = match decoder.read_next_frame() {
            Ok(Some(frame)) => frame,
            Ok(None) => break,
            // A file that ends early has the frames that are whole.
            Err(_) if !parts.is_empty() => break,
            Err(error) => return Err(said(error)),
        };
        bytes += frame.buffer.len() as u64;
        if bytes > MOST_BYTES {
            return Err(refused(format!("a gif with more than {MOST_BYTES} pixels")));
        }
        growth::push(&mut parts, Part::new(frame, shared.as_deref())?)?;
        if !is_all {
            break;
        }
    }
    Ok(parts)
}

/// Decodes a file to its frames, or to the first one.
///
/// # Errors
/// `INVALID_ARGUMENT` for contents that are no GIF, or have no frame, or too many pixels.
pub fn decode(contents: &[u8], is_all: bool) -> Result<Frames, KernelError> {
    let parts = parts(contents, is_all)?;
    let most = |at: usize| parts.iter().map(|part| part.place[at]).max().unwrap_or(0);
    let (width, height, count) = (most(2), most(3), parts.len());
    if width == 0 || height == 0 {
        return Err(refused("a gif without pixels"));
    }
    let frame = width * height * 3;
    let total = frame.checked_mul(count).filter(|&total| total as u64 <= MOST_BYTES);
    let total = total.ok_or_else(|| {
        refused(format!(
            "{count} frames of {width} x {height} pixels are more than the {MOST_BYTES} bytes that are decoded"
        ))
    })?;
    let mut levels = growth::filled(total, 0u8)?;
    for (at, part) in parts.iter().enumerate() {
        let (before, now) = levels.split_at_mut(at * frame);
        let now = &mut now[..frame];
        if at > 0 {
            now.copy_from_slice(&before[(at - 1) * frame..]);
        }
        part.draw(now, width)?;
    }
    Ok(Frames { count, height, width, levels })
}
