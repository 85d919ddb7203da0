//! Ragged tensors: values, and for each ragged dimension a vector of splits, in which row `i` goes from number `i` to
//! before number `i + 1`. The kernels are plugins/data/src/ragged.

mod cross;
mod variant;

use crate::shape::{dims_of, input_of_rank, input_of_rank_at_least, same_size};
use tenon_author::{Dim, ShapeContext, ShapeHandle, ShapeResult, register_op};
use tenon_framework::{KernelError, op::GradientRule};
use tenon_geometry::GeometryError;

register_op!(
    "RaggedTensorToTensor",
    inputs = &[
        "shape: Tshape",
        "values: T",
        "default_value: T",
        "row_partition_tensors: num_row_partition_tensors * Tindex"
    ],
    outputs = &["result: T"],
    attrs = &[
        "T: type",
        "Tindex: {int64, int32}",
        "Tshape: {int64, int32}",
        "num_row_partition_tensors: int >= 1",
        "row_partition_types: list(string)"
    ],
    shape = to_tensor,
    summary =
        "A whole tensor of the rows of a ragged one, with a default value where rows are short.",
);

register_op!(
    "RaggedTensorToSparse",
    inputs = &["rt_nested_splits: RAGGED_RANK * Tsplits", "rt_dense_values: T"],
    outputs = &["sparse_indices: int64", "sparse_values: T", "sparse_dense_shape: int64"],
    attrs = &["RAGGED_RANK: int >= 1", "T: type", "Tsplits: {int32, int64} = DT_INT64"],
    shape = to_sparse,
    summary = "A sparse tensor of the values of a ragged one.",
);

register_op!(
    "RaggedRange",
    inputs = &["starts: T", "limits: T", "deltas: T"],
    outputs = &["rt_nested_splits: Tsplits", "rt_dense_values: T"],
    attrs = &[
        "T: {bfloat16, float, double, int32, int64} = DT_INT32",
        "Tsplits: {int32, int64} = DT_INT64"
    ],
    cases = &[
        "rows; starts: [3] values(0, 5, 8); limits: [3] values(3, 5, 2); deltas: [3] values(1, 1, -2)"
    ],
    gradient = GradientRule::None,
    shape = range,
    summary = "Numbers from a start to before a limit, a row for each start.",
);

register_op!(
    "RaggedGather",
    inputs = &[
        "params_nested_splits: PARAMS_RAGGED_RANK * Tsplits",
        "params_dense_values: Tvalues",
        "indices: Tindices"
    ],
    outputs =
        &["output_nested_splits: OUTPUT_RAGGED_RANK * Tsplits", "output_dense_values: Tvalues"],
    attrs = &[
        "Tvalues: type",
        "Tindices: {int32, int64}",
        "Tsplits: {int32, int64} = DT_INT64",
        "PARAMS_RAGGED_RANK: int >= 1",
        "OUTPUT_RAGGED_RANK: int >= 0"
    ],
    shape = gather,
    summary = "The rows of a ragged tensor with these numbers.",
);

register_op!(
    "RaggedFillEmptyRows",
    inputs = &["value_rowids: int64", "values: T", "nrows: int64", "default_value: T"],
    outputs = &[
        "output_value_rowids: int64",
        "output_values: T",
        "empty_row_indicator: bool",
        "reverse_index_map: int64"
    ],
    attrs = &["T: type"],
    cases = &[
        "values; value_rowids: [2] values(0, 2); values: [2]; nrows: [] values(4); default_value: []"
    ],
    shape = fill,
    summary = "Values with a default one in each row that has none.",
);

register_op!(
    "RaggedFillEmptyRowsGrad",
    inputs = &["reverse_index_map: int64", "grad_values: T"],
    outputs = &["d_values: T", "d_default_value: T"],
    attrs = &["T: type"],
    cases = &["values; reverse_index_map: [2] values(0, 2); grad_values: [3]"],
    shape = fill_grad,
    summary = "The gradient of RaggedFillEmptyRows, for the values and for the default one.",
);

