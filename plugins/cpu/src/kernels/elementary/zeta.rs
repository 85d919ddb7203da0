//! Hurwitz's zeta function and the polygamma functions of floats, many at a time, in double.
//!
//! The sum is that of `tenon_reference::special`: nine terms after the first, then the correction of
//! Euler and Maclaurin. Each term is a loop over all elements that vectorises. The relative error is
//! below 1e-10.

use super::double::{exp, ln};
use crate::{arch::vectorised, kernels::elementwise::blocks::BLOCK};
use tenon_reference::special;

type Lanes = [f64; BLOCK];

/// Terms after the first that are summed one by one.
const TERMS: usize = 9;
/// A sum to which the rest adds less than this is complete.
const REST: f64 = 1e-17;

/// `(2k)! / B(2k)` for `k` from 1: how the correction's terms are divided.
const DIVISORS: [f64; 12] = [
    12.0,
    -720.0,
    30_240.0,
    -1_209_600.0,
    47_900_160.0,
    -1.892_437_580_318_379_6e9,
    7.472_424_96e10,
    -2.950_130_727_918_164e12,
    1.164_678_281_435_006_7e14,
    -4.597_978_722_407_473e15,
    1.815_210_540_194_354_7e17,
    -7.166_165_256_175_667e18,
];

vectorised! {
    /// The sums of `(q + k)^-x` over all `k` from 0, of finite arguments: an `x` above 1 and a
    /// positive `q`.
    fn ordinary[](x: &Lanes, q: &Lanes, sums: &mut Lanes) {
        let (mut terms, mut last) = ([0.0; BLOCK], [0.0; BLOCK]);
        sums.fill(0.0);
        for k in 0..=TERMS {
            let numbers = terms.iter_mut().zip(&mut last).zip(x.iter().zip(q));
            for (sum, ((term, last), (&x, &q))) in sums.iter_mut().zip(numbers) {
                *last = q + k as f64;
                *term = exp::<I>(-x * ln::<I>(*last));
                *sum += *term;
            }
        }
        let mut rests = [0.0; BLOCK];
        for ((rest, term), (x, last)) in rests.iter_mut().zip(&terms).zip(x.iter().zip(&last)) {
            *rest = term * last / (x - 1.0) - 0.5 * term;
        }
        // The terms of the correction without their divisors.
        let mut parts = [0.0; BLOCK];
        for ((part, term), (x, last)) in parts.iter_mut().zip(&terms).zip(x.iter().zip(&last)) {
            *part = term * x / last;
        }
        for (k, divisor) in DIVISORS.into_iter().enumerate() {
            let k = (2 * k) as f64;
            let numbers = parts.iter_mut().zip(x.iter().zip(&last));
            for (rest, (part, (x, last))) in rests.iter_mut().zip(numbers) {
                *rest += *part / divisor;
                *part *= (x + k + 1.0) * (x + k + 2.0) / (last * last);
            }
        }
        // Where the terms vanish the correction may be no number.
        for ((sum, rest), (term, last)) in sums.iter_mut().zip(&rests).zip(terms.iter().zip(&last)) {
            let matters = term * last > *sum * REST;
            *sum = if matters { *sum + rest } else { *sum };
        }
    }
}

/// Beyond this the coefficients of the correction overflow, and the function gives NaN.
const MOST: f64 = 1e12;

/// Whether [`ordinary`] accepts the arguments.
fn is_ordinary(x: f64, q: f64) -> bool {
    x > 1.0 && x < MOST && q > 0.0 && q < f64::INFINITY
}

/// The sums for at most [`BLOCK`] pairs; where they are not [`is_ordinary`], some number.
fn sums(pairs: impl Iterator<Item = (f64, f64)>) -> Lanes {
    let (mut wide_x, mut wide_q, mut sums) = ([2.0; BLOCK], [1.0; BLOCK], [0.0; BLOCK]);
    for ((to_x, to_q), (x, q)) in wide_x.iter_mut().zip(&mut wide_q).zip(pairs) {
        if is_ordinary(x, q) {
            (*to_x, *to_q) = (x, q);
        }
    }
    ordinary(&wide_x, &wide_q, &mut sums);
    sums
}

/// The zeta function of at most [`BLOCK`] pairs.
///
/// Panics if there are more.
pub fn zeta(x: &[f32], q: &[f32], y: &mut [f32]) {
    assert!(x.len() <= BLOCK && q.len() <= BLOCK, "at most a block");
    let pairs = || x.iter().zip(q).map(|(&x, &q)| (f64::from(x), f64::from(q)));
    for ((y, (x, q)), sum) in y.iter_mut().zip(pairs()).zip(sums(pairs())) {
        *y = if is_ordinary(x, q) { sum } else { special::zeta(x, q) } as f32;
    }
}

