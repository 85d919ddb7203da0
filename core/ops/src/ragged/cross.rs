//! Crosses of features whose result is ragged.

use crate::shape::{input_of_rank, same_size};
use tenon_author::{Dim, ShapeContext, ShapeResult, register_op};

register_op!(
    "RaggedCross",
    inputs = &[
        "ragged_values: ragged_values_types",
        "ragged_row_splits: ragged_splits_types",
        "sparse_indices: Nsparse * int64",
        "sparse_values: sparse_values_types",
        "sparse_shape: Nsparse * int64",
        "dense_inputs: dense_types",
    ],
    outputs = &["output_values: out_values_type", "output_row_splits: out_row_splits_type"],
    attrs = &[
        "Nsparse: int >= 0",
        "input_order: string",
        "hashed_output: bool",
        "num_buckets: int >= 0",
        "hash_key: int",
        "ragged_values_types: list({int64, string}) >= 0",
        "ragged_splits_types: list({int32, int64}) >= 0",
        "sparse_values_types: list({int64, string}) >= 0",
        "dense_types: list({int64, string}) >= 0",
        "out_values_type: {int64, string}",
        "out_row_splits_type: {int32, int64}",
    ],
    shape = crossed,
    summary = "The combinations of one value of each ragged, sparse or whole column, row by row, as texts or as hashes.",
);

fn crossed(c: &ShapeContext<'_>) -> ShapeResult {
    let types = |attr: &str| c.attr::<Vec<tenon_framework::DType>>(attr).map(|types| types.len());
    let (ragged, splits) = (types("ragged_values_types")?, types("ragged_splits_types")?);
    let dense = types("dense_types")?;
    let mut rows: Option<Dim> = None;
    let mut merge = |found: Dim| -> ShapeResult {
        rows = Some(match rows {
            None => found,
            Some(rows) => same_size(c, "the number of rows of a column", rows, found)?,
        });
        Ok(())
    };
    for at in ragged..ragged + splits {
        let splits = input_of_rank(c, at, "ragged_row_splits", 1)?;
        if let Some(count) = c.value(c.dim(splits, 0)).filter(|&count| count > 0) {
            merge(c.make_dim(Some(count - 1)))?;
        }
    }
    for at in c.input_count() - dense..c.input_count() {
        let matrix = input_of_rank(c, at, "dense_inputs", 2)?;
        merge(c.dim(matrix, 0))?;
    }
    let ends = rows.and_then(|rows| c.value(rows)).map(|rows| rows + 1);
    c.set_output(0, c.unknown_of_rank(1))?;
    c.set_output(1, c.make_shape(&[c.make_dim(ends)]))
}
