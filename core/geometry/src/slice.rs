//! `StridedSlice` in canonical form.
//!
//! The op's arguments are *sparse*: entry `i` of `begin`, `end` and `strides` refers to no
//! dimension if bit `i` of `new_axis_mask` is set (a dimension of size 1 is inserted), to all
//! remaining dimensions if its bit of `ellipsis_mask` is set (without any such bit, an ellipsis is
//! added at the end), and otherwise to the next dimension of the input. The canonical form is
//! *dense*: one begin, end and stride per input dimension.
//!
//! Per dimension of size `n`, with stride `s`: a negative index counts from the end (`n` is added),
//! then indices are clamped to `[0, n]` for `s > 0` and to `[-1, n - 1]` for `s < 0`. A bit in
//! `begin_mask` (`end_mask`) stands for the first index (the place after the last) in the direction
//! of `s`. The size is `ceil((end - begin) / s)`, or 0 if that is negative. A bit in
//! `shrink_axis_mask` takes the one index `begin`, which must exist, and drops the dimension; the
//! masks of begin and end are then ignored. If both `new_axis_mask` and `shrink_axis_mask` are set,
//! the new axis takes precedence; `ellipsis_mask` takes precedence over both.
//!
//! There are two resulting shapes: the *processing* shape with one dimension per input dimension,
//! and the *final* one with axes dropped and inserted. They have the same elements in the same
//! order.

use crate::error::{GeometryError, Result};
use crate::offsets::Offsets;
use crate::size::{Dims, validate_partial_dims};

/// The five masks of the op, a bit per entry of `strides`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SliceMasks {
    /// Entries whose begin is ignored.
    pub begin: u32,
    /// Entries whose end is ignored.
    pub end: u32,
    /// The entry that represents all other dimensions.
    pub ellipsis: u32,
    /// Entries that insert a dimension.
    pub new_axis: u32,
    /// Entries that take one index and drop the dimension.
    pub shrink_axis: u32,
}

impl SliceMasks {
    /// The masks of a node, read by `attr`. They are values of an `int32`: -1 sets all bits.
    ///
    /// # Errors
    /// The error of `attr`, or a value of more than 32 bits.
    pub fn of<E: From<GeometryError>>(
        attr: impl Fn(&str) -> std::result::Result<i64, E>,
    ) -> std::result::Result<SliceMasks, E> {
        let mask = |name: &'static str| {
            let found = attr(name)?;
            match i32::try_from(found) {
                Ok(mask) => Ok(mask as u32),
                Err(_) => Err(E::from(GeometryError::WideMask { name, found })),
            }
        };
        Ok(SliceMasks {
            begin: mask("begin_mask")?,
            end: mask("end_mask")?,
            ellipsis: mask("ellipsis_mask")?,
            new_axis: mask("new_axis_mask")?,
            shrink_axis: mask("shrink_axis_mask")?,
        })
    }
}

/// The op's arguments.
#[derive(Debug, Clone, Copy)]
pub struct StridedSliceSpec<'a> {
    /// `None` if shape inference does not know the values.
    pub begin: Option<&'a [i64]>,
    /// `None` if shape inference does not know the values.
    pub end: Option<&'a [i64]>,
    /// The strides, which are always known: otherwise the rank would not be.
    pub strides: &'a [i64],
    /// The masks.
    pub masks: SliceMasks,
}

/// Canonical form of a strided slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StridedSlice {
    /// First index per input dimension. Only valid if the processing dimension is known and above
    /// 0.
    pub begin: Dims,
    /// Index after the last one per input dimension, in the direction of the stride.
    pub end: Dims,
    /// Stride per input dimension, not 0.
    pub strides: Dims,
    /// Sizes per input dimension; -1 is unknown.
    pub processing: Dims,
    /// Dimensions of the output; -1 is unknown.
    pub output: Dims,
    /// Whether every element is taken in order, so that the output is the input with another shape.
    pub is_identity: bool,
    /// Whether every stride is 1.
    pub is_simple: bool,
    /// Whether the slice is a contiguous block of dimension 0 with the whole of all others, so that
    /// the output is a range of the input's elements.
    pub is_dim0: bool,
}

/// The maximum number of entries that a mask of 32 bits supports, with room for an implicit
/// ellipsis.
const MAX_ENTRIES: usize = 31;