/// The shape that input `shape` asks for, in which -1 is any size; a scalar -1 is any shape.
fn wanted(c: &ShapeContext<'_>) -> Result<ShapeHandle, KernelError> {
    let shape = c.input(0);
    match (c.rank(shape), c.constant_integers(0)) {
        (Some(1), Some(sizes)) => match sizes.iter().find(|&&size| size < -1) {
            Some(&found) => Err(GeometryError::TooSmall { what: "shape", least: -1, found }.into()),
            None => Ok(c.shape_of(&sizes)),
        },
        (Some(1), None) => match c.value(c.dim(shape, 0)) {
            Some(rank) => Ok(c.unknown_of_rank(rank as usize)),
            None => Ok(c.unknown()),
        },
        (Some(0) | None, _) => Ok(c.unknown()),
        (Some(found), _) => Err(GeometryError::Rank { what: "shape", expected: 1, found }.into()),
    }
}

fn to_tensor(c: &ShapeContext<'_>) -> ShapeResult {
    let kinds: Vec<&[u8]> = c.attr("row_partition_types")?;
    let ragged = kinds.iter().filter(|&&kind| kind != b"FIRST_DIM_SIZE").count();
    let wanted = wanted(c)?;
    let Some(rank) = c.rank(c.input(1)) else { return c.set_output(0, wanted) };
    if rank == 0 {
        let (what, expected, found) = ("values", 1, 0);
        return Err(GeometryError::RankTooSmall { what, expected, found }.into());
    }
    let (what, expected) = ("shape", ragged + rank);
    let mut dims = match c.rank(wanted) {
        None => dims_of(c, c.unknown_of_rank(expected)),
        Some(found) if found == expected => dims_of(c, wanted),
        Some(found) => {
            return Err(GeometryError::Length { what, expected, found }.into());
        }
    };
    for at in 1..rank {
        let dim: &mut Dim = &mut dims[ragged + at];
        *dim = same_size(c, "a size of shape", c.dim(c.input(1), at), *dim)?;
    }
    c.set_output(0, c.make_shape(&dims))
}

fn to_sparse(c: &ShapeContext<'_>) -> ShapeResult {
    let ragged = c.attr::<i64>("RAGGED_RANK")?;
    for at in 0..ragged as usize {
        input_of_rank(c, at, "rt_nested_splits", 1)?;
    }
    let values = input_of_rank_at_least(c, ragged as usize, "rt_dense_values", 1)?;
    let rank = c.make_dim(c.rank(values).map(|rank| ragged + rank as i64));
    let count = c.dims(values).filter(|dims| dims.iter().all(|&size| size >= 0));
    let count = c.make_dim(
        count.and_then(|dims| dims.iter().try_fold(1i64, |so_far, &size| so_far.checked_mul(size))),
    );
    c.set_output(0, c.make_shape(&[count, rank]))?;
    c.set_output(1, c.make_shape(&[count]))?;
    c.set_output(2, c.make_shape(&[rank]))
}

fn range(c: &ShapeContext<'_>) -> ShapeResult {
    let mut rows = None;
    for (at, what) in ["starts", "limits", "deltas"].into_iter().enumerate() {
        match c.rank(c.input(at)) {
            Some(0) => {}
            None => return unknown_rows(c),
            Some(1) => {
                let size = c.dim(c.input(at), 0);
                rows = Some(match rows {
                    None => size,
                    Some(rows) => {
                        same_size(c, "the length of starts, limits and deltas", rows, size)?
                    }
                });
            }
            Some(found) => return Err(GeometryError::Rank { what, expected: 1, found }.into()),
        }
    }
    let rows = rows.map_or(Some(1), |rows| c.value(rows));
    c.set_output(0, c.make_shape(&[c.make_dim(rows.map(|rows| rows + 1))]))?;
    c.set_output(1, c.unknown_of_rank(1))
}

fn unknown_rows(c: &ShapeContext<'_>) -> ShapeResult {
    c.set_output(0, c.unknown_of_rank(1))?;
    c.set_output(1, c.unknown_of_rank(1))
}

