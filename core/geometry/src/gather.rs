//! Ops that pick slices by indices: `Gather`, `GatherNd`, and `ScatterNd`, which puts slices in
//! such places.

use crate::error::{GeometryError, Result};
use crate::reduce::normalize_axis;
use crate::size::{Dims, element_count, row_major_strides, validate_dims, validate_partial_dims};

/// Shape of a `GatherV2`: `params[..axis] + indices[batch_dims..] + params[axis + 1..]`, where the first
/// `batch_dims` dimensions of both are the same. -1 is an unknown dimension.
pub fn gather_dims(params: &[i64], indices: &[i64], axis: i64, batch_dims: i64) -> Result<Dims> {
    validate_partial_dims(params)?;
    validate_partial_dims(indices)?;
    let axis = normalize_axis("axis", axis, params.len())?;
    let batch = batch_of(batch_dims, indices.len(), axis)?;
    let mut output = Dims::EMPTY;
    for d in 0..batch {
        output.push(same("a batch dimension of indices", params[d], indices[d])?)?;
    }
    params[batch..axis].iter().try_for_each(|&size| output.push(size))?;
    indices[batch..].iter().try_for_each(|&size| output.push(size))?;
    params[axis + 1..].iter().try_for_each(|&size| output.push(size))?;
    validate_partial_dims(&output)?;
    Ok(output)
}

/// The value of `batch_dims` as counted from the front: in `[-rank, rank]` of the indices, and not
/// beyond the axis.
fn batch_of(batch_dims: i64, rank: usize, axis: usize) -> Result<usize> {
    let high = rank as i64;
    let (what, low) = ("batch_dims", -high);
    if !(low..=high).contains(&batch_dims) {
        return Err(GeometryError::Axis { what, low, high: high + 1, axis: batch_dims });
    }
    let batch = if batch_dims < 0 { batch_dims + high } else { batch_dims } as usize;
    if batch > axis {
        let most = axis as i64;
        return Err(GeometryError::TooMuch { what, most, found: batch as i64 });
    }
    Ok(batch)
}

/// The common size of two that must agree; -1 is unknown.
fn same(what: &'static str, a: i64, b: i64) -> Result<i64> {
    match (a, b) {
        (-1, other) | (other, -1) => Ok(other),
        (a, b) if a == b => Ok(a),
        (expected, found) => Err(GeometryError::SizeMismatch { what, expected, found }),
    }
}

/// The copies of a `GatherV2` of tensors of known shape: for each of `batch` batches and each of
/// `outer` steps, the output has `count` runs of `inner` elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GatherPlan {
    /// Dimensions of the output.
    pub output: Dims,
    /// Batches, each with its own indices.
    pub batch: usize,
    /// Steps over the dimensions between batch and axis.
    pub outer: usize,
    /// Size of the indexed dimension.
    pub size: usize,
    /// Elements per index.
    pub inner: usize,
    /// Indices per batch.
    pub count: usize,
}

impl GatherPlan {
    /// Plans a `GatherV2`.
    pub fn new(params: &[i64], indices: &[i64], axis: i64, batch_dims: i64) -> Result<GatherPlan> {
        validate_dims(params)?;
        validate_dims(indices)?;
        let output = gather_dims(params, indices, axis, batch_dims)?;
        validate_dims(&output)?;
        let axis = normalize_axis("axis", axis, params.len())?;
        let batch = batch_of(batch_dims, indices.len(), axis)?;
        Ok(GatherPlan {
            output,
            batch: element_count(&params[..batch])?,
            outer: element_count(&params[batch..axis])?,
            size: params[axis] as usize,
            inner: element_count(&params[axis + 1..])?,
            count: element_count(&indices[batch..])?,
        })
    }
}

/// Length of the index vectors, the last dimension of `indices`; `None` if it is unknown.
fn depth_of(indices: &[i64], rank: usize) -> Result<Option<usize>> {
    let what = "indices";
    let Some(&depth) = indices.last() else {
        return Err(GeometryError::RankTooSmall { what, expected: 1, found: 0 });
    };
    if depth > rank as i64 {
        let what = "the last dimension of indices";
        return Err(GeometryError::TooMuch { what, most: rank as i64, found: depth });
    }
    Ok((depth >= 0).then_some(depth as usize))
}

