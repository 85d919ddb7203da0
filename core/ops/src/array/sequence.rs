//! Ops that create tensors: sequences, one-hot rows, zeros and ones.

use crate::shape::{constant_integer, input_of_rank, unchanged, with_identity};
use tenon_author::{ShapeContext, ShapeResult, register_op};
use tenon_framework::{
    DType,
    op::{GradientRule, Refusal},
};
use tenon_geometry::{GeometryError, float_range_len, one_hot_dims, range_len};

register_op!(
    "Empty",
    inputs = &["shape: int32"],
    outputs = &["output: dtype"],
    attrs = &["dtype: type", "init: bool = false"],
    stateful = true,
    shape = empty,
    summary = "A tensor of a shape; zeros if init is set, otherwise unspecified values.",
    cases = &[
        "matrix; init = true; shape: [2] integers(0..9)",
        "vector; init = true; n in 0..2000; shape: [1] values(n)",
        "scalar; init = true; shape: [0]",
    ],
);

register_op!(
    "ZerosLike",
    inputs = &["x: T"],
    outputs = &["y: T"],
    attrs = &["T: type"],
    shape = unchanged,
    refuses = Refusal::Nothing,
    gradient = GradientRule::None,
    summary = "Zeros (empty strings, false), as many as the input has elements.",
);

register_op!(
    "OnesLike",
    inputs = &["x: T"],
    outputs = &["y: T"],
    attrs =
        &["T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, int64, \
               uint64, complex64, complex128, bool}"],
    shape = unchanged,
    refuses = Refusal::Nothing,
    gradient = GradientRule::None,
    summary = "Ones, as many as the input has elements.",
);

register_op!(
    "Range",
    inputs = &["start: Tidx", "limit: Tidx", "delta: Tidx"],
    outputs = &["output: Tidx"],
    attrs = &[
        "Tidx: {bfloat16, half, float, double, int8, int16, int32, int64, uint16, uint32, uint64} \
               = DT_INT32"
    ],
    shape = range,
    gradient = GradientRule::None,
    summary =
        "The numbers from start in steps of delta, up to the limit, which is not one of them.",
    cases = &[
        "up; start: [] integers(0..9); limit: [] integers(9..99); delta: [] integers(1..5)",
        "long; n in 0..100; start: [] values(0); limit: [] values(n); delta: [] values(1)",
        "by_two; start: [] values(3); limit: [] values(20); delta: [] values(2)",
    ],
);

register_op!(
    "LinSpace",
    inputs = &["start: T", "stop: T", "num: Tidx"],
    outputs = &["output: T"],
    attrs = &["T: {bfloat16, half, float, double}", "Tidx: {int32, int64} = DT_INT32"],
    shape = lin_space,
    gradient = GradientRule::None,
    summary = "So many numbers, evenly spaced from start to stop, both included.",
    cases = &[
        "some; start: [] uniform(-4, 4); stop: [] uniform(-4, 4); num: [] integers(1..99)",
        "one; start: [] uniform(-4, 4); stop: [] uniform(-4, 4); num: [] values(1)",
    ],
);

register_op!(
    "OneHot",
    inputs = &["indices: TI", "depth: int32", "on_value: T", "off_value: T"],
    outputs = &["output: T"],
    attrs = &["axis: int = -1", "T: type", "TI: {uint8, int8, int32, int64} = DT_INT64"],
    shape = one_hot,
    gradient = GradientRule::None,
    summary =
        "Per index a row of off_value, with on_value where the index says, if that is in the row.",
    cases = &[
        "rows; axis in {-1, 0, 1}; indices: [n] integers(0..9); depth: [] values(3); on_value: []; off_value: []",
        "deep; axis in {-1, 1}; indices: [2, n] integers(0..4); depth: [] values(5); on_value: []; off_value: []",
        "one; indices: [] integers(0..4); depth: [] values(4); on_value: []; off_value: []",
    ],
);

fn empty(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 0, "shape", 1)?;
    c.set_output(0, c.constant_as_shape(0)?)
}

