//! Reductions: axes, output shape, and the order of the visit.
//!
//! A [`ReducePlan`] drops dimensions of size 1 and merges neighbours that are both kept or both reduced, so
//! that kept and reduced dimensions alternate: `[2, 3, 4, 5]` over axes 1 and 2 becomes 2 kept, 12 reduced,
//! 5 kept.

use crate::error::{GeometryError, Result};
use crate::offsets::Offsets;
use crate::size::{
    Dims, element_count, index, row_major_strides, validate_dims, validate_partial_dims,
};
use tenon_abi::Code;
use tenon_framework::KernelError;

/// The axis in `[-rank, rank)`, as counted from the front.
pub fn normalize_axis(what: &'static str, axis: i64, rank: usize) -> Result<usize> {
    let high = rank as i64;
    if (-high..high).contains(&axis) {
        Ok(index(if axis < 0 { axis + high } else { axis }))
    } else {
        Err(GeometryError::Axis { what, low: -high, high, axis })
    }
}

/// A set of axes of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AxisSet(u32);

impl AxisSet {
    /// The axes of a list, each in `[-rank, rank)`. Fails if one is out of range or occurs twice.
    pub fn new(what: &'static str, axes: &[i64], rank: usize) -> Result<AxisSet> {
        // Ranks are checked with the dimensions; a larger one must not overflow the set.
        if rank > tenon_abi::MAX_RANK {
            return Err(GeometryError::RankTooLarge { rank });
        }
        let mut set = AxisSet::default();
        for &axis in axes {
            let axis = normalize_axis(what, axis, rank)?;
            if set.contains(axis) {
                return Err(GeometryError::DuplicateAxis { what, axis });
            }
            set = set.with(axis);
        }
        Ok(set)
    }

    /// The set with one more axis, below [`tenon_abi::MAX_RANK`].
    pub(crate) fn with(self, axis: usize) -> AxisSet {
        AxisSet(self.0 | 1 << axis)
    }

    /// Whether the axis is in the set.
    pub fn contains(self, axis: usize) -> bool {
        axis < 32 && self.0 >> axis & 1 == 1
    }
}

/// Output shape of a reduction over axes in `[-rank, rank)`; -1 is an unknown dimension.
pub fn reduce_dims(input: &[i64], axes: &[i64], keep_dims: bool) -> Result<Dims> {
    validate_partial_dims(input)?;
    reduced(input, AxisSet::new("reduction_indices", axes, input.len())?, keep_dims)
}

/// Output shape of a reduction that joins strings: like [`reduce_dims`], except that an axis out of
/// range has the code `OUT_OF_RANGE`, as in TensorFlow.
pub fn join_dims(
    input: &[i64],
    axes: &[i64],
    keep_dims: bool,
) -> std::result::Result<Dims, KernelError> {
    reduce_dims(input, axes, keep_dims).map_err(|error| match error {
        GeometryError::Axis { .. } => KernelError::new(Code::OUT_OF_RANGE, error.to_string()),
        error => error.into(),
    })
}

fn reduced(input: &[i64], axes: AxisSet, keep_dims: bool) -> Result<Dims> {
    let mut output = Dims::EMPTY;
    for (i, &size) in input.iter().enumerate() {
        match axes.contains(i) {
            true if keep_dims => output.push(1)?,
            true => {}
            false => output.push(size)?,
        }
    }
    validate_partial_dims(&output)?;
    Ok(output)
}

/// The forms of a reduction for which kernels have special loops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReduceKind {
    /// Nothing is reduced: a copy of `len` elements.
    Copy {
        /// Elements.
        len: usize,
    },
    /// All elements are reduced to one.
    All {
        /// Elements.
        len: usize,
    },
    /// Each of `outer` rows of `reduced` neighbouring elements is reduced to one.
    Rows {
        /// Rows.
        outer: usize,
        /// Elements per row.
        reduced: usize,
    },
    /// `reduced` rows of `inner` elements are reduced to one row.
    Columns {
        /// Rows.
        reduced: usize,
        /// Elements per row.
        inner: usize,
    },
    /// [`ReduceKind::Columns`], repeated `outer` times.
    Middle {
        /// The number of repetitions.
        outer: usize,
        /// Rows.
        reduced: usize,
        /// Elements per row.
        inner: usize,
    },
    /// More than three alternating dimensions: use [`ReducePlan::outputs`] and [`ReducePlan::reduced`].
    General,
}

/// The order in which a reduction of a tensor of known shape visits its elements.
#[derive(Debug, Clone, Copy)]
pub struct ReducePlan {
    output: Dims,
    output_len: usize,
    reduced_len: usize,
    extents: Dims,
    first_reduced: bool,
    kept_extents: Dims,
    kept_strides: Dims,
    reduced_extents: Dims,
    reduced_strides: Dims,
}