/// The greatest order whose factorial is a number.
const GREATEST: usize = 170;

/// Below this the sum is near the least numbers, which have few digits.
const LEAST: f64 = 1e-290;

/// Factorials.
const FACTORIALS: [f64; GREATEST + 1] = {
    let mut all = [1.0; GREATEST + 1];
    let mut n = 1;
    while n <= GREATEST {
        all[n] = all[n - 1] * n as f64;
        n += 1;
    }
    all
};

/// Digamma's derivative of order `n` at `x`, of at most [`BLOCK`] pairs.
///
/// Panics if there are more.
pub fn polygamma(n: &[f32], x: &[f32], y: &mut [f32]) {
    assert!(n.len() <= BLOCK && x.len() <= BLOCK, "at most a block");
    let pairs = || n.iter().zip(x).map(|(&n, &x)| (f64::from(n), f64::from(x)));
    let orders = || n.iter().map(|n| (*n as usize).min(GREATEST));
    let is_ordinary = |n: f64, x: f64| n >= 1.0 && n <= GREATEST as f64 && is_ordinary(n + 1.0, x);
    // From 2^23 on all floats are whole.
    let is_fraction = |n: f32| n.abs() < 8_388_608.0 && n as i32 as f32 != n;
    if n.iter().all(|&n| is_fraction(n)) {
        return y.fill(f32::NAN);
    }
    let sums = sums(pairs().map(|(n, x)| (n + 1.0, x)));
    for ((y, (n, x)), (order, sum)) in y.iter_mut().zip(pairs()).zip(orders().zip(sums)) {
        let sign = if order.is_multiple_of(2) { -1.0 } else { 1.0 };
        let usual = is_ordinary(n, x) && n == order as f64 && sum > LEAST;
        *y = if usual { sign * FACTORIALS[order] * sum } else { special::polygamma(n, x) } as f32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Block = fn(&[f32], &[f32], &mut [f32]);

    fn check(found: Block, exact: fn(f64, f64) -> f64, pairs: &[(f32, f32)]) {
        for pairs in pairs.chunks(BLOCK) {
            let (x, q): (Vec<f32>, Vec<f32>) = pairs.iter().copied().unzip();
            let mut all = vec![0.0; x.len()];
            found(&x, &q, &mut all);
            for ((&x, &q), found) in x.iter().zip(&q).zip(all) {
                let expected = exact(x.into(), q.into());
                let near = (f64::from(found) - expected).abs() <= 6.1e-8 * expected.abs() + 1e-38;
                let same = near || found == expected as f32 || found.is_nan() && expected.is_nan();
                assert!(same, "{x} and {q}: {found} for {expected}");
            }
        }
    }

    #[test]
    fn sums_are_those_of_the_reference_to_half_an_ulp() {
        let steps = |from: f64, to: f64| {
            (0..=60).map(move |i| 10f64.powf(from + (to - from) * f64::from(i) / 60.0))
        };
        let pairs: Vec<(f32, f32)> = steps(-6.0, 3.0)
            .flat_map(|x| steps(-30.0, 20.0).map(move |q| ((1.0 + x) as f32, q as f32)))
            .chain(
                steps(-1.0, 1.0)
                    .flat_map(|x| steps(-1.0, 2.0).map(move |q| ((1.0 + x) as f32, q as f32))),
            )
            .collect();
        check(zeta, special::zeta, &pairs);
        let pairs: Vec<(f32, f32)> =
            (0..180).flat_map(|n| steps(-3.0, 4.0).map(move |x| (n as f32, x as f32))).collect();
        check(polygamma, special::polygamma, &pairs);
    }

    #[test]
    fn special_arguments_among_ordinary_ones_have_their_values() {
        let numbers = [
            0.0,
            -0.0,
            1.0,
            2.0,
            2.5,
            -0.5,
            -1.0,
            -3.0,
            170.0,
            171.0,
            1e30,
            f32::MIN_POSITIVE,
            f32::MAX,
            f32::INFINITY,
            f32::NEG_INFINITY,
            f32::NAN,
        ];
        // Terms of negative numbers are summed one by one: not of large ones.
        let pairs: Vec<(f32, f32)> =
            numbers.iter().flat_map(|&x| numbers.iter().map(move |&q| (x, q))).collect();
        for pairs in [&pairs[..], &pairs[..1], &[(0.5, 1.0), (1.5, 2.0)]] {
            check(zeta, special::zeta, pairs);
            check(polygamma, special::polygamma, pairs);
        }
    }
}
