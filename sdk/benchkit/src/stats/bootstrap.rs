//! Confidence intervals by resampling (percentile bootstrap; Efron and Tibshirani, "An Introduction to the
//! Bootstrap", 1993, chapter 13).
//!
//! Neighbouring samples resemble one another, so that blocks of neighbours are drawn, with the series closed
//! into a ring (Politis and Romano, "A Circular Block-Resampling Procedure", 1992). Samples of several
//! processes are drawn in two stages: processes, then blocks inside each (Kalibera and Jones, "Rigorous
//! Benchmarking in Reasonable Time", 2013).

use super::{
    LEVEL,
    describe::{median_in_place, quantile},
    random::Random,
};

/// How often a series is drawn anew.
pub const RESAMPLES: usize = 2000;

/// Neighbours that are drawn together, for a series of this length.
pub fn block_length(samples: usize) -> usize {
    // The cube root is the order that gives the smallest error (Hall, Horowitz and Jing, 1995). Of a short
    // series too few blocks would be left, and the interval too narrow.
    if samples < 27 { 1 } else { (samples as f64).cbrt().floor() as usize }
}

/// The samples of each process, in the order of measuring.
pub fn by_process(ns: &[f64], processes: &[u32]) -> Vec<Vec<f64>> {
    let mut groups: Vec<(u32, Vec<f64>)> = Vec::new();
    for (&value, &process) in ns.iter().zip(processes) {
        match groups.iter_mut().find(|(known, _)| *known == process) {
            Some((_, group)) => group.push(value),
            None => groups.push((process, vec![value])),
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// Draws a series of the same length as `from`, block by block, behind what `into` holds.
pub fn draw(from: &[f64], block: usize, random: &mut Random, into: &mut Vec<f64>) {
    let end = into.len() + from.len();
    while into.len() < end {
        let start = random.below(from.len());
        let length = block.min(end - into.len());
        into.extend((start..start + length).map(|at| from[at % from.len()]));
    }
}

/// Draws groups, and a series in each.
pub fn draw_groups(groups: &[Vec<f64>], random: &mut Random, into: &mut Vec<f64>) {
    into.clear();
    for at in 0..groups.len() {
        let group = if groups.len() == 1 { at } else { random.below(groups.len()) };
        let from = &groups[group];
        draw(from, block_length(from.len()), random, into);
    }
}

/// The middle `level` of values.
pub fn middle(mut values: Vec<f64>, level: f64) -> [f64; 2] {
    values.sort_unstable_by(f64::total_cmp);
    let tail = (1.0 - level) / 2.0;
    [quantile(&values, tail), quantile(&values, 1.0 - tail)]
}

/// The interval of the median of samples, those of each process apart.
pub fn median_interval(groups: &[Vec<f64>], seed: u64) -> [f64; 2] {
    let groups: Vec<Vec<f64>> = groups.iter().filter(|group| !group.is_empty()).cloned().collect();
    if groups.is_empty() {
        return [f64::NAN; 2];
    }
    let mut random = Random::new(seed);
    let mut drawn = Vec::new();
    let medians = (0..RESAMPLES).map(|_| {
        draw_groups(&groups, &mut random, &mut drawn);
        median_in_place(&mut drawn)
    });
    middle(medians.collect(), LEVEL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draw_holds_blocks_of_neighbours() {
        let series: Vec<f64> = (0..27).map(f64::from).collect();
        let mut drawn = Vec::new();
        draw(&series, 3, &mut Random::new(1), &mut drawn);
        assert_eq!(drawn.len(), series.len());
        for block in drawn.chunks(3) {
            assert!(block.windows(2).all(|pair| (pair[0] + 1.0) % 27.0 == pair[1]), "{block:?}");
        }
    }

    #[test]
    fn neighbours_that_resemble_one_another_widen_the_interval() {
        let mut random = Random::new(2);
        let free: Vec<f64> = (0..216).map(|_| random.normal()).collect();
        let mut level = 0.0;
        let drifting: Vec<f64> = free
            .iter()
            .map(|noise| {
                level = 0.8 * level + 0.6 * noise;
                level
            })
            .collect();
        let width = |series: &[f64]| {
            let [low, high] = median_interval(&[series.to_vec()], 7);
            high - low
        };
        assert!(width(&drifting) > 1.5 * width(&free));
    }

    #[test]
    fn processes_that_differ_widen_the_interval() {
        let near: Vec<Vec<f64>> = (0..6).map(|_| vec![10.0, 10.1, 9.9, 10.0]).collect();
        let far: Vec<Vec<f64>> = (0..6).map(|at| vec![9.0 + 0.4 * f64::from(at); 4]).collect();
        let width = |groups: &[Vec<f64>]| {
            let [low, high] = median_interval(groups, 7);
            high - low
        };
        assert!(width(&near) <= 0.1 && width(&far) > 0.7);
        assert!(median_interval(&[], 1)[0].is_nan());
    }

    #[test]
    fn samples_are_grouped_by_process_in_their_order() {
        let groups = by_process(&[1.0, 2.0, 3.0, 4.0], &[0, 1, 0, 1]);
        assert_eq!(groups, [vec![1.0, 3.0], vec![2.0, 4.0]]);
    }
}
