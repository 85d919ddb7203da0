//! Fourier transforms of real numbers, over the last dimensions.
//!
//! The spectrum of n real numbers has `n / 2 + 1` frequencies: the others are their conjugates. The
//! lengths of the transform are given separately; elements of the input beyond them are not read.

use crate::error::{GeometryError, Result};
use crate::size::{Dims, validate_partial_dims};

/// The direction of a transform.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FftDirection {
    /// From signal to spectrum.
    Forward,
    /// From spectrum to signal.
    Inverse,
}

/// Shape of a transform with these lengths; -1 is an unknown dimension of the input, or an unknown length.
pub fn real_fft_dims(input: &[i64], lengths: &[i64], direction: FftDirection) -> Result<Dims> {
    let outer = outer_dims(input, lengths)?;
    let mut output = Dims::from_slice(&input[..outer])?;
    for (at, &length) in lengths.iter().enumerate() {
        let innermost = at + 1 == lengths.len();
        let halves = innermost && direction == FftDirection::Forward && length > 0;
        output.push(if halves { length / 2 + 1 } else { length })?;
    }
    validate_partial_dims(&output)?;
    Ok(output)
}

/// Checks that the input has the elements that a transform with these lengths reads; an empty one
/// reads none.
pub fn check_fft_input(input: &[i64], lengths: &[i64], direction: FftDirection) -> Result<()> {
    let outer = outer_dims(input, lengths)?;
    for (at, (&size, &length)) in input[outer..].iter().zip(lengths).enumerate() {
        let innermost = at + 1 == lengths.len();
        let halves = innermost && direction == FftDirection::Inverse;
        let least = if halves { length / 2 + 1 } else { length };
        if size > 0 && size < least {
            let what =
                if innermost { "the input's last size" } else { "the input's last size but one" };
            return Err(GeometryError::TooSmall { what, least, found: size });
        }
    }
    Ok(())
}

/// The number of dimensions before those of the transform.
fn outer_dims(input: &[i64], lengths: &[i64]) -> Result<usize> {
    validate_partial_dims(input)?;
    if let Some(&found) = lengths.iter().find(|&&length| length < -1) {
        return Err(GeometryError::TooSmall { what: "fft_length", least: 0, found });
    }
    let expected = lengths.len();
    input.len().checked_sub(expected).ok_or(GeometryError::RankTooSmall {
        what: "input",
        expected,
        found: input.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::FftDirection::{Forward, Inverse};
    use super::*;

    #[test]
    fn the_last_size_is_halved_one_way() {
        assert_eq!(real_fft_dims(&[3, 9], &[8], Forward).unwrap(), [3, 5]);
        assert_eq!(real_fft_dims(&[3, 9], &[7], Forward).unwrap(), [3, 4]);
        assert_eq!(real_fft_dims(&[3, 9], &[0], Forward).unwrap(), [3, 0]);
        assert_eq!(real_fft_dims(&[3, 9], &[8], Inverse).unwrap(), [3, 8]);
        assert_eq!(real_fft_dims(&[-1, 9, 9], &[4, -1], Forward).unwrap(), [-1, 4, -1]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert!(real_fft_dims(&[3], &[2, 2], Forward).is_err());
        assert!(real_fft_dims(&[3], &[-2], Forward).is_err());
        assert!(real_fft_dims(&[i64::MAX, 2], &[4], Inverse).is_err());
        assert_eq!(check_fft_input(&[2, 5], &[8], Inverse), Ok(()));
        assert_eq!(check_fft_input(&[0, 5], &[3, 5], Forward), Ok(()));
        let error = check_fft_input(&[2, 4], &[8], Inverse).unwrap_err().to_string();
        assert_eq!(error, "the input's last size must be at least 5, got 4");
        assert!(check_fft_input(&[2, 5], &[3, 5], Forward).is_err());
        assert!(check_fft_input(&[2, 5], &[6], Forward).is_err());
    }
}
