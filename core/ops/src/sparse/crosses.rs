//! Crosses of features: each combination of one value of each column, row by row.

use super::set_places;
use crate::shape::input_of_rank;
use tenon_author::{ShapeContext, ShapeResult, register_op};

const N: &str = "N: int >= 0";
const SPARSE: &str = "sparse_types: list({int64, string}) >= 0";
const DENSE: &str = "dense_types: list({int64, string}) >= 0";

register_op!(
    "SparseCross",
    inputs = &[
        "indices: N * int64",
        "values: sparse_types",
        "shapes: N * int64",
        "dense_inputs: dense_types"
    ],
    outputs = &["output_indices: int64", "output_values: out_type", "output_shape: int64"],
    attrs = &[
        N,
        "hashed_output: bool",
        "num_buckets: int >= 0",
        "hash_key: int",
        SPARSE,
        DENSE,
        "out_type: {int64, string}",
        "internal_type: {int64, string}",
    ],
    shape = crossed,
    summary = "The combinations of one value of each sparse or whole column, row by row, as texts or as hashes.",
);

register_op!(
    "SparseCrossV2",
    inputs = &[
        "indices: N * int64",
        "values: sparse_types",
        "shapes: N * int64",
        "dense_inputs: dense_types",
        "sep: string"
    ],
    outputs = &["output_indices: int64", "output_values: string", "output_shape: int64"],
    attrs = &[N, SPARSE, DENSE],
    shape = joined,
    summary = "`SparseCross` as texts with a separator between the values.",
);

register_op!(
    "SparseCrossHashed",
    inputs = &[
        "indices: N * int64",
        "values: sparse_types",
        "shapes: N * int64",
        "dense_inputs: dense_types",
        "num_buckets: int64",
        "strong_hash: bool",
        "salt: int64"
    ],
    outputs = &["output_indices: int64", "output_values: int64", "output_shape: int64"],
    attrs = &[N, SPARSE, DENSE],
    shape = hashed,
    summary = "`SparseCross` as hashes, of which a salt is the key.",
);

fn crossed(c: &ShapeContext<'_>) -> ShapeResult {
    set_places(c, 0, c.make_dim(None), c.make_dim(Some(2)))
}

fn joined(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, c.input_count() - 1, "sep", 0)?;
    crossed(c)
}

fn hashed(c: &ShapeContext<'_>) -> ShapeResult {
    let after = c.input_count();
    for (at, what, rank) in [(3, "num_buckets", 0), (2, "strong_hash", 0), (1, "salt", 1)] {
        input_of_rank(c, after - at, what, rank)?;
    }
    crossed(c)
}
