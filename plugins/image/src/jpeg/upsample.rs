//! Expands planes with fewer samples to the size of the image.

use super::{
    Options, Problem, filled,
    header::{Component, Frame},
    transform::{Kind, Quantiser},
};

/// Samples in row order.
pub struct Plane {
    pub width: usize,
    pub height: usize,
    pub samples: Vec<u8>,
    /// Whether rows also depend on the row below.
    pub looks_down: bool,
}

impl Plane {
    fn row(&self, at: usize) -> &[u8] {
        &self.samples[at * self.width..][..self.width]
    }
}

/// Number of levels in a row of a component's block: larger than that of the plane with the most
/// samples, if that avoids upsampling.
fn block_size(frame: &Frame, one: &Component, least: usize) -> usize {
    let mut size = least;
    let [across, down] = frame.most;
    while size < 8
        && (across * least).is_multiple_of(one.across * size * 2)
        && (down * least).is_multiple_of(one.down * size * 2)
    {
        size *= 2;
    }
    size
}

/// A component at the size of the image.
pub fn plane(
    frame: &Frame,
    at: usize,
    options: Options,
    width: usize,
    height: usize,
) -> Result<Plane, Problem> {
    let (one, least) = (&frame.components[at], 8 / options.ratio);
    let size = block_size(frame, one, least);
    let kind = match size {
        8 if options.accurate => Kind::Accurate,
        8 => Kind::Fast,
        size => Kind::Reduced(size),
    };
    let own = stored(frame, one, kind)?;
    let [most_across, most_down] = frame.most;
    let (across, down) = (one.across * size / least, one.down * size / least);
    let smooth = options.fancy && least > 1;
    if most_across % across != 0 || most_down % down != 0 {
        return Err(Problem::Other);
    }
    // In a truncated file, the row below the last one, which smoothing needs, does not exist.
    let looks_down = smooth && most_down == 2 * down && (most_across == across || own.width > 2);
    let samples = match (most_across / across, most_down / down) {
        (2, 1) if smooth && own.width > 2 => made(width, height, |y, row| wide(own.row(y), row)),
        (1, 2) if smooth => made(width, height, |y, row| {
            let (near, far) = (own.row(y / 2), own.row(other(&own, y)));
            let round = 1 + (y % 2) as u16;
            for ((level, near), far) in row.iter_mut().zip(near).zip(far) {
                *level = ((3 * u16::from(*near) + u16::from(*far) + round) >> 2) as u8;
            }
        }),
        (2, 2) if smooth && own.width > 2 => {
            made(width, height, |y, row| both_ways(own.row(y / 2), own.row(other(&own, y)), row))
        }
        (x, y) => made(width, height, |at, row| {
            let own = own.row(at / y);
            row.iter_mut().enumerate().for_each(|(at, level)| *level = own[at / x]);
        }),
    }?;
    Ok(Plane { width, height, samples, looks_down })
}

fn made(
    width: usize,
    height: usize,
    mut row: impl FnMut(usize, &mut [u8]),
) -> Result<Vec<u8>, Problem> {
    let mut samples = filled(width * height, 0)?;
    samples.chunks_exact_mut(width).enumerate().for_each(|(at, levels)| row(at, levels));
    Ok(samples)
}

/// The second nearest row of samples to a row of the doubled image.
fn other(own: &Plane, y: usize) -> usize {
    if y.is_multiple_of(2) { (y / 2).saturating_sub(1) } else { (y / 2 + 1).min(own.height - 1) }
}

/// Doubles the samples: three fourths of the nearest one, and a fourth of the next.
fn wide(own: &[u8], row: &mut [u8]) {
    let sample = |at: usize| u16::from(own[at.min(own.len() - 1)]);
    for (x, level) in row.iter_mut().enumerate() {
        let (at, near) = (x / 2, 3 * sample(x / 2));
        *level = if x % 2 == 0 {
            (near + sample(at.saturating_sub(1)) + 1) >> 2
        } else {
            (near + sample(at + 1) + 2) >> 2
        } as u8;
    }
}

/// Doubles the samples of two rows, with one rounding.
fn both_ways(near: &[u8], far: &[u8], row: &mut [u8]) {
    let sample = |at: usize| {
        let at = at.min(near.len() - 1);
        3 * u16::from(near[at]) + u16::from(far[at])
    };
    for (x, level) in row.iter_mut().enumerate() {
        let (at, own) = (x / 2, 3 * sample(x / 2));
        *level = if x % 2 == 0 {
            (own + sample(at.saturating_sub(1)) + 8) >> 4
        } else {
            (own + sample(at + 1) + 7) >> 4
        } as u8;
    }
}

/// The samples of a component in the file.
fn stored(frame: &Frame, one: &Component, kind: Kind) -> Result<Plane, Problem> {
    let table = frame.quantisers[one.table].as_ref();
    let quantiser = Quantiser::new(table.ok_or("a plane whose quantisers are not there")?, kind);
    let size = kind.size();
    let own =
        |whole: usize, samples: usize, most: usize| (whole * samples * size).div_ceil(most * 8);
    let width = own(frame.width, one.across, frame.most[0]);
    let height = own(frame.height, one.down, frame.most[1]);
    let mut samples = filled(width * height, 0)?;
    for y in 0..height.div_ceil(size) {
        for x in 0..width.div_ceil(size) {
            let first = (y * one.blocks[0] + x) * 64;
            let Some(block) = one.coefficients[first..].first_chunk() else { continue };
            let levels = quantiser.levels(block);
            let columns = size.min(width - x * size);
            for (row, levels) in levels.iter().enumerate().take(size.min(height - y * size)) {
                let at = (y * size + row) * width + x * size;
                samples[at..at + columns].copy_from_slice(&levels[..columns]);
            }
        }
    }
    Ok(Plane { width, height, samples, looks_down: false })
}
