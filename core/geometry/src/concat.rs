//! Joining tensors: `ConcatV2` along an axis they have, `Pack` along a new one.
//!
//! Seen as (outer, axis, inner), each input is `outer` pieces of `axis * inner` neighbouring
//! elements; the output consists, `outer` times, of one piece of each input in turn. `Pack` is the
//! same with pieces of `inner`.

use crate::error::{GeometryError, Result};
use crate::reduce::normalize_axis;
use crate::size::{Dims, element_count, index, validate_dims, validate_partial_dims};

/// The axis of a concatenation, in `[-rank, rank)`, as counted from the front.
pub fn concat_axis(axis: i64, rank: usize) -> Result<usize> {
    normalize_axis("axis", axis, rank)
}

/// The axis of a `Pack` of tensors with `rank` dimensions, in `[-(rank + 1), rank + 1)`, as counted
/// from the front.
pub fn pack_axis(axis: i64, rank: usize) -> Result<usize> {
    normalize_axis("axis", axis, rank + 1)
}

/// Shape of a concatenation; -1 is an unknown dimension.
///
/// The inputs have the same rank, at least 1, and the same sizes except along the axis.
pub fn concat_dims(inputs: &[&[i64]], axis: i64) -> Result<Dims> {
    let first = inputs.first().ok_or(GeometryError::NoInputs)?;
    let axis = concat_axis(axis, first.len())?;
    let mut total = Some(0i64);
    let mut output = Dims::from_slice(first)?;
    for (i, input) in inputs.iter().enumerate() {
        merge(&mut output, input, i, Some(axis))?;
        total = match total.filter(|_| input[axis] >= 0) {
            Some(sum) => Some(
                sum.checked_add(input[axis])
                    .ok_or_else(|| GeometryError::TooLarge { dims: vec![sum, input[axis]] })?,
            ),
            None => None,
        };
    }
    output[axis] = total.unwrap_or(-1);
    validate_partial_dims(&output)?;
    Ok(output)
}

/// Shape of a `Pack` (`tf.stack`): the inputs' common shape with their number inserted at the axis.
pub fn pack_dims(inputs: &[&[i64]], axis: i64) -> Result<Dims> {
    let first = inputs.first().ok_or(GeometryError::NoInputs)?;
    let axis = pack_axis(axis, first.len())?;
    let mut common = Dims::from_slice(first)?;
    for (i, input) in inputs.iter().enumerate() {
        merge(&mut common, input, i, None)?;
    }
    let mut output = Dims::from_slice(&common[..axis])?;
    output.push(inputs.len() as i64)?;
    for &size in &common[axis..] {
        output.push(size)?;
    }
    validate_partial_dims(&output)?;
    Ok(output)
}

/// Merges an input's shape into the common one; an unknown dimension takes the other's size.
fn merge(common: &mut Dims, input: &[i64], number: usize, axis: Option<usize>) -> Result<()> {
    validate_partial_dims(input)?;
    let mismatch = |common: &Dims| GeometryError::InputShape {
        input: number,
        expected: common.to_vec(),
        found: input.to_vec(),
    };
    if input.len() != common.len() {
        return Err(mismatch(common));
    }
    for i in (0..input.len()).filter(|&i| Some(i) != axis) {
        match (common[i], input[i]) {
            (a, b) if a == b => {}
            (-1, known) => common[i] = known,
            (_, -1) => {}
            _ => return Err(mismatch(common)),
        }
    }
    Ok(())
}

/// The copies that make a concatenation or `Pack` of tensors of known shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConcatPlan {
    /// Dimensions of the output.
    pub output: Dims,
    /// The number of times that a piece of every input is copied.
    pub outer: usize,
    /// Elements per step along the axis.
    pub inner: usize,
    axis: Option<usize>,
}

impl ConcatPlan {
    /// Plans a concatenation.
    pub fn concat(inputs: &[&[i64]], axis: i64) -> Result<ConcatPlan> {
        inputs.iter().try_for_each(|dims| validate_dims(dims))?;
        let output = concat_dims(inputs, axis)?;
        ConcatPlan::new(output, concat_axis(axis, output.len())?, true)
    }

    /// Plans a `Pack`.
    pub fn pack(inputs: &[&[i64]], axis: i64) -> Result<ConcatPlan> {
        inputs.iter().try_for_each(|dims| validate_dims(dims))?;
        let output = pack_dims(inputs, axis)?;
        ConcatPlan::new(output, pack_axis(axis, output.len() - 1)?, false)
    }

    fn new(output: Dims, axis: usize, joins: bool) -> Result<ConcatPlan> {
        let empty = element_count(&output)? == 0;
        let part = |dims: &[i64]| if empty { Ok(0) } else { element_count(dims) };
        let (outer, inner) = (part(&output[..axis])?, part(&output[axis + 1..])?);
        Ok(ConcatPlan { output, outer, inner, axis: joins.then_some(axis) })
    }

    /// Neighbouring elements copied at a time from an input with these dimensions.
    pub fn piece(&self, input: &[i64]) -> usize {
        self.axis.map_or(1, |axis| index(input[axis])) * self.inner
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn concatenation() {
        let plan = ConcatPlan::concat(&[&[2, 3, 4], &[2, 0, 4], &[2, 5, 4]], -2).unwrap();
        assert_eq!(plan.output, [2, 8, 4]);
        assert_eq!((plan.outer, plan.inner), (2, 4));
        assert_eq!((plan.piece(&[2, 3, 4]), plan.piece(&[2, 0, 4])), (12, 0));
    }

    #[test]
    fn packing() {
        let plan = ConcatPlan::pack(&[&[2, 3], &[2, 3]], -1).unwrap();
        assert_eq!(plan.output, [2, 3, 2]);
        assert_eq!((plan.outer, plan.inner, plan.piece(&[2, 3])), (6, 1, 1));
        let plan = ConcatPlan::pack(&[&[], &[], &[]], 0).unwrap();
        assert_eq!(plan.output, [3]);
        assert_eq!((plan.outer, plan.inner, plan.piece(&[])), (1, 1, 1));
        assert_eq!(pack_dims(&[&[-1, 3], &[2, -1]], 1).unwrap(), [2, 2, 3]);
        assert!(pack_dims(&[&[2]], 2).is_err());
    }

    #[test]
    fn unknown_dimensions_take_the_known_size() {
        assert_eq!(concat_dims(&[&[-1, 3], &[5, 2]], 1).unwrap(), [5, 5]);
        assert_eq!(concat_dims(&[&[5, -1], &[-1, 2]], 1).unwrap(), [5, -1]);
    }

    #[test]
    fn bad_inputs_are_refused() {
        assert_eq!(
            concat_dims(&[&[2, 3], &[3, 3]], 1).unwrap_err().to_string(),
            "values[1] must have the shape of values[0] except along the joined axis: expected [2, 3], got [3, 3]"
        );
        assert!(concat_dims(&[&[2, 3], &[2]], 0).is_err());
        assert!(concat_dims(&[&[2, 3]], 2).is_err());
        assert!(concat_dims(&[&[]], 0).is_err());
        assert_eq!(concat_dims(&[], 0), Err(GeometryError::NoInputs));
        assert!(concat_dims(&[&[i64::MAX], &[1]], 0).is_err());
    }
}
