//! Helpers of shape functions: checks that name the argument, and dimensions that keep their
//! identity.

use tenon_author::{Dim, ShapeContext, ShapeHandle, ShapeResult};
use tenon_framework::{KernelError, PartialShape};
use tenon_geometry::{GeometryError, broadcast_shape};

/// The output has the shape of the input.
pub(crate) fn unchanged(c: &ShapeContext<'_>) -> ShapeResult {
    c.set_output(0, c.input(0))
}

/// Every output equals the input with the same number, including known information behind
/// resources.
pub(crate) fn passed_on(c: &ShapeContext<'_>) -> ShapeResult {
    (0..c.output_count()).try_for_each(|at| pass_on(c, at, at))
}

/// Output `to` equals input `from`.
pub(crate) fn pass_on(c: &ShapeContext<'_>, from: usize, to: usize) -> ShapeResult {
    c.set_output(to, c.input(from))?;
    c.input_handle(from)
        .into_iter()
        .try_for_each(|(dtype, shape)| c.add_output_handle(to, dtype, shape))
}

/// The one output is a scalar.
pub(crate) fn scalar_output(c: &ShapeContext<'_>) -> ShapeResult {
    c.set_output(0, c.scalar())
}

/// The one output is a reference to two strings, a container and a name.
pub(crate) fn two_texts(c: &ShapeContext<'_>) -> ShapeResult {
    c.set_output(0, c.shape_of(&[2]))
}

/// Checks an input that is a handle, a scalar, or a reference to two strings, a container and a name.
pub(crate) fn handle_input(c: &ShapeContext<'_>, input: usize, what: &'static str) -> ShapeResult {
    match c.dims(c.input(input)).as_deref() {
        None | Some([] | [2 | -1]) => Ok(()),
        Some(dims) => Err(KernelError::invalid_argument(format!(
            "{what}: expected a scalar, or two strings, found shape {dims:?}"
        ))),
    }
}

/// The op has no outputs, or nothing is known about them.
pub(crate) fn nothing_known(_: &ShapeContext<'_>) -> ShapeResult {
    Ok(())
}

/// The shapes in attribute `output_shapes`, where it has one for each output.
pub(crate) fn by_attribute(c: &ShapeContext<'_>) -> ShapeResult {
    let shapes: Vec<PartialShape> = c.attr("output_shapes")?;
    if shapes.is_empty() {
        return Ok(());
    }
    if shapes.len() != c.output_count() {
        return Err(KernelError::invalid_argument(format!(
            "output_shapes: expected a shape for each of {} outputs, found {}",
            c.output_count(),
            shapes.len()
        )));
    }
    for (at, shape) in shapes.iter().enumerate() {
        if let Some(dims) = shape.dims() {
            c.set_output(at, c.shape_of(dims))?;
        }
    }
    Ok(())
}

/// The input, which must have this rank; it has unknown dimensions if its rank is not known.
pub(crate) fn input_of_rank(
    c: &ShapeContext<'_>,
    input: usize,
    what: &'static str,
    expected: usize,
) -> Result<ShapeHandle, KernelError> {
    match c.rank(c.input(input)) {
        Some(found) if found != expected => {
            Err(GeometryError::Rank { what, expected, found }.into())
        }
        _ => c.with_rank(c.input(input), expected),
    }
}

/// The input, which must have at least this rank, as far as it is known.
pub(crate) fn input_of_rank_at_least(
    c: &ShapeContext<'_>,
    input: usize,
    what: &'static str,
    expected: usize,
) -> Result<ShapeHandle, KernelError> {
    match c.rank(c.input(input)) {
        Some(found) if found < expected => {
            Err(GeometryError::RankTooSmall { what, expected, found }.into())
        }
        _ => Ok(c.input(input)),
    }
}

/// Checks that the input is a scalar or vector, as far as its rank is known.
pub(crate) fn scalar_or_vector(
    c: &ShapeContext<'_>,
    input: usize,
    what: &'static str,
) -> ShapeResult {
    match c.rank(c.input(input)) {
        Some(found) if found > 1 => Err(GeometryError::Rank { what, expected: 1, found }.into()),
        _ => Ok(()),
    }
}

/// The integer in a constant input with one element.
pub(crate) fn constant_integer(
    c: &ShapeContext<'_>,
    input: usize,
    what: &'static str,
) -> Result<Option<i64>, KernelError> {
    match c.constant_integers(input).as_deref() {
        None => Ok(None),
        Some(&[value]) => Ok(Some(value)),
        Some(values) => {
            Err(GeometryError::Length { what, expected: 1, found: values.len() }.into())
        }
    }
}

/// Merges two dimensions that must have one size; `what` names that of `found`.
pub(crate) fn same_size(
    c: &ShapeContext<'_>,
    what: &'static str,
    expected: Dim,
    found: Dim,
) -> Result<Dim, KernelError> {
    match (c.value(expected), c.value(found)) {
        (Some(expected), Some(found)) if expected != found => {
            Err(GeometryError::SizeMismatch { what, expected, found }.into())
        }
        _ => c.merge_dim(expected, found),
    }
}

/// All dimensions of a shape of known rank.
pub(crate) fn dims_of(c: &ShapeContext<'_>, shape: ShapeHandle) -> Vec<Dim> {
    (0..c.rank(shape).unwrap_or(0)).map(|at| c.dim(shape, at)).collect()
}

/// A shape with these sizes. For an unknown size (-1), `identity` may give the dimension to use.
pub(crate) fn with_identity(
    c: &ShapeContext<'_>,
    sizes: &[i64],
    identity: impl Fn(usize) -> Option<Dim>,
) -> ShapeHandle {
    let dim = |(at, &size): (usize, &i64)| match size {
        -1 => identity(at).unwrap_or_else(|| c.make_dim(None)),
        size => c.make_dim(Some(size)),
    };
    let dims: Vec<Dim> = sizes.iter().enumerate().map(dim).collect();
    c.make_shape(&dims)
}

/// The shape that two lists of dimensions broadcast to.
pub(crate) fn broadcast_dims(
    c: &ShapeContext<'_>,
    x: &[Dim],
    y: &[Dim],
) -> Result<ShapeHandle, KernelError> {
    let sizes =
        |dims: &[Dim]| -> Vec<i64> { dims.iter().map(|&dim| c.value(dim).unwrap_or(-1)).collect() };
    let sizes = broadcast_shape(&sizes(x), &sizes(y))?;
    let identity = |at: usize| {
        // A missing dimension counts as 1.
        let own = |dims: &[Dim]| (at + dims.len()).checked_sub(sizes.len()).map(|own| dims[own]);
        let repeats = |dim: Option<Dim>| dim.is_none_or(|dim| c.value(dim) == Some(1));
        match (own(x), own(y)) {
            (x, y) if repeats(x) => y,
            (x, y) if repeats(y) || x == y => x,
            _ => None,
        }
    };
    Ok(with_identity(c, &sizes, identity))
}