/// The source of a dimension of the output.
#[derive(Clone, Copy)]
enum Gather {
    Input(usize),
    NewAxis,
}

/// One begin, end and stride per input dimension, before canonical indices.
struct Dense {
    begin: Dims,
    end: Dims,
    strides: Dims,
    /// Bits per input dimension.
    begin_mask: u32,
    end_mask: u32,
    shrink_mask: u32,
    known: bool,
    /// The number of input dimensions referred to so far.
    used: usize,
    gather: [Gather; 2 * MAX_ENTRIES],
    gathered: usize,
}

impl StridedSlice {
    /// Canonical form for an input with these dimensions (-1: unknown).
    ///
    /// Fails for lists of different lengths, more than one ellipsis, more indices than dimensions,
    /// a stride of 0, or a single index that is out of bounds.
    pub fn new(input: &[i64], spec: &StridedSliceSpec<'_>) -> Result<StridedSlice> {
        validate_partial_dims(input)?;
        let dense = Dense::new(input.len(), spec)?;
        let mut slice = StridedSlice {
            begin: dense.begin,
            end: dense.end,
            strides: dense.strides,
            processing: Dims::EMPTY,
            output: Dims::EMPTY,
            is_identity: true,
            is_simple: true,
            is_dim0: true,
        };
        for (i, &size) in input.iter().enumerate() {
            slice.solve(&dense, i, size)?;
        }
        for &gather in &dense.gather[..dense.gathered] {
            slice.output.push(match gather {
                Gather::Input(i) => slice.processing[i],
                Gather::NewAxis => 1,
            })?;
        }
        Ok(slice)
    }

    /// Solves one input dimension and appends its processing size.
    fn solve(&mut self, dense: &Dense, i: usize, size: i64) -> Result<()> {
        let stride = self.strides[i];
        let bit = |mask: u32| mask >> i & 1 == 1;
        let shrinks = bit(dense.shrink_mask);
        let (begin_masked, end_masked) = (bit(dense.begin_mask), bit(dense.end_mask));
        if stride == 0 {
            return Err(GeometryError::ZeroStride { index: i });
        }
        if shrinks && stride < 0 {
            return Err(GeometryError::ShrinkStride { index: i, stride });
        }
        self.is_simple &= stride == 1;
        if size == -1 || !(dense.known || (begin_masked && end_masked && !shrinks)) {
            let whole = size == -1 && begin_masked && end_masked && stride == 1 && !shrinks;
            self.is_identity &= whole;
            self.is_dim0 &= (i == 0 && stride == 1) || whole;
            return self.processing.push(if shrinks {
                1
            } else if whole {
                size
            } else {
                -1
            });
        }
        if shrinks {
            self.begin[i] = single_index(self.begin[i], i, size)?;
            self.end[i] = self.begin[i] + 1;
        } else {
            let (first, behind) = if stride > 0 { (0, size) } else { (size - 1, -1) };
            let (low, high) = if stride > 0 { (0, size) } else { (-1, size - 1) };
            let place = |x: i64| (if x < 0 { x + size } else { x }).clamp(low, high);
            self.begin[i] = if begin_masked { first } else { place(self.begin[i]) };
            self.end[i] = if end_masked { behind } else { place(self.end[i]) };
        }
        let whole = stride == 1 && self.begin[i] == 0 && self.end[i] == size;
        self.is_identity &= whole;
        self.is_dim0 &= (i == 0 && stride == 1) || whole;
        self.processing.push(steps(self.end[i] - self.begin[i], stride))
    }

    /// Offsets in the input of the output's elements, in order. `input` are the dimensions given to
    /// [`StridedSlice::new`], all known.
    pub fn offsets(&self, input: &[i64]) -> Offsets {
        debug_assert_eq!(input.len(), self.begin.len());
        let mut steps = self.strides;
        let (mut base, mut inner) = (0i64, 1i64);
        for i in (0..steps.len()).rev() {
            base = base.wrapping_add(self.begin[i].wrapping_mul(inner));
            steps[i] = steps[i].wrapping_mul(inner);
            inner = inner.wrapping_mul(input[i]);
        }
        Offsets::new(&self.processing, &steps, base)
    }
}

