//! Reductions over some dimensions, and searches along one.

use crate::shape::{constant_integer, dims_of, input_of_rank, scalar_or_vector, with_identity};
use tenon_author::{Dim, ShapeContext, ShapeResult, register_op};
use tenon_framework::op::{GradientRule, Refusal};
use tenon_geometry::{AxisSet, normalize_axis, reduce_dims};

const KEEP: &str = "keep_dims: bool = false";
const AXES: &str = "Tidx: {int32, int64} = DT_INT32";

register_op!(
    "Sum",
    inputs = &["input: T", "reduction_indices: Tidx"],
    outputs = &["output: T"],
    attrs = &[KEEP, "T: numbertype", AXES],
    shape = reduce,
    refuses = Refusal::Axes,
    deciding = &[1],
    summary = "The sum over some dimensions.",
    bench = &["rows; n in {64, 1024}; input: [n, n]; reduction_indices: [1] values(1)",],
);

register_op!(
    "Mean",
    inputs = &["input: T", "reduction_indices: Tidx"],
    outputs = &["output: T"],
    attrs = &[KEEP, "T: numbertype", AXES],
    shape = reduce,
    refuses = Refusal::Axes,
    deciding = &[1],
    summary = "The arithmetic mean over some dimensions.",
    bench = &["rows; n in {64, 1024}; input: [n, n]; reduction_indices: [1] values(1)",],
);

register_op!(
    "Max",
    inputs = &["input: T", "reduction_indices: Tidx"],
    outputs = &["output: T"],
    attrs = &[KEEP, "T: {realnumbertype, quantizedtype}", AXES],
    shape = reduce,
    refuses = Refusal::Axes,
    deciding = &[1],
    summary = "The greatest element over some dimensions.",
    bench = &["rows; n in {64, 1024}; input: [n, n]; reduction_indices: [1] values(1)",],
);

register_op!(
    "Prod",
    inputs = &["input: T", "reduction_indices: Tidx"],
    outputs = &["output: T"],
    attrs = &[KEEP, "T: numbertype", AXES],
    shape = reduce,
    refuses = Refusal::Axes,
    deciding = &[1],
    summary = "The product over some dimensions.",
    bench = &["rows; n in {64, 1024}; input: [n, n]; reduction_indices: [1] values(1)",],
);

register_op!(
    "Min",
    inputs = &["input: T", "reduction_indices: Tidx"],
    outputs = &["output: T"],
    attrs = &[KEEP, "T: {realnumbertype, quantizedtype}", AXES],
    shape = reduce,
    refuses = Refusal::Axes,
    deciding = &[1],
    summary = "The least element over some dimensions.",
    bench = &["rows; n in {64, 1024}; input: [n, n]; reduction_indices: [1] values(1)",],
);

register_op!(
    "EuclideanNorm",
    inputs = &["input: T", "reduction_indices: Tidx"],
    outputs = &["output: T"],
    attrs = &[KEEP, "T: numbertype", AXES],
    shape = reduce,
    summary = "The square root of the sum of squared absolute values over some dimensions.",
);

register_op!(
    "All",
    inputs = &["input: bool", "reduction_indices: Tidx"],
    outputs = &["output: bool"],
    attrs = &[KEEP, AXES],
    shape = reduce,
    refuses = Refusal::Axes,
    deciding = &[1],
    summary = "Whether every element over some dimensions is true.",
);

register_op!(
    "Any",
    inputs = &["input: bool", "reduction_indices: Tidx"],
    outputs = &["output: bool"],
    attrs = &[KEEP, AXES],
    shape = reduce,
    refuses = Refusal::Axes,
    deciding = &[1],
    summary = "Whether an element over some dimensions is true.",
);

register_op!(
    "ArgMax",
    inputs = &["input: T", "dimension: Tidx"],
    outputs = &["output: output_type"],
    attrs = &[
        "T: {realnumbertype, quantizedtype, bool}",
        "Tidx: {int16, int32, int64} = DT_INT32",
        "output_type: {int16, uint16, int32, int64} = DT_INT64",
    ],
    shape = arg,
    gradient = GradientRule::None,
    summary = "The position of the greatest element along a dimension; the first of equal ones.",
    bench = &["classes; input: [128, 1000]; dimension: [] values(1)",],
);

