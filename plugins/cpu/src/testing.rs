//! Random values and comparison, for unit tests.

use crate::lane::Compute;

/// Returns reproducible values: whole numbers for integers, numbers between -4 and 4 for floats.
pub fn values<T: Compute>(len: usize, seed: u64) -> Vec<T> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..len)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let unit = (state >> 11) as f64 / (1u64 << 53) as f64;
            T::from_f64(if T::IS_FLOAT { unit * 8.0 - 4.0 } else { (unit * 200.0 - 100.0).trunc() })
        })
        .collect()
}

/// Asserts that every value is NaN where NaN is expected, and else within `ulps` units in the last
/// place.
pub fn assert_ulps<T: Compute>(found: &[T], expected: &[T], ulps: f64) {
    let epsilon = match size_of::<T>() {
        2 if T::from_f64(1.0 + 1.0 / 512.0) == T::ONE => 2f64.powi(-7),
        2 => 2f64.powi(-10),
        4 => 2f64.powi(-23),
        _ => 2f64.powi(-52),
    };
    assert_close(found, expected, 0.0, ulps * epsilon);
}

/// Asserts that every value is NaN where NaN is expected, and else within `absolute + relative *
/// |expected|`.
pub fn assert_close<T: Compute>(found: &[T], expected: &[T], absolute: f64, relative: f64) {
    assert_eq!(found.len(), expected.len());
    for (i, (&found, &expected)) in found.iter().zip(expected).enumerate() {
        let same = found == expected || found.is_nan() && expected.is_nan();
        let (x, y) = (found.to_f64(), expected.to_f64());
        assert!(same || (x - y).abs() <= absolute + relative * y.abs(), "element {i}: {x} for {y}");
    }
}
