//! Decodes BMP files with 8, 24 or 32 bits a pixel and without compression, which are those that TensorFlow decodes: of
//! 8 bits the levels themselves are taken, without a palette.

use crate::decode::{MOST_BYTES, Pixels, refused};
use tenon_sdk::{KernelError, growth};

/// The first bytes of a file.
pub const SIGNATURE: &[u8] = b"BM";

/// Bytes to the end of the last number that is read of the header.
const HEAD: usize = 32;

fn number(contents: &[u8], at: usize) -> i64 {
    i64::from(i32::from_le_bytes(std::array::from_fn(|byte| contents[at + byte])))
}

/// Decodes a file. `channels` is the number that the result has; 0 keeps that of the file.
///
/// # Errors
/// `INVALID_ARGUMENT` for a file of another size than its header says, or of another kind, and for one channel.
pub fn decode(contents: &[u8], channels: usize) -> Result<Pixels<u8>, KernelError> {
    if contents.len() < HEAD {
        let found = contents.len();
        return Err(refused(format!(
            "a bmp whose header needs {HEAD} bytes, of which {found} are there"
        )));
    }
    let (start, width, height) = (number(contents, 10), number(contents, 18), number(contents, 22));
    let bits = u16::from_le_bytes([contents[28], contents[29]]);
    let found = match bits {
        8 => 1,
        24 => 3,
        32 => 4,
        _ => return Err(refused(format!("a bmp of {bits} bits a pixel, expected 8, 24 or 32"))),
    };
    if channels == 1 {
        return Err(KernelError::invalid_argument(
            "channels: expected 0, 3 or 4 for a bmp, found 1",
        ));
    }
    let rows = height.unsigned_abs();
    let (Ok(start), Ok(width), Ok(rows)) =
        (usize::try_from(start), usize::try_from(width), usize::try_from(rows))
    else {
        return Err(refused(format!(
            "a bmp of {width} x {height} pixels that begin at byte {start}"
        )));
    };
    if width == 0 || rows == 0 {
        return Err(refused(format!("a bmp of {width} x {rows} pixels")));
    }
    // Sizes are 32 bits, so that the products fit in 128.
    let row = (width as u128 * found as u128).next_multiple_of(4);
    let needed = start as u128 + row * rows as u128;
    if needed != contents.len() as u128 || needed > u128::from(MOST_BYTES) {
        return Err(refused(format!(
            "a bmp of {width} x {rows} pixels with {} bytes, expected {needed}, and at most {MOST_BYTES}",
            contents.len()
        )));
    }
    let (row, line) = (row as usize, width * found);
    let mut levels = growth::with_room(line * rows)?;
    for at in 0..rows {
        let at = if height < 0 { at } else { rows - 1 - at };
        for pixel in contents[start + at * row..][..line].chunks_exact(found) {
            match *pixel {
                [blue, green, red] => levels.extend([red, green, blue]),
                [blue, green, red, opacity] => levels.extend([red, green, blue, opacity]),
                _ => levels.extend(pixel),
            }
        }
    }
    let pixels = Pixels { width, height: rows, channels: found, levels };
    pixels.with_channels(if channels == 0 { found } else { channels })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(width: i32, height: i32, bits: u16, pixels: &[u8]) -> Vec<u8> {
        let mut file = vec![0; 54];
        file[..2].copy_from_slice(SIGNATURE);
        file[10] = 54;
        file[18..22].copy_from_slice(&width.to_le_bytes());
        file[22..26].copy_from_slice(&height.to_le_bytes());
        file[28..30].copy_from_slice(&bits.to_le_bytes());
        file.extend(pixels);
        file
    }

    #[test]
    fn rows_come_from_the_bottom_unless_the_height_is_negative() {
        let pixels = [1, 2, 3, 0, 4, 5, 6, 0];
        let levels = |height| decode(&file(1, height, 24, &pixels), 0).unwrap().levels;
        assert_eq!(levels(2), [6, 5, 4, 3, 2, 1]);
        assert_eq!(levels(-2), [3, 2, 1, 6, 5, 4]);
    }

    #[test]
    fn sizes_that_the_file_does_not_have_are_refused() {
        for (width, height) in [(2, 1), (i32::MAX, i32::MIN), (-1, 1), (0, 1), (1, 0)] {
            assert!(decode(&file(width, height, 32, &[0; 4]), 0).is_err(), "{width} x {height}");
        }
        assert!(decode(&file(1, 1, 16, &[0; 4]), 0).is_err());
        assert!(decode(&[0; 31], 0).is_err());
    }
}
