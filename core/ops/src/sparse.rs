//! Tensors by the coordinates of their values: indices of shape `[values, rank]`, the values, and the shape of the whole.
//! The kernels are plugins/data/src/sparse.

mod counts;
mod crosses;
mod pairs;
mod serial;
mod sets;

use crate::shape::{input_of_rank, pass_on, same_size};
use tenon_author::{Dim, ShapeContext, ShapeHandle, ShapeResult, register_op};
use tenon_framework::KernelError;
use tenon_geometry::GeometryError;

register_op!(
    "SparseToDense",
    inputs = &[
        "sparse_indices: Tindices",
        "output_shape: Tindices",
        "sparse_values: T",
        "default_value: T"
    ],
    outputs = &["dense: T"],
    attrs = &["validate_indices: bool = true", "T: type", "Tindices: {int32, int64}"],
    cases = &[
        "values; sparse_indices: [3, 2] values(0, 1, 1, 0, 2, 3); output_shape: [2] values(3, 4); sparse_values: [3]; default_value: []"
    ],
    shape = to_dense,
    summary = "A whole tensor of values at their places, with a default value elsewhere.",
);

register_op!(
    "SparseTensorDenseAdd",
    inputs = &["a_indices: Tindices", "a_values: T", "a_shape: Tindices", "b: T"],
    outputs = &["output: T"],
    attrs = &["T: numbertype", "Tindices: {int32, int64}"],
    cases = &[
        "values; a_indices: [3, 2] values(0, 1, 1, 0, 2, 3); a_values: [3]; a_shape: [2] values(3, 4); b: [3, 4]"
    ],
    shape = dense_add,
    summary = "A tensor to which values are added at their places.",
);

register_op!(
    "SparseTensorDenseMatMul",
    inputs = &["a_indices: Tindices", "a_values: T", "a_shape: int64", "b: T"],
    outputs = &["product: T"],
    attrs = &[
        "T: type",
        "Tindices: {int32, int64} = DT_INT64",
        "adjoint_a: bool = false",
        "adjoint_b: bool = false"
    ],
    cases = &[
        "values; a_indices: [3, 2] values(0, 1, 1, 0, 2, 3); a_values: [3]; a_shape: [2] values(3, 4); b: [4, n]"
    ],
    shape = product,
    summary = "The product of a sparse matrix and a dense one.",
);

register_op!(
    "SparseReshape",
    inputs = &["input_indices: int64", "input_shape: int64", "new_shape: int64"],
    outputs = &["output_indices: int64", "output_shape: int64"],
    cases = &[
        "values; input_indices: [3, 2] values(0, 1, 1, 0, 2, 3); input_shape: [2] values(3, 4); new_shape: [2] values(2, -1)"
    ],
    shape = reshape,
    summary = "The places of values in a shape of as many elements.",
);

register_op!(
    "SparseReorder",
    inputs = &["input_indices: int64", "input_values: T", "input_shape: int64"],
    outputs = &["output_indices: int64", "output_values: T"],
    attrs = &["T: type"],
    cases = &[
        "values; input_indices: [4, 2] values(1, 2, 0, 1, 2, 0, 0, 0); input_values: [4]; input_shape: [2] values(3, 4)"
    ],
    shape = reorder,
    summary = "Values in the order of their places.",
);

register_op!(
    "SparseConcat",
    inputs = &["indices: N * int64", "values: N * T", "shapes: N * int64"],
    outputs = &["output_indices: int64", "output_values: T", "output_shape: int64"],
    attrs = &["concat_dim: int", "N: int >= 2", "T: type"],
    shape = concat,
    summary = "Sparse tensors joined along a dimension.",
);

register_op!(
    "SparseSplit",
    inputs = &["split_dim: int64", "indices: int64", "values: T", "shape: int64"],
    outputs = &[
        "output_indices: num_split * int64",
        "output_values: num_split * T",
        "output_shape: num_split * int64"
    ],
    attrs = &["num_split: int >= 1", "T: type"],
    cases = &[
        "values; split_dim: [] values(1); indices: [3, 2] values(0, 1, 1, 0, 2, 3); values: [3]; shape: [2] values(3, 4)"
    ],
    shape = split,
    summary = "A sparse tensor cut along a dimension.",
);

