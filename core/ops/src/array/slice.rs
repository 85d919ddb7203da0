//! Boxes of tensors, and ops that write strided slices.

use super::part::slice_masks;
use crate::shape::{input_of_rank, pass_on, with_identity};
use tenon_author::{ShapeContext, ShapeResult, register_op};
use tenon_framework::op::Refusal;
use tenon_geometry::{StridedSlice, StridedSliceSpec, check_broadcast_to, slice_dims};

register_op!(
    "Slice",
    inputs = &["input: T", "begin: Index", "size: Index"],
    outputs = &["output: T"],
    attrs = &["T: type", "Index: {int32, int64}"],
    shape = slice,
    refuses = Refusal::Shapes,
    deciding = &[1, 2],
    summary = "A box of the tensor, from an index on; a size of -1 reaches to the end.",
    cases = &[
        "vector; n in 2..2000; input: [n]; begin: [1] values(1); size: [1] values(n-1)",
        "rest; n in 3..50; input: [n, m]; begin: [2] values(2, 0); size: [2] values(-1, -1)",
        "box; input: [5, n, 7]; begin: [3] values(1, 0, 2); size: [3] values(3, n, 4)",
        "nothing; input: [n, 3]; begin: [2] values(0, 3); size: [2] values(n, 0)",
        "scalar; input: []; begin: [0]; size: [0]",
    ],
);

/// The attributes of the ops that write through a strided slice.
const WRITTEN: &[&str] = &[
    "T: type",
    "Index: {int32, int64}",
    "begin_mask: int = 0",
    "end_mask: int = 0",
    "ellipsis_mask: int = 0",
    "new_axis_mask: int = 0",
    "shrink_axis_mask: int = 0",
];

register_op!(
    "StridedSliceGrad",
    inputs = &["shape: Index", "begin: Index", "end: Index", "strides: Index", "dy: T"],
    outputs = &["output: T"],
    attrs = WRITTEN,
    shape = strided_slice_grad,
    summary = "Zeros, with the gradient in the elements of a strided slice.",
    cases = &[
        "vector; n in 3..200000; shape: [1] values(n); begin: [1] values(1); end: [1] values(n); \
         strides: [1] values(1); dy: [n-1]",
        "inside; n in 3..40; shape: [2] values(n, 7); begin: [2] values(1, -2); end: [2] values(n-1, 0); \
         strides: [2] values(1, -2); dy: [n-2, 3]",
        "shrunk; shrink_axis_mask = 1; shape: [2] values(4, n); begin: [1] values(2); end: [1] values(3); \
         strides: [1] values(1); dy: [n]",
    ],
);

register_op!(
    "TensorStridedSliceUpdate",
    inputs = &["input: T", "begin: Index", "end: Index", "strides: Index", "value: T"],
    outputs = &["output: T"],
    attrs = WRITTEN,
    shape = strided_slice_update,
    summary = "The tensor with a value, repeated as need be, in place of a strided slice.",
    cases = &[
        "vector; n in 3..200000; input: [n]; begin: [1] values(1); end: [1] values(n); \
         strides: [1] values(1); value: [n-1]",
        "inside; n in 3..40; input: [n, 7]; begin: [2] values(1, -2); end: [2] values(n-1, 0); \
         strides: [2] values(1, -2); value: [n-2, 3]",
        "nothing; input: [0, n]; begin: [1] values(0); end: [1] values(0); strides: [1] values(1); \
         value: [0, n]",
        "one; n in 1..40; input: [n]; begin: [1] values(0); end: [1] values(n); strides: [1] values(1); \
         value: []",
    ],
);

fn slice(c: &ShapeContext<'_>) -> ShapeResult {
    let bounds = c.merge(input_of_rank(c, 1, "begin", 1)?, input_of_rank(c, 2, "size", 1)?)?;
    let rank = c.value(c.dim(bounds, 0)).map(|rank| rank as usize);
    let input = match rank {
        Some(rank) => input_of_rank(c, 0, "input", rank)?,
        None => c.input(0),
    };
    let Some(dims) = c.dims(input) else { return c.set_output(0, c.unknown()) };
    let begin = c.constant_integers(1);
    match (begin, c.constant_integers(2)) {
        (Some(begin), Some(size)) => {
            let output = slice_dims(&dims, &begin, &size)?;
            let whole = |at: usize| begin[at] == 0 && size[at] == -1;
            c.set_output(0, with_identity(c, &output, |at| whole(at).then(|| c.dim(input, at))))
        }
        (None, Some(size)) if size.iter().all(|&size| size >= -1) => {
            c.set_output(0, c.shape_of(&size))
        }
        _ => c.set_output(0, c.unknown_of_rank(dims.len())),
    }
}

fn strided_slice_grad(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 0, "shape", 1)?;
    c.set_output(0, c.constant_as_shape(0)?)
}

fn strided_slice_update(c: &ShapeContext<'_>) -> ShapeResult {
    for (at, what) in [(1, "begin"), (2, "end"), (3, "strides")] {
        input_of_rank(c, at, what, 1)?;
    }
    let (begin, end) = (c.constant_integers(1), c.constant_integers(2));
    if let (Some(dims), Some(strides), Some(value)) =
        (c.dims(c.input(0)), c.constant_integers(3), c.dims(c.input(4)))
    {
        let spec = StridedSliceSpec {
            begin: begin.as_deref(),
            end: end.as_deref(),
            strides: &strides,
            masks: slice_masks(c)?,
        };
        check_broadcast_to(&value, &StridedSlice::new(&dims, &spec)?.output)?;
    }
    pass_on(c, 0, 0)
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn boxes() {
        check(
            "Slice",
            &[],
            &[
                (&["[5,n]", "= [1,0]", "= [3,-1]"], "[3,n]"),
                (&["[5,n]", "= [1,1]", "= [-1,-1]"], "[4,?]"),
                (&["[5,n]", "[2]", "= [3,-1]"], "[3,?]"),
                (&["[5,n]", "[2]", "[2]"], "[?,?]"),
                (&["?", "[2]", "[2]"], "[?,?]"),
                (&["?", "[?]", "[?]"], "?"),
                (&["[5]", "= [1,0]", "[2]"], "! input must have 2 dimensions, got 1"),
                (
                    &["[5]", "= [3]", "= [3]"],
                    "! a slice must lie in its dimension: dimension 0 has size 5, got begin 3 and size 3",
                ),
            ],
        );
    }

    #[test]
    fn written_slices() {
        let one = "= [1]";
        check(
            "StridedSliceGrad",
            &[],
            &[
                (&["= [4,2]", one, one, one, "?"], "[4,2]"),
                (&["[3]", one, one, one, "?"], "[?,?,?]"),
                (&["= 3", one, one, one, "?"], "! shape must have 1 dimensions, got 0"),
            ],
        );
        check(
            "TensorStridedSliceUpdate",
            &[],
            &[
                (&["[n,4]", one, "= [3]", one, "[2,4]"], "[n,4]"),
                (&["[5,4]", one, "= [3]", one, "[4]"], "[5,4]"),
                (
                    &["[5,4]", one, "= [3]", one, "[3,4]"],
                    "! shapes [3, 4] and [2, 4] do not broadcast: each pair of dimensions must be equal or hold a 1: input is [5,4], begin is [1], end is [1], strides is [1], value is [3,4]",
                ),
            ],
        );
    }
}
