//! Converts planes to pixels: red, green and blue from luminance and two colour differences
//! (BT.601, full range), or grey.

use super::{Problem, filled, upsample::Plane};

/// One half, with 16 fractional bits.
const HALF: i32 = 1 << 15;

fn level(x: i32) -> u8 {
    x.clamp(0, 255) as u8
}

fn rgb(luma: u8, blue: u8, red: u8) -> [u8; 3] {
    let (y, b, r) = (i32::from(luma), i32::from(blue) - 128, i32::from(red) - 128);
    [
        level(y + ((91881 * r + HALF) >> 16)),
        level(y + ((-22554 * b - 46802 * r + HALF) >> 16)),
        level(y + ((116_130 * b + HALF) >> 16)),
    ]
}

fn grey(red: u8, green: u8, blue: u8) -> u8 {
    let (red, green, blue) = (i32::from(red), i32::from(green), i32::from(blue));
    ((19595 * red + 38470 * green + 7471 * blue + HALF) >> 16) as u8
}

/// Computes `count` pixels of one or three channels.
pub fn pixels(
    planes: &[Plane],
    channels: usize,
    is_luma: bool,
    count: usize,
) -> Result<Vec<u8>, Problem> {
    let mut levels = filled(count * channels, 0)?;
    let pixels = levels.chunks_exact_mut(channels).enumerate();
    match planes {
        [only] => pixels.for_each(|(at, pixel)| pixel.fill(only.samples[at])),
        [a, b, c] => pixels.for_each(|(at, pixel)| {
            let samples = [a.samples[at], b.samples[at], c.samples[at]];
            match pixel {
                [one] => *one = grey(samples[0], samples[1], samples[2]),
                all if is_luma => all.copy_from_slice(&rgb(samples[0], samples[1], samples[2])),
                all => all.copy_from_slice(&samples),
            }
        }),
        _ => return Err(Problem::Other),
    }
    Ok(levels)
}
