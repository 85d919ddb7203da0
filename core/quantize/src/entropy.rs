//! The range with the least relative entropy, as TensorRT chooses it (S. Migacz, "8-bit inference
//! with TensorRT", 2017). Of all ranges that start at 0, it is the one whose histogram changes
//! least when it is reduced to few levels, with the values beyond its end counted in the last bin.

use super::histogram::{BINS, Histogram};

/// The number of bins from one candidate range to the next.
const STEP: usize = 16;

/// The weight of a bin that the levels leave empty.
const EMPTY_BIN_WEIGHT: f64 = 1e-9;

/// The end of the best range for a histogram of absolute values. If there are values of both signs,
/// each sign has half the levels.
pub(super) fn threshold(histogram: &Histogram, signed: bool) -> f64 {
    let levels = if signed { 128 } else { 256 };
    let mut best = (f64::INFINITY, BINS);
    for end in (levels..=BINS).step_by(STEP) {
        let divergence = divergence(&histogram.counts, end, levels);
        if divergence < best.0 {
            best = (divergence, end);
        }
    }
    histogram.start + best.1 as f64 * histogram.width
}

/// The relative entropy of the first `end` bins, with the values beyond in the last one, against
/// the same bins at `levels` levels.
fn divergence(counts: &[u64], end: usize, levels: usize) -> f64 {
    let (inside, beyond) = counts.split_at(end);
    let beyond = beyond.iter().sum::<u64>() as f64;
    let kept = inside.iter().sum::<u64>() as f64;
    if kept == 0.0 {
        return f64::INFINITY;
    }
    let (mut sum, total) = (0.0, kept + beyond);
    for level in 0..levels {
        let bins = level * end / levels..(level + 1) * end / levels;
        let filled = inside[bins.clone()].iter().filter(|count| **count > 0).count();
        let mean = inside[bins.clone()].iter().sum::<u64>() as f64 / filled.max(1) as f64;
        for at in bins {
            let cut = if at + 1 == end { beyond } else { 0.0 };
            let p = (inside[at] as f64 + cut) / total;
            let q = if inside[at] > 0 { mean / kept } else { EMPTY_BIN_WEIGHT };
            if p > 0.0 {
                sum += p * (p / q).ln();
            }
        }
    }
    sum
}