impl ReducePlan {
    /// Plans the reduction over axes in `[-rank, rank)`.
    pub fn new(input: &[i64], axes: &[i64], keep_dims: bool) -> Result<ReducePlan> {
        validate_dims(input)?;
        let axes = AxisSet::new("reduction_indices", axes, input.len())?;
        let mut plan = ReducePlan {
            output: reduced(input, axes, keep_dims)?,
            output_len: 0,
            reduced_len: 1,
            extents: Dims::EMPTY,
            first_reduced: false,
            kept_extents: Dims::EMPTY,
            kept_strides: Dims::EMPTY,
            reduced_extents: Dims::EMPTY,
            reduced_strides: Dims::EMPTY,
        };
        plan.output_len = element_count(&plan.output)?;
        plan.collapse(input, axes)?;
        plan.reduced_len = element_count(&plan.reduced_extents)?;
        Ok(plan)
    }

    fn collapse(&mut self, input: &[i64], axes: AxisSet) -> Result<()> {
        let mut last = None;
        for (i, &size) in input.iter().enumerate().filter(|&(_, &size)| size != 1) {
            let reduces = axes.contains(i);
            match self.extents.last_mut().filter(|_| last == Some(reduces)) {
                Some(extent) => *extent = extent.saturating_mul(size),
                None => self.extents.push(size)?,
            }
            if last.is_none() {
                self.first_reduced = reduces;
            }
            last = Some(reduces);
        }
        let strides = row_major_strides(&self.extents)?;
        for i in 0..self.extents.len() {
            let (extents, strides_out) = if self.is_reduced(i) {
                (&mut self.reduced_extents, &mut self.reduced_strides)
            } else {
                (&mut self.kept_extents, &mut self.kept_strides)
            };
            extents.push(self.extents[i])?;
            strides_out.push(strides[i])?;
        }
        Ok(())
    }

    /// Dimensions of the output.
    pub fn output_dims(&self) -> &[i64] {
        &self.output
    }

    /// Elements of the output.
    pub fn output_len(&self) -> usize {
        self.output_len
    }

    /// Input elements per output element; 0 if a reduced dimension is empty.
    pub fn reduced_len(&self) -> usize {
        self.reduced_len
    }

    /// Merged dimensions of the input, none of size 1; kept and reduced ones alternate.
    pub fn extents(&self) -> &[i64] {
        &self.extents
    }

    /// Whether merged dimension `i` is reduced.
    pub fn is_reduced(&self, i: usize) -> bool {
        self.first_reduced == i.is_multiple_of(2)
    }

    /// The special case of this plan.
    pub fn kind(&self) -> ReduceKind {
        let size = |i: usize| index(self.extents[i]);
        match (self.extents.len(), self.first_reduced) {
            (0, _) => ReduceKind::Copy { len: 1 },
            (1, false) => ReduceKind::Copy { len: size(0) },
            (1, true) => ReduceKind::All { len: size(0) },
            (2, false) => ReduceKind::Rows { outer: size(0), reduced: size(1) },
            (2, true) => ReduceKind::Columns { reduced: size(0), inner: size(1) },
            (3, false) => ReduceKind::Middle { outer: size(0), reduced: size(1), inner: size(2) },
            _ => ReduceKind::General,
        }
    }

    /// For each output element in order, the offset of its first input element.
    pub fn outputs(&self) -> Offsets {
        Offsets::new(&self.kept_extents, &self.kept_strides, 0)
    }

    /// Offsets of the input elements of one output element, from the first, in the order of the input.
    pub fn reduced(&self) -> Offsets {
        Offsets::new(&self.reduced_extents, &self.reduced_strides, 0)
    }
}

/// A tensor seen as (outer, axis, inner).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AxisSplit {
    /// Elements before the axis.
    pub outer: usize,
    /// Size of the axis.
    pub len: usize,
    /// Elements after the axis.
    pub inner: usize,
}

impl AxisSplit {
    /// Splits at an axis in `[-rank, rank)`; `what` names the argument with the axis.
    ///
    /// # Errors
    /// The shape is invalid, or the axis is out of range.
    pub fn new(what: &'static str, input: &[i64], axis: i64) -> Result<AxisSplit> {
        element_count(input)?;
        let axis = normalize_axis(what, axis, input.len())?;
        let count = |dims: &[i64]| element_count(dims).unwrap_or(0);
        let (outer, inner) = (count(&input[..axis]), count(&input[axis + 1..]));
        Ok(AxisSplit { outer, len: index(input[axis]), inner })
    }
}

