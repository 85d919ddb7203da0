//! Shapes that are known in part: what is said of the elements of lists and arrays.

use tenon_sdk::prelude::*;

/// A shape of these sizes, -1 where unknown.
///
/// # Errors
/// `INVALID_ARGUMENT` for dimensions that are not a shape; `what` names it.
pub fn shape_of(dims: &[i64], what: &str) -> Result<PartialShape, KernelError> {
    if dims.iter().any(|&dim| dim < -1) {
        return Err(KernelError::invalid_argument(format!(
            "{what}: expected sizes of at least -1, found {dims:?}"
        )));
    }
    PartialShape::new(dims)
        .map_err(|error| KernelError::invalid_argument(format!("{what}: {error}")))
}

/// The shape that an input holds: a vector, or the scalar -1 for any shape.
///
/// # Errors
/// `INVALID_ARGUMENT` for anything else.
pub fn shape_in(
    c: &ComputeContext<'_>,
    input: usize,
    what: &str,
) -> Result<PartialShape, KernelError> {
    match (c.dims(input), &c.integers(input)?[..]) {
        ([], [-1]) => Ok(PartialShape::UNKNOWN),
        ([_], sizes) => shape_of(sizes, what),
        (dims, found) => Err(KernelError::invalid_argument(format!(
            "{what}: expected a vector, or the scalar -1 for any shape, found {found:?} of shape {dims:?}"
        ))),
    }
}

/// What two shapes say together.
///
/// # Errors
/// `INVALID_ARGUMENT` when they contradict each other; `what` names the second one.
pub fn merged(
    expected: &PartialShape,
    found: &PartialShape,
    what: &str,
) -> Result<PartialShape, KernelError> {
    let (a, b) = match (expected.dims(), found.dims()) {
        (None, _) => return Ok(found.clone()),
        (_, None) => return Ok(expected.clone()),
        (Some(a), Some(b)) => (a, b),
    };
    let one = |(&a, &b): (&i64, &i64)| match (a, b) {
        (a, b) if a < 0 || a == b => Some(b),
        (a, b) if b < 0 => Some(a),
        _ => None,
    };
    let dims: Option<Vec<i64>> = a.iter().zip(b).map(one).collect();
    match dims.filter(|_| a.len() == b.len()) {
        Some(dims) => shape_of(&dims, what),
        None => Err(KernelError::invalid_argument(format!(
            "{what}: expected a shape that agrees with {expected}, found {found}"
        ))),
    }
}

/// The shape without its first dimension; `None` for a scalar.
pub fn rest(shape: &PartialShape) -> Option<PartialShape> {
    let Some(dims) = shape.dims() else { return Some(PartialShape::UNKNOWN) };
    PartialShape::new(dims.get(1..)?).ok()
}

/// The first dimension of an input, and the others.
///
/// # Errors
/// `INVALID_ARGUMENT` for a scalar; `what` names the input.
pub fn rows_of<'c>(
    c: &ComputeContext<'c>,
    input: usize,
    what: &str,
) -> Result<(i64, &'c [i64]), KernelError> {
    let Some((&rows, row)) = c.dims(input).split_first() else {
        return Err(KernelError::invalid_argument(format!(
            "{what}: expected at least one dimension, found a scalar"
        )));
    };
    Ok((rows, row))
}

/// The elements of a vector of int32.
///
/// # Errors
/// `INVALID_ARGUMENT` for another shape; `what` names the input.
pub fn indices_in<'c>(
    c: &ComputeContext<'c>,
    input: usize,
    what: &str,
) -> Result<&'c [i32], KernelError> {
    let view = c.input::<i32>(input)?;
    if view.dims.len() != 1 {
        return Err(KernelError::invalid_argument(format!(
            "{what}: expected a vector, found shape {:?}",
            view.dims
        )));
    }
    Ok(view.data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_shapes_say_more_than_one() {
        let shape = |dims: &[i64]| shape_of(dims, "shape").unwrap();
        let both = merged(&shape(&[-1, 3]), &shape(&[2, -1]), "shape").unwrap();
        assert_eq!(both, shape(&[2, 3]));
        assert_eq!(merged(&PartialShape::UNKNOWN, &both, "shape").unwrap(), both);
        for other in [&[2, 4][..], &[2], &[2, 3, 1]] {
            let error = merged(&both, &shape(other), "element 4").unwrap_err();
            assert_eq!(error.code, Code::INVALID_ARGUMENT);
            assert!(error.message.starts_with("element 4: "), "{error}");
        }
        assert_eq!(rest(&both), Some(shape(&[3])));
        assert_eq!(rest(&shape(&[])), None);
    }
}