fn gather(c: &ShapeContext<'_>) -> ShapeResult {
    let ragged = c.attr::<i64>("PARAMS_RAGGED_RANK")? as usize;
    let outputs = c.attr::<i64>("OUTPUT_RAGGED_RANK")? as usize;
    for at in 0..ragged {
        input_of_rank(c, at, "params_nested_splits", 1)?;
    }
    let values = input_of_rank_at_least(c, ragged, "params_dense_values", 1)?;
    if let Some(rank) = c.rank(c.input(ragged + 1)) {
        let (what, expected) = ("OUTPUT_RAGGED_RANK", (rank + ragged) as i64 - 1);
        if expected != outputs as i64 {
            let found = outputs as i64;
            return Err(GeometryError::SizeMismatch { what, expected, found }.into());
        }
    }
    for at in 0..outputs {
        c.set_output(at, c.unknown_of_rank(1))?;
    }
    let Some(rank) = c.rank(values) else { return c.set_output(outputs, c.unknown()) };
    let mut dims = vec![c.make_dim(None)];
    dims.extend((1..rank).map(|at| c.dim(values, at)));
    c.set_output(outputs, c.make_shape(&dims))
}

fn fill(c: &ShapeContext<'_>) -> ShapeResult {
    let rowids = input_of_rank(c, 0, "value_rowids", 1)?;
    let values = input_of_rank(c, 1, "values", 1)?;
    let count = same_size(c, "the number of values", c.dim(rowids, 0), c.dim(values, 0))?;
    input_of_rank(c, 2, "nrows", 0)?;
    input_of_rank(c, 3, "default_value", 0)?;
    let rows = c.constant_integers(2).and_then(|rows| rows.first().copied());
    let total = c.make_dim(None);
    c.set_output(0, c.make_shape(&[total]))?;
    c.set_output(1, c.make_shape(&[total]))?;
    c.set_output(2, c.make_shape(&[c.make_dim(rows.filter(|&rows| rows >= 0))]))?;
    c.set_output(3, c.make_shape(&[count]))
}

fn fill_grad(c: &ShapeContext<'_>) -> ShapeResult {
    let map = input_of_rank(c, 0, "reverse_index_map", 1)?;
    input_of_rank(c, 1, "grad_values", 1)?;
    c.set_output(0, map)?;
    c.set_output(1, c.scalar())
}

#[cfg(test)]
mod tests {
    use crate::testing::{check, infer};
    use tenon_framework::attr::{AttrList, AttrValue};

    fn kinds(kinds: &[&str]) -> [(&'static str, AttrValue); 1] {
        let list = kinds.iter().map(|kind| (*kind).into()).collect();
        [("row_partition_types", AttrValue::List(AttrList::String(list)))]
    }

    #[test]
    fn a_whole_tensor_has_the_sizes_that_are_asked_for() {
        let kinds = kinds(&["ROW_SPLITS"]);
        let cases: [(&[&str], &str); 4] = [
            (&["= [3,4,-1]", "[n,2]", "[]", "[4]"], "[3,4,2]"),
            (&["[3]", "[n,2]", "[]", "[4]"], "[?,?,2]"),
            (&["[]", "[n,2]", "[]", "[4]"], "[?,?,2]"),
            (&["= [3,4]", "[n,2]", "[]", "[4]"], "! shape must hold 3 values, got 2"),
        ];
        for (inputs, expected) in cases {
            let found = infer("RaggedTensorToTensor", &kinds, inputs);
            assert!(found.starts_with(expected), "{found}");
        }
    }

    #[test]
    fn splits_are_one_more_than_rows() {
        let cases: [(&[&str], &str); 2] =
            [(&["[3]", "[]", "[3]"], "[4]; [?]"), (&["[]", "[]", "[]"], "[2]; [?]")];
        check("RaggedRange", &[], &cases);
        let found = infer("RaggedRange", &[], &["[3]", "[2]", "[]"]);
        assert!(
            found.starts_with("! the length of starts, limits and deltas must be 3, got 2"),
            "{found}"
        );
        let found = infer("RaggedTensorToSparse", &[], &["[4]", "[5,2]"]);
        assert_eq!(found, "[10,3]; [10]; [3]");
    }
}
