//! Shapes of `Reshape`, `Squeeze`, `ExpandDims` and `Bitcast`, which do not read elements.

use crate::error::{GeometryError, Result};
use crate::reduce::{AxisSet, normalize_axis};
use crate::size::{Dims, element_count, known_element_count, validate_partial_dims};
use crate::split::at_least;

/// Shape of a `Reshape` of an input (dimensions -1 are unknown) to `shape`, in which one -1 stands
/// for the size that keeps the number of elements. The result contains -1 only if that cannot be
/// inferred yet.
///
/// Next to a 0, any size for the -1 keeps the number. As in TensorFlow, it is then the quotient
/// (rounded down) of the sizes that are not 0, so `[0, 6]` to `[0, 2, -1]` gives `[0, 2, 3]`.
pub fn reshape_dims(input: &[i64], shape: &[i64]) -> Result<Dims> {
    let elements = known_element_count(input)?;
    let mut output = Dims::from_slice(shape)?;
    at_least("shape", -1, shape.iter().copied().min().unwrap_or(0))?;
    validate_partial_dims(shape)?;
    let mut unknown = (0..shape.len()).filter(|&i| shape[i] == -1);
    let inferred = unknown.next();
    if unknown.next().is_some() {
        return Err(GeometryError::ManyUnknown { what: "shape", dims: shape.to_vec() });
    }
    let Some(elements) = elements.map(|count| count as i64) else {
        return Ok(output);
    };
    if let Some(index) = inferred {
        let positive = |dims: &[i64]| {
            dims.iter().filter(|&&size| size > 0).fold(1i64, |p, &d| p.saturating_mul(d))
        };
        let total = if shape.contains(&0) { positive(input) } else { elements };
        output[index] = total / positive(shape);
    }
    if element_count(&output)? as i64 == elements {
        Ok(output)
    } else {
        Err(GeometryError::Reshape { elements, dims: shape.to_vec() })
    }
}

/// Shape of a `Squeeze`: without the given dimensions, which must be 1, or, if `axes` is empty,
/// without every dimension of size 1. `None` if that depends on an unknown dimension (-1).
pub fn squeeze_dims(input: &[i64], axes: &[i64]) -> Result<Option<Dims>> {
    validate_partial_dims(input)?;
    if axes.is_empty() && input.contains(&-1) {
        return Ok(None);
    }
    let mut squeezed = AxisSet::default();
    for &axis in axes {
        let index = normalize_axis("squeeze_dims", axis, input.len())?;
        if input[index] != 1 && input[index] != -1 {
            return Err(GeometryError::Squeeze { index, found: input[index] });
        }
        squeezed = squeezed.with(index);
    }
    let mut output = Dims::EMPTY;
    for (i, &size) in input.iter().enumerate() {
        let drops = if axes.is_empty() { size == 1 } else { squeezed.contains(i) };
        if !drops {
            output.push(size)?;
        }
    }
    Ok(Some(output))
}

/// Shape of an `ExpandDims`: a 1 inserted before dimension `axis`, in `[-(rank + 1), rank + 1)`.
pub fn expand_dims(input: &[i64], axis: i64) -> Result<Dims> {
    validate_partial_dims(input)?;
    let axis = normalize_axis("dim", axis, input.len() + 1)?;
    let mut output = Dims::from_slice(&input[..axis])?;
    output.push(1)?;
    for &size in &input[axis..] {
        output.push(size)?;
    }
    Ok(output)
}