/// Shape of a `GatherNd`, which is also that of the updates of a `ScatterNd` into `params`:
/// `indices[..-1] + params[depth..]`. -1 is an unknown dimension; `None` means that the rank is
/// unknown.
pub fn gather_nd_dims(params: &[i64], indices: &[i64]) -> Result<Option<Dims>> {
    validate_partial_dims(params)?;
    validate_partial_dims(indices)?;
    let Some(depth) = depth_of(indices, params.len())? else { return Ok(None) };
    let mut output = Dims::from_slice(&indices[..indices.len() - 1])?;
    params[depth..].iter().try_for_each(|&size| output.push(size))?;
    validate_partial_dims(&output)?;
    Ok(Some(output))
}

/// The slices of a tensor of known shape that the index vectors of `GatherNd` and `ScatterNd`
/// select.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlicePlan {
    /// Dimensions of all slices together: the output of `GatherNd`, or the updates of `ScatterNd`.
    pub slices: Dims,
    /// Number of index vectors.
    pub count: usize,
    /// Length of an index vector.
    pub depth: usize,
    /// Elements of a slice.
    pub len: usize,
    dims: Dims,
    strides: Dims,
}

impl SlicePlan {
    /// Plans the access to a tensor with indices of these dimensions.
    pub fn new(tensor: &[i64], indices: &[i64]) -> Result<SlicePlan> {
        validate_dims(tensor)?;
        validate_dims(indices)?;
        let slices = gather_nd_dims(tensor, indices)?.unwrap_or_default();
        validate_dims(&slices)?;
        let depth = depth_of(indices, tensor.len())?.unwrap_or(0);
        let dims = Dims::from_slice(&tensor[..depth])?;
        Ok(SlicePlan {
            slices,
            count: element_count(&indices[..indices.len() - 1])?,
            depth,
            len: element_count(&tensor[depth..])?,
            dims,
            strides: row_major_strides(&dims)?,
        })
    }

    /// The number of the slice for an index vector of [`SlicePlan::depth`] indices; `None` if one
    /// is outside its dimension.
    pub fn slice(&self, index: &[i64]) -> Option<usize> {
        let mut slice = 0i64;
        for ((&at, &size), &stride) in index.iter().zip(&*self.dims).zip(&*self.strides) {
            if !(0..size).contains(&at) {
                return None;
            }
            slice = slice.wrapping_add(at.wrapping_mul(stride));
        }
        usize::try_from(slice).ok()
    }

    /// Checks the shape of the updates.
    pub fn check_updates(&self, found: &[i64]) -> Result<()> {
        if self.slices == *found {
            return Ok(());
        }
        let (expected, found) = (self.slices.to_vec(), found.to_vec());
        Err(GeometryError::UpdateShape { expected, found })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gathered_shapes() {
        assert_eq!(gather_dims(&[5, 3, 2], &[4, -1], 1, 0).unwrap(), [5, 4, -1, 2]);
        assert_eq!(gather_dims(&[-1, 3, 2], &[4, 7], -1, 1).unwrap(), [4, 3, 7]);
        assert_eq!(gather_dims(&[4, 3], &[4, 7], 1, -1).unwrap(), [4, 7]);
        assert_eq!(
            gather_dims(&[4, 3], &[5, 7], 1, 1).unwrap_err().to_string(),
            "a batch dimension of indices must be 4, got 5"
        );
        assert_eq!(
            gather_dims(&[4, 3], &[4, 7], 0, 1).unwrap_err().to_string(),
            "batch_dims must be at most 0, got 1"
        );
        assert!(gather_dims(&[], &[], 0, 0).is_err());
        let plan = GatherPlan::new(&[2, 3, 5, 7], &[2, 4], 2, 1).unwrap();
        assert_eq!((plan.batch, plan.outer, plan.size, plan.inner, plan.count), (2, 3, 5, 7, 4));
    }

    #[test]
    fn slices_by_index_vectors() {
        let plan = SlicePlan::new(&[2, 3, 4], &[5, 2]).unwrap();
        assert_eq!(plan.slices, [5, 4]);
        assert_eq!((plan.count, plan.depth, plan.len), (5, 2, 4));
        assert_eq!(plan.slice(&[1, 2]), Some(5));
        assert_eq!(plan.slice(&[1, 3]), None);
        assert_eq!(plan.slice(&[-1, 0]), None);
        assert_eq!(plan.check_updates(&[5, 4]), Ok(()));
        assert_eq!(
            plan.check_updates(&[5]).unwrap_err().to_string(),
            "updates must have shape [5, 4], got [5]"
        );
        assert_eq!(
            gather_nd_dims(&[2], &[5, 2]).unwrap_err().to_string(),
            "the last dimension of indices must be at most 1, got 2"
        );
        assert_eq!(gather_nd_dims(&[2], &[5, -1]).unwrap(), None);
        assert!(gather_nd_dims(&[2], &[]).is_err());
    }
}
