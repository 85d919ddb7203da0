//! Ops that join tensors along a dimension.

use super::source::shape_attr;
use crate::shape::{constant_integer, input_of_rank, with_identity};
use std::ops::Range;
use tenon_author::{Dim, ShapeContext, ShapeHandle, ShapeResult, register_op};
use tenon_framework::{
    KernelError, PartialShape,
    op::{GradientRule, ValueRule},
};
use tenon_geometry::{concat_axis, concat_dims, pack_axis, pack_dims};

register_op!(
    "ConcatV2",
    inputs = &["values: N * T", "axis: Tidx"],
    outputs = &["output: T"],
    attrs = &["N: int >= 2", "T: type", "Tidx: {int32, int64} = DT_INT32"],
    shape = concat,
    value = ValueRule::Concat,
    summary = "Tensors joined along a dimension that they have.",
    bench = &["columns; N = 2; n in {64, 1024}; values: [n, n]; axis: [] values(1)",],
);

register_op!(
    "Concat",
    inputs = &["concat_dim: int32", "values: N * T"],
    outputs = &["output: T"],
    attrs = &["N: int >= 2", "T: type"],
    shape = concat_first,
    summary = "Tensors joined along a dimension that they have, the axis first.",
);

register_op!(
    "ConcatOffset",
    inputs = &["concat_dim: int32", "shape: N * shape_type"],
    outputs = &["offset: N * shape_type"],
    attrs = &["N: int >= 2", "shape_type: {int32, int64} = DT_INT32"],
    shape = offsets,
    gradient = GradientRule::None,
    summary = "Where each of several joined tensors of these shapes begins in the result.",
    cases = &[
        "three; concat_dim: [] values(1); shape: [2] values(3, 1), [2] values(3, 0), [2] values(3, 9)",
        "first; N in {2, 5}; concat_dim: [] values(-2); shape: [2] values(4, 7)",
    ],
);

register_op!(
    "ParallelConcat",
    inputs = &["values: N * T"],
    outputs = &["output: T"],
    attrs = &["N: int >= 1", "T: type", "shape: shape"],
    shape = parallel_concat,
    summary =
        "Tensors of one row each joined along the first dimension, to a shape known beforehand.",
    cases = &[
        "rows; shape = [2, 5]; values: [1, 5], [1, 5]",
        "numbers; shape = [3]; values: [1], [1], [1]",
    ],
);

register_op!(
    "Pack",
    inputs = &["values: N * T"],
    outputs = &["output: T"],
    attrs = &["N: int >= 1", "T: type", "axis: int = 0"],
    shape = pack,
    value = ValueRule::Pack,
    summary = "Tensors of one shape stacked along a new dimension.",
);

/// Some of the inputs, merged to the rank that one of them has; `None` if no rank is known.
fn inputs_of_one_rank(
    c: &ShapeContext<'_>,
    inputs: Range<usize>,
) -> Result<Option<Vec<ShapeHandle>>, KernelError> {
    let Some(rank) = inputs.clone().find_map(|at| c.rank(c.input(at))) else { return Ok(None) };
    inputs
        .map(|at| input_of_rank(c, at, "each of the joined values", rank))
        .collect::<Result<_, _>>()
        .map(Some)
}

/// Dimension `at` of all shapes, which must have the same size.
fn common(c: &ShapeContext<'_>, shapes: &[ShapeHandle], at: usize) -> Result<Dim, KernelError> {
    let first = c.dim(shapes[0], at);
    shapes[1..].iter().try_fold(first, |dim, &shape| c.merge_dim(dim, c.dim(shape, at)))
}

fn sizes_of(c: &ShapeContext<'_>, shapes: &[ShapeHandle]) -> Vec<Vec<i64>> {
    shapes.iter().map(|&shape| c.dims(shape).unwrap_or_default()).collect()
}

fn concat(c: &ShapeContext<'_>) -> ShapeResult {
    let count = c.input_count() - 1;
    input_of_rank(c, count, "axis", 0)?;
    joined(c, constant_integer(c, count, "axis")?, 0..count)
}

fn concat_first(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 0, "concat_dim", 0)?;
    joined(c, constant_integer(c, 0, "concat_dim")?, 1..c.input_count())
}

/// The shape of inputs joined along an axis, if the axis is known.
pub(crate) fn joined(c: &ShapeContext<'_>, axis: Option<i64>, inputs: Range<usize>) -> ShapeResult {
    let Some(shapes) = inputs_of_one_rank(c, inputs)? else {
        return c.set_output(0, c.unknown());
    };
    let sizes = sizes_of(c, &shapes);
    let rank = sizes[0].len();
    let Some(axis) = axis else {
        return c.set_output(0, c.unknown_of_rank(rank));
    };
    let sizes: Vec<&[i64]> = sizes.iter().map(Vec::as_slice).collect();
    let joined = concat_dims(&sizes, axis)?;
    let axis = concat_axis(axis, rank)?;
    let mut dims = Vec::with_capacity(rank);
    for at in 0..rank {
        dims.push(if at == axis { None } else { Some(common(c, &shapes, at)?) });
    }
    c.set_output(0, with_identity(c, &joined, |at| dims[at]))
}

