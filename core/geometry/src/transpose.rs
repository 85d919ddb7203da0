//! Transposition: output dimension `i` is input dimension `perm[i]`.
//!
//! A [`TransposePlan`] drops dimensions of size 1 and merges output neighbours that are neighbours
//! in the input too: `[2, 3, 4, 5]` with `[2, 3, 0, 1]` is a transposition of a 6x20 matrix.

use crate::error::{GeometryError, Result};
use crate::offsets::Offsets;
use crate::reduce::AxisSet;
use crate::size::{
    Dims, element_count, index, row_major_strides, validate_dims, validate_partial_dims,
};

/// The permutation with every entry counted from the front. Fails if it does not contain each
/// dimension of `rank` once. Entries may be negative, as in TensorFlow.
pub fn validate_permutation(perm: &[i64], rank: usize) -> Result<Dims> {
    if perm.len() != rank {
        let found = perm.len();
        return Err(GeometryError::Length { what: "perm", expected: rank, found });
    }
    AxisSet::new("perm", perm, rank)?;
    let mut result = Dims::from_slice(perm)?;
    for axis in result.iter_mut().filter(|axis| **axis < 0) {
        *axis += rank as i64;
    }
    Ok(result)
}

/// Output shape; -1 is an unknown dimension.
pub fn transpose_dims(input: &[i64], perm: &[i64]) -> Result<Dims> {
    validate_partial_dims(input)?;
    let mut output = validate_permutation(perm, input.len())?;
    for axis in output.iter_mut() {
        *axis = input[index(*axis)];
    }
    validate_partial_dims(&output)?;
    Ok(output)
}

/// The forms of a transposition for which kernels have special loops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransposeKind {
    /// The order of the elements does not change.
    Copy {
        /// Elements.
        len: usize,
    },
    /// Each of `batch` input matrices of `rows x cols` becomes one of `cols x rows`, of blocks of `block`
    /// neighbouring elements.
    Matrix {
        /// Matrices.
        batch: usize,
        /// Rows of the input.
        rows: usize,
        /// Columns of the input.
        cols: usize,
        /// Elements per entry of the matrix.
        block: usize,
    },
    /// Anything else: use [`TransposePlan::offsets`].
    General,
}

/// The order in which a transposition of a tensor of known shape visits its input.
#[derive(Debug, Clone, Copy)]
pub struct TransposePlan {
    output: Dims,
    len: usize,
    extents: Dims,
    strides: Dims,
}

impl TransposePlan {
    /// Plans the transposition.
    pub fn new(input: &[i64], perm: &[i64]) -> Result<TransposePlan> {
        validate_dims(input)?;
        let perm = validate_permutation(perm, input.len())?;
        let output = transpose_dims(input, &perm)?;
        let len = element_count(&output)?;
        let strides = row_major_strides(input)?;
        let mut plan = TransposePlan { output, len, extents: Dims::EMPTY, strides: Dims::EMPTY };
        for &axis in perm.iter() {
            let (extent, stride) = (input[index(axis)], strides[index(axis)]);
            if extent != 1 {
                plan.append(extent, stride)?;
            }
        }
        Ok(plan)
    }

    /// Adds an output dimension; merges it with the one before if one step of that is a whole run
    /// of this.
    fn append(&mut self, extent: i64, stride: i64) -> Result<()> {
        if let (Some(last), Some(last_stride)) = (self.extents.last_mut(), self.strides.last_mut())
            && *last_stride == stride.saturating_mul(extent)
            && self.len > 0
        {
            *last *= extent;
            *last_stride = stride;
            return Ok(());
        }
        self.extents.push(extent)?;
        self.strides.push(stride)
    }

