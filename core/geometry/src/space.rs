//! Moves blocks of space into the batch or into the depth, and back.
//!
//! `SpaceToBatchND` pads the spatial dimensions 1 to M and cuts each into blocks; element `k` of
//! all blocks makes up an image. With `k` counted row by row over the block, element `o` of
//! dimension `d` of image `k * batch + n` is element `o * block[d] + k[d] - before[d]` of image
//! `n`. `BatchToSpaceND` is the inverse, with crops in place of paddings.

use crate::error::{GeometryError, Result};
use crate::offsets::Offsets;
use crate::size::{Dims, element_count, row_major_strides, validate_dims, validate_partial_dims};
use crate::split::at_least;
use crate::window::check_len;

const PADDED: &str = "a dimension of input with its paddings";

/// Checks block and paddings; returns the number of elements of a block.
fn check_block(input: &[i64], block: &[i64], what: &'static str, pairs: &[i64]) -> Result<i64> {
    validate_partial_dims(input)?;
    if input.len() <= block.len() {
        let expected = block.len() + 1;
        return Err(GeometryError::RankTooSmall { what: "input", expected, found: input.len() });
    }
    check_len(what, 2 * block.len(), pairs)?;
    at_least(what, 0, pairs.iter().copied().min().unwrap_or(0))?;
    at_least("block_shape", 1, block.iter().copied().min().unwrap_or(1))?;
    let too_large = || GeometryError::TooLarge { dims: block.to_vec() };
    block.iter().try_fold(1i64, |product, &size| product.checked_mul(size)).ok_or_else(too_large)
}

/// Shape of a `SpaceToBatchND`; -1 is an unknown dimension.
pub fn space_to_batch_dims(input: &[i64], block: &[i64], paddings: &[i64]) -> Result<Dims> {
    let elements = check_block(input, block, "paddings", paddings)?;
    let mut output = Dims::from_slice(input)?;
    let too_large = || GeometryError::TooLarge { dims: input.to_vec() };
    if output[0] >= 0 {
        output[0] = output[0].checked_mul(elements).ok_or_else(too_large)?;
    }
    for (d, &divisor) in block.iter().enumerate() {
        let size = input[d + 1];
        if size >= 0 {
            let padded =
                size.checked_add(paddings[2 * d]).and_then(|s| s.checked_add(paddings[2 * d + 1]));
            output[d + 1] = divided(PADDED, padded.ok_or_else(too_large)?, "block_shape", divisor)?;
        }
    }
    validate_partial_dims(&output)?;
    Ok(output)
}

/// Shape of a `BatchToSpaceND`; -1 is an unknown dimension.
pub fn batch_to_space_dims(input: &[i64], block: &[i64], crops: &[i64]) -> Result<Dims> {
    let elements = check_block(input, block, "crops", crops)?;
    let mut output = Dims::from_slice(input)?;
    let too_large = || GeometryError::TooLarge { dims: input.to_vec() };
    if output[0] >= 0 {
        output[0] = divided(
            "the first dimension of input",
            output[0],
            "the product of block_shape",
            elements,
        )?;
    }
    for (d, &factor) in block.iter().enumerate() {
        let size = input[d + 1];
        if size >= 0 {
            let whole = size.checked_mul(factor).ok_or_else(too_large)?;
            let left =
                whole.checked_sub(crops[2 * d]).and_then(|s| s.checked_sub(crops[2 * d + 1]));
            output[d + 1] = left.unwrap_or(-1);
            at_least("what crops leave of a dimension", 0, output[d + 1])?;
        }
    }
    validate_partial_dims(&output)?;
    Ok(output)
}

fn divided(
    what: &'static str,
    value: i64,
    divisor_name: &'static str,
    divisor: i64,
) -> Result<i64> {
    if value % divisor != 0 {
        return Err(GeometryError::NotDivisible { what, value, divisor_name, divisor });
    }
    Ok(value / divisor)
}

/// The corresponding runs of elements in the tensor in space and in the tensor of blocks.
#[derive(Debug, Clone, Copy)]
pub struct SpaceBatchPlan {
    /// Dimensions of the tensor in space up to the last spatial one, and of the tensor of blocks.
    space: Dims,
    batch: Dims,
    space_strides: Dims,
    batch_strides: Dims,
    block: Dims,
    before: Dims,
    blocks: usize,
    /// Elements of a run.
    pub run: usize,
}

impl SpaceBatchPlan {
    /// Plans for tensors of these dimensions; one must be the other's shape by
    /// [`space_to_batch_dims`] or [`batch_to_space_dims`]. `pairs` are the paddings or crops.
    pub fn new(
        space: &[i64],
        batch: &[i64],
        block: &[i64],
        pairs: &[i64],
    ) -> Result<SpaceBatchPlan> {
        validate_dims(space)?;
        validate_dims(batch)?;
        let outer = block.len() + 1;
        let empty = element_count(space)? == 0 || element_count(batch)? == 0;
        let mut before = Dims::EMPTY;
        pairs.chunks_exact(2).try_for_each(|pair| before.push(pair[0]))?;
        let strides = |dims: &[i64]| Dims::from_slice(&row_major_strides(dims)?[..outer]);
        Ok(SpaceBatchPlan {
            space: Dims::from_slice(&space[..outer])?,
            batch: Dims::from_slice(&batch[..outer])?,
            space_strides: strides(space)?,
            batch_strides: strides(batch)?,
            block: Dims::from_slice(block)?,
            before,
            blocks: if empty { 0 } else { element_count(block)? },
            run: element_count(&space[outer..])?,
        })
    }

