//! Histograms of values, from which ranges are chosen.

/// The number of bins of a histogram.
pub(super) const BINS: usize = 2048;

/// The counts of values in bins of equal width, from `start`.
#[derive(Debug, Clone)]
pub(super) struct Histogram {
    pub start: f64,
    pub width: f64,
    pub counts: Vec<u64>,
}

impl Histogram {
    pub fn new(start: f32, end: f32) -> Histogram {
        let width = (f64::from(end) - f64::from(start)) / BINS as f64;
        Histogram { start: start.into(), width, counts: vec![0; BINS] }
    }

    pub fn take(&mut self, value: f32) {
        let at = (f64::from(value) - self.start) / self.width;
        // If all values are equal, the width is 0 and `at` is NaN, which becomes bin 0.
        self.counts[(at as usize).min(BINS - 1)] += 1;
    }

    /// The edges that leave out `cut` values at each end.
    pub fn between(&self, cut: f64) -> [f64; 2] {
        let first = |counts: &mut dyn Iterator<Item = &u64>| {
            let mut sum = 0;
            counts
                .take_while(|count| {
                    sum += **count;
                    sum as f64 <= cut
                })
                .count()
        };
        let (low, high) = (first(&mut self.counts.iter()), first(&mut self.counts.iter().rev()));
        let edge = |at: usize| self.start + at as f64 * self.width;
        [edge(low), edge(BINS - high.min(BINS))]
    }
}
