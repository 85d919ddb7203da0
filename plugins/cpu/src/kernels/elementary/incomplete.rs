//! The incomplete gamma functions of floats, many at a time, in double.
//!
//! The sums are those of `tenon_reference::special`: a power series below, a continued fraction
//! above (Abramowitz & Stegun, *Handbook of Mathematical Functions*, 6.5.29 and 6.5.31). A step of a
//! sum is a loop over all elements that vectorises, and steps are made until the last element needs
//! no more. The relative error is below 1e-9, a fiftieth of a float's rounding error.

use super::{
    double::{exp, ln},
    polynomial,
};
use crate::{
    arch::{Isa, vectorised},
    kernels::elementwise::blocks::BLOCK,
};
use tenon_reference::special;

type Lanes = [f64; BLOCK];

/// Up to this `a` the sums have few terms, and terms of the weight's exponent do not cancel.
const LARGEST: f64 = 200.0;
/// Beyond it, `P` is 1 and `Q` is 0, whatever the `a` up to [`LARGEST`].
const FAR: f64 = 1e4;
/// What the last steps may add, relative to the sum.
const LEFT: f64 = 1e-13;
/// Steps between looks whether more are needed.
const STEPS: usize = 4;
/// The most looks. Up to [`LARGEST`] there are some 40.
const LOOKS: usize = 1000;
/// Below this `1 - P` has lost digits that a float has.
const CANCELLED: f32 = 1e-3;

/// Which of the two functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The lower one, `P`.
    Lower,
    /// The upper one, `Q`.
    Upper,
}

/// Whether `P` is found by the series, and `Q` from it.
#[inline(always)]
fn is_low(a: f64, x: f64) -> bool {
    x <= 1.0 || x <= a
}

/// `x^a e^-x / Gamma(a)`, for `a` up to [`LARGEST`]. Gamma's logarithm is that of A&S 6.1.41 at 8
/// and above, to which a smaller `a` is brought by the recurrence.
#[inline(always)]
fn weight<I: Isa>(a: f64, x: f64) -> f64 {
    const HALF_LN_TAU: f64 = 0.918_938_533_204_672_7;
    let low = a * (a + 1.0) * ((a + 2.0) * (a + 3.0));
    let high = (a + 4.0) * (a + 5.0) * ((a + 6.0) * (a + 7.0));
    let (up, factor) = if a < 8.0 { (a + 8.0, low * high) } else { (a, 1.0) };
    let z = 1.0 / (up * up);
    let series =
        polynomial!(I, z, [1.0 / 1188.0, -1.0 / 1680.0, 1.0 / 1260.0, -1.0 / 360.0, 1.0 / 12.0]);
    let ln_gamma = (up - 0.5) * ln::<I>(up) - up + HALF_LN_TAU + series / up;
    factor * exp::<I>(a * ln::<I>(x) - x - ln_gamma)
}

/// The sums of `x^k / ((a + 1) ... (a + k))`; 1 where an `x` is 0.
#[inline(always)]
fn series(a: &Lanes, x: &Lanes) -> Lanes {
    let (mut terms, mut sums, mut below) = ([1.0; BLOCK], [1.0; BLOCK], *a);
    for _ in 0..LOOKS {
        for _ in 0..STEPS {
            let numbers = below.iter_mut().zip(x);
            for ((term, sum), (below, x)) in terms.iter_mut().zip(&mut sums).zip(numbers) {
                *below += 1.0;
                *term *= x / *below;
                *sum += *term;
            }
        }
        let is_left =
            terms.iter().zip(&sums).fold(false, |any, (term, sum)| any | (*term > sum * LEFT));
        if !is_left {
            break;
        }
    }
    sums
}

/// A numerator or denominator of the fraction: the last value and the one before.
struct Convergent {
    last: Lanes,
    before: Lanes,
}

impl Convergent {
    /// Makes step `c` of the recurrence.
    #[inline(always)]
    fn step(&mut self, a: &Lanes, x: &Lanes, c: f64) {
        let values = self.last.iter_mut().zip(&mut self.before);
        for ((last, before), (a, x)) in values.zip(a.iter().zip(x)) {
            let next = *last * (x - a + 2.0 * (c + 1.0)) - *before * ((c + 1.0 - a) * c);
            (*before, *last) = (*last, next);
        }
    }

    #[inline(always)]
    fn scale(&mut self, factors: &Lanes) {
        let values = self.last.iter_mut().zip(&mut self.before);
        values.zip(factors).for_each(|((last, before), factor)| {
            *last *= factor;
            *before *= factor;
        });
    }
}

/// The fractions that, times the weights, are `Q`.
#[inline(always)]
fn fraction(a: &Lanes, x: &Lanes) -> Lanes {
    /// In the steps between looks, a larger number could overflow.
    const LARGE: f64 = 1e100;
    let mut above = Convergent { last: [0.0; BLOCK], before: [1.0; BLOCK] };
    let mut below = Convergent { last: [0.0; BLOCK], before: *x };
    above.last.iter_mut().zip(x).for_each(|(last, x)| *last = x + 1.0);
    below.last.iter_mut().zip(a.iter().zip(x)).for_each(|(last, (a, x))| *last = (x + 2.0 - a) * x);
    let (mut values, mut factors) = ([0.0; BLOCK], [1.0; BLOCK]);
    let mut c = 0.0;
    for _ in 0..LOOKS {
        for _ in 0..STEPS {
            c += 1.0;
            above.step(a, x, c);
            below.step(a, x, c);
        }
        let mut is_left = false;
        let both = above.last.iter().zip(&below.last);
        for ((value, factor), (above, below)) in values.iter_mut().zip(&mut factors).zip(both) {
            let next = above / below;
            is_left |= (next - *value).abs() > next.abs() * LEFT;
            *value = next;
            *factor = if above.abs() > LARGE { 1.0 / LARGE } else { 1.0 };
        }
        if !is_left {
            break;
        }
        above.scale(&factors);
        below.scale(&factors);
    }
    values
}

