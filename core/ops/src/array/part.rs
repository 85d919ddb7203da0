//! Slices, paddings and transpositions.

use crate::shape::{dims_of, input_of_rank, with_identity};
use tenon_author::{Dim, ShapeContext, ShapeResult, register_op};
use tenon_framework::{
    KernelError,
    op::{Refusal, ValueRule},
};
use tenon_geometry::{
    GeometryError, SliceMasks, StridedSlice, StridedSliceSpec, pad_dims, transpose_dims,
    validate_permutation,
};

register_op!(
    "StridedSlice",
    inputs = &["input: T", "begin: Index", "end: Index", "strides: Index"],
    outputs = &["output: T"],
    attrs = &[
        "T: type",
        "Index: {int16, int32, int64}",
        "begin_mask: int = 0",
        "end_mask: int = 0",
        "ellipsis_mask: int = 0",
        "new_axis_mask: int = 0",
        "shrink_axis_mask: int = 0",
    ],
    shape = strided_slice,
    value = ValueRule::StridedSlice,
    refuses = Refusal::Shapes,
    deciding = &[1, 2, 3],
    summary = "Every stride-th element of ranges of the dimensions, as Python slices.",
    cases = &[
        "vector; input: [n]; begin: [1] values(1); end: [1] values(n); strides: [1] values(k); k in 1..7",
        "inside; n in 4..40; input: [n, m]; begin: [2] values(1, -3); end: [2] values(n-1, m); \
         strides: [2] values(1, 2)",
        "backwards; begin_mask in {0, 1, 2}; end_mask in {0, 1, 3}; input: [n, m]; \
         begin: [2] values(-2, 2); end: [2] values(0, -100); strides: [2] values(-1, -2)",
        "head; end_mask in {0, 2}; input: [a, b, c]; begin: [2] values(0, 1); end: [2] values(2, 3); \
         strides: [2] values(1, 1)",
        "shrunk; shrink_axis_mask in {1, 2, 3}; input: [a, 4, b]; begin: [2] values(0, -2); \
         end: [2] values(1, 3); strides: [2] values(1, 1)",
        "grown; new_axis_mask in {1, 2, 4, 5}; input: [a, b, 2]; begin: [3] values(0, 0, 0); \
         end: [3] values(2, 3, 1); strides: [3] values(1, 1, 1)",
        "ellipsis; ellipsis_mask = 2; new_axis_mask in {0, 1}; shrink_axis_mask in {0, 4}; \
         input: [a, b, c, 4]; begin: [3] values(0, 0, 1); end: [3] values(2, 0, 2); \
         strides: [3] values(1, 1, 1)",
        "ellipsis_first; ellipsis_mask = 1; input: [a, b, c]; begin: [2] values(0, 0); \
         end: [2] values(0, 2); strides: [2] values(1, 3)",
        "whole; input: [a, b]; begin: [0]; end: [0]; strides: [0]",
        "nothing; input: [n, 3]; begin: [2] values(2, 0); end: [2] values(2, 3); strides: [2] values(1, 1)",
    ],
);

register_op!(
    "Pad",
    inputs = &["input: T", "paddings: Tpaddings"],
    outputs = &["output: T"],
    attrs = &["T: type", "Tpaddings: {int32, int64} = DT_INT32"],
    shape = pad,
    refuses = Refusal::Shapes,
    deciding = &[1],
    summary = "The tensor with zeros before and after each dimension.",
    bench = &["images; input: [8, 56, 56, 64]; paddings: [4, 2] values(0, 0, 1, 1, 1, 1, 0, 0)",],
);

register_op!(
    "PadV2",
    inputs = &["input: T", "paddings: Tpaddings", "constant_values: T"],
    outputs = &["output: T"],
    attrs = &["T: type", "Tpaddings: {int32, int64} = DT_INT32"],
    shape = pad_v2,
    refuses = Refusal::Shapes,
    deciding = &[1],
    summary = "The tensor with a value before and after each dimension.",
    cases = &[
        "vector; input: [n]; paddings: [1, 2] integers(0..4); constant_values: []",
        "matrix; input: [n, m]; paddings: [2, 2] integers(0..3); constant_values: []",
        "scalar; input: []; paddings: [0, 2]; constant_values: []",
    ],
);

register_op!(
    "Transpose",
    inputs = &["x: T", "perm: Tperm"],
    outputs = &["y: T"],
    attrs = &["T: type", "Tperm: {int32, int64} = DT_INT32"],
    shape = transpose,
    summary = "The tensor with its dimensions permuted.",
    bench = &[
        "matrix; n in {64, 1024}; x: [n, n]; perm: [2] values(1, 0)",
        "heads; x: [8, 128, 12, 64]; perm: [4] values(0, 2, 1, 3)",
    ],
);