    /// For each element of a block, the first elements of its runs in both tensors.
    pub fn runs(&self) -> impl Iterator<Item = (Offsets, Offsets)> + '_ {
        (0..self.blocks).map(|element| self.runs_of(element as i64))
    }

    fn runs_of(&self, element: i64) -> (Offsets, Offsets) {
        let (mut extents, mut steps) = (self.space, self.space_strides);
        let (mut from, mut to) = (0, element * self.space[0] * self.batch_strides[0]);
        let mut rest = element;
        for d in (0..self.block.len()).rev() {
            let (block, shift) = (self.block[d], rest % self.block[d] - self.before[d]);
            rest /= block;
            let first = ceil(-shift, block).clamp(0, self.batch[d + 1]);
            let end = ceil(self.space[d + 1] - shift, block).clamp(first, self.batch[d + 1]);
            extents[d + 1] = end - first;
            steps[d + 1] *= block;
            from += (first * block + shift) * self.space_strides[d + 1];
            to += first * self.batch_strides[d + 1];
        }
        (Offsets::new(&extents, &steps, from), Offsets::new(&extents, &self.batch_strides, to))
    }
}

fn ceil(value: i64, divisor: i64) -> i64 {
    value.div_euclid(divisor) + i64::from(value.rem_euclid(divisor) != 0)
}

/// The position of the channels in images, for `SpaceToDepth` and `DepthToSpace`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DepthFormat {
    /// Batch, rows, columns, channels.
    Nhwc,
    /// Batch, channels, rows, columns.
    Nchw,
    /// Like `Nchw`, with channels in groups of four, which are the last dimension.
    NchwVectC,
}

impl DepthFormat {
    /// Reads the format with this name.
    pub fn parse(name: &str) -> Result<DepthFormat> {
        match name {
            "NHWC" => Ok(DepthFormat::Nhwc),
            "NCHW" => Ok(DepthFormat::Nchw),
            "NCHW_VECT_C" => Ok(DepthFormat::NchwVectC),
            found => Err(GeometryError::Name {
                what: "data_format",
                allowed: "NHWC, NCHW, NCHW_VECT_C",
                found: found.to_owned(),
            }),
        }
    }

    /// Positions of channels and rows; the columns follow the rows.
    fn places(self) -> (usize, usize) {
        if self == DepthFormat::Nhwc { (3, 1) } else { (1, 2) }
    }

    fn check(self, input: &[i64], block: i64) -> Result<i64> {
        validate_partial_dims(input)?;
        let expected = if self == DepthFormat::NchwVectC { 5 } else { 4 };
        if input.len() != expected {
            return Err(GeometryError::Rank { what: "input", expected, found: input.len() });
        }
        at_least("block_size", 2, block)?;
        if self == DepthFormat::NchwVectC && ![-1, 4].contains(&input[4]) {
            let what = "the last dimension of input, as NCHW_VECT_C,";
            return Err(GeometryError::SizeMismatch { what, expected: 4, found: input[4] });
        }
        block.checked_mul(block).ok_or_else(|| GeometryError::TooLarge { dims: vec![block, block] })
    }

    /// Shape of a `SpaceToDepth`; -1 is an unknown dimension.
    pub fn space_to_depth_dims(self, input: &[i64], block: i64) -> Result<Dims> {
        let square = self.check(input, block)?;
        let (channels, rows) = self.places();
        let mut output = Dims::from_slice(input)?;
        for (at, what) in [(rows, "the height of input"), (rows + 1, "the width of input")] {
            if output[at] >= 0 {
                output[at] = divided(what, output[at], "block_size", block)?;
            }
        }
        if output[channels] >= 0 {
            let too_large = || GeometryError::TooLarge { dims: input.to_vec() };
            output[channels] = output[channels].checked_mul(square).ok_or_else(too_large)?;
        }
        validate_partial_dims(&output)?;
        Ok(output)
    }

    /// Shape of a `DepthToSpace`; -1 is an unknown dimension.
    pub fn depth_to_space_dims(self, input: &[i64], block: i64) -> Result<Dims> {
        let square = self.check(input, block)?;
        let (channels, rows) = self.places();
        let mut output = Dims::from_slice(input)?;
        if output[channels] >= 0 {
            output[channels] =
                divided("the depth of input", output[channels], "block_size squared", square)?;
        }
        for at in [rows, rows + 1] {
            if output[at] >= 0 {
                let too_large = || GeometryError::TooLarge { dims: input.to_vec() };
                output[at] = output[at].checked_mul(block).ok_or_else(too_large)?;
            }
        }
        validate_partial_dims(&output)?;
        Ok(output)
    }

