//! The right factors: the filter at each point, `G g G^T`, as a matrix `[channel, output]` that is cut into panels of
//! neighbouring outputs, `[point, panel, channel, output]`.
//!
//! This is all that the blocks know of products, so that another form of constant factors can take its place.

use super::transforms::{MOST_POINTS, TAPS, Transform};
use crate::{
    arch::vectorised,
    kernels::linalg::product::{Operand, Target, product},
};

/// Outputs of a panel: four vectors of AVX-512, as the library's tiles have them.
const PANEL: usize = 64;
/// Tiles of a product: the library would pack the factor for more, which is packed as it is.
const ROWS: usize = 48;
/// Tiles that the library multiplies at once.
const ROWS_STEP: usize = 6;

/// Filters at the points of a transformation.
#[derive(Clone, Copy)]
pub struct Factors<'a> {
    data: &'a [f32],
    channels: usize,
    outputs: usize,
}

/// Elements of the factors of a filter of these channels; `None` where they are too many to count.
pub fn len<T: Transform>(channels: usize, outputs: usize) -> Option<usize> {
    channels.checked_mul(outputs)?.checked_mul(T::POINTS * T::POINTS)
}

vectorised! {
    /// Transforms a filter `[3, 3, channels, outputs]`: in double, so that each factor is rounded once. Panics where
    /// sizes do not agree.
    pub fn transform[T: Transform](filter: &[f32], outputs: usize, factors: &mut [f32]) {
        let plane = filter.len() / (TAPS * TAPS);
        let channels = plane / outputs.max(1);
        for first in (0..outputs).step_by(LANES) {
            let panel = first / PANEL * PANEL;
            let width = PANEL.min(outputs - panel);
            let count = LANES.min(outputs - first);
            for channel in 0..channels {
                let from = channel * outputs + first;
                let to = panel * channels + channel * width + first - panel;
                transform_lanes::<T>(filter, factors, plane, [from, to, count]);
            }
        }
    }
}

/// Outputs whose filters are transformed at once.
const LANES: usize = 16;

type Doubles = [f64; LANES];

#[inline(always)]
fn transform_lanes<T: Transform>(
    filter: &[f32],
    factors: &mut [f32],
    plane: usize,
    [from, to, count]: [usize; 3],
) {
    let mut taps = [[[0.0; LANES]; TAPS]; TAPS];
    for (tap, lanes) in taps.iter_mut().flatten().enumerate() {
        for (lane, &x) in lanes.iter_mut().zip(&filter[tap * plane + from..][..count]) {
            *lane = f64::from(x);
        }
    }
    let mut rows = [[[0.0; LANES]; TAPS]; MOST_POINTS];
    for (row, g) in rows.iter_mut().zip(&T::FILTER).take(T::POINTS) {
        for (j, value) in row.iter_mut().enumerate() {
            *value = weighted(g, [&taps[0][j], &taps[1][j], &taps[2][j]]);
        }
    }
    for (i, [r0, r1, r2]) in rows.iter().enumerate().take(T::POINTS) {
        for (j, g) in T::FILTER.iter().enumerate().take(T::POINTS) {
            let values = weighted(g, [r0, r1, r2]);
            let factors = &mut factors[(i * T::POINTS + j) * plane + to..][..count];
            for (factor, value) in factors.iter_mut().zip(values) {
                *factor = value as f32;
            }
        }
    }
}

#[inline(always)]
fn weighted(g: &[f64; TAPS], x: [&Doubles; TAPS]) -> Doubles {
    let mut sum = [0.0; LANES];
    for (lane, sum) in sum.iter_mut().enumerate() {
        *sum = g[0] * x[0][lane] + g[1] * x[1][lane] + g[2] * x[2][lane];
    }
    sum
}

impl<'a> Factors<'a> {
    /// What [`transform`] made of a filter of these channels.
    pub fn new(data: &'a [f32], channels: usize, outputs: usize) -> Factors<'a> {
        Factors { data, channels, outputs }
    }

    /// The product of tiles `[tile, channel]` at a point with the factor of that point.
    ///
    /// # Safety
    /// The target is that product's: `[tile, output]`, whose elements nobody else uses.
    pub unsafe fn multiply(&self, point: usize, tiles: &[f32], target: *mut f32) {
        let [channels, outputs] = [self.channels, self.outputs];
        let plane = channels * outputs;
        let factor = &self.data[point * plane..][..plane];
        let count = tiles.len() / channels.max(1);
        let chunk = count.div_ceil(count.div_ceil(ROWS).max(1)).next_multiple_of(ROWS_STEP);
        for panel in (0..outputs).step_by(PANEL) {
            let width = PANEL.min(outputs - panel);
            let right = Operand::dense(&factor[panel * channels..], channels, width);
            for first in (0..count).step_by(chunk) {
                let rows = chunk.min(count - first);
                let left = Operand::dense(&tiles[first * channels..], rows, channels);
                let to = target.wrapping_add(first * outputs + panel);
                // SAFETY: inside the target.
                product(left, right, unsafe { Target::new(to, rows, width, [outputs, 1]) });
            }
        }
    }
}
