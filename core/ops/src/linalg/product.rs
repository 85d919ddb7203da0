//! Products of matrices.

use crate::shape::{broadcast_dims, dims_of, input_of_rank, input_of_rank_at_least};
use tenon_author::{Dim, ShapeContext, ShapeHandle, ShapeResult, register_op};
use tenon_framework::{KernelError, op::Refusal};
use tenon_geometry::{batch_matmul_dims, equal_batches, matmul_dims};

register_op!(
    "MatMul",
    inputs = &["a: T", "b: T"],
    outputs = &["product: T"],
    attrs = &[
        "transpose_a: bool = false",
        "transpose_b: bool = false",
        "T: {bfloat16, half, float, double, int32, int64, uint8, uint16, uint32, uint64, complex64, complex128}",
        "grad_a: bool = false",
        "grad_b: bool = false",
    ],
    shape = matmul,
    summary = "The product of two matrices.",
    bench = &[
        "square; n in {64, 256, 512}; a: [n, n]; b: [n, n]",
        "layer; a: [8, 1024]; b: [1024, 1024]",
    ],
);

register_op!(
    "BatchMatMulV2",
    inputs = &["x: T", "y: T"],
    outputs = &["output: T"],
    attrs = &[
        "T: {bfloat16, half, float, double, int16, int32, int64, uint8, uint16, uint32, uint64, complex64, complex128}",
        "adj_x: bool = false",
        "adj_y: bool = false",
        "grad_x: bool = false",
        "grad_y: bool = false",
    ],
    shape = batch_matmul,
    refuses = Refusal::Shapes,
    summary = "Products of matrices in the last two dimensions; those before broadcast.",
    bench = &["heads; x: [12, 128, 64]; y: [12, 64, 128]",],
);

register_op!(
    "BatchMatMul",
    inputs = &["x: T", "y: T"],
    outputs = &["output: T"],
    attrs = &[
        "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}",
        "adj_x: bool = false",
        "adj_y: bool = false",
        "grad_x: bool = false",
        "grad_y: bool = false",
    ],
    shape = equal_batch_matmul,
    refuses = Refusal::Shapes,
    summary = "Products of matrices in the last two dimensions; those before are equal.",
    bench = &["heads; x: [12, 128, 64]; y: [12, 64, 128]",],
);

register_op!(
    "BatchMatMulV3",
    inputs = &["x: Ta", "y: Tb"],
    outputs = &["output: Tout"],
    attrs = &[
        "Ta: {bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, complex128}",
        "Tb: {bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, complex128}",
        "Tout: {bfloat16, half, float, double, int16, int32, int64, complex64, complex128}",
        "adj_x: bool = false",
        "adj_y: bool = false",
        "grad_x: bool = false",
        "grad_y: bool = false",
    ],
    shape = batch_matmul,
    summary =
        "Products of matrices of two types in the last two dimensions; those before broadcast.",
    bench = &["heads; x: [12, 128, 64]; y: [12, 64, 128]",],
);

fn equal_batch_matmul(c: &ShapeContext<'_>) -> ShapeResult {
    if let (Some(x), Some(y)) = (c.dims(c.input(0)), c.dims(c.input(1))) {
        equal_batches(&x, &y)?;
    }
    batch_matmul(c)
}

/// The product of two matrices, each optionally transposed by an attribute.
pub(crate) fn matmul(c: &ShapeContext<'_>) -> ShapeResult {
    c.set_output(0, matmul_shape(c)?)
}

/// The shape of the product of inputs `a` and `b`, transposed according to the attributes.
pub(crate) fn matmul_shape(c: &ShapeContext<'_>) -> Result<ShapeHandle, KernelError> {
    matmul_shape_of(c, [0, 1])
}

/// [`matmul_shape`] of the inputs with these indices.
pub(crate) fn matmul_shape_of(
    c: &ShapeContext<'_>,
    [a, b]: [usize; 2],
) -> Result<ShapeHandle, KernelError> {
    let (a, b) = (input_of_rank(c, a, "a", 2)?, input_of_rank(c, b, "b", 2)?);
    let (transpose_a, transpose_b) = (c.attr("transpose_a")?, c.attr("transpose_b")?);
    let (a, b) = (dims_of(c, a), dims_of(c, b));
    matmul_dims(&sizes(c, &a), &sizes(c, &b), transpose_a, transpose_b)?;
    // Of the two inner sizes, one may be known and the other not.
    c.merge_dim(a[usize::from(!transpose_a)], b[usize::from(transpose_b)])?;
    Ok(c.make_shape(&[a[usize::from(transpose_a)], b[usize::from(!transpose_b)]]))
}

