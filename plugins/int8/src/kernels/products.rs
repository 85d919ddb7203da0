//! Sums of products of codes, in 32 bits, for matrix products and convolutions.
//!
//! A code `q` represents `level (q - zero)`, so that the sum of `(a - zero_a) (b - zero_b)` is a
//! code of the sum of products whose level is the product of both levels and whose zero is 0.
//! Before anything is summed, [`check_terms`] checks that it fits in 32 bits.

use super::range::Range;
use crate::{
    kept::KeptTerms,
    output::Stage,
    pack::Left,
    product::{Product, Right},
    spread::compute,
};
use tenon_sdk::{
    DType, KernelError,
    author::ComputeContext,
    element::{QInt32, Quantised},
};

/// One side of a product: the code of 0, and the greatest distance of a code from it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Side {
    /// The code of 0, which may be outside of the type.
    pub zero: i32,
    /// The greatest `|q - zero|`.
    reach: u64,
}

impl Side {
    /// The side of a product with codes of this range.
    pub fn of<T: Quantised>(range: Range) -> Result<Side, KernelError> {
        let zero = range.unclamped::<T>(0.0);
        match i32::try_from(zero) {
            Ok(zero) => Ok(Side::with_zero::<T>(zero)),
            Err(_) => Err(KernelError::invalid_argument(format!(
                "0 must not lie further from [{}, {}] than 2^31 of its levels: widen the range",
                range.min, range.max
            ))),
        }
    }

    /// The side of a product whose code of 0 is `zero`.
    pub fn with_zero<T: Quantised>(zero: i32) -> Side {
        let distance = |code: i32| code.abs_diff(zero);
        Side { zero, reach: distance(T::LOWEST).max(distance(T::HIGHEST)).into() }
    }
}

/// Refuses sums of more products than 32 bits can hold: the limit is `(2^31 - 1) / (reach_a *
/// reach_b)`, 33025 if both zeros are ends of 8 bits, 131071 if they are in the middle.
pub fn check_terms(terms: i64, a: Side, b: Side) -> Result<(), KernelError> {
    let product = u128::from(a.reach) * u128::from(b.reach);
    let most = (i32::MAX as u128).checked_div(product).unwrap_or(u128::MAX);
    if terms as u128 <= most {
        return Ok(());
    }
    Err(KernelError::invalid_argument(format!(
        "sums of products must fit in 32 bits, which holds for at most {most} terms of these ranges (zeros at {} and {}), found {terms}: split the sum, or choose ranges with 0 near their middles",
        a.zero, b.zero
    )))
}

/// The output stage that leaves sums unchanged.
pub const SUMS: Stage<'static> = Stage::Sums([i32::MIN, i32::MAX]);

/// Writes the sums of a product of these types and zeros, row after row.
///
/// The sums must fit in 32 bits: see [`check_terms`].
pub fn write_sums<'a>(
    c: &ComputeContext<'_>,
    left: impl Into<Left<'a>>,
    right: Right<'_>,
    types: [DType; 2],
    zeros: [i32; 2],
    y: &mut [u8],
) -> Result<(), KernelError> {
    let left: Left<'_> = left.into();
    let terms = KeptTerms::new(c, right, types, (zeros[0], &[zeros[1]]), &[])?;
    compute(c, &Product::new(left, right, terms.view(), SUMS, y))
}

/// `sums[n] += sum over k of (a[k] - zero of a) * (b[k][n] - zero of b)`, the rows of `b` being as
/// long as `sums`.
///
/// The sums must fit in 32 bits: see [`check_terms`].
pub fn accumulate<A: Quantised, B: Quantised>(
    (a, a_zero): (&[A], i32),
    (b, b_zero): (&[B], i32),
    sums: &mut [QInt32],
) {
    if sums.is_empty() {
        return;
    }
    for (a, row) in a.iter().zip(b.chunks_exact(sums.len())) {
        let a = a.code() - a_zero;
        for (sum, b) in sums.iter_mut().zip(row) {
            sum.0 += a * (b.code() - b_zero);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{collection::vec, prelude::*};
    use tenon_sdk::element::{QInt8, QUInt8};

    #[test]
    fn the_bound_of_terms_is_sharp() {
        let end = Side::with_zero::<QUInt8>(0);
        let middle = Side::with_zero::<QInt8>(0);
        assert_eq!(check_terms(33025, end, end), Ok(()));
        let message = check_terms(33026, end, end).unwrap_err().message;
        assert!(
            message.contains("at most 33025 terms") && message.contains("found 33026"),
            "{message}"
        );
        assert_eq!(check_terms(131071, middle, middle), Ok(()));
        assert!(check_terms(131072, middle, middle).is_err());
        let codes = vec![QUInt8(255); 33025];
        let mut sum = [QInt32(0)];
        accumulate((&codes, 0), (&codes, 0), &mut sum);
        assert_eq!(i64::from(sum[0].0), 33025 * 255 * 255);
    }

    #[test]
    fn a_zero_far_outside_is_refused() {
        let error = Side::of::<QUInt8>(Range { min: 1e9, max: 1e9 + 64.0 });
        assert!(
            error.is_err() || check_terms(1, error.unwrap(), Side::with_zero::<QUInt8>(0)).is_err()
        );
    }

    proptest! {
        #[test]
        fn sums_are_those_of_64_bits(
            a in vec(any::<u8>(), 1..50), b in vec(any::<i8>(), 150), zeros in (0..=255, -128..=127),
        ) {
            let (a, b): (Vec<_>, Vec<_>) =
                (a.into_iter().map(QUInt8).collect(), b.into_iter().map(QInt8).collect());
            let mut sums = [QInt32(7); 3];
            accumulate((&a, zeros.0), (&b, zeros.1), &mut sums);
            for (n, sum) in sums.iter().enumerate() {
                let term = |(k, a): (usize, &QUInt8)| {
                    (i64::from(a.0) - i64::from(zeros.0)) * (i64::from(b[3 * k + n].0) - i64::from(zeros.1))
                };
                let expected: i64 = a.iter().enumerate().map(term).sum();
                prop_assert_eq!(i64::from(sum.0), 7 + expected);
            }
        }
    }
}