register_op!(
    "SparseSlice",
    inputs = &["indices: int64", "values: T", "shape: int64", "start: int64", "size: int64"],
    outputs = &["output_indices: int64", "output_values: T", "output_shape: int64"],
    attrs = &["T: type"],
    cases = &[
        "values; indices: [3, 2] values(0, 1, 1, 0, 2, 3); values: [3]; shape: [2] values(3, 4); start: [2] values(0, 1); size: [2] values(3, 2)"
    ],
    shape = slice,
    summary = "The values inside of a box of places.",
);

register_op!(
    "SparseSliceGrad",
    inputs = &[
        "backprop_val_grad: T",
        "input_indices: int64",
        "input_start: int64",
        "output_indices: int64"
    ],
    outputs = &["val_grad: T"],
    attrs = &["T: numbertype"],
    cases = &[
        "values; backprop_val_grad: [2]; input_indices: [3, 2] values(0, 1, 1, 0, 2, 3); input_start: [2] values(0, 1); output_indices: [2, 2] values(0, 0, 2, 2)"
    ],
    shape = slice_grad,
    summary = "The gradient of the values of SparseSlice.",
);

register_op!(
    "SparseFillEmptyRows",
    inputs = &["indices: int64", "values: T", "dense_shape: int64", "default_value: T"],
    outputs = &[
        "output_indices: int64",
        "output_values: T",
        "empty_row_indicator: bool",
        "reverse_index_map: int64"
    ],
    attrs = &["T: type"],
    cases = &[
        "values; indices: [2, 2] values(0, 1, 2, 3); values: [2]; dense_shape: [2] values(3, 4); default_value: []"
    ],
    shape = fill,
    summary = "Values with a default one in each row that has none.",
);

register_op!(
    "SparseFillEmptyRowsGrad",
    inputs = &["reverse_index_map: int64", "grad_values: T"],
    outputs = &["d_values: T", "d_default_value: T"],
    attrs = &["T: type"],
    cases = &["values; reverse_index_map: [2] values(0, 2); grad_values: [3]"],
    shape = fill_grad,
    summary = "The gradient of SparseFillEmptyRows, for the values and for the default one.",
);

register_op!(
    "SparseAdd",
    inputs = &[
        "a_indices: int64",
        "a_values: T",
        "a_shape: int64",
        "b_indices: int64",
        "b_values: T",
        "b_shape: int64",
        "thresh: Treal"
    ],
    outputs = &["sum_indices: int64", "sum_values: T", "sum_shape: int64"],
    attrs = &["T: numbertype", "Treal: realnumbertype"],
    cases = &[
        "values; a_indices: [2, 2] values(0, 1, 2, 3); a_values: [2]; a_shape: [2] values(3, 4); b_indices: [2, 2] values(0, 1, 1, 3); b_values: [2]; b_shape: [2] values(3, 4); thresh: [] values(0)"
    ],
    shape = add,
    summary = "The sum of two sparse tensors; sums of two values that are below a threshold are left out.",
);

register_op!(
    "SparseAddGrad",
    inputs =
        &["backprop_val_grad: T", "a_indices: int64", "b_indices: int64", "sum_indices: int64"],
    outputs = &["a_val_grad: T", "b_val_grad: T"],
    attrs = &["T: numbertype"],
    cases = &[
        "values; backprop_val_grad: [3]; a_indices: [2, 2] values(0, 1, 2, 3); b_indices: [2, 2] values(0, 1, 1, 3); sum_indices: [3, 2] values(0, 1, 1, 3, 2, 3)"
    ],
    shape = add_grad,
    summary = "The gradients of the values of both summands of SparseAdd.",
);

macro_rules! elements {
    ($($op:literal, $summary:literal;)*) => {$(
        register_op!(
            $op,
            inputs = &["sp_indices: int64", "sp_values: T", "sp_shape: int64", "dense: T"],
            outputs = &["output: T"],
            attrs = &["T: numbertype"],
            cases = &[
                "values; sp_indices: [3, 2] values(0, 1, 1, 0, 2, 3); sp_values: [3]; \
                 sp_shape: [2] values(3, 4); dense: [3, 1] values(1, 2, 3)"
            ],
            shape = elements,
            summary = $summary,
        );
    )*};
}

elements! {
    "SparseDenseCwiseMul", "Values multiplied by the elements of a tensor at their places.";
    "SparseDenseCwiseDiv", "Values divided by the elements of a tensor at their places.";
    "SparseDenseCwiseAdd", "Values with the elements of a tensor at their places added.";
}

