//! Strings: joining, splitting, searching, formatting, encoding.

mod characters;
mod tokens;

use crate::shape::{broadcast_dims, dims_of, input_of_rank, scalar_output, unchanged};
use tenon_author::{ShapeContext, ShapeHandle, ShapeResult, register_op};
use tenon_framework::{KernelError, op::GradientRule};
use tenon_geometry::{AxisSet, join_dims};

register_op!(
    "StringJoin",
    inputs = &["inputs: N * string"],
    outputs = &["output: string"],
    attrs = &["N: int >= 0", "separator: string = ''"],
    shape = joined,
    gradient = GradientRule::None,
    summary = "Joins the strings of the inputs element by element, with a separator; scalars serve every element.",
);

register_op!(
    "AsString",
    inputs = &["input: T"],
    outputs = &["output: string"],
    attrs = &[
        "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64, complex64, complex128, bool, variant, string}",
        "precision: int = -1",
        "scientific: bool = false",
        "shortest: bool = false",
        "width: int = -1",
        "fill: string = ''",
    ],
    shape = unchanged,
    gradient = GradientRule::None,
    summary = "Each element as text, in the forms of C's printf.",
);

register_op!(
    "StringToNumber",
    inputs = &["string_tensor: string"],
    outputs = &["output: out_type"],
    attrs = &["out_type: {float, double, int32, int64, uint32, uint64} = DT_FLOAT"],
    shape = unchanged,
    gradient = GradientRule::None,
    summary = "The number that each string says.",
);

macro_rules! cased {
    ($($op:literal, $summary:literal;)*) => {$(
        register_op!(
            $op,
            inputs = &["input: string"],
            outputs = &["output: string"],
            attrs = &["encoding: string = ''"],
            shape = unchanged,
            summary = $summary,
        );
    )*};
}

cased! {
    "StringLower", "Each string in lower case: of ASCII alone, or of all of Unicode with encoding `utf-8`.";
    "StringUpper", "Each string in upper case: of ASCII alone, or of all of Unicode with encoding `utf-8`.";
}

register_op!(
    "StringLength",
    inputs = &["input: string"],
    outputs = &["output: int32"],
    attrs = &["unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'"],
    shape = unchanged,
    summary = "The length of each string, in bytes or characters.",
);

register_op!(
    "StringSplitV2",
    inputs = &["input: string", "sep: string"],
    outputs = &["indices: int64", "values: string", "shape: int64"],
    attrs = &["maxsplit: int = -1"],
    shape = split,
    summary = "The parts of each string between separators, as a sparse matrix; without a separator, its words.",
);

register_op!(
    "StringFormat",
    inputs = &["inputs: T"],
    outputs = &["output: string"],
    attrs = &[
        "T: list(type) >= 0",
        "template: string = '%s'",
        "placeholder: string = '%s'",
        "summarize: int = 3",
    ],
    shape = scalar_output,
    summary = "A text in which each placeholder is replaced by an abbreviated input.",
);

register_op!(
    "ReduceJoin",
    inputs = &["inputs: string", "reduction_indices: int32"],
    outputs = &["output: string"],
    attrs = &["keep_dims: bool = false", "separator: string = ''"],
    shape = reduce_join,
    gradient = GradientRule::None,
    summary = "Joins strings along some dimensions, in the given order.",
);

register_op!(
    "RegexReplace",
    inputs = &["input: string", "pattern: string", "rewrite: string"],
    outputs = &["output: string"],
    attrs = &["replace_global: bool = true"],
    shape = matched,
    gradient = GradientRule::None,
    summary = "Each string with all matches of a regular expression rewritten, or only the first.",
);

register_op!(
    "RegexFullMatch",
    inputs = &["input: string", "pattern: string"],
    outputs = &["output: bool"],
    attrs = &[],
    shape = matched,
    summary = "Whether a regular expression matches each string as a whole.",
);

register_op!(
    "StaticRegexFullMatch",
    inputs = &["input: string"],
    outputs = &["output: bool"],
    attrs = &["pattern: string"],
    shape = unchanged,
    summary = "Whether a regular expression, an attribute, matches each string as a whole.",
);

register_op!(
    "Substr",
    inputs = &["input: string", "pos: T", "len: T"],
    outputs = &["output: string"],
    attrs = &["T: {int32, int64}", "unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'"],
    shape = substr,
    summary =
        "The part of each string that begins at a position, from its end where that is negative.",
);

register_op!(
    "EncodeBase64",
    inputs = &["input: string"],
    outputs = &["output: string"],
    attrs = &["pad: bool = false"],
    shape = unchanged,
    gradient = GradientRule::None,
    summary = "Each string in the web-safe alphabet of base 64.",
);

register_op!(
    "DecodeBase64",
    inputs = &["input: string"],
    outputs = &["output: string"],
    attrs = &[],
    shape = unchanged,
    gradient = GradientRule::None,
    summary =
        "What each string in the web-safe alphabet of base 64 stands for, with or without padding.",
);

register_op!(
    "StringToHashBucketFast",
    inputs = &["input: string"],
    outputs = &["output: int64"],
    attrs = &["num_buckets: int >= 1"],
    shape = unchanged,
    gradient = GradientRule::None,
    summary = "FarmHash's 64-bit fingerprint of each string, modulo a number of buckets.",
);

