//! The rank test of two samples (Mann and Whitney, "On a Test of Whether one of Two Random Variables is
//! Stochastically Larger than the Other", 1947).

use std::f64::consts::FRAC_1_SQRT_2;

/// Up to this many samples on each side the distribution is counted out, where no two samples are equal.
const EXACT: usize = 20;

/// What a test says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankTest {
    /// How many pairs (one of each side) have the first side larger; equal ones count half.
    pub u: f64,
    /// Two-sided p-value.
    pub p: f64,
}

/// Compares two samples; `None` when one is empty.
pub fn mann_whitney(a: &[f64], b: &[f64]) -> Option<RankTest> {
    if a.is_empty() || b.is_empty() {
        return None;
    }
    let (n1, n2) = (a.len() as f64, b.len() as f64);
    let (rank_sum, tie_term) = ranks(a, b);
    let u = rank_sum - n1 * (n1 + 1.0) / 2.0;
    let larger = u.max(n1 * n2 - u);
    let exact = tie_term == 0.0 && a.len() <= EXACT && b.len() <= EXACT;
    let tail = if exact {
        exact_tail(a.len(), b.len(), larger)
    } else {
        normal_tail(n1, n2, larger, tie_term)
    };
    Some(RankTest { u, p: (2.0 * tail).min(1.0) })
}

/// The sum of the ranks of `a`, equal values sharing theirs; and the sum of `t^3 - t` over groups of `t` equal
/// values.
fn ranks(a: &[f64], b: &[f64]) -> (f64, f64) {
    let first = a.iter().map(|&value| (value, true));
    let mut all: Vec<(f64, bool)> = first.chain(b.iter().map(|&value| (value, false))).collect();
    all.sort_unstable_by(|x, y| x.0.total_cmp(&y.0));
    let (mut sum, mut ties, mut before) = (0.0, 0.0, 0);
    for group in all.chunk_by(|x, y| x.0 == y.0) {
        let size = group.len() as f64;
        let shared = before as f64 + f64::midpoint(1.0, size);
        sum += shared * group.iter().filter(|(_, own)| *own).count() as f64;
        ties += size * size * size - size;
        before += group.len();
    }
    (sum, ties)
}

/// The chance of at least `u`, by the normal distribution with corrections for ties and for continuity.
fn normal_tail(n1: f64, n2: f64, u: f64, ties: f64) -> f64 {
    let n = n1 + n2;
    let variance = n1 * n2 / 12.0 * ((n + 1.0) - ties / (n * (n - 1.0)));
    if variance <= 0.0 {
        return 1.0;
    }
    upper_tail((u - n1 * n2 / 2.0 - 0.5) / variance.sqrt())
}

/// The chance that a normal number is above `z`.
pub fn upper_tail(z: f64) -> f64 {
    0.5 * libm::erfc(z * FRAC_1_SQRT_2)
}

/// The chance of at least `u` where all orders are alike: `count[m][k]` orders of `m` of one side and `n` of
/// the other have the statistic `k`, by the recurrence of the paper.
fn exact_tail(n1: usize, n2: usize, u: f64) -> f64 {
    let limit = n1 * n2;
    // `orders[m]` for the number of the other side that the loop has reached.
    let mut orders: Vec<Vec<f64>> = vec![vec![0.0; limit + 1]; n1 + 1];
    for row in &mut orders {
        row[0] = 1.0;
    }
    for other in 1..=n2 {
        let mut next = vec![vec![0.0; limit + 1]; n1 + 1];
        next[0][0] = 1.0;
        for own in 1..=n1 {
            for k in 0..=own * other {
                // The largest value is of this side and exceeds all `other`, or it is of the other side.
                let of_own = if k >= other { next[own - 1][k - other] } else { 0.0 };
                next[own][k] = of_own + orders[own][k];
            }
        }
        orders = next;
    }
    let counts = &orders[n1];
    let total: f64 = counts.iter().sum();
    counts[(u.ceil() as usize).min(limit)..].iter().sum::<f64>() / total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_p_is_that_of_two_orders_among_all() {
        // Two of the binomial(6, 3) = 20, of the binomial(18, 9) = 48,620.
        let p = |n: u32| {
            let low: Vec<f64> = (0..n).map(f64::from).collect();
            let high: Vec<f64> = (n..2 * n).map(f64::from).collect();
            mann_whitney(&low, &high).unwrap()
        };
        assert!((p(3).p - 0.1).abs() < 1e-12 && p(3).u == 0.0);
        assert!((p(9).p - 2.0 / 48_620.0).abs() < 1e-15);
    }

    #[test]
    fn equal_samples_show_nothing() {
        assert_eq!(mann_whitney(&[1.0; 30], &[1.0; 30]).unwrap().p, 1.0);
        assert_eq!(mann_whitney(&[], &[1.0]), None);
    }

    #[test]
    fn sides_may_be_swapped() {
        let (a, b) = ([1.0, 4.0, 2.5, 9.0], [3.0, 8.0, 7.0]);
        let (one, other) = (mann_whitney(&a, &b).unwrap(), mann_whitney(&b, &a).unwrap());
        assert_eq!(one.u + other.u, 12.0);
        assert!((one.p - other.p).abs() < 1e-15);
    }
}