register_op!(
    "SparseReduceSum",
    inputs =
        &["input_indices: int64", "input_values: T", "input_shape: int64", "reduction_axes: int32"],
    outputs = &["output: T"],
    attrs = &["keep_dims: bool = false", "T: numbertype"],
    cases = &[
        "values; input_indices: [3, 2] values(0, 1, 1, 0, 2, 3); input_values: [3]; input_shape: [2] values(3, 4); reduction_axes: [1] values(1)"
    ],
    shape = reduce,
    summary = "The sums of values over some dimensions.",
);

register_op!(
    "SparseReduceMax",
    inputs =
        &["input_indices: int64", "input_values: T", "input_shape: int64", "reduction_axes: int32"],
    outputs = &["output: T"],
    attrs = &["keep_dims: bool = false", "T: realnumbertype"],
    cases = &[
        "values; input_indices: [3, 2] values(0, 1, 1, 0, 2, 3); input_values: [3]; input_shape: [2] values(3, 4); reduction_axes: [1] values(1)"
    ],
    shape = reduce,
    summary = "The greatest values over some dimensions, 0 where there is none.",
);

register_op!(
    "SparseSoftmax",
    inputs = &["sp_indices: int64", "sp_values: T", "sp_shape: int64"],
    outputs = &["output: T"],
    attrs = &["T: {half, float, double}"],
    cases = &[
        "values; sp_indices: [3, 2] values(0, 1, 0, 3, 2, 3); sp_values: [3]; sp_shape: [2] values(3, 4)"
    ],
    shape = elements,
    summary = "The softmax of the values of each row.",
);

/// The number of values and of dimensions, of inputs with indices, values and the shape.
fn places(c: &ShapeContext<'_>, inputs: [usize; 3]) -> Result<[Dim; 2], KernelError> {
    let indices = input_of_rank(c, inputs[0], "indices", 2)?;
    let values = input_of_rank(c, inputs[1], "values", 1)?;
    let shape = input_of_rank(c, inputs[2], "shape", 1)?;
    let count = same_size(c, "the number of values", c.dim(indices, 0), c.dim(values, 0))?;
    let what = "the second dimension of indices";
    let rank = same_size(c, what, c.dim(shape, 0), c.dim(indices, 1))?;
    Ok([count, rank])
}

/// The shape that a constant input says, as far as it is known.
fn shape_in(
    c: &ShapeContext<'_>,
    input: usize,
    what: &'static str,
) -> Result<ShapeHandle, KernelError> {
    let sizes = input_of_rank(c, input, what, 1)?;
    let rank = c.value(c.dim(sizes, 0));
    match (c.constant_integers(input), rank) {
        (Some(sizes), _) => match sizes.iter().find(|&&size| size < 0) {
            Some(&found) => Err(GeometryError::TooSmall { what, least: 0, found }.into()),
            None => Ok(c.shape_of(&sizes)),
        },
        (None, Some(rank)) => Ok(c.shape_of(&vec![-1; rank as usize])),
        (None, None) => Ok(c.unknown()),
    }
}

/// Outputs with indices, values and the shape, from this one on.
fn set_places(c: &ShapeContext<'_>, first: usize, count: Dim, rank: Dim) -> ShapeResult {
    c.set_output(first, c.make_shape(&[count, rank]))?;
    c.set_output(first + 1, c.make_shape(&[count]))?;
    c.set_output(first + 2, c.make_shape(&[rank]))
}

fn to_dense(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 3, "default_value", 0)?;
    c.set_output(0, shape_in(c, 1, "output_shape")?)
}

fn dense_add(c: &ShapeContext<'_>) -> ShapeResult {
    let [_, rank] = places(c, [0, 1, 2])?;
    if let (Some(rank), Some(found)) = (c.value(rank), c.rank(c.input(3))) {
        let (expected, what) = (rank as usize, "b");
        if expected != found {
            return Err(GeometryError::Rank { what, expected, found }.into());
        }
    }
    c.set_output(0, c.input(3))
}