register_op!(
    "ConjugateTranspose",
    inputs = &["x: T", "perm: Tperm"],
    outputs = &["y: T"],
    attrs = &["T: type", "Tperm: {int32, int64} = DT_INT32"],
    shape = transpose,
    summary = "The tensor with its dimensions permuted, and complex numbers conjugated.",
);

fn strided_slice(c: &ShapeContext<'_>) -> ShapeResult {
    let mut entries = c.unknown();
    for (at, what) in [(1, "begin"), (2, "end"), (3, "strides")] {
        entries = c.merge(entries, input_of_rank(c, at, what, 1)?)?;
    }
    let (Some(sizes), Some(strides)) = (c.dims(c.input(0)), c.constant_integers(3)) else {
        return c.set_output(0, c.unknown());
    };
    let (begin, end) = (c.constant_integers(1), c.constant_integers(2));
    let spec = StridedSliceSpec {
        begin: begin.as_deref(),
        end: end.as_deref(),
        strides: &strides,
        masks: slice_masks(c)?,
    };
    let slice = StridedSlice::new(&sizes, &spec)?;
    let whole = whole_dims(c, &sizes, &spec, slice.output.len())?;
    c.set_output(0, with_identity(c, &slice.output, |at| whole[at]))
}

/// The five mask attributes of a strided slice.
pub(super) fn slice_masks(c: &ShapeContext<'_>) -> Result<SliceMasks, KernelError> {
    SliceMasks::of(|name| c.attr(name))
}

/// For each dimension of the output, the unknown dimension of the input that it equals entirely.
///
/// The canonical form does not state where each dimension went, so each is tested separately:
/// without values of begin and end, and with one known size among unknown ones, that size appears
/// in the output where its dimension is taken as a whole, and nowhere else.
fn whole_dims(
    c: &ShapeContext<'_>,
    sizes: &[i64],
    spec: &StridedSliceSpec<'_>,
    rank: usize,
) -> Result<Vec<Option<Dim>>, KernelError> {
    /// A size that no inserted or dropped axis, and no stride other than 1 and -1, can give.
    const PROBE: i64 = 1_000_003;
    let masks_only = StridedSliceSpec { begin: None, end: None, ..*spec };
    let mut whole = vec![None; rank];
    for (at, _) in sizes.iter().enumerate().filter(|&(_, &size)| size == -1) {
        let mut probe = vec![-1; sizes.len()];
        probe[at] = PROBE;
        let found = StridedSlice::new(&probe, &masks_only)?;
        if let Some(place) = found.output.iter().position(|&size| size == PROBE) {
            whole[place] = Some(c.dim(c.input(0), at));
        }
    }
    Ok(whole)
}

fn pad_v2(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 2, "constant_values", 0)?;
    pad(c)
}

fn pad(c: &ShapeContext<'_>) -> ShapeResult {
    let paddings = input_of_rank(c, 1, "paddings", 2)?;
    let (rank, columns) = (c.value(c.dim(paddings, 0)), c.value(c.dim(paddings, 1)));
    if let Some(found) = columns.filter(|&columns| columns != 2) {
        let what = "the number of columns of paddings";
        return Err(GeometryError::SizeMismatch { what, expected: 2, found }.into());
    }
    let input = match rank {
        Some(rank) => input_of_rank(c, 0, "input", rank as usize)?,
        None => c.input(0),
    };
    let Some(sizes) = c.dims(input) else {
        return c.set_output(0, c.unknown());
    };
    let Some(paddings) = c.constant_integers(1) else {
        return c.set_output(0, c.unknown_of_rank(sizes.len()));
    };
    let padded = pad_dims(&sizes, &paddings)?;
    let same = |at: usize| paddings[2 * at] == 0 && paddings[2 * at + 1] == 0;
    let output = with_identity(c, &padded, |at| same(at).then(|| c.dim(input, at)));
    c.set_output(0, output)
}

fn transpose(c: &ShapeContext<'_>) -> ShapeResult {
    let perm = input_of_rank(c, 1, "perm", 1)?;
    let rank = c.value(c.dim(perm, 0)).map(|rank| rank as usize);
    let x = match rank {
        Some(rank) => input_of_rank(c, 0, "x", rank)?,
        None => c.input(0),
    };
    let Some(sizes) = c.dims(x) else {
        return c.set_output(0, c.unknown());
    };
    let Some(perm) = c.constant_integers(1) else {
        return c.set_output(0, c.unknown_of_rank(sizes.len()));
    };
    let output = transpose_dims(&sizes, &perm)?;
    let perm = validate_permutation(&perm, sizes.len())?;
    let dims = dims_of(c, x);
    c.set_output(0, with_identity(c, &output, |at| dims.get(perm[at] as usize).copied()))
}

#[cfg(test)]
mod tests {
    use crate::testing::check;
    use tenon_framework::attr::AttrValue;