    /// A `SpaceToDepth` as a transposition: the dimensions into which those of the input are cut,
    /// and their order in the output.
    pub fn space_to_depth_parts(self, input: &[i64], block: i64) -> Result<(Dims, Dims)> {
        let out = self.space_to_depth_dims(input, block)?;
        let (parts, perm): (&[i64], &[i64]) = match self {
            DepthFormat::Nhwc => {
                (&[out[0], out[1], block, out[2], block, input[3]], &[0, 1, 3, 2, 4, 5])
            }
            DepthFormat::Nchw => {
                (&[out[0], input[1], out[2], block, out[3], block], &[0, 3, 5, 1, 2, 4])
            }
            DepthFormat::NchwVectC => {
                (&[out[0], input[1], out[2], block, out[3], block, 4], &[0, 3, 5, 1, 2, 4, 6])
            }
        };
        Ok((Dims::from_slice(parts)?, Dims::from_slice(perm)?))
    }

    /// A `DepthToSpace` as a transposition, like [`DepthFormat::space_to_depth_parts`].
    pub fn depth_to_space_parts(self, input: &[i64], block: i64) -> Result<(Dims, Dims)> {
        let out = self.depth_to_space_dims(input, block)?;
        let (parts, perm): (&[i64], &[i64]) = match self {
            DepthFormat::Nhwc => {
                (&[out[0], input[1], input[2], block, block, out[3]], &[0, 1, 3, 2, 4, 5])
            }
            DepthFormat::Nchw => {
                (&[out[0], block, block, out[1], input[2], input[3]], &[0, 3, 4, 1, 5, 2])
            }
            DepthFormat::NchwVectC => {
                (&[out[0], block, block, out[1], input[2], input[3], 4], &[0, 3, 4, 1, 5, 2, 6])
            }
        };
        Ok((Dims::from_slice(parts)?, Dims::from_slice(perm)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_of_blocks() {
        assert_eq!(
            space_to_batch_dims(&[2, 3, -1, 5], &[2, 3], &[1, 0, 2, 2]).unwrap(),
            [12, 2, -1, 5]
        );
        assert_eq!(
            batch_to_space_dims(&[12, 2, 4, 5], &[2, 3], &[1, 0, 2, 2]).unwrap(),
            [2, 3, 8, 5]
        );
        assert_eq!(
            space_to_batch_dims(&[1, 3], &[2], &[0, 0]).unwrap_err().to_string(),
            "a dimension of input with its paddings (3) must be a multiple of block_shape (2)"
        );
        assert!(batch_to_space_dims(&[3, 3], &[2], &[0, 0]).is_err());
        assert!(batch_to_space_dims(&[4, 1], &[2], &[1, 2]).is_err());
        assert!(space_to_batch_dims(&[1], &[2], &[0, 0]).is_err());
        assert!(space_to_batch_dims(&[1, 2], &[0], &[0, 0]).is_err());
        assert!(space_to_batch_dims(&[1, 2], &[i64::MAX], &[0, i64::MAX]).is_err());
    }

    #[test]
    fn every_element_in_space_has_one_place() {
        let (space, pairs) = ([2, 3, 4, 5], [1, 0, 2, 0]);
        let batch = space_to_batch_dims(&space, &[2, 3], &pairs).unwrap();
        let plan = SpaceBatchPlan::new(&space, &batch, &[2, 3], &pairs).unwrap();
        assert_eq!(plan.run, 5);
        let mut places: Vec<(usize, usize)> =
            plan.runs().flat_map(|(from, to)| from.zip(to)).collect();
        // Element (0, 0) of the first blocks is padding; the first other one is at (1, 1) in space.
        assert_eq!(places[0].0, 25);
        places.sort();
        assert_eq!(
            places.iter().map(|p| p.0).collect::<Vec<_>>(),
            (0..24).map(|i| i * 5).collect::<Vec<_>>()
        );
        places.sort_by_key(|place| place.1);
        places.dedup_by_key(|place| place.1);
        assert_eq!(places.len(), 24);
    }

    #[test]
    fn shapes_of_depth() {
        let f = DepthFormat::Nhwc;
        assert_eq!(f.space_to_depth_dims(&[1, 4, 6, 3], 2).unwrap(), [1, 2, 3, 12]);
        assert_eq!(f.depth_to_space_dims(&[1, 2, 3, 12], 2).unwrap(), [1, 4, 6, 3]);
        let f = DepthFormat::NchwVectC;
        assert_eq!(f.space_to_depth_dims(&[1, 3, 4, 6, 4], 2).unwrap(), [1, 12, 2, 3, 4]);
        assert!(f.space_to_depth_dims(&[1, 3, 4, 6, 3], 2).is_err());
        assert!(DepthFormat::Nchw.depth_to_space_dims(&[1, 3, 4, 6], 2).is_err());
        assert!(DepthFormat::Nchw.depth_to_space_dims(&[1, 4, 4, 6], i64::MAX).is_err());
    }
}