fn product(c: &ShapeContext<'_>) -> ShapeResult {
    let [_, rank] = places(c, [0, 1, 2])?;
    same_size(c, "the number of a_shape", c.make_dim(Some(2)), rank)?;
    let b = input_of_rank(c, 3, "b", 2)?;
    let a = c.with_rank(shape_in(c, 2, "a_shape")?, 2)?;
    let pair = |of, is_turned: bool| match is_turned {
        true => (c.dim(of, 1), c.dim(of, 0)),
        false => (c.dim(of, 0), c.dim(of, 1)),
    };
    let (rows, inner) = pair(a, c.attr("adjoint_a")?);
    let (found, columns) = pair(b, c.attr("adjoint_b")?);
    same_size(c, "the inner dimension of b", inner, found)?;
    c.set_output(0, c.make_shape(&[rows, columns]))
}

fn reshape(c: &ShapeContext<'_>) -> ShapeResult {
    let indices = input_of_rank(c, 0, "input_indices", 2)?;
    let (old, new) = (input_of_rank(c, 1, "input_shape", 1)?, input_of_rank(c, 2, "new_shape", 1)?);
    let what = "the second dimension of input_indices";
    same_size(c, what, c.dim(old, 0), c.dim(indices, 1))?;
    c.set_output(0, c.make_shape(&[c.dim(indices, 0), c.dim(new, 0)]))?;
    c.set_output(1, new)
}

fn reorder(c: &ShapeContext<'_>) -> ShapeResult {
    let [count, rank] = places(c, [0, 1, 2])?;
    c.set_output(0, c.make_shape(&[count, rank]))?;
    c.set_output(1, c.make_shape(&[count]))
}

fn concat(c: &ShapeContext<'_>) -> ShapeResult {
    let inputs = c.input_count() / 3;
    let mut rank = c.make_dim(None);
    for at in 0..inputs {
        let [_, found] = places(c, [at, inputs + at, 2 * inputs + at])?;
        rank = same_size(c, "the rank of a shape", rank, found)?;
    }
    set_places(c, 0, c.make_dim(None), rank)
}

fn split(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 0, "split_dim", 0)?;
    let [_, rank] = places(c, [1, 2, 3])?;
    let parts = c.output_count() / 3;
    for at in 0..parts {
        let count = c.make_dim(None);
        c.set_output(at, c.make_shape(&[count, rank]))?;
        c.set_output(parts + at, c.make_shape(&[count]))?;
        c.set_output(2 * parts + at, c.make_shape(&[rank]))?;
    }
    Ok(())
}

fn slice(c: &ShapeContext<'_>) -> ShapeResult {
    let [_, mut rank] = places(c, [0, 1, 2])?;
    for (at, what) in [(3, "start"), (4, "size")] {
        let numbers = input_of_rank(c, at, what, 1)?;
        rank = same_size(c, "the number of start and of size", rank, c.dim(numbers, 0))?;
    }
    set_places(c, 0, c.make_dim(None), rank)
}

fn slice_grad(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 0, "backprop_val_grad", 1)?;
    let indices = input_of_rank(c, 1, "input_indices", 2)?;
    input_of_rank(c, 2, "input_start", 1)?;
    input_of_rank(c, 3, "output_indices", 2)?;
    c.set_output(0, c.make_shape(&[c.dim(indices, 0)]))
}

fn fill(c: &ShapeContext<'_>) -> ShapeResult {
    let [count, rank] = places(c, [0, 1, 2])?;
    input_of_rank(c, 3, "default_value", 0)?;
    let rows = shape_in(c, 2, "dense_shape")?;
    let rows = match c.rank(rows) {
        Some(0) => {
            return Err(GeometryError::Length { what: "dense_shape", expected: 1, found: 0 }.into());
        }
        Some(_) => c.dim(rows, 0),
        None => c.make_dim(None),
    };
    let total = c.make_dim(None);
    c.set_output(0, c.make_shape(&[total, rank]))?;
    c.set_output(1, c.make_shape(&[total]))?;
    c.set_output(2, c.make_shape(&[rows]))?;
    c.set_output(3, c.make_shape(&[count]))
}

fn fill_grad(c: &ShapeContext<'_>) -> ShapeResult {
    let map = input_of_rank(c, 0, "reverse_index_map", 1)?;
    input_of_rank(c, 1, "grad_values", 1)?;
    c.set_output(0, map)?;
    c.set_output(1, c.scalar())
}

fn add(c: &ShapeContext<'_>) -> ShapeResult {
    let ([_, a], [_, b]) = (places(c, [0, 1, 2])?, places(c, [3, 4, 5])?);
    input_of_rank(c, 6, "thresh", 0)?;
    let rank = same_size(c, "the rank of b_shape", a, b)?;
    set_places(c, 0, c.make_dim(None), rank)
}