    fn masks(names: &[(&'static str, i64)]) -> Vec<(&'static str, AttrValue)> {
        names.iter().map(|&(name, mask)| (name, AttrValue::Int(mask))).collect()
    }

    #[test]
    fn slices_of_known_bounds() {
        check(
            "StridedSlice",
            &[],
            &[
                (&["[5,7]", "= [1,0]", "= [4,7]", "= [2,3]"], "[2,3]"),
                (&["[5,7]", "= [-2]", "= [5]", "= [1]"], "[2,7]"),
                (&["[n,7]", "= [0]", "= [2]", "= [1]"], "[?,7]"),
                (&["[n,7,m]", "[1]", "[1]", "= [1]"], "[?,7,m]"),
                (&["[5]", "[1]", "[1]", "[1]"], "?"),
                (&["?", "= [0]", "= [2]", "= [1]"], "?"),
            ],
        );
        let shrink = masks(&[("shrink_axis_mask", 1)]);
        check(
            "StridedSlice",
            &shrink,
            &[
                (&["[5,n]", "= [1]", "= [2]", "= [1]"], "[n]"),
                (
                    &["[5,n]", "= [5]", "= [6]", "= [1]"],
                    "! begin must lie in dimension 0 of input, which has size 5, got 5",
                ),
            ],
        );
        let first_whole = masks(&[("begin_mask", 1), ("end_mask", 1)]);
        check(
            "StridedSlice",
            &first_whole,
            &[
                (&["[n,7]", "= [0,1]", "= [0,3]", "= [1,1]"], "[n,2]"),
                (&["[n,7]", "= [0,1]", "= [0,3]", "= [2,1]"], "[?,2]"),
            ],
        );
        let new = masks(&[("new_axis_mask", 2), ("ellipsis_mask", 1)]);
        check("StridedSlice", &new, &[(&["[n,m]", "= [0,0]", "= [0,0]", "= [1,1]"], "[n,m,1]")]);
    }

    #[test]
    fn bad_slices_are_refused() {
        check(
            "StridedSlice",
            &[],
            &[
                (&["[5]", "= [0]", "= [2]", "= [0]"], "! strides[0] must not be 0"),
                (&["[5]", "= 0", "= [2]", "= [1]"], "! begin must have 1 dimensions, got 0"),
                (
                    &["[5]", "= [0,0]", "= [2,2]", "= [1,1]"],
                    "! begin, end and strides must index at most the 1 dimensions of input, got more",
                ),
                (
                    &["[5]", "= [0]", "= [2,2]", "= [1]"],
                    "! shapes [1] and [2] must be equal: dimension 0: expected 1, found 2: input is [5], begin is [1], end is [2], strides is [1]",
                ),
            ],
        );
        check(
            "StridedSlice",
            &masks(&[("end_mask", -1)]),
            &[(&["[5]", "= [0]", "= [2]", "= [1]"], "[5]")],
        );
        check(
            "StridedSlice",
            &masks(&[("end_mask", 1 << 31)]),
            &[(
                &["[5]", "= [0]", "= [2]", "= [1]"],
                "! attribute end_mask: expected a mask of 32 bits, found 2147483648",
            )],
        );
    }

    #[test]
    fn paddings_add_up() {
        check(
            "Pad",
            &[],
            &[
                (&["[2,3]", "= [[1,2],[0,3]]"], "[5,6]"),
                (&["[n,m]", "= [[0,0],[1,0]]"], "[n,?]"),
                (&["[n,m]", "[2,2]"], "[?,?]"),
                (&["?", "[3,2]"], "[?,?,?]"),
                (&["?", "?"], "?"),
                (&["[2]", "= [[1,-2]]"], "! paddings must be at least 0, got -2"),
                (&["[2]", "[2,2]"], "! input must have 2 dimensions, got 1"),
                (&["[2]", "[1,3]"], "! the number of columns of paddings must be 2, got 3"),
                (&["[2]", "[2]"], "! paddings must have 2 dimensions, got 1"),
            ],
        );
    }

    #[test]
    fn dimensions_are_permuted() {
        check(
            "Transpose",
            &[],
            &[
                (&["[2,3,n]", "= [2,0,1]"], "[n,2,3]"),
                (&["[n,m]", "= [-1,0]"], "[m,n]"),
                (&["[]", "= []"], "[]"),
                (&["[2,3]", "[2]"], "[?,?]"),
                (&["?", "[3]"], "[?,?,?]"),
                (&["?", "= [1,0]"], "[?,?]"),
                (&["?", "?"], "?"),
                (&["[2,3]", "= [0,2]"], "! perm must lie in [-2, 2), got 2"),
                (&["[2,3]", "= [0,0]"], "! perm holds axis 0 twice: name each axis once"),
                (&["[2,3]", "= [0]"], "! x must have 1 dimensions, got 2"),
            ],
        );
    }
}