/// Shape of a `Bitcast` between elements of `from` and `to` bytes: a larger element splits into a
/// new last dimension, smaller ones join along the last dimension, which must have exactly the
/// right number of them (-1: unknown).
pub fn bitcast_dims(input: &[i64], from: usize, to: usize) -> Result<Dims> {
    validate_partial_dims(input)?;
    let mut output = Dims::from_slice(input)?;
    if from > to {
        output.push((from / to) as i64)?;
    } else if from < to {
        match input.split_last() {
            Some((&last, rest)) if last == -1 || last == (to / from) as i64 => {
                return Dims::from_slice(rest);
            }
            _ => return Err(GeometryError::Bitcast { from, to, dims: input.to_vec() }),
        }
    }
    Ok(output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reshapes() {
        assert_eq!(reshape_dims(&[2, 3, 4], &[6, -1]).unwrap(), [6, 4]);
        assert_eq!(reshape_dims(&[1], &[]).unwrap(), []);
        assert_eq!(reshape_dims(&[0, 4], &[-1, 4]).unwrap(), [0, 4]);
        assert_eq!(reshape_dims(&[0, 4], &[0, 9]).unwrap(), [0, 9]);
        assert_eq!(reshape_dims(&[0], &[0, -1]).unwrap(), [0, 1]);
        assert_eq!(reshape_dims(&[0, 6], &[0, 2, -1]).unwrap(), [0, 2, 3]);
        assert_eq!(reshape_dims(&[-1, 4], &[-1, 2]).unwrap(), [-1, 2]);
        assert_eq!(reshape_dims(&[-1, 4], &[5, 2]).unwrap(), [5, 2]);
    }

    #[test]
    fn bad_reshapes() {
        let error =
            |input: &[i64], shape: &[i64]| reshape_dims(input, shape).unwrap_err().to_string();
        assert_eq!(
            error(&[2, 3], &[5]),
            "shape must have as many elements as tensor, which is 6, got [5]"
        );
        assert_eq!(
            error(&[2, 3], &[-1, 4]),
            "shape must have as many elements as tensor, which is 6, got [-1, 4]"
        );
        assert_eq!(
            error(&[2, 3], &[-1, 0]),
            "shape must have as many elements as tensor, which is 6, got [-1, 0]"
        );
        assert_eq!(error(&[2, 3], &[-1, -1]), "shape may hold one -1, got [-1, -1]");
        assert_eq!(error(&[2], &[-2]), "shape must be at least -1, got -2");
    }

    #[test]
    fn squeezes() {
        assert_eq!(squeeze_dims(&[1, 2, 1], &[]).unwrap().unwrap(), [2]);
        assert_eq!(squeeze_dims(&[1, 2, 1], &[-1, 2]).unwrap().unwrap(), [1, 2]);
        assert_eq!(squeeze_dims(&[1, -1], &[]).unwrap(), None);
        assert_eq!(squeeze_dims(&[1, -1], &[1]).unwrap().unwrap(), [1]);
        assert_eq!(
            squeeze_dims(&[1, 2], &[1]).unwrap_err().to_string(),
            "dimension 1 of input must be 1 to be squeezed, got 2"
        );
        assert!(squeeze_dims(&[1], &[1]).is_err());
    }

    #[test]
    fn expansions() {
        assert_eq!(expand_dims(&[2, 3], 0).unwrap(), [1, 2, 3]);
        assert_eq!(expand_dims(&[2, -1], -1).unwrap(), [2, -1, 1]);
        assert_eq!(expand_dims(&[], 0).unwrap(), [1]);
        assert!(expand_dims(&[2], 2).is_err());
        assert!(expand_dims(&[1; 16], 0).is_err());
    }

    #[test]
    fn bitcasts() {
        assert_eq!(bitcast_dims(&[2, -1], 4, 4).unwrap(), [2, -1]);
        assert_eq!(bitcast_dims(&[2], 8, 2).unwrap(), [2, 4]);
        assert_eq!(bitcast_dims(&[-1, 4], 2, 8).unwrap(), [-1]);
        assert_eq!(bitcast_dims(&[5, -1], 1, 16).unwrap(), [5]);
        assert_eq!(
            bitcast_dims(&[4, 3], 2, 8).unwrap_err().to_string(),
            "the last dimension of input must be 4, of elements of 2 bytes that join to 8, got [4, 3]"
        );
        assert!(bitcast_dims(&[], 1, 2).is_err());
        assert!(bitcast_dims(&[1; 16], 2, 1).is_err());
    }
}