fn add_grad(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 0, "backprop_val_grad", 1)?;
    let (a, b) = (input_of_rank(c, 1, "a_indices", 2)?, input_of_rank(c, 2, "b_indices", 2)?);
    input_of_rank(c, 3, "sum_indices", 2)?;
    c.set_output(0, c.make_shape(&[c.dim(a, 0)]))?;
    c.set_output(1, c.make_shape(&[c.dim(b, 0)]))
}

fn elements(c: &ShapeContext<'_>) -> ShapeResult {
    places(c, [0, 1, 2])?;
    pass_on(c, 1, 0)
}

fn reduce(c: &ShapeContext<'_>) -> ShapeResult {
    c.set_output(0, reduced_shape(c)?)
}

/// The shape after a reduction.
fn reduced_shape(c: &ShapeContext<'_>) -> Result<ShapeHandle, KernelError> {
    places(c, [0, 1, 2])?;
    let (shape, keeps) = (shape_in(c, 2, "input_shape")?, c.attr::<bool>("keep_dims")?);
    let (Some(rank), Some(axes)) = (c.rank(shape), c.constant_integers(3)) else {
        return Ok(c.unknown());
    };
    let mut is_reduced = vec![false; rank];
    for axis in axes {
        let high = rank as i64;
        let at = if axis < 0 { axis + high } else { axis };
        if !(0..high).contains(&at) {
            let what = "reduction_axes";
            return Err(GeometryError::Axis { what, low: -high, high, axis }.into());
        }
        is_reduced[at as usize] = true;
    }
    let dim = |at: usize| match (is_reduced[at], keeps) {
        (false, _) => Some(c.dim(shape, at)),
        (true, true) => Some(c.make_dim(Some(1))),
        (true, false) => None,
    };
    let dims: Vec<Dim> = (0..rank).filter_map(dim).collect();
    Ok(c.make_shape(&dims))
}

#[cfg(test)]
mod tests {
    use crate::testing::check;
    use tenon_framework::attr::AttrValue;

    #[test]
    fn whole_tensors_have_the_shape_of_a_constant() {
        let cases: [(&[&str], &str); 3] = [
            (&["[n,2]", "= [3,4]", "[n]", "[]"], "[3,4]"),
            (&["[n,2]", "[2]", "[n]", "[]"], "[?,?]"),
            (&["[n,2]", "= [3,-4]", "[n]", "[]"], "! output_shape must be at least 0, got -4"),
        ];
        check("SparseToDense", &[], &cases);
    }

    #[test]
    fn a_product_has_rows_of_the_one_and_columns_of_the_other() {
        let cases: [(&[&str], &str); 2] = [
            (&["[n,2]", "[n]", "= [3,4]", "[4,k]"], "[3,k]"),
            (&["[n,2]", "[n]", "= [3,4]", "[5,k]"], "! the inner dimension of b must be 4, got 5"),
        ];
        check("SparseTensorDenseMatMul", &[], &cases);
        let turned = [("adjoint_a", AttrValue::Bool(true))];
        let inputs = ["[n,2]", "[n]", "= [3,4]", "[3,k]"];
        check("SparseTensorDenseMatMul", &turned, &[(&inputs, "[4,k]")]);
    }

    #[test]
    fn rows_are_known_where_the_shape_is() {
        let inputs = ["[n,2]", "[n]", "= [3,4]", "[]"];
        check("SparseFillEmptyRows", &[], &[(&inputs, "[?,2]; [?]; [3]; [n]")]);
        let inputs = ["[n,2]", "[n]", "= [3,4]", "= [-1]"];
        check("SparseReduceSum", &[], &[(&inputs, "[3]")]);
        let keeps = [("keep_dims", AttrValue::Bool(true))];
        check("SparseReduceSum", &keeps, &[(&inputs, "[3,1]")]);
    }

    #[test]
    fn places_need_as_many_numbers_as_the_shape() {
        let message = "! the second dimension of indices must be 2, got 3: input_indices is [?,3], \
                       input_values is [?], input_shape is [2]";
        check("SparseReorder", &[], &[(&["[n,3]", "[n]", "[2]"], message)]);
        check("SparseReshape", &[], &[(&["[n,3]", "[3]", "[2]"], "[n,2]; [2]")]);
    }
}
