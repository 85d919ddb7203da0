//! Ops that cut tensors along a dimension.

use crate::shape::{constant_integer, dims_of, input_of_rank, with_identity};
use tenon_author::{Dim, ShapeContext, ShapeHandle, ShapeResult, register_op};
use tenon_framework::{KernelError, op::Refusal};
use tenon_geometry::{normalize_axis, split_dims, split_sizes, unpack_dims};

register_op!(
    "Split",
    inputs = &["split_dim: int32", "value: T"],
    outputs = &["output: num_split * T"],
    attrs = &["num_split: int >= 1", "T: type"],
    shape = split,
    refuses = Refusal::Shapes,
    deciding = &[0],
    summary = "A tensor cut into equal pieces along a dimension.",
    cases = &[
        "rows; num_split in {1, 2, 3}; split_dim: [] values(0); value: [12, n]",
        "scaled; num_split in {1, 3, 7}; split_dim: [] values(-1); value: [m, 21]",
        "vector; num_split = 1; split_dim: [] values(0); value: [n]",
    ],
);

register_op!(
    "SplitV",
    inputs = &["value: T", "size_splits: Tlen", "split_dim: int32"],
    outputs = &["output: num_split * T"],
    attrs = &["num_split: int >= 1", "T: type", "Tlen: {int8, int32, int64} = DT_INT64"],
    shape = split_v,
    refuses = Refusal::Shapes,
    deciding = &[1, 2],
    summary =
        "A tensor cut into pieces of given sizes along a dimension; one size may be -1, the rest.",
    cases = &[
        "rows; num_split = 3; value: [7, n]; size_splits: [3] values(2, 0, 5); split_dim: [] values(0)",
        "rest; num_split = 2; n in 3..2000; value: [n]; size_splits: [2] values(-1, 3); split_dim: [] values(-1)",
        "one; num_split = 1; value: [n, m]; size_splits: [1] values(-1); split_dim: [] integers(0..2)",
    ],
);

register_op!(
    "Unpack",
    inputs = &["value: T"],
    outputs = &["output: num * T"],
    attrs = &["num: int >= 0", "T: type", "axis: int = 0"],
    shape = unpack,
    refuses = Refusal::Shapes,
    summary = "The parts of a tensor at each index of a dimension.",
    cases = &[
        "rows; num in {1, 2, 5}; value: [num, n]",
        "columns; num in {1, 3}; axis in {1, -1}; value: [n, num]",
    ],
);

/// Sets the same shape for all outputs.
fn all_outputs(c: &ShapeContext<'_>, shape: ShapeHandle) -> ShapeResult {
    (0..c.output_count()).try_for_each(|at| c.set_output(at, shape))
}

/// A shape of unknown dimensions with the rank of another shape, if that is known.
fn unknown_like(c: &ShapeContext<'_>, shape: ShapeHandle) -> ShapeHandle {
    c.rank(shape).map_or_else(|| c.unknown(), |rank| c.unknown_of_rank(rank))
}

fn split(c: &ShapeContext<'_>) -> ShapeResult {
    let axis = constant_integer(c, 0, "split_dim")?;
    let value = c.input(1);
    let (Some(axis), Some(sizes)) = (axis, c.dims(value)) else {
        return all_outputs(c, unknown_like(c, value));
    };
    let pieces = split_dims(&sizes, axis, c.attr("num_split")?)?;
    let axis = normalize_axis("split_dim", axis, sizes.len())?;
    all_outputs(c, with_identity(c, &pieces, |at| (at != axis).then(|| c.dim(value, at))))
}

fn split_v(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 1, "size_splits", 1)?;
    let axis = constant_integer(c, 2, "split_dim")?;
    let value = c.input(0);
    let (Some(axis), Some(mut dims)) = (axis, c.dims(value)) else {
        return all_outputs(c, unknown_like(c, value));
    };
    let axis = normalize_axis("split_dim", axis, dims.len())?;
    let mut sizes = c.constant_integers(1).unwrap_or_else(|| vec![-1; c.output_count()]);
    if sizes.len() != c.output_count() {
        let message =
            format!("size_splits must hold {} values, got {}", c.output_count(), sizes.len());
        return Err(KernelError::invalid_argument(message));
    }
    if c.constant_integers(1).is_some() {
        split_sizes(dims[axis], &mut sizes)?;
    }
    for (at, &size) in sizes.iter().enumerate() {
        dims[axis] = size;
        c.set_output(at, with_identity(c, &dims, |d| (d != axis).then(|| c.dim(value, d))))?;
    }
    Ok(())
}

fn unpack(c: &ShapeContext<'_>) -> ShapeResult {
    let (axis, value) = (c.attr::<i64>("axis")?, c.input(0));
    let Some(sizes) = c.dims(value) else { return all_outputs(c, c.unknown()) };
    let parts = unpack_dims(&sizes, axis, c.attr("num")?)?;
    let mut dims: Vec<Dim> = dims_of(c, value);
    dims.remove(normalize_axis("axis", axis, sizes.len())?);
    all_outputs(c, with_identity(c, &parts, |at| dims.get(at).copied()))
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn pieces_are_equal() {
        check(
            "Split",
            &[("num_split", 2i64.into())],
            &[
                (&["= 1", "[n,6]"], "[n,3]; [n,3]"),
                (&["= -2", "[n,6]"], "[?,6]; [?,6]"),
                (&["[]", "[2,6]"], "[?,?]; [?,?]"),
                (&["= 0", "?"], "?; ?"),
                (&["= 2", "[2,6]"], "! split_dim must lie in [-2, 2), got 2"),
                (
                    &["= 0", "[3]"],
                    "! the size of value along split_dim (3) must be a multiple of num_split (2)",
                ),
            ],
        );
    }

    #[test]
    fn pieces_have_the_sizes_asked_for() {
        check(
            "SplitV",
            &[("num_split", 2i64.into())],
            &[
                (&["[n,6]", "= [2,-1]", "= 1"], "[n,2]; [n,4]"),
                (&["[n,6]", "= [2,3]", "= 0"], "[2,6]; [3,6]"),
                (&["[n,6]", "[2]", "= 1"], "[n,?]; [n,?]"),
                (&["[n,6]", "[2]", "[]"], "[?,?]; [?,?]"),
                (&["[6]", "= [2,3]", "= 0"], "! the sum of size_splits must be 6, got 5"),
                (&["[6]", "= [6]", "= 0"], "! size_splits must hold 2 values, got 1"),
            ],
        );
    }

    #[test]
    fn parts_lack_the_dimension() {
        check(
            "Unpack",
            &[("num", 2i64.into()), ("axis", (-1i64).into())],
            &[
                (&["[n,2]"], "[n]; [n]"),
                (&["[n,?]"], "[n]; [n]"),
                (&["?"], "?; ?"),
                (&["[n,3]"], "! num, the size of value along axis, must be 3, got 2"),
                (&["[]"], "! axis must lie in [0, 0), got -1"),
            ],
        );
    }
}
