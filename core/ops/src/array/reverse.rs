//! Ops that reorder elements along a dimension.

use crate::shape::{input_of_rank, input_of_rank_at_least, same_size, scalar_or_vector, unchanged};
use tenon_author::{ShapeContext, ShapeResult, register_op};
use tenon_framework::op::Refusal;
use tenon_geometry::{AxisSet, GeometryError, normalize_axis};

register_op!(
    "ReverseV2",
    inputs = &["tensor: T", "axis: Tidx"],
    outputs = &["output: T"],
    attrs = &[
        "Tidx: {int32, int64} = DT_INT32",
        "T: {uint8, int8, uint16, int16, int32, uint32, int64, uint64, bool, bfloat16, half, float, double, \
         complex64, complex128, string}",
    ],
    shape = reverse_v2,
    refuses = Refusal::Axes,
    deciding = &[1],
    summary = "The tensor with the elements along the named dimensions in reverse order.",
    cases = &[
        "vector; tensor: [n]; axis: [1] values(0)",
        "matrix; tensor: [n, m]; axis: [2] values(-1, 0)",
        "one; tensor: [n, m]; axis: [1] integers(-2..2)",
        "none; tensor: [n]; axis: [0]",
        "scalar; tensor: []; axis: [0]",
    ],
);

register_op!(
    "Reverse",
    inputs = &["tensor: T", "dims: bool"],
    outputs = &["output: T"],
    attrs = &[
        "T: {uint8, int8, uint16, int16, uint32, int32, uint64, int64, bool, bfloat16, half, float, \
               double, complex64, complex128, string}"
    ],
    shape = reverse,
    summary =
        "The tensor with the elements along the dimensions that are flagged in reverse order.",
    cases = &[
        "vector; tensor: [n]; dims: [1] values(true)",
        "matrix; tensor: [n, m]; dims: [2]",
        "scalar; tensor: []; dims: [0]",
    ],
);

register_op!(
    "ReverseSequence",
    inputs = &["input: T", "seq_lengths: Tlen"],
    outputs = &["output: T"],
    attrs = &["seq_dim: int", "batch_dim: int = 0", "T: type", "Tlen: {int32, int64} = DT_INT64"],
    shape = reverse_sequence,
    summary = "Per slice of the batch dimension, the first elements, up to the given number, in reverse order; the others unchanged.",
    cases = &[
        "rows; seq_dim = 1; input: [n, 7]; seq_lengths: [n] integers(0..8)",
        "columns; seq_dim = 0; batch_dim = 1; input: [7, n]; seq_lengths: [n] integers(0..8)",
        "inner; seq_dim = 2; input: [n, 3, 5, m]; seq_lengths: [n] integers(0..6)",
    ],
);

register_op!(
    "Roll",
    inputs = &["input: T", "shift: Tshift", "axis: Taxis"],
    outputs = &["output: T"],
    attrs = &["T: type", "Tshift: {int32, int64}", "Taxis: {int32, int64}"],
    shape = roll,
    summary = "The tensor with its elements moved along dimensions; those that leave one end come in at the other.",
    cases = &[
        "vector; input: [n]; shift: [] integers(-9..9); axis: [] values(0)",
        "matrix; input: [n, m]; shift: [2] integers(-9..9); axis: [2] values(-1, 0)",
        "twice; input: [n, m]; shift: [2] integers(-9..9); axis: [2] values(1, 1)",
    ],
);

fn reverse_v2(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 1, "axis", 1)?;
    if let (Some(rank), Some(axes)) = (c.rank(c.input(0)), c.constant_integers(1)) {
        AxisSet::new("axis", &axes, rank)?;
    }
    unchanged(c)
}

fn reverse(c: &ShapeContext<'_>) -> ShapeResult {
    let dims = input_of_rank(c, 1, "dims", 1)?;
    let input = match c.value(c.dim(dims, 0)) {
        Some(rank) => input_of_rank(c, 0, "tensor", rank as usize)?,
        None => c.input(0),
    };
    c.set_output(0, input)
}

fn reverse_sequence(c: &ShapeContext<'_>) -> ShapeResult {
    let lengths = input_of_rank(c, 1, "seq_lengths", 1)?;
    let (seq, batch): (i64, i64) = (c.attr("seq_dim")?, c.attr("batch_dim")?);
    if seq == batch {
        return Err(
            GeometryError::DuplicateAxis { what: "seq_dim", axis: batch.max(0) as usize }.into()
        );
    }
    let input = c.input(0);
    let Some(rank) = c.rank(input) else { return c.set_output(0, input) };
    normalize_axis("seq_dim", seq, rank)?;
    let batch = normalize_axis("batch_dim", batch, rank)?;
    let what = "the length of seq_lengths";
    let merged = same_size(c, what, c.dim(input, batch), c.dim(lengths, 0))?;
    let dims: Vec<_> =
        (0..rank).map(|at| if at == batch { merged } else { c.dim(input, at) }).collect();
    c.set_output(0, c.make_shape(&dims))
}

fn roll(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank_at_least(c, 0, "input", 1)?;
    scalar_or_vector(c, 1, "shift")?;
    scalar_or_vector(c, 2, "axis")?;
    unchanged(c)
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn shapes_stay() {
        check(
            "ReverseV2",
            &[],
            &[
                (&["[n,3]", "= [-1]"], "[n,3]"),
                (&["[n,3]", "= [1,-1]"], "! axis holds axis 1 twice: name each axis once"),
                (&["[n,3]", "= [2]"], "! axis must lie in [-2, 2), got 2"),
            ],
        );
        check(
            "Reverse",
            &[],
            &[
                (&["?", "[2]"], "[?,?]"),
                (&["[3]", "[2]"], "! tensor must have 2 dimensions, got 1"),
            ],
        );
        check(
            "Roll",
            &[],
            &[
                (&["[n]", "[]", "[]"], "[n]"),
                (&["[n]", "[2,2]", "[]"], "! shift must have 1 dimensions, got 2"),
            ],
        );
    }

    #[test]
    fn a_sequence_has_a_length_per_batch() {
        check(
            "ReverseSequence",
            &[("seq_dim", 1i64.into())],
            &[
                (&["[?,n]", "[4]"], "[4,n]"),
                (&["[n]", "[4]"], "! seq_dim must lie in [-1, 1), got 1"),
                (&["[3,n]", "[4]"], "! the length of seq_lengths must be 3, got 4"),
            ],
        );
        check(
            "ReverseSequence",
            &[("seq_dim", 0i64.into())],
            &[(&["[3]", "[3]"], "! seq_dim holds axis 0 twice: name each axis once")],
        );
    }
}