fn offsets(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 0, "concat_dim", 0)?;
    (1..c.input_count())
        .try_for_each(|at| c.set_output(at - 1, input_of_rank(c, at, "each shape", 1)?))
}

fn parallel_concat(c: &ShapeContext<'_>) -> ShapeResult {
    let output = shape_attr(c)?;
    let Some(dims) = c.dims(output).filter(|dims| !dims.contains(&-1)) else {
        let found: PartialShape = c.attr("shape")?;
        let message = format!("attribute shape: every dimension must be known, found {found}");
        return Err(KernelError::invalid_argument(message));
    };
    let mut row = dims;
    if let Some(first) = row.first_mut() {
        *first = 1;
    }
    let row = c.shape_of(&row);
    (0..c.input_count()).try_for_each(|at| c.merge(row, c.input(at)).map(drop))?;
    c.set_output(0, output)
}

fn pack(c: &ShapeContext<'_>) -> ShapeResult {
    let axis: i64 = c.attr("axis")?;
    let Some(shapes) = inputs_of_one_rank(c, 0..c.input_count())? else {
        return c.set_output(0, c.unknown());
    };
    let sizes = sizes_of(c, &shapes);
    let rank = sizes[0].len();
    let sizes: Vec<&[i64]> = sizes.iter().map(Vec::as_slice).collect();
    let packed = pack_dims(&sizes, axis)?;
    let mut dims =
        (0..rank).map(|at| common(c, &shapes, at)).collect::<Result<Vec<_>, KernelError>>()?;
    dims.insert(pack_axis(axis, rank)?, c.make_dim(Some(shapes.len() as i64)));
    c.set_output(0, with_identity(c, &packed, |at| dims.get(at).copied()))
}

#[cfg(test)]
mod tests {
    use crate::testing::check;
    use tenon_framework::{PartialShape, attr::AttrValue};

    #[test]
    fn sizes_along_the_axis_add_up() {
        check(
            "ConcatV2",
            &[],
            &[
                (&["[2,3]", "[2,4]", "= 1"], "[2,7]"),
                (&["[n,3]", "[?,4]", "= -1"], "[n,7]"),
                (&["[n,3]", "[m,3]", "= 0"], "[?,3]"),
                (&["[n,3]", "?", "= 1"], "[n,?]"),
                (&["[n,3]", "[n,3]", "[]"], "[?,?]"),
                (&["?", "?", "= 0"], "?"),
                (
                    &["[2,3]", "[2]", "= 0"],
                    "! each of the joined values must have 2 dimensions, got 1",
                ),
                (
                    &["[2,3]", "[3,3]", "= 1"],
                    "! values[1] must have the shape of values[0] except along the joined axis: expected [2, 3], got [3, 3]",
                ),
                (&["[2]", "[2]", "= 1"], "! axis must lie in [-1, 1), got 1"),
                (&["[]", "[]", "= 0"], "! axis must lie in [0, 0), got 0"),
                (&["[2]", "[2]", "[1]"], "! axis must have 0 dimensions, got 1"),
            ],
        );
    }

    #[test]
    fn older_and_rarer_joins() {
        check(
            "Concat",
            &[],
            &[(&["= 1", "[2,3]", "[2,n]"], "[2,?]"), (&["[]", "[2]", "?"], "[?]")],
        );
        check("ConcatOffset", &[], &[(&["= 0", "[3]", "[?]"], "[3]; [?]")]);
        let shape = AttrValue::Shape(PartialShape::new(&[2, 3]).unwrap());
        check(
            "ParallelConcat",
            &[("shape", shape)],
            &[
                (&["[1,3]", "?"], "[2,3]"),
                (
                    &["[2,3]", "[1,3]"],
                    "! shapes [1,3] and [2,3] must be equal: dimension 0: expected 1, found 2: values[0] is [2,3], values[1] is [1,3]",
                ),
            ],
        );
    }

    #[test]
    fn packing_adds_a_dimension() {
        check(
            "Pack",
            &[],
            &[
                (&["[n,3]", "[?,3]"], "[2,n,3]"),
                (&["[]", "[]", "[]"], "[3]"),
                (&["?", "[2,3]"], "[2,2,3]"),
                (&["?"], "?"),
                (&["[2]", "[2,1]"], "! each of the joined values must have 1 dimensions, got 2"),
            ],
        );
        check("Pack", &[("axis", (-1i64).into())], &[(&["[n,3]", "[n,3]"], "[n,3,2]")]);
        check(
            "Pack",
            &[("axis", 3i64.into())],
            &[(&["[2,3]"], "! axis must lie in [-3, 3), got 3")],
        );
    }
}