/// Geometry of `ArgMax` and `ArgMin`: one axis of a tensor seen as (outer, axis, inner).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArgGeometry {
    /// Elements before the axis.
    pub outer: usize,
    /// Size of the axis.
    pub len: usize,
    /// Elements after the axis.
    pub inner: usize,
    /// Dimensions of the output: the input's without the axis.
    pub output: Dims,
}

impl ArgGeometry {
    /// Splits at an axis in `[-rank, rank)`. Fails on an empty axis, which has no greatest element.
    pub fn new(input: &[i64], axis: i64) -> Result<ArgGeometry> {
        let what = "dimension";
        let AxisSplit { outer, len, inner } = AxisSplit::new(what, input, axis)?;
        if len == 0 {
            let what = "the size of the dimension to search";
            return Err(GeometryError::TooSmall { what, least: 1, found: 0 });
        }
        let searched = AxisSet::new(what, &[axis], input.len())?;
        Ok(ArgGeometry { outer, len, inner, output: reduced(input, searched, false)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kind(input: &[i64], axes: &[i64]) -> ReduceKind {
        ReducePlan::new(input, axes, false).unwrap().kind()
    }

    #[test]
    fn shapes_and_axes() {
        assert_eq!(reduce_dims(&[2, 3, 4], &[-1, 0], false).unwrap(), [3]);
        assert_eq!(reduce_dims(&[2, -1, 4], &[2], true).unwrap(), [2, -1, 1]);
        assert_eq!(reduce_dims(&[], &[], false).unwrap(), []);
        assert_eq!(
            reduce_dims(&[2, 3], &[1, -1], false).unwrap_err().to_string(),
            "reduction_indices holds axis 1 twice: name each axis once"
        );
        assert_eq!(
            reduce_dims(&[2, 3], &[2], false).unwrap_err().to_string(),
            "reduction_indices must lie in [-2, 2), got 2"
        );
        assert!(reduce_dims(&[], &[0], false).is_err());
    }

    #[test]
    fn kinds() {
        use ReduceKind::*;
        assert_eq!(kind(&[2, 3], &[]), Copy { len: 6 });
        assert_eq!(kind(&[1, 1], &[0]), Copy { len: 1 });
        assert_eq!(kind(&[2, 3], &[0, 1]), All { len: 6 });
        assert_eq!(kind(&[2, 1, 3], &[0, 2]), All { len: 6 });
        assert_eq!(kind(&[2, 3, 4], &[2]), Rows { outer: 6, reduced: 4 });
        assert_eq!(kind(&[2, 3, 4], &[0, 1]), Columns { reduced: 6, inner: 4 });
        assert_eq!(kind(&[2, 3, 4, 5], &[1, 2]), Middle { outer: 2, reduced: 12, inner: 5 });
        assert_eq!(kind(&[2, 3, 4], &[0, 2]), General);
        assert_eq!(kind(&[2, 0], &[1]), Rows { outer: 2, reduced: 0 });
    }

    #[test]
    fn an_arg_reduction_splits_at_its_axis() {
        let g = ArgGeometry::new(&[2, 3, 4], -2).unwrap();
        assert_eq!((g.outer, g.len, g.inner), (2, 3, 4));
        assert_eq!(g.output, [2, 4]);
        assert!(ArgGeometry::new(&[2, 0], 1).is_err());
        assert_eq!(ArgGeometry::new(&[0, 2], 1).unwrap().output, [0]);
        assert!(ArgGeometry::new(&[], 0).is_err());
    }

    proptest! {
        #[test]
        fn every_element_is_visited_in_its_group(
            input in prop::collection::vec(0i64..4, 0..6), set in 0u32..64,
        ) {
            let axes: Vec<i64> = (0..input.len() as i64).filter(|&i| set >> i & 1 == 1).collect();
            let plan = ReducePlan::new(&input, &axes, false).unwrap();
            let mut groups = vec![Vec::new(); plan.output_len()];
            for element in 0..input.iter().product::<i64>() {
                let (mut rest, mut group, mut stride) = (element, 0, 1);
                for d in (0..input.len()).rev() {
                    if !axes.contains(&(d as i64)) {
                        group += rest % input[d] * stride;
                        stride *= input[d];
                    }
                    rest /= input[d];
                }
                groups[group as usize].push(element as usize);
            }
            let visited: Vec<Vec<usize>> = plan
                .outputs()
                .map(|base| plan.reduced().map(|offset| base + offset).collect())
                .collect();
            prop_assert_eq!(visited, groups);
            prop_assert!(plan.output_len() == 0 || plan.reduced_len() == plan.reduced().len());
        }
    }
}
