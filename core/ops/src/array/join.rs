//! Tensors joined along a dimension.

use crate::shape::{constant_integer, input_of_rank, with_identity};
use tenon_framework::{
    KernelError,
    author::{Dim, ShapeContext, ShapeHandle, ShapeResult},
    geometry::{concat_axis, concat_dims, pack_axis, pack_dims},
    register_op,
};

register_op!(
    "ConcatV2",
    inputs = &["values: N * T", "axis: Tidx"],
    outputs = &["output: T"],
    attrs = &["N: int >= 2", "T: type", "Tidx: {int32, int64} = DT_INT32"],
    shape = concat,
    summary = "Tensors joined along a dimension that they have.",
);

register_op!(
    "Pack",
    inputs = &["values: N * T"],
    outputs = &["output: T"],
    attrs = &["N: int >= 1", "T: type", "axis: int = 0"],
    shape = pack,
    summary = "Tensors of one shape stacked along a new dimension.",
);

/// The first `count` inputs with the rank that one of them has; `None` when no rank is known.
fn inputs_of_one_rank(
    c: &ShapeContext<'_>,
    count: usize,
) -> Result<Option<Vec<ShapeHandle>>, KernelError> {
    let Some(rank) = (0..count).find_map(|at| c.rank(c.input(at))) else { return Ok(None) };
    (0..count)
        .map(|at| input_of_rank(c, at, "each of the joined values", rank))
        .collect::<Result<_, _>>()
        .map(Some)
}

/// Dimension `at` of all shapes, which must be one size.
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
    let axis = constant_integer(c, count, "axis")?;
    let Some(shapes) = inputs_of_one_rank(c, count)? else {
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

fn pack(c: &ShapeContext<'_>) -> ShapeResult {
    let axis: i64 = c.attr("axis")?;
    let Some(shapes) = inputs_of_one_rank(c, c.input_count())? else {
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
                    "! input 1 must have the shape of input 0 except along the joined axis: expected [2, 3], got [3, 3]",
                ),
                (&["[2]", "[2]", "= 1"], "! axis must lie in [-1, 1), got 1"),
                (&["[]", "[]", "= 0"], "! axis must lie in [0, 0), got 0"),
                (&["[2]", "[2]", "[1]"], "! axis must have 0 dimensions, got 1"),
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
