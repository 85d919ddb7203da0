//! Quantiles, spread, outliers.

use super::bootstrap;
use crate::record::Summary;

/// A sorted copy.
pub fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

/// The quantile `q` of sorted values, between neighbours by a straight line (type 7 of Hyndman and Fan,
/// "Sample Quantiles in Statistical Packages", 1996; NumPy's default). NaN without values.
pub fn quantile(sorted: &[f64], q: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let place = q.clamp(0.0, 1.0) * last as f64;
    let below = place.floor() as usize;
    let (low, high) = (sorted[below], sorted[(below + 1).min(last)]);
    low + (high - low) * (place - below as f64)
}

/// The median; NaN without values.
pub fn median(values: &[f64]) -> f64 {
    median_in_place(&mut values.to_vec())
}

/// The median of values that may be reordered.
pub fn median_in_place(values: &mut [f64]) -> f64 {
    let middle = values.len() / 2;
    if values.is_empty() {
        return f64::NAN;
    }
    let odd = values.len() % 2 == 1;
    let (below, upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    if odd {
        return *upper;
    }
    let lower = below.iter().copied().max_by(f64::total_cmp).unwrap_or(*upper);
    f64::midpoint(lower, *upper)
}

/// The median distance from the median.
pub fn mad(values: &[f64]) -> f64 {
    let middle = median(values);
    median_in_place(&mut values.iter().map(|value| (value - middle).abs()).collect::<Vec<_>>())
}

/// Samples outside Tukey's fences: those 1.5 to 3 interquartile ranges from the quartiles, and those further
/// out (Tukey, "Exploratory Data Analysis", 1977).
pub fn outliers(sorted: &[f64]) -> (u32, u32) {
    let (first, third) = (quantile(sorted, 0.25), quantile(sorted, 0.75));
    let beyond = |ranges: f64| {
        let reach = ranges * (third - first);
        let out = |value: &&f64| **value < first - reach || **value > third + reach;
        sorted.iter().filter(out).count() as u32
    };
    let severe = beyond(3.0);
    (beyond(1.5) - severe, severe)
}

/// What is said of samples that processes took in this order.
pub fn summary(ns: &[f64], processes: &[u32], seed: u64, converged: bool) -> Summary {
    let sorted = sorted(ns);
    let (mild_outliers, severe_outliers) = outliers(&sorted);
    Summary {
        median: quantile(&sorted, 0.5),
        interval: bootstrap::median_interval(&bootstrap::by_process(ns, processes), seed),
        mad: mad(ns),
        min: quantile(&sorted, 0.0),
        max: quantile(&sorted, 1.0),
        p5: quantile(&sorted, 0.05),
        p95: quantile(&sorted, 0.95),
        mild_outliers,
        severe_outliers,
        converged,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_the_middle_or_the_mean_of_the_two_there() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(&[7.0]), 7.0);
        assert!(median(&[]).is_nan());
        assert_eq!(mad(&[1.0, 2.0, 3.0, 4.0, 100.0]), 1.0);
    }

    #[test]
    fn quantiles_lie_on_the_line_between_neighbours() {
        let values = [10.0, 20.0, 30.0, 40.0];
        let found = [0.0, 0.25, 0.5, 0.9, 1.0].map(|q| quantile(&values, q));
        assert_eq!(found, [10.0, 17.5, 25.0, 37.0, 40.0]);
        assert!(quantile(&[], 0.5).is_nan());
    }

    #[test]
    fn outliers_are_counted_by_how_far_they_are_out() {
        // Quartiles 2 and 4: fences at -1 and 7, at -4 and 10.
        let values = sorted(&[1.0, 2.0, 3.0, 4.0, 8.0]);
        assert_eq!((quantile(&values, 0.25), quantile(&values, 0.75)), (2.0, 4.0));
        assert_eq!(outliers(&values), (1, 0));
        assert_eq!(outliers(&sorted(&[1.0, 2.0, 3.0, 4.0, 11.0])), (0, 1));
        assert_eq!(outliers(&[5.0; 9]), (0, 0));
    }

    #[test]
    fn a_summary_holds_what_its_parts_say() {
        let ns: Vec<f64> = (0..40).map(|at| 100.0 + f64::from(at % 5)).collect();
        let said = summary(&ns, &[0; 40], 1, true);
        assert_eq!((said.median, said.min, said.max, said.mad), (102.0, 100.0, 104.0, 1.0));
        assert!(said.interval[0] <= said.median && said.median <= said.interval[1]);
        assert!(said.converged && said.mild_outliers == 0);
    }
}