    /// Dimensions of the output.
    pub fn output_dims(&self) -> &[i64] {
        &self.output
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Merged output dimensions.
    pub fn extents(&self) -> &[i64] {
        &self.extents
    }

    /// Strides in the input, in elements, over [`TransposePlan::extents`].
    pub fn strides(&self) -> &[i64] {
        &self.strides
    }

    /// The special case of this plan.
    pub fn kind(&self) -> TransposeKind {
        if self.is_empty() || self.extents.len() <= 1 {
            return TransposeKind::Copy { len: self.len };
        }
        let matrix = |batch: i64, cols: i64, rows: i64, block: i64| TransposeKind::Matrix {
            batch: index(batch),
            rows: index(rows),
            cols: index(cols),
            block: index(block),
        };
        // Every dimension is longer than 1 and no neighbours merge, so the strides determine the
        // input's order.
        match (&*self.extents, &*self.strides) {
            (&[c, r], &[1, _]) => matrix(1, c, r, 1),
            (&[c, r, b], &[s, t, 1]) if s < t => matrix(1, c, r, b),
            (&[n, c, r], &[s, 1, t]) if s > t => matrix(n, c, r, 1),
            (&[n, c, r, b], &[s, t, u, 1]) if s > u && u > t => matrix(n, c, r, b),
            _ => TransposeKind::General,
        }
    }

    /// Offsets in the input of the output's elements, in order.
    pub fn offsets(&self) -> Offsets {
        if self.is_empty() {
            return Offsets::new(&self.output, &self.output, 0);
        }
        Offsets::new(&self.extents, &self.strides, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kind(input: &[i64], perm: &[i64]) -> TransposeKind {
        TransposePlan::new(input, perm).unwrap().kind()
    }

    #[test]
    fn shapes_and_permutations() {
        assert_eq!(transpose_dims(&[2, -1, 4], &[2, 0, 1]).unwrap(), [4, 2, -1]);
        assert_eq!(transpose_dims(&[2, 3], &[-1, 0]).unwrap(), [3, 2]);
        assert!(transpose_dims(&[2, 3], &[0]).is_err());
        assert!(transpose_dims(&[2, 3], &[1, 1]).is_err());
        assert_eq!(
            transpose_dims(&[2, 3], &[0, 2]).unwrap_err().to_string(),
            "perm must lie in [-2, 2), got 2"
        );
    }

    #[test]
    fn kinds() {
        use TransposeKind::*;
        assert_eq!(kind(&[2, 3], &[0, 1]), Copy { len: 6 });
        assert_eq!(kind(&[2, 1, 3], &[1, 0, 2]), Copy { len: 6 });
        assert_eq!(kind(&[], &[]), Copy { len: 1 });
        assert_eq!(kind(&[0, 3], &[1, 0]), Copy { len: 0 });
        let matrix = |batch, rows, cols, block| Matrix { batch, rows, cols, block };
        assert_eq!(kind(&[2, 3], &[1, 0]), matrix(1, 2, 3, 1));
        assert_eq!(kind(&[2, 3, 4, 5], &[2, 3, 0, 1]), matrix(1, 6, 20, 1));
        assert_eq!(kind(&[7, 2, 3, 5], &[0, 3, 1, 2]), matrix(7, 6, 5, 1));
        assert_eq!(kind(&[7, 2, 3, 5], &[0, 2, 1, 3]), matrix(7, 2, 3, 5));
        assert_eq!(kind(&[2, 3, 5], &[1, 0, 2]), matrix(1, 2, 3, 5));
        assert_eq!(kind(&[2, 3, 5], &[2, 1, 0]), General);
        assert_eq!(kind(&[2, 3, 4, 5], &[3, 1, 2, 0]), General);
    }

    fn shape_and_perm() -> impl Strategy<Value = (Vec<i64>, Vec<i64>)> {
        prop::collection::vec(0i64..4, 0..6).prop_flat_map(|dims| {
            let perm: Vec<i64> = (0..dims.len() as i64).collect();
            (Just(dims), Just(perm).prop_shuffle())
        })
    }

    proptest! {
        #[test]
        fn offsets_are_those_of_the_definition((input, perm) in shape_and_perm()) {
            let plan = TransposePlan::new(&input, &perm).unwrap();
            let strides = row_major_strides(&input).unwrap();
            let output = plan.output_dims();
            let expected: Vec<usize> = (0..plan.len() as i64)
                .map(|mut element| {
                    let mut offset = 0;
                    for d in (0..output.len()).rev() {
                        offset += element % output[d] * strides[perm[d] as usize];
                        element /= output[d];
                    }
                    offset as usize
                })
                .collect();
            prop_assert_eq!(plan.offsets().collect::<Vec<_>>(), &expected[..]);
            if let TransposeKind::Matrix { batch, rows, cols, block } = plan.kind() {
                let mut found = Vec::new();
                for n in 0..batch {
                    for c in 0..cols {
                        for r in 0..rows {
                            let entry = ((n * rows + r) * cols + c) * block;
                            found.extend(entry..entry + block);
                        }
                    }
                }
                prop_assert_eq!(found, expected);
            }
        }
    }
}
