//! Repeated, mirrored and rotated tensors: `Tile`, `BroadcastTo`, `MirrorPad`, `OneHot`, `Roll`;
//! and the length of a `Range`.

use crate::broadcast::broadcast_shape;
use crate::error::{GeometryError, Result};
use crate::pad::pad_dims;
use crate::reduce::normalize_axis;
use crate::size::{Dims, validate_partial_dims};
use crate::split::at_least;
use crate::window::check_len;
use tenon_abi::DType;
use tenon_framework::element::{bf16, f16};

/// Shape of a `Tile`; -1 is an unknown dimension.
pub fn tile_dims(input: &[i64], multiples: &[i64]) -> Result<Dims> {
    validate_partial_dims(input)?;
    check_len("multiples", input.len(), multiples)?;
    let mut output = Dims::from_slice(input)?;
    for (size, &multiple) in output.iter_mut().zip(multiples) {
        at_least("multiples", 0, multiple)?;
        if *size >= 0 {
            let too_large = GeometryError::TooLarge { dims: vec![*size, multiple] };
            *size = size.checked_mul(multiple).ok_or(too_large)?;
        }
    }
    validate_partial_dims(&output)?;
    Ok(output)
}

/// Checks that a tensor can be repeated to a shape; -1 is an unknown dimension of either.
pub fn check_broadcast_to(input: &[i64], shape: &[i64]) -> Result<()> {
    let joined = broadcast_shape(input, shape)?;
    let fits = joined.len() == shape.len()
        && joined
            .iter()
            .zip(shape)
            .all(|(&joined, &wanted)| wanted == -1 || joined == wanted || joined == -1);
    if fits {
        return Ok(());
    }
    Err(GeometryError::Incompatible { a: input.to_vec(), b: shape.to_vec() })
}

/// The dimensions over which the gradients of two broadcast operands are summed: those of size 1 or
/// missing in an operand, in ascending order; none for equal shapes.
///
/// If both have size 1, both lists contain the dimension, unless the shapes are equal.
pub fn broadcast_gradient_axes(a: &[i64], b: &[i64]) -> Result<[Dims; 2]> {
    let mut axes = [Dims::EMPTY; 2];
    if a == b {
        return Ok(axes);
    }
    let rank = broadcast_shape(a, b)?.len();
    let size =
        |dims: &[i64], at: usize| (at + dims.len()).checked_sub(rank).map_or(1, |own| dims[own]);
    for at in 0..rank {
        let sizes = [size(a, at), size(b, at)];
        for (axes, own) in axes.iter_mut().zip(sizes) {
            if own == 1 {
                axes.push(at as i64)?;
            }
        }
    }
    Ok(axes)
}

/// The offset of a `MirrorPad` by its `mode`: 1 for `REFLECT`, which does not repeat the elements at
/// the edge, and 0 for `SYMMETRIC`, which does.
pub fn mirror_offset(mode: &str) -> Result<i64> {
    match mode {
        "REFLECT" => Ok(1),
        "SYMMETRIC" => Ok(0),
        found => Err(GeometryError::Name {
            what: "mode",
            allowed: "REFLECT, SYMMETRIC",
            found: found.to_owned(),
        }),
    }
}

/// Shape of a `MirrorPad`; the paddings may not exceed the mirrored elements. -1 is an unknown
/// dimension.
pub fn mirror_pad_dims(input: &[i64], paddings: &[i64], offset: i64) -> Result<Dims> {
    let output = pad_dims(input, paddings)?;
    for (&size, pair) in input.iter().zip(paddings.chunks_exact(2)) {
        let (most, found) = (size - offset, pair[0].max(pair[1]));
        if size >= 0 && found > most.max(0) {
            return Err(GeometryError::TooMuch { what: "paddings", most: most.max(0), found });
        }
    }
    Ok(output)
}

/// Shape of a `MirrorPadGrad`, which is that of the tensor before padding. -1 is an unknown
/// dimension.
pub fn mirror_pad_grad_dims(input: &[i64], paddings: &[i64], offset: i64) -> Result<Dims> {
    validate_partial_dims(input)?;
    check_len("paddings", input.len() * 2, paddings)?;
    let mut output = Dims::from_slice(input)?;
    for (size, pair) in output.iter_mut().zip(paddings.chunks_exact(2)) {
        at_least("paddings", 0, pair[0].min(pair[1]))?;
        if *size >= 0 {
            *size =
                size.checked_sub(pair[0]).and_then(|size| size.checked_sub(pair[1])).unwrap_or(-1);
            at_least("what paddings leave of a dimension", 0, *size)?;
        }
    }
    mirror_pad_dims(&output, paddings, offset)?;
    Ok(output)
}

/// Shape of a `OneHot`: `depth` inserted at an axis (-1: the last). -1 is an unknown dimension.
pub fn one_hot_dims(indices: &[i64], depth: i64, axis: i64) -> Result<Dims> {
    validate_partial_dims(indices)?;
    let rank = indices.len() as i64;
    if !(-1..=rank).contains(&axis) {
        return Err(GeometryError::Axis { what: "axis", low: -1, high: rank + 1, axis });
    }
    at_least("depth", -1, depth)?;
    let axis = if axis == -1 { indices.len() } else { axis as usize };
    let mut output = Dims::from_slice(&indices[..axis])?;
    output.push(depth)?;
    indices[axis..].iter().try_for_each(|&size| output.push(size))?;
    validate_partial_dims(&output)?;
    Ok(output)
}

