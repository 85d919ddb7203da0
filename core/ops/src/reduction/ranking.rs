//! The greatest elements of rows, and whether an element is among them.

use crate::shape::{constant_integer, dims_of, input_of_rank, input_of_rank_at_least, same_size};
use tenon_author::{Dim, ShapeContext, ShapeResult, register_op};
use tenon_geometry::{GeometryError, normalize_axis};

register_op!(
    "TopK",
    inputs = &["input: T"],
    outputs = &["values: T", "indices: int32"],
    attrs = &["k: int >= 0", "sorted: bool = true", "T: realnumbertype"],
    cases = &["rows; k in {0, 1, 3}; w in 3..40; input: [r, w]",],
    shape = top_k,
    summary = "The k greatest elements of each row, greatest first, and their positions.",
);

register_op!(
    "TopKV2",
    inputs = &["input: T", "k: Tk"],
    outputs = &["values: T", "indices: index_type"],
    attrs = &[
        "sorted: bool = true",
        "T: realnumbertype",
        "Tk: {int16, int32, int64} = DT_INT32",
        "index_type: {int16, int32, int64} = DT_INT32",
    ],
    cases = &["rows; w in 4..40; input: [r, w]; k: [] integers(0..=4)",],
    shape = top_k_of_input,
    summary = "The k greatest elements of each row, greatest first, and their positions.",
);

register_op!(
    "ApproxTopK",
    inputs = &["input: T"],
    outputs = &["values: T", "indices: int32"],
    attrs = &[
        "k: int >= 0",
        "reduction_dimension: int = -1",
        "recall_target: float = 0.95",
        "is_max_k: bool = true",
        "reduction_input_size_override: int = -1",
        "aggregate_to_topk: bool = true",
        "T: {half, bfloat16, float}",
    ],
    cases = &[
        "rows; k in {0, 1, 3}; is_max_k in {false, true}; w in 3..40; input: [r, w]",
        "columns; k = 2; reduction_dimension = 0; input: [5, r]",
    ],
    shape = approximate,
    summary = "The k greatest or least elements along a dimension, the first one first, and their positions; here they are exact.",
);

register_op!(
    "InTopK",
    inputs = &["predictions: float", "targets: T"],
    outputs = &["precision: bool"],
    attrs = &["k: int", "T: {int32, int64} = DT_INT32"],
    cases = &["rows; k in {1, 3}; predictions: [r, 5]; targets: [r] integers(0..5)",],
    shape = in_top_k,
    summary = "Whether the target of each row is among its k greatest predictions.",
);

register_op!(
    "InTopKV2",
    inputs = &["predictions: float", "targets: T", "k: T"],
    outputs = &["precision: bool"],
    attrs = &["T: {int32, int64} = DT_INT32"],
    cases = &["rows; predictions: [r, 5]; targets: [r] integers(0..5); k: [] values(2)",],
    shape = in_top_k_of_input,
    summary = "Whether the target of each row is among its k greatest predictions.",
);

register_op!(
    "NthElement",
    inputs = &["input: T", "n: int32"],
    outputs = &["values: T"],
    attrs = &["reverse: bool = false", "T: realnumbertype"],
    cases = &["rows; w in 4..40; input: [r, w]; n: [] integers(0..4)",],
    shape = nth_element,
    summary = "The element at position n of each row when sorted.",
);

fn top_k(c: &ShapeContext<'_>) -> ShapeResult {
    greatest(c, Some(c.attr("k")?))
}

fn top_k_of_input(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 1, "k", 0)?;
    greatest(c, constant_integer(c, 1, "k")?)
}

/// Both outputs have the shape of the input, with `k` as the last dimension.
fn greatest(c: &ShapeContext<'_>, k: Option<i64>) -> ShapeResult {
    let input = input_of_rank_at_least(c, 0, "input", 1)?;
    if let Some(found) = k.filter(|&k| k < 0) {
        return Err(GeometryError::TooSmall { what: "k", least: 0, found }.into());
    }
    let Some(rank) = c.rank(input) else {
        c.set_output(0, c.unknown())?;
        return c.set_output(1, c.unknown());
    };
    let mut dims = dims_of(c, input);
    if let (Some(k), Some(size)) = (k, c.value(dims[rank - 1]))
        && size < k
    {
        let what = "the last dimension of input";
        return Err(GeometryError::TooSmall { what, least: k, found: size }.into());
    }
    dims[rank - 1] = c.make_dim(k);
    let output = c.make_shape(&dims);
    c.set_output(0, output)?;
    c.set_output(1, output)
}