/// `ceil(interval / stride)`, at least 0.
fn steps(interval: i64, stride: i64) -> i64 {
    if interval == 0 || (interval < 0) != (stride < 0) {
        return 0;
    }
    interval / stride + i64::from(interval % stride != 0)
}

/// A single index, as counted from the front.
fn single_index(found: i64, index: usize, size: i64) -> Result<i64> {
    let place = if found < 0 { found + size } else { found };
    if (0..size).contains(&place) {
        Ok(place)
    } else {
        Err(GeometryError::IndexOutOfBounds { index, size, found })
    }
}

impl Dense {
    fn new(rank: usize, spec: &StridedSliceSpec<'_>) -> Result<Dense> {
        let entries = spec.strides.len();
        let lists = [("begin", spec.begin), ("end", spec.end)];
        for (what, list) in lists.iter().filter_map(|&(what, list)| Some((what, list?))) {
            if list.len() != entries {
                let found = list.len();
                return Err(GeometryError::Length { what, expected: entries, found });
            }
        }
        if entries > MAX_ENTRIES {
            return Err(GeometryError::RankTooLarge { rank: entries });
        }
        let mut dense = Dense {
            begin: Dims::filled(rank, 0)?,
            end: Dims::filled(rank, 0)?,
            strides: Dims::filled(rank, 1)?,
            begin_mask: 0,
            end_mask: 0,
            shrink_mask: 0,
            known: spec.begin.is_some() && spec.end.is_some(),
            used: 0,
            gather: [Gather::NewAxis; 2 * MAX_ENTRIES],
            gathered: 0,
        };
        dense.fill(rank, spec)?;
        Ok(dense)
    }

    fn fill(&mut self, rank: usize, spec: &StridedSliceSpec<'_>) -> Result<()> {
        let masks = spec.masks;
        let entries = spec.strides.len();
        let within = (1u32 << entries) - 1;
        let ellipsis = masks.ellipsis & within;
        if ellipsis.count_ones() > 1 {
            return Err(GeometryError::ManyEllipses { mask: ellipsis });
        }
        let ellipsis = if ellipsis == 0 { 1 << entries } else { ellipsis };
        for i in 0..entries {
            let bit = 1u32 << i;
            if ellipsis & bit != 0 {
                // The number of dimensions that later entries refer to: entries that do not insert
                // one.
                let later = within & !(bit | (bit - 1)) & !masks.new_axis;
                self.take_rest(rank, later.count_ones() as usize);
            } else if masks.new_axis & bit != 0 {
                self.push(Gather::NewAxis);
            } else {
                self.take(rank, spec, i)?;
            }
        }
        if ellipsis >> entries != 0 {
            self.take_rest(rank, 0);
        }
        Ok(())
    }

    /// Handles the ellipsis: whole dimensions, up to the last `later` ones.
    fn take_rest(&mut self, rank: usize, later: usize) {
        while self.used + later < rank {
            self.begin_mask |= 1 << self.used;
            self.end_mask |= 1 << self.used;
            self.push(Gather::Input(self.used));
            self.used += 1;
        }
    }

    /// Handles entry `i`, which refers to the next dimension.
    fn take(&mut self, rank: usize, spec: &StridedSliceSpec<'_>, i: usize) -> Result<()> {
        let dim = self.used;
        if dim == rank {
            return Err(GeometryError::TooManyIndices { rank });
        }
        self.begin[dim] = spec.begin.map_or(0, |list| list[i]);
        self.end[dim] = spec.end.map_or(0, |list| list[i]);
        self.strides[dim] = spec.strides[i];
        self.begin_mask |= (spec.masks.begin >> i & 1) << dim;
        self.end_mask |= (spec.masks.end >> i & 1) << dim;
        if spec.masks.shrink_axis >> i & 1 == 1 {
            self.shrink_mask |= 1 << dim;
        } else {
            self.push(Gather::Input(dim));
        }
        self.used += 1;
        Ok(())
    }

    /// There is at most one entry per new axis and one per dimension, so the array has room.
    fn push(&mut self, gather: Gather) {
        self.gather[self.gathered] = gather;
        self.gathered += 1;
    }
}

#[cfg(test)]
#[path = "slice_tests.rs"]
mod tests;
