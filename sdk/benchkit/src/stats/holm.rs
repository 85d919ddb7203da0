//! Many tests at once (Holm, "A Simple Sequentially Rejective Multiple Test Procedure", 1979).

/// The p-values corrected: to reject those below `alpha` keeps the chance of any false rejection below `alpha`.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&a, &b| p[a].total_cmp(&p[b]));
    let mut corrected = vec![0.0; p.len()];
    let mut largest = 0.0f64;
    for (before, &at) in order.iter().enumerate() {
        largest = largest.max(p[at] * (p.len() - before) as f64).min(1.0);
        corrected[at] = largest;
    }
    corrected
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_counts_once_for_each_test_and_none_falls_below_a_smaller_one() {
        let corrected = holm(&[0.01, 0.04, 0.03, 0.005]);
        let expected = [0.03, 0.06, 0.06, 0.02];
        let near =
            corrected.iter().zip(expected).all(|(found, wanted)| (found - wanted).abs() < 1e-12);
        assert!(near, "{corrected:?}");
        assert_eq!(holm(&[0.6, 0.9]), [1.0, 1.0]);
        assert_eq!(holm(&[]), [0.0; 0]);
    }
}