fn approximate(c: &ShapeContext<'_>) -> ShapeResult {
    let input = input_of_rank_at_least(c, 0, "input", 1)?;
    let (k, axis) = (c.attr::<i64>("k")?, c.attr::<i64>("reduction_dimension")?);
    let Some(rank) = c.rank(input) else {
        c.set_output(0, c.unknown())?;
        return c.set_output(1, c.unknown());
    };
    let axis = normalize_axis("reduction_dimension", axis, rank)?;
    let mut dims = dims_of(c, input);
    if let Some(found) = c.value(dims[axis]).filter(|&size| size < k) {
        let what = "the reduced dimension of input";
        return Err(GeometryError::TooSmall { what, least: k, found }.into());
    }
    dims[axis] = c.make_dim(Some(k));
    let output = c.make_shape(&dims);
    c.set_output(0, output)?;
    c.set_output(1, output)
}

fn in_top_k(c: &ShapeContext<'_>) -> ShapeResult {
    let predictions = input_of_rank(c, 0, "predictions", 2)?;
    let targets = input_of_rank(c, 1, "targets", 1)?;
    let rows = same_size(c, "the length of targets", c.dim(predictions, 0), c.dim(targets, 0))?;
    c.set_output(0, c.make_shape(&[rows]))
}

fn in_top_k_of_input(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 2, "k", 0)?;
    in_top_k(c)
}

fn nth_element(c: &ShapeContext<'_>) -> ShapeResult {
    let input = input_of_rank_at_least(c, 0, "input", 1)?;
    input_of_rank(c, 1, "n", 0)?;
    let n = constant_integer(c, 1, "n")?;
    if let Some(found) = n.filter(|&n| n < 0) {
        return Err(GeometryError::TooSmall { what: "n", least: 0, found }.into());
    }
    let Some(rank) = c.rank(input) else { return c.set_output(0, c.unknown()) };
    let dims: Vec<Dim> = dims_of(c, input);
    if let (Some(n), Some(size)) = (n, c.value(dims[rank - 1]))
        && size <= n
    {
        let what = "the last dimension of input";
        return Err(GeometryError::TooSmall { what, least: n + 1, found: size }.into());
    }
    c.set_output(0, c.make_shape(&dims[..rank - 1]))
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn the_last_dimension_becomes_k() {
        check(
            "TopK",
            &[("k", 2i64.into())],
            &[
                (&["[n,3]"], "[n,2]; [n,2]"),
                (&["?"], "?; ?"),
                (&["[1]"], "! the last dimension of input must be at least 2, got 1"),
                (&["[]"], "! input must have at least 1 dimensions, got 0"),
            ],
        );
        check(
            "TopKV2",
            &[],
            &[
                (&["[n,3]", "= 2"], "[n,2]; [n,2]"),
                (&["[3]", "= -1"], "! k must be at least 0, got -1"),
            ],
        );
    }

    #[test]
    fn any_dimension_becomes_k() {
        let attrs = |axis: i64| [("k", 2i64.into()), ("reduction_dimension", axis.into())];
        let first: [(&[&str], &str); 2] = [
            (&["[3,n]"], "[2,n]; [2,n]"),
            (&["[1,n]"], "! the reduced dimension of input must be at least 2, got 1"),
        ];
        check("ApproxTopK", &attrs(0), &first);
        let last: [(&[&str], &str); 2] = [(&["[n,3]"], "[n,2]; [n,2]"), (&["?"], "?; ?")];
        check("ApproxTopK", &attrs(-1), &last);
    }

    #[test]
    fn a_row_has_one_target() {
        let cases: [(&[&str], &str); 3] = [
            (&["[n,3]", "[4]"], "[4]"),
            (&["[3,2]", "[4]"], "! the length of targets must be 3, got 4"),
            (&["[3]", "[4]"], "! predictions must have 2 dimensions, got 1"),
        ];
        check("InTopK", &[("k", 2i64.into())], &cases);
    }

    #[test]
    fn a_row_has_one_nth_element() {
        check(
            "NthElement",
            &[],
            &[
                (&["[n,3]", "= 2"], "[n]"),
                (&["?", "[]"], "?"),
                (&["[n,3]", "= 3"], "! the last dimension of input must be at least 4, got 3"),
                (&["[n,3]", "= -1"], "! n must be at least 0, got -1"),
                (&["[3]", "[1]"], "! n must have 0 dimensions, got 1"),
            ],
        );
    }
}