fn batch_matmul(c: &ShapeContext<'_>) -> ShapeResult {
    let x = input_of_rank_at_least(c, 0, "x", 2)?;
    let y = input_of_rank_at_least(c, 1, "y", 2)?;
    if c.rank(x).is_none() || c.rank(y).is_none() {
        return c.set_output(0, c.unknown());
    }
    let (adj_x, adj_y) = (c.attr("adj_x")?, c.attr("adj_y")?);
    let (x, y) = (dims_of(c, x), dims_of(c, y));
    batch_matmul_dims(&sizes(c, &x), &sizes(c, &y), adj_x, adj_y)?;
    let (x_batch, x) = x.split_at(x.len() - 2);
    let (y_batch, y) = y.split_at(y.len() - 2);
    c.merge_dim(x[usize::from(!adj_x)], y[usize::from(adj_y)])?;
    let mut output = dims_of(c, broadcast_dims(c, x_batch, y_batch)?);
    output.extend([x[usize::from(adj_x)], y[usize::from(!adj_y)]]);
    c.set_output(0, c.make_shape(&output))
}

fn sizes(c: &ShapeContext<'_>, dims: &[Dim]) -> Vec<i64> {
    dims.iter().map(|&dim| c.value(dim).unwrap_or(-1)).collect()
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn a_product_has_the_outer_sizes() {
        check(
            "MatMul",
            &[],
            &[
                (&["[2,3]", "[3,4]"], "[2,4]"),
                (&["[n,3]", "[?,m]"], "[n,m]"),
                (&["?", "[3,4]"], "[?,4]"),
                (&["?", "?"], "[?,?]"),
                (&["[2,3]", "[4,5]"], "! the size of b that meets a must be 3, got 4"),
                (&["[2,3,1]", "[3,4]"], "! a must have 2 dimensions, got 3"),
                (&["?", "[3]"], "! b must have 2 dimensions, got 1"),
            ],
        );
        check(
            "MatMul",
            &[("transpose_a", true.into()), ("transpose_b", true.into())],
            &[
                (&["[3,n]", "[m,3]"], "[n,m]"),
                // The inner dimensions are merged to one size.
                (&["[m,m]", "[?,4]"], "[4,?]"),
                (&["[2,3]", "[4,5]"], "! the size of b that meets a must be 2, got 5"),
            ],
        );
    }

    #[test]
    fn batches_broadcast() {
        check(
            "BatchMatMulV2",
            &[],
            &[
                (&["[2,1,4,3]", "[5,3,6]"], "[2,5,4,6]"),
                (&["[n,4,3]", "[3,6]"], "[n,4,6]"),
                (&["[n,?,3]", "[n,3,k]"], "[n,?,k]"),
                (&["?", "[2,3]"], "?"),
                (&["[3]", "?"], "! x must have at least 2 dimensions, got 1"),
                (&["[2,2,3]", "[2,4,5]"], "! the size of y that meets x must be 3, got 4"),
                (
                    &["[2,2,3]", "[3,3,5]"],
                    "! shapes [2] and [3] do not broadcast: each pair of dimensions must be equal or hold a 1: x is [2,2,3], y is [3,3,5]",
                ),
            ],
        );
        let unequal = "! x and y must have equal dimensions before the last two, got [2] and [1]";
        check("BatchMatMul", &[], &[(&["[2,2,3]", "[1,3,5]"], unequal)]);
        check("BatchMatMulV3", &[], &[(&["[2,2,3]", "[1,3,5]"], "[2,2,5]")]);
        check("BatchMatMulV2", &[("adj_x", true.into())], &[(&["[2,3,n]", "[3,5]"], "[2,n,5]")]);
        check("BatchMatMulV2", &[("adj_y", true.into())], &[(&["[2,n,3]", "[5,3]"], "[2,n,5]")]);
    }
}
