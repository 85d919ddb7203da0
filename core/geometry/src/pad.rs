//! Padding: output size `before + size + after` per dimension.

use crate::error::{GeometryError, Result};
use crate::offsets::Offsets;
use crate::size::{Dims, row_major_strides, validate_dims, validate_partial_dims};
use crate::window::check_len;

/// Shape of a `Pad`. `paddings` contains (before, after) for each dimension, like the `[rank, 2]`
/// tensor row by row. -1 is an unknown dimension.
pub fn pad_dims(input: &[i64], paddings: &[i64]) -> Result<Dims> {
    validate_partial_dims(input)?;
    check_len("paddings", input.len() * 2, paddings)?;
    let mut output = Dims::from_slice(input)?;
    for (size, pair) in output.iter_mut().zip(paddings.chunks_exact(2)) {
        let found = pair[0].min(pair[1]);
        if found < 0 {
            return Err(GeometryError::TooSmall { what: "paddings", least: 0, found });
        }
        if *size >= 0 {
            *size = size
                .checked_add(pair[0])
                .and_then(|size| size.checked_add(pair[1]))
                .ok_or_else(|| GeometryError::TooLarge { dims: vec![*size, pair[0], pair[1]] })?;
        }
    }
    validate_partial_dims(&output)?;
    Ok(output)
}

/// The places of the elements of an input of known shape in the padded output.
#[derive(Debug, Clone, Copy)]
pub struct PadPlan {
    output: Dims,
    input: Dims,
    strides: Dims,
    base: i64,
}

impl PadPlan {
    /// Plans a `Pad`.
    pub fn new(input: &[i64], paddings: &[i64]) -> Result<PadPlan> {
        validate_dims(input)?;
        let output = pad_dims(input, paddings)?;
        validate_dims(&output)?;
        let strides = row_major_strides(&output)?;
        let base = strides
            .iter()
            .zip(paddings.chunks_exact(2))
            .fold(0i64, |base, (stride, pair)| base.wrapping_add(stride.wrapping_mul(pair[0])));
        Ok(PadPlan { output, input: Dims::from_slice(input)?, strides, base })
    }

    /// Dimensions of the output.
    pub fn output_dims(&self) -> &[i64] {
        &self.output
    }

    /// For each row (run along the last dimension) of the input in order, the offset in the output of its
    /// first element. Row `i` of the input starts at `i * row_len()`.
    pub fn rows(&self) -> Offsets {
        let outer = self.input.len().saturating_sub(1);
        if self.row_len() == 0 {
            return Offsets::new(&self.input, &self.strides, self.base);
        }
        // Prefixes of valid dimensions are valid.
        let prefix = |dims: &Dims| Dims::from_slice(&dims[..outer]).unwrap_or_default();
        Offsets::new(&prefix(&self.input), &prefix(&self.strides), self.base)
    }

    /// Elements per row of the input.
    pub fn row_len(&self) -> usize {
        self.input.last().map_or(1, |&size| size as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes() {
        assert_eq!(pad_dims(&[2, -1], &[1, 2, 0, 3]).unwrap(), [5, -1]);
        assert_eq!(pad_dims(&[], &[]).unwrap(), []);
        assert_eq!(
            pad_dims(&[2], &[1, -2]).unwrap_err().to_string(),
            "paddings must be at least 0, got -2"
        );
        assert!(pad_dims(&[2], &[1]).is_err());
        assert!(pad_dims(&[2], &[i64::MAX, 1]).is_err());
    }

    #[test]
    fn rows_of_the_input() {
        let plan = PadPlan::new(&[2, 2], &[1, 0, 2, 1]).unwrap();
        assert_eq!(plan.output_dims(), [3, 5]);
        assert_eq!(plan.rows().collect::<Vec<_>>(), [7, 12]);
        assert_eq!(plan.row_len(), 2);
        assert_eq!(PadPlan::new(&[], &[]).unwrap().rows().collect::<Vec<_>>(), [0]);
        assert_eq!(PadPlan::new(&[2, 0], &[0, 0, 1, 1]).unwrap().rows().count(), 0);
    }
}