fn range(c: &ShapeContext<'_>) -> ShapeResult {
    for (at, what) in [(0, "start"), (1, "limit"), (2, "delta")] {
        input_of_rank(c, at, what, 0)?;
    }
    let number = |at, what| constant_integer(c, at, what);
    let len = match (number(0, "start")?, number(1, "limit")?, number(2, "delta")?) {
        (Some(start), Some(limit), Some(delta)) => Some(range_len(start, limit, delta)?),
        _ => float_range(c),
    };
    c.set_output(0, c.make_shape(&[c.make_dim(len)]))
}

/// The length of a range of constant floats. Invalid values are reported by the kernel.
fn float_range(c: &ShapeContext<'_>) -> Option<i64> {
    let dtype: DType = c.attr("Tidx").ok()?;
    float_range_len(dtype, c.constant_float(0)?, c.constant_float(1)?, c.constant_float(2)?)
}

fn lin_space(c: &ShapeContext<'_>) -> ShapeResult {
    for (at, what) in [(0, "start"), (1, "stop"), (2, "num")] {
        input_of_rank(c, at, what, 0)?;
    }
    let num = constant_integer(c, 2, "num")?;
    if let Some(found) = num.filter(|&num| num < 1) {
        return Err(GeometryError::TooSmall { what: "num", least: 1, found }.into());
    }
    c.set_output(0, c.make_shape(&[c.make_dim(num)]))
}

fn one_hot(c: &ShapeContext<'_>) -> ShapeResult {
    for (at, what) in [(1, "depth"), (2, "on_value"), (3, "off_value")] {
        input_of_rank(c, at, what, 0)?;
    }
    let axis: i64 = c.attr("axis")?;
    let depth = constant_integer(c, 1, "depth")?;
    if let Some(found) = depth.filter(|&depth| depth < 0) {
        return Err(GeometryError::TooSmall { what: "depth", least: 0, found }.into());
    }
    let indices = c.input(0);
    let Some(sizes) = c.dims(indices) else { return c.set_output(0, c.unknown()) };
    let output = one_hot_dims(&sizes, depth.unwrap_or(-1), axis)?;
    let place = if axis == -1 { sizes.len() } else { axis as usize };
    let identity = |at: usize| match at {
        at if at < place => Some(c.dim(indices, at)),
        at if at > place => Some(c.dim(indices, at - 1)),
        _ => None,
    };
    c.set_output(0, with_identity(c, &output, identity))
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn sequences() {
        check(
            "Range",
            &[],
            &[
                (&["= 1", "= 8", "= 3"], "[3]"),
                (&["= 8", "= 1", "= -3"], "[3]"),
                (&["= 3", "= 3", "= 1"], "[0]"),
                (&["[]", "= 8", "= 3"], "[?]"),
                (&["= 1", "= 8", "= 0"], "! delta must not be 0"),
                (&["= 8", "= 1", "= 3"], "! limit must be at least 8, got 1"),
                (&["[1]", "= 1", "= 3"], "! start must have 0 dimensions, got 1"),
            ],
        );
        check(
            "LinSpace",
            &[],
            &[
                (&["[]", "[]", "= 5"], "[5]"),
                (&["[]", "[]", "[]"], "[?]"),
                (&["[]", "[]", "= 0"], "! num must be at least 1, got 0"),
            ],
        );
        check("Empty", &[], &[(&["= [2,3]"], "[2,3]"), (&["[2]"], "[?,?]")]);
        check("ZerosLike", &[], &[(&["[n,3]"], "[n,3]")]);
        check("OnesLike", &[], &[(&["?"], "?")]);
    }

    #[test]
    fn one_hot_rows() {
        let rest = |depth: &'static str| ["[n,3]", depth, "[]", "[]"];
        check(
            "OneHot",
            &[],
            &[
                (&rest("= 5"), "[n,3,5]"),
                (&rest("[]"), "[n,3,?]"),
                (&rest("= -5"), "! depth must be at least 0, got -5"),
            ],
        );
        check("OneHot", &[("axis", 1i64.into())], &[(&rest("= 5"), "[n,5,3]")]);
        check(
            "OneHot",
            &[("axis", 3i64.into())],
            &[(&rest("= 5"), "! axis must lie in [-1, 3), got 3")],
        );
    }
}