/// The number of places by which `Roll` moves the elements of each dimension: the shifts of an axis
/// add up, modulo its size.
pub fn roll_shifts(input: &[i64], shift: &[i64], axis: &[i64]) -> Result<Dims> {
    if input.is_empty() {
        return Err(GeometryError::RankTooSmall { what: "input", expected: 1, found: 0 });
    }
    check_len("shift", axis.len(), shift)?;
    let mut shifts = Dims::filled(input.len(), 0)?;
    for (&shift, &axis) in shift.iter().zip(axis) {
        let axis = normalize_axis("axis", axis, input.len())?;
        let size = i128::from(input[axis].max(1));
        let sum = (i128::from(shifts[axis]) + i128::from(shift)).rem_euclid(size);
        shifts[axis] = sum as i64;
    }
    Ok(shifts)
}

/// The number of integers in a `Range`: `ceil(|limit - start| / |delta|)`.
pub fn range_len(start: i64, limit: i64, delta: i64) -> Result<i64> {
    match delta {
        0 => return Err(GeometryError::Zero { what: "delta" }),
        1.. => at_least("limit", start, limit)?,
        _ if limit > start => {
            return Err(GeometryError::TooMuch { what: "limit", most: start, found: limit });
        }
        _ => {}
    }
    let len = limit.abs_diff(start).div_ceil(delta.unsigned_abs());
    i64::try_from(len).map_err(|_| GeometryError::TooLarge { dims: vec![start, limit, delta] })
}

/// The number of floats of a type in a `Range`, with each step rounded to the type as in
/// TensorFlow; `None` if there is no such number, or delta leads away from the limit.
pub fn float_range_len(dtype: DType, start: f64, limit: f64, delta: f64) -> Option<i64> {
    let rounded = |value: f64| match dtype {
        DType::HALF => f16::from_f64(value).to_f64(),
        DType::BFLOAT16 => bf16::from_f64(value).to_f64(),
        DType::FLOAT => f64::from(value as f32),
        _ => value,
    };
    let leads = if delta > 0.0 { start <= limit } else { delta < 0.0 && start >= limit };
    let len = rounded(rounded(limit - start) / delta).abs().ceil();
    (leads && len < 2f64.powi(62)).then_some(len as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_shapes() {
        assert_eq!(tile_dims(&[2, -1], &[3, 2]).unwrap(), [6, -1]);
        assert!(tile_dims(&[2], &[-1]).is_err());
        assert!(tile_dims(&[2], &[i64::MAX]).is_err());
        assert_eq!(check_broadcast_to(&[3, 1], &[2, 3, 5]), Ok(()));
        assert!(check_broadcast_to(&[2, 3], &[1, 3]).is_err());
        assert!(check_broadcast_to(&[2, 3], &[3]).is_err());
    }

    #[test]
    fn gradients_are_summed_over_what_was_repeated() {
        let axes =
            |a: &[i64], b: &[i64]| broadcast_gradient_axes(a, b).unwrap().map(|axes| axes.to_vec());
        assert_eq!(axes(&[2, 3], &[3]), [vec![], vec![0]]);
        assert_eq!(axes(&[2, 1, 1], &[3, 1]), [vec![1, 2], vec![0, 2]]);
        assert_eq!(axes(&[1], &[1]), [vec![], vec![]]);
        assert!(broadcast_gradient_axes(&[2], &[3]).is_err());
    }

    #[test]
    fn mirrors() {
        assert_eq!(mirror_pad_dims(&[3, -1], &[2, 1, 9, 9], 1).unwrap(), [6, -1]);
        assert_eq!(
            mirror_pad_dims(&[3], &[3, 0], 1).unwrap_err().to_string(),
            "paddings must be at most 2, got 3"
        );
        assert_eq!(mirror_pad_dims(&[3], &[3, 0], 0).unwrap(), [6]);
        assert_eq!(mirror_pad_grad_dims(&[6], &[3, 0], 0).unwrap(), [3]);
        assert!(mirror_pad_grad_dims(&[4], &[3, 0], 0).is_err());
        assert!(mirror_pad_grad_dims(&[2], &[i64::MAX, i64::MAX], 0).is_err());
    }

    #[test]
    fn lengths_of_ranges() {
        assert_eq!(range_len(1, 8, 3), Ok(3));
        assert_eq!(range_len(8, 1, -3), Ok(3));
        assert_eq!(range_len(i64::MIN, i64::MAX, i64::MAX), Ok(3));
        assert!(range_len(i64::MIN, i64::MAX, 1).is_err());
        assert!(range_len(1, 8, -3).is_err());
        assert!(range_len(1, 1, 0).is_err());
        assert_eq!(float_range_len(DType::FLOAT, 0.0, 1.0, 0.25), Some(4));
        assert_eq!(float_range_len(DType::HALF, 0.0, 1.0, f64::NAN), None);
        assert_eq!(float_range_len(DType::DOUBLE, 0.0, f64::INFINITY, 1.0), None);
        assert_eq!(float_range_len(DType::DOUBLE, 0.0, 1.0, -1.0), None);
    }

    #[test]
    fn shifts_wrap() {
        assert_eq!(roll_shifts(&[5, 3], &[-1, 2, 3], &[0, 1, -1]).unwrap(), [4, 2]);
        assert_eq!(roll_shifts(&[5], &[i64::MIN, i64::MIN], &[0, 0]).unwrap(), [4]);
        assert!(roll_shifts(&[], &[], &[]).is_err());
        assert_eq!(one_hot_dims(&[2, 3], 4, -1).unwrap(), [2, 3, 4]);
        assert_eq!(one_hot_dims(&[2, 3], 4, 0).unwrap(), [4, 2, 3]);
        assert!(one_hot_dims(&[2], 4, 2).is_err());
    }
}
