//! The right factors: the filter at each point, `G g G^T`, as a matrix `[channel, output]` in
//! panels that the tiles of `linalg::gemm` read, one matrix after the other.

use super::transforms::{MOST_POINTS, MOST_TAPS, Transform};
use crate::{
    arch::vectorised,
    kernels::linalg::{
        gemm::{
            blocks::Product,
            ending::Ending,
            isa::Isa,
            right::{Right, packed_len},
        },
        product::{Operand, Target},
    },
};

/// The transformed filters, one for each point of a transformation.
#[derive(Clone, Copy)]
pub struct Factors<'a> {
    isa: &'static Isa<f32>,
    data: &'a [f32],
    size: [usize; 2],
}

/// The number of elements of the factors of a filter with these channels and outputs; `None` if it
/// overflows.
pub fn len<T: Transform>(isa: &Isa<f32>, size: [usize; 2]) -> Option<usize> {
    packed_len(isa, size)?.checked_mul(T::POINTS * T::POINTS)
}

vectorised! {
    /// Transforms a filter `[taps, taps, channels, outputs]` for panels of `width` outputs. It computes
    /// in double, so that each factor is rounded once. Panics where sizes do not agree.
    pub fn transform[T: Transform](filter: &[f32], outputs: usize, width: usize, factors: &mut [f32]) {
        let taps = filter.len() / (T::TAPS * T::TAPS);
        let channels = taps / outputs.max(1);
        let planes = [taps, channels * outputs.next_multiple_of(width)];
        if !outputs.is_multiple_of(width) {
            factors.fill(0.0);
        }
        for panel in (0..outputs).step_by(width) {
            let end = outputs.min(panel + width);
            for first in (panel..end).step_by(LANES) {
                for channel in 0..channels {
                    let from = channel * outputs + first;
                    let to = panel * channels + channel * width + first - panel;
                    transform_lanes::<T>(filter, factors, planes, [from, to, LANES.min(end - first)]);
                }
            }
        }
    }
}

/// The number of outputs whose filters are transformed at once.
const LANES: usize = 16;

type Doubles = [f64; LANES];

#[inline(always)]
fn transform_lanes<T: Transform>(
    filter: &[f32],
    factors: &mut [f32],
    [taps_plane, plane]: [usize; 2],
    [from, to, count]: [usize; 3],
) {
    // The columns of the filter.
    let mut taps = [[[0.0; LANES]; MOST_TAPS]; MOST_TAPS];
    for (j, column) in taps.iter_mut().enumerate().take(T::TAPS) {
        for (i, lanes) in column.iter_mut().enumerate().take(T::TAPS) {
            let tap = i * T::TAPS + j;
            for (lane, &x) in lanes.iter_mut().zip(&filter[tap * taps_plane + from..][..count]) {
                *lane = f64::from(x);
            }
        }
    }
    let mut rows = [[[0.0; LANES]; MOST_TAPS]; MOST_POINTS];
    for (row, g) in rows.iter_mut().zip(&T::FILTER).take(T::POINTS) {
        for (value, column) in row.iter_mut().zip(&taps).take(T::TAPS) {
            *value = weighted::<T>(g, column);
        }
    }
    for (i, row) in rows.iter().enumerate().take(T::POINTS) {
        for (j, g) in T::FILTER.iter().enumerate().take(T::POINTS) {
            let values = weighted::<T>(g, row);
            let factors = &mut factors[(i * T::POINTS + j) * plane + to..][..count];
            for (factor, value) in factors.iter_mut().zip(values) {
                *factor = value as f32;
            }
        }
    }
}

#[inline(always)]
fn weighted<T: Transform>(g: &[f64; MOST_TAPS], x: &[Doubles; MOST_TAPS]) -> Doubles {
    let mut sum = [0.0; LANES];
    for (g, x) in g.iter().zip(x).take(T::TAPS) {
        for (sum, x) in sum.iter_mut().zip(x) {
            *sum += g * x;
        }
    }
    sum
}

impl<'a> Factors<'a> {
    /// Returns the result of [`transform`] for a filter of these channels and outputs and the
    /// panels of an instruction set.
    ///
    /// Panics when the memory does not have the size of such factors.
    pub fn new(isa: &'static Isa<f32>, size: [usize; 2], data: &'a [f32]) -> Factors<'a> {
        let len = packed_len(isa, size).expect("factors fit the address space");
        assert!(data.len().is_multiple_of(len.max(1)), "a factor for each point");
        Factors { isa, data, size }
    }

    /// Computes the product of tiles `[tile, channel]` at a point with the factor of that point, on
    /// the caller's thread.
    ///
    /// # Safety
    /// Nothing else uses the target, `[tile, output]`.
    pub unsafe fn multiply(&self, point: usize, tiles: &Operand<'_, f32>, target: &Target<f32>) {
        let len = packed_len(self.isa, self.size).expect("they are in memory");
        let right = Right::packed(self.isa, self.size, &self.data[point * len..][..len]);
        let product = Product::new(tiles, right, target, Ending::NONE);
        // SAFETY: the caller guarantees that nothing else uses the target.
        unsafe { product.run(0..product.strips(), 0..product.panels()) }
    }
}