vectorised! {
    /// `P(a, x)` or `Q(a, x)` of positive finite arguments, the first up to [`LARGEST`].
    fn ordinary[](side: Side, a: &Lanes, x: &Lanes, y: &mut Lanes) {
        let pairs = || a.iter().zip(x);
        let (mut low_x, mut high_a, mut high_x) = ([0.0; BLOCK], [1.0; BLOCK], [1.0; BLOCK]);
        let (mut some_low, mut some_high) = (false, false);
        for ((low_x, (high_a, high_x)), (&a, &x)) in
            low_x.iter_mut().zip(high_a.iter_mut().zip(&mut high_x)).zip(pairs())
        {
            let low = is_low(a, x);
            some_low |= low;
            some_high |= !low;
            *low_x = if low { x } else { 0.0 };
            *high_a = if low { 1.0 } else { a };
            *high_x = if low { 1.0 } else { x };
        }
        let sums = if some_low { series(a, &low_x) } else { [1.0; BLOCK] };
        let fractions = if some_high { fraction(&high_a, &high_x) } else { [1.0; BLOCK] };
        for ((y, (sum, fraction)), (&a, &x)) in
            y.iter_mut().zip(sums.iter().zip(&fractions)).zip(pairs())
        {
            let (low, weight) = (is_low(a, x), weight::<I>(a, x));
            let value = if low { sum * weight / a } else { fraction * weight };
            *y = if low == (side == Side::Lower) { value } else { 1.0 - value };
        }
    }
}

/// `P(a, x)` or `Q(a, x)` of at most [`BLOCK`] pairs.
///
/// Panics if there are more.
pub fn incomplete_gamma(side: Side, a: &[f32], x: &[f32], y: &mut [f32]) {
    let is_ordinary = |a: f64, x: f64| a > 0.0 && a <= LARGEST && x > 0.0 && x < f64::INFINITY;
    let (mut wide_a, mut wide_x, mut wide_y) = ([1.0; BLOCK], [1.0; BLOCK], [0.0; BLOCK]);
    assert!(a.len() <= BLOCK && x.len() <= BLOCK, "at most a block");
    let pairs = || a.iter().zip(x).map(|(&a, &x)| (f64::from(a), f64::from(x)));
    for ((to_a, to_x), (a, x)) in wide_a.iter_mut().zip(&mut wide_x).zip(pairs()) {
        if is_ordinary(a, x) {
            (*to_a, *to_x) = (a, x.min(FAR));
        }
    }
    ordinary(side, &wide_a, &wide_x, &mut wide_y);
    for ((y, (a, x)), found) in y.iter_mut().zip(pairs()).zip(wide_y) {
        *y = found as f32;
        let is_cancelled = side == Side::Upper && *y < CANCELLED && is_low(a, x);
        if !is_ordinary(a, x) || is_cancelled {
            *y = match side {
                Side::Lower => special::igamma(a, x),
                Side::Upper => special::igammac(a, x),
            } as f32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The function, and that of the reference, of pairs that are put together as they come.
    fn check(pairs: &[(f32, f32)]) {
        for pairs in pairs.chunks(BLOCK) {
            let (a, x): (Vec<f32>, Vec<f32>) = pairs.iter().copied().unzip();
            for (side, exact) in [
                (Side::Lower, special::igamma as fn(f64, f64) -> f64),
                (Side::Upper, special::igammac as fn(f64, f64) -> f64),
            ] {
                let mut found = vec![0.0; a.len()];
                incomplete_gamma(side, &a, &x, &mut found);
                for ((&a, &x), found) in a.iter().zip(&x).zip(found) {
                    let expected = exact(a.into(), x.into());
                    let near =
                        (f64::from(found) - expected).abs() <= 6.1e-8 * expected.abs() + 1e-38;
                    let same = near || found.is_nan() && expected.is_nan();
                    assert!(same, "{side:?} of {a} and {x}: {found} for {expected}");
                }
            }
        }
    }

    #[test]
    fn values_are_those_of_the_reference_to_half_an_ulp() {
        let steps = |from: f64, to: f64| {
            (0..=60).map(move |i| 10f64.powf(from + (to - from) * f64::from(i) / 60.0))
        };
        let pairs: Vec<(f32, f32)> = steps(-30.0, 3.5)
            .flat_map(|a| steps(-30.0, 6.0).map(move |x| (a as f32, x as f32)))
            .chain(
                steps(-2.0, 2.5)
                    .flat_map(|a| steps(-0.5, 0.5).map(move |r| (a as f32, (a * r) as f32))),
            )
            .collect();
        check(&pairs);
    }

    #[test]
    fn special_arguments_among_ordinary_ones_have_their_values() {
        let numbers = [
            0.0,
            -0.0,
            1.0,
            2.5,
            -1.0,
            200.0,
            201.0,
            f32::MIN_POSITIVE,
            f32::MAX,
            f32::INFINITY,
            f32::NAN,
        ];
        let pairs: Vec<(f32, f32)> =
            numbers.iter().flat_map(|&a| numbers.iter().map(move |&x| (a, x))).collect();
        // The reference's continued fraction has too many terms for it to be exact here.
        let pairs: Vec<(f32, f32)> =
            pairs.into_iter().filter(|&(a, x)| !(a == f32::MAX && x == f32::MAX)).collect();
        check(&pairs);
        check(&pairs[..1]);
    }
}