register_op!(
    "ArgMin",
    inputs = &["input: T", "dimension: Tidx"],
    outputs = &["output: output_type"],
    attrs = &[
        "T: {realnumbertype, quantizedtype, bool}",
        AXES,
        "output_type: {int32, int64} = DT_INT64",
    ],
    shape = arg,
    gradient = GradientRule::None,
    summary = "The position of the least element along a dimension; the first of equal ones.",
    bench = &["classes; input: [128, 1000]; dimension: [] values(1)",],
);

/// The shape of input 0 without the dimensions that input 1 lists.
pub(crate) fn reduce(c: &ShapeContext<'_>) -> ShapeResult {
    const AXES: &str = "reduction_indices";
    let input = c.input(0);
    scalar_or_vector(c, 1, AXES)?;
    let keep_dims: bool = c.attr("keep_dims")?;
    let output = match (c.dims(input), c.constant_integers(1)) {
        (Some(sizes), Some(axes)) => {
            let sizes_left = reduce_dims(&sizes, &axes, keep_dims)?;
            let reduced = AxisSet::new(AXES, &axes, sizes.len())?;
            let all = dims_of(c, input).into_iter().enumerate();
            let left: Vec<Dim> =
                all.filter(|&(at, _)| keep_dims || !reduced.contains(at)).map(|(_, d)| d).collect();
            with_identity(c, &sizes_left, |at| left.get(at).copied())
        }
        (Some(sizes), None) if keep_dims => c.unknown_of_rank(sizes.len()),
        _ => c.unknown(),
    };
    c.set_output(0, output)
}

fn arg(c: &ShapeContext<'_>) -> ShapeResult {
    let input = c.input(0);
    input_of_rank(c, 1, "dimension", 0)?;
    let axis = constant_integer(c, 1, "dimension")?;
    let output = match (c.rank(input), axis) {
        (Some(rank), Some(axis)) => {
            let axis = normalize_axis("dimension", axis, rank)?;
            let mut dims = dims_of(c, input);
            dims.remove(axis);
            c.make_shape(&dims)
        }
        // A scalar has no dimension to search; the kernel reports that.
        (Some(rank), None) => c.unknown_of_rank(rank.saturating_sub(1)),
        (None, _) => c.unknown(),
    };
    c.set_output(0, output)
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn reduced_dimensions_go_or_become_1() {
        for op in ["Sum", "Mean", "Max", "Prod", "Min", "EuclideanNorm", "All", "Any"] {
            check(
                op,
                &[],
                &[
                    (&["[2,3,4]", "= [0,-1]"], "[3]"),
                    (&["[2,3,4]", "= 1"], "[2,4]"),
                    (&["[2,3]", "= []"], "[2,3]"),
                    (&["[n,3,m]", "= [1]"], "[n,m]"),
                    (&["[n,3]", "[1]"], "?"),
                    (&["?", "= [0]"], "?"),
                    (&["[2,3]", "= [2]"], "! reduction_indices must lie in [-2, 2), got 2"),
                    (
                        &["[2,3]", "= [1,-1]"],
                        "! reduction_indices holds axis 1 twice: name each axis once",
                    ),
                    (&["[2,3]", "[1,1]"], "! reduction_indices must have 1 dimensions, got 2"),
                ],
            );
            check(
                op,
                &[("keep_dims", true.into())],
                &[
                    (&["[n,3,m]", "= [1]"], "[n,1,m]"),
                    (&["[n,3]", "[1]"], "[?,?]"),
                    (&["?", "[1]"], "?"),
                ],
            );
        }
    }

    #[test]
    fn a_search_drops_its_dimension() {
        for op in ["ArgMax", "ArgMin"] {
            check(
                op,
                &[],
                &[
                    (&["[2,3,4]", "= 1"], "[2,4]"),
                    (&["[n,3]", "= -1"], "[n]"),
                    (&["[n,3]", "[]"], "[?]"),
                    (&["[]", "[]"], "[]"),
                    (&["?", "= 0"], "?"),
                    (&["[2,3]", "= 2"], "! dimension must lie in [-2, 2), got 2"),
                    (&["[]", "= 0"], "! dimension must lie in [0, 0), got 0"),
                    (&["[2]", "[1]"], "! dimension must have 0 dimensions, got 1"),
                ],
            );
        }
    }
}
