//! By which factor two samples differ (Hodges and Lehmann, "Estimates of Location Based on Rank Tests", 1963).
//!
//! The estimate is made of logarithms, so that it is a ratio, and `ratio(a, b)` is the inverse of
//! `ratio(b, a)`. Samples that were taken together are compared pair by pair: what slows the machine for a while
//! slows both of a pair. The estimate looks at all pairs of its input; long series are first cut into
//! [`BLOCKS`] blocks of neighbours, of which the medians count.

use super::{
    LEVEL,
    bootstrap::{RESAMPLES, block_length, draw, middle},
    describe::median_in_place,
    random::Random,
};

/// Values that an estimate is made of.
pub const BLOCKS: usize = 48;

/// A ratio with its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    /// The estimate.
    pub ratio: f64,
    /// The ends of its 95 % confidence interval.
    pub interval: [f64; 2],
}

impl Ratio {
    fn of_logs(estimate: f64, interval: [f64; 2]) -> Ratio {
        Ratio { ratio: estimate.exp(), interval: interval.map(f64::exp) }
    }

    /// Whether the interval does not hold one, and the estimate is further from one than `threshold`.
    pub fn differs(&self, threshold: f64) -> bool {
        let excludes = self.interval[0] > 1.0 || self.interval[1] < 1.0;
        excludes && self.ratio.ln().abs() > (1.0 + threshold).ln()
    }
}

/// The medians of at most `limit` blocks of neighbours; the values themselves if there are at most that many.
pub fn blocks(values: &[f64], limit: usize) -> Vec<f64> {
    let count = limit.min(values.len());
    let edge = |at: usize| at * values.len() / count.max(1);
    (0..count).map(|at| median_in_place(&mut values[edge(at)..edge(at + 1)].to_vec())).collect()
}

/// The median of the means of all pairs, each value with itself included.
pub fn one_sample(values: &[f64], pairs: &mut Vec<f64>) -> f64 {
    pairs.clear();
    for (at, a) in values.iter().enumerate() {
        pairs.extend(values[at..].iter().map(|b| f64::midpoint(*a, *b)));
    }
    median_in_place(pairs)
}

/// The median of the differences of all pairs, `a` less `b`.
pub fn two_samples(a: &[f64], b: &[f64], pairs: &mut Vec<f64>) -> f64 {
    pairs.clear();
    for a in a {
        pairs.extend(b.iter().map(|b| a - b));
    }
    median_in_place(pairs)
}

fn logs(values: &[f64]) -> Vec<f64> {
    values.iter().map(|value| value.ln()).collect()
}

/// By which factor `a` is larger than `b`, where `a[i]` and `b[i]` were taken together; `None` without samples.
pub fn paired(a: &[f64], b: &[f64], seed: u64) -> Option<Ratio> {
    let ratios: Vec<f64> = a.iter().zip(b).map(|(a, b)| (a / b).ln()).collect();
    let ratios = blocks(&ratios, BLOCKS);
    if ratios.is_empty() {
        return None;
    }
    let mut pairs = Vec::new();
    let estimate = one_sample(&ratios, &mut pairs);
    let (mut random, mut drawn) = (Random::new(seed), Vec::new());
    let block = block_length(ratios.len());
    let estimates = (0..RESAMPLES).map(|_| {
        drawn.clear();
        draw(&ratios, block, &mut random, &mut drawn);
        one_sample(&drawn, &mut pairs)
    });
    Some(Ratio::of_logs(estimate, middle(estimates.collect(), LEVEL)))
}

/// By which factor `a` is larger than `b`, if the two were sampled separately; `None` when one has no samples.
pub fn unpaired(a: &[f64], b: &[f64], seed: u64) -> Option<Ratio> {
    let (a, b) = (logs(&blocks(a, BLOCKS)), logs(&blocks(b, BLOCKS)));
    if a.is_empty() || b.is_empty() {
        return None;
    }
    let mut pairs = Vec::new();
    let estimate = two_samples(&a, &b, &mut pairs);
    let mut random = Random::new(seed);
    let (mut drawn_a, mut drawn_b) = (Vec::new(), Vec::new());
    let estimates = (0..RESAMPLES).map(|_| {
        drawn_a.clear();
        drawn_b.clear();
        draw(&a, block_length(a.len()), &mut random, &mut drawn_a);
        draw(&b, block_length(b.len()), &mut random, &mut drawn_b);
        two_samples(&drawn_a, &drawn_b, &mut pairs)
    });
    Some(Ratio::of_logs(estimate, middle(estimates.collect(), LEVEL)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noisy(seed: u64, count: usize, level: f64) -> Vec<f64> {
        let mut random = Random::new(seed);
        (0..count).map(|_| level * (1.0 + 0.02 * random.normal().abs())).collect()
    }

    #[test]
    fn a_factor_is_found_and_inverted_when_sides_are_swapped() {
        let (slow, fast) = (noisy(1, 200, 130.0), noisy(2, 200, 100.0));
        let [there, back] = [paired(&slow, &fast, 3), paired(&fast, &slow, 3)].map(Option::unwrap);
        assert!((there.ratio - 1.3).abs() < 0.01, "{there:?}");
        assert!((there.ratio * back.ratio - 1.0).abs() < 1e-9);
        let apart = unpaired(&slow, &fast, 3).unwrap();
        assert!((apart.ratio - 1.3).abs() < 0.01 && apart.differs(0.05), "{apart:?}");
    }

    #[test]
    fn what_slows_both_of_a_pair_does_not_show() {
        let slowed = |values: Vec<f64>| -> Vec<f64> {
            values
                .into_iter()
                .enumerate()
                .map(|(at, v)| if at % 10 < 4 { 1.7 * v } else { v })
                .collect()
        };
        let (a, b) = (slowed(noisy(1, 100, 100.0)), slowed(noisy(2, 100, 100.0)));
        let ratio = paired(&a, &b, 3).unwrap();
        assert!(!ratio.differs(0.02) && ratio.interval[1] - ratio.interval[0] < 0.02, "{ratio:?}");
    }

    #[test]
    fn a_difference_below_the_threshold_is_none() {
        let ratio = Ratio { ratio: 1.015, interval: [1.01, 1.02] };
        assert!(ratio.differs(0.01) && !ratio.differs(0.02));
        assert!(!Ratio { ratio: 1.5, interval: [0.9, 2.0] }.differs(0.02));
        assert!(Ratio { ratio: 0.8, interval: [0.7, 0.9] }.differs(0.02));
    }

    #[test]
    fn long_series_are_cut_into_blocks() {
        assert_eq!(blocks(&[5.0, 1.0, 2.0], 4), [5.0, 1.0, 2.0]);
        assert_eq!(blocks(&[1.0, 2.0, 3.0, 9.0, 8.0, 7.0], 2), [2.0, 8.0]);
        assert_eq!(blocks(&[], 4), [0.0; 0]);
        assert!(paired(&[], &[], 1).is_none() && unpaired(&[1.0], &[], 1).is_none());
    }
}