fn joined(c: &ShapeContext<'_>) -> ShapeResult {
    let inputs = (0..c.input_count()).map(|at| c.input(at));
    let mut output = c.scalar();
    for input in inputs {
        match c.rank(input) {
            None => return c.set_output(0, c.unknown()),
            Some(0) => {}
            Some(_) if c.rank(output) == Some(0) => output = input,
            Some(_) => output = c.merge(output, input)?,
        }
    }
    c.set_output(0, output)
}

fn split(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 0, "input", 1)?;
    input_of_rank(c, 1, "sep", 0)?;
    c.set_output(0, c.shape_of(&[-1, 2]))?;
    c.set_output(1, c.shape_of(&[-1]))?;
    c.set_output(2, c.shape_of(&[2]))
}

fn reduce_join(c: &ShapeContext<'_>) -> ShapeResult {
    let keep: bool = c.attr("keep_dims")?;
    let input = c.input(0);
    let Some(sizes) = c.dims(input) else { return c.set_output(0, c.unknown()) };
    let Some(axes) = c.constant_integers(1) else {
        let rank = if keep { Some(sizes.len()) } else { None };
        return c.set_output(0, rank.map_or(c.unknown(), |rank| c.unknown_of_rank(rank)));
    };
    let output = join_dims(&sizes, &axes, keep)?;
    if keep {
        let set = AxisSet::new("reduction_indices", &axes, sizes.len())?;
        let one = |at| if set.contains(at) { c.make_dim(Some(1)) } else { c.dim(input, at) };
        let dims: Vec<_> = (0..output.len()).map(one).collect();
        return c.set_output(0, c.make_shape(&dims));
    }
    let set = AxisSet::new("reduction_indices", &axes, sizes.len())?;
    let kept = dims_of(c, input).into_iter().enumerate().filter(|(at, _)| !set.contains(*at));
    let dims: Vec<_> = kept.map(|(_, dim)| dim).collect();
    c.set_output(0, c.make_shape(&dims))
}

fn matched(c: &ShapeContext<'_>) -> ShapeResult {
    for (at, what) in (1..c.input_count()).zip(["pattern", "rewrite"]) {
        input_of_rank(c, at, what, 0)?;
    }
    unchanged(c)
}

fn substr(c: &ShapeContext<'_>) -> ShapeResult {
    let place = same_shape(c, 1, 2)?;
    let (Some(_), Some(_)) = (c.rank(c.input(0)), c.rank(place)) else {
        return c.set_output(0, c.unknown());
    };
    c.set_output(0, broadcast_dims(c, &dims_of(c, c.input(0)), &dims_of(c, place))?)
}

/// Merges the shapes of `pos` and `len`.
fn same_shape(c: &ShapeContext<'_>, a: usize, b: usize) -> Result<ShapeHandle, KernelError> {
    match (c.dims(c.input(a)), c.dims(c.input(b))) {
        (Some(pos), Some(len)) if pos.len() != len.len() => Err(KernelError::invalid_argument(
            format!("pos and len must have one shape, found {pos:?} and {len:?}"),
        )),
        _ => c.merge(c.input(a), c.input(b)),
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::check;
    use tenon_framework::attr::AttrValue;

    #[test]
    fn scalars_join_with_anything() {
        let cases: [(&[&str], &str); 5] = [
            (&["[n]", "[]", "[n]"], "[n]"),
            (&["[]", "[2,3]"], "[2,3]"),
            (&["[]"], "[]"),
            (&[], "[]"),
            (&["[2]", "?"], "?"),
        ];
        check("StringJoin", &[], &cases);
    }

    #[test]
    fn splitting_gives_a_sparse_matrix() {
        check(
            "StringSplitV2",
            &[],
            &[
                (&["[5]", "[]"], "[?,2]; [?]; [2]"),
                (&["[5,1]", "[]"], "! input must have 1 dimensions, got 2"),
                (&["[5]", "[1]"], "! sep must have 0 dimensions, got 1"),
            ],
        );
    }

    #[test]
    fn joining_dimensions_drops_or_keeps_them() {
        let drops: [(&[&str], &str); 4] = [
            (&["[n,3]", "= [1]"], "[n]"),
            (&["[n,3]", "= [-2]"], "[3]"),
            (&["[n,3]", "[?]"], "?"),
            (&["[2,3]", "= [2]"], "! reduction_indices must lie in [-2, 2), got 2"),
        ];
        check("ReduceJoin", &[], &drops);
        let keep = [("keep_dims", AttrValue::Bool(true))];
        let keeps: [(&[&str], &str); 2] =
            [(&["[n,3]", "= [1]"], "[n,1]"), (&["[n,3]", "[?]"], "[?,?]")];
        check("ReduceJoin", &keep, &keeps);
    }

    #[test]
    fn patterns_are_scalars() {
        check("RegexFullMatch", &[], &[(&["[n]", "[]"], "[n]")]);
        check(
            "RegexReplace",
            &[],
            &[(&["[n]", "[]", "[1]"], "! rewrite must have 0 dimensions, got 1")],
        );
    }

    #[test]
    fn positions_broadcast_with_the_strings() {
        check(
            "Substr",
            &[],
            &[
                (&["[n]", "[]", "[]"], "[n]"),
                (&["[2,1]", "[3]", "[3]"], "[2,3]"),
                (&["[2]", "[]", "[1]"], "! pos and len must have one shape, found [] and [1]"),
                (&["?", "[2]", "[2]"], "?"),
            ],
        );
    }
}
