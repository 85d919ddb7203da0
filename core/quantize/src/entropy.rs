//! The range that loses least by relative entropy, as TensorRT chooses it (S. Migacz, "8-bit inference with TensorRT",
//! 2017): of all ranges from 0 on, the one whose histogram is least changed by being brought to few levels, with what
//! is cut off counted at its end.

use super::histogram::{BINS, Histogram};

/// Bins from one range that is tried to the next.
const STEP: usize = 16;

/// What a bin that levels leave empty counts for.
const NEXT_TO_NOTHING: f64 = 1e-9;

/// The end of the best range for a histogram of absolute values. Of numbers of both signs, half the levels are left for
/// each.
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

/// The relative entropy of the first `end` bins, which take what lies beyond, against the same at so many levels.
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
            let q = if inside[at] > 0 { mean / kept } else { NEXT_TO_NOTHING };
            if p > 0.0 {
                sum += p * (p / q).ln();
            }
        }
    }
    sum
}
