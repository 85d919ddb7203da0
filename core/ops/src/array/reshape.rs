//! Ops that keep the elements and change the shape.

use crate::shape::{constant_integer, dims_of, scalar_or_vector, with_identity};
use tenon_author::{Dim, ShapeContext, ShapeHandle, ShapeResult, register_op};
use tenon_framework::{KernelError, op::Refusal};
use tenon_geometry::{expand_dims, normalize_axis, reshape_dims, squeeze_dims};

register_op!(
    "Reshape",
    inputs = &["tensor: T", "shape: Tshape"],
    outputs = &["output: T"],
    attrs = &["T: type", "Tshape: {int32, int64} = DT_INT32"],
    shape = reshape,
    reshapes_input = (0, 0),
    summary = "The elements in another shape, in which one -1 is inferred.",
);

register_op!(
    "Squeeze",
    inputs = &["input: T"],
    outputs = &["output: T"],
    attrs = &["T: type", "squeeze_dims: list(int) >= 0 = []"],
    shape = squeeze,
    reshapes_input = (0, 0),
    summary = "The tensor without the named dimensions, or without all, of size 1.",
);

register_op!(
    "ExpandDims",
    inputs = &["input: T", "dim: Tdim"],
    outputs = &["output: T"],
    attrs = &["T: type", "Tdim: {int32, int64} = DT_INT32"],
    shape = expand,
    reshapes_input = (0, 0),
    refuses = Refusal::Axes,
    deciding = &[1],
    summary = "The tensor with a dimension of size 1 inserted.",
);

/// The shape of the first input after reshaping to the second.
pub(crate) fn reshape(c: &ShapeContext<'_>) -> ShapeResult {
    scalar_or_vector(c, 1, "shape")?;
    if let (Some(wanted), Some(sizes)) = (c.constant_integers(1), c.dims(c.input(0))) {
        // These checks refuse everything that a kernel would, as soon as it is known.
        if c.rank(c.input(1)) != Some(0) {
            reshape_dims(&sizes, &wanted)?;
        }
    }
    let wanted = c.constant_as_shape(1)?;
    if c.rank(wanted).is_none() || c.rank(c.input(0)).is_none() {
        return c.set_output(0, wanted);
    }
    c.set_output(0, infer_one(c, c.input(0), wanted)?)
}

/// The requested shape, with the one dimension that follows from the number of elements.
///
/// Dimensions of the input that are requested unchanged cancel out. Then products decide: known
/// sizes against known sizes, or one unknown size of the input against the requested one. As in
/// TensorFlow, an unknown dimension that cancels is assumed not to be 0.
fn infer_one(
    c: &ShapeContext<'_>,
    input: ShapeHandle,
    wanted: ShapeHandle,
) -> Result<ShapeHandle, KernelError> {
    let unknown = |dim: Dim| c.value(dim).is_none();
    let mut output = dims_of(c, wanted);
    let mut given = dims_of(c, input);
    let mut rest = Vec::new();
    for (place, &dim) in output.iter().enumerate() {
        match given.iter().position(|&other| unknown(dim) && other == dim) {
            Some(at) => drop(given.remove(at)),
            None => rest.push((place, dim)),
        }
    }
    let mut missing = rest.iter().filter(|&&(_, dim)| unknown(dim));
    let (Some(&(place, missing)), None) = (missing.next(), missing.next()) else {
        return Ok(wanted);
    };
    let size = |dim: Dim| c.value(dim).unwrap_or(-1);
    let sizes: Vec<i64> = given.iter().map(|&dim| size(dim)).collect();
    let wanted_sizes: Vec<i64> = rest.iter().map(|&(_, dim)| size(dim)).collect();
    let open: Vec<Dim> = given.iter().copied().filter(|&dim| unknown(dim)).collect();
    output[place] = match open[..] {
        [] => {
            let solved = reshape_dims(&sizes, &wanted_sizes)?;
            let at = wanted_sizes.iter().position(|&size| size == -1);
            c.make_dim(at.map(|at| solved[at]).filter(|&size| size >= 0))
        }
        [open] if product(&sizes).is_some_and(|p| product(&wanted_sizes) == Some(p)) => open,
        _ => missing,
    };
    Ok(c.make_shape(&output))
}

/// The product of the known sizes; `None` if it overflows or is 0, since nothing then follows from
/// it.
fn product(sizes: &[i64]) -> Option<i64> {
    let known = sizes.iter().filter(|&&size| size != -1);
    let product = known.copied().try_fold(1i64, |product, size| product.checked_mul(size));
    product.filter(|&product| product > 0)
}

fn squeeze(c: &ShapeContext<'_>) -> ShapeResult {
    let axes: Vec<i64> = c.attr("squeeze_dims")?;
    let Some(sizes) = c.dims(c.input(0)) else {
        return c.set_output(0, c.unknown());
    };
    let Some(left) = squeeze_dims(&sizes, &axes)? else {
        return c.set_output(0, c.unknown());
    };
    let mut squeezed = vec![false; sizes.len()];
    for &axis in &axes {
        squeezed[normalize_axis("squeeze_dims", axis, sizes.len())?] = true;
    }
    let dims = dims_of(c, c.input(0));
    let kept: Vec<Dim> =
        dims.into_iter().zip(squeezed).filter(|(_, s)| !s).map(|(d, _)| d).collect();
    c.set_output(0, with_identity(c, &left, |at| kept.get(at).copied()))
}

fn expand(c: &ShapeContext<'_>) -> ShapeResult {
    let axis = constant_integer(c, 1, "dim")?;
    let output = match (c.dims(c.input(0)), axis) {
        (Some(sizes), Some(axis)) => {
            let sizes = expand_dims(&sizes, axis)?;
            let mut dims = dims_of(c, c.input(0));
            dims.insert(normalize_axis("dim", axis, sizes.len())?, c.make_dim(Some(1)));
            with_identity(c, &sizes, |at| dims.get(at).copied())
        }
        (Some(sizes), None) => c.unknown_of_rank(sizes.len() + 1),
        (None, _) => c.unknown(),
    };
    c.set_output(0, output)
}

#[cfg(test)]
mod tests {
    use crate::testing::{Bench, check};
    use tenon_framework::{DType, attr::AttrValue};

    #[test]
    fn a_constant_shape_is_completed() {
        check(
            "Reshape",
            &[],
            &[
                (&["[2,3,4]", "= [6,-1]"], "[6,4]"),
                (&["[2,3]", "= [6]"], "[6]"),
                (&["[1]", "= []"], "[]"),
                (&["[n,4]", "= [-1,2]"], "[?,2]"),
                (&["[n,4]", "= [-1,2,2]"], "[n,2,2]"),
                (&["[n,m]", "= [5,2]"], "[5,2]"),
                (&["[n,m]", "= [-1]"], "[?]"),
                (&["?", "= [-1,2]"], "[?,2]"),
                (&["[0,4]", "= [-1,4]"], "[0,4]"),
                (&["[0,6]", "= [0,2,-1]"], "[0,2,3]"),
                (&["[n,6]", "= [0,-1]"], "[0,?]"),
            ],
        );
    }

    #[test]
    fn bad_shapes_are_refused() {
        check(
            "Reshape",
            &[],
            &[
                (
                    &["[2,3]", "= [4]"],
                    "! shape must have as many elements as tensor, which is 6, got [4]",
                ),
                (
                    &["[2,3]", "= [4,-1]"],
                    "! shape must have as many elements as tensor, which is 6, got [4, -1]",
                ),
                (&["[n]", "= [-1,-1]"], "! shape may hold one -1, got [-1, -1]"),
                (&["[2]", "= [-2]"], "! shape must be at least -1, got -2"),
                (&["[2]", "[1,1]"], "! shape must have 1 dimensions, got 2"),
            ],
        );
    }

    #[test]
    fn a_shape_that_is_computed_later_has_its_rank() {
        check(
            "Reshape",
            &[],
            &[
                (&["[2,3]", "[3]"], "[?,?,?]"),
                (&["[2,3]", "[1]"], "[6]"),
                (&["[2,3]", "[?]"], "?"),
                (&["[2,3]", "?"], "?"),
                (&["[n]", "= -1"], "?"),
            ],
        );
    }

    /// `reshape(x, [shape(x)[0], -1])`, the usual way to flatten in models.
    #[test]
    fn a_shape_computed_from_a_shape_reaches_the_reshape() {
        let mut bench = Bench::new();
        let int = [("T", AttrValue::Type(DType::INT32))];
        let flattened = |bench: &mut Bench, text: &str| {
            let x = bench.value(text);
            let shape = bench.run("Shape", &[], &[&x]).unwrap().remove(0);
            let bounds = ["= [0]", "= [1]", "= [1]"].map(|bound| bench.value(bound));
            let [begin, end, strides] = &bounds;
            let slice = [&int[..], &[("shrink_axis_mask", AttrValue::Int(1))]].concat();
            let batch = bench
                .run("StridedSlice", &slice, &[&shape, begin, end, strides])
                .unwrap()
                .remove(0);
            let rest = bench.value("= -1");
            let wanted = bench.run("Pack", &int, &[&batch, &rest]).unwrap().remove(0);
            let outputs = bench.run("Reshape", &[], &[&x, &wanted]).unwrap();
            bench.show(&outputs[0].shape)
        };
        assert_eq!(flattened(&mut bench, "[n,3,4]"), "[n,12]");
        assert_eq!(flattened(&mut bench, "[2,3,4]"), "[2,12]");
        assert_eq!(flattened(&mut bench, "[n,m,4]"), "[n,?]");
        assert_eq!(flattened(&mut bench, "[?,h,1]"), "[?,h]");
    }

    /// `reshape(x, concat([shape(x)[:1], [3, 4]], 0))`
    #[test]
    fn shapes_are_cut_and_joined() {
        let mut bench = Bench::new();
        let int = [("T", AttrValue::Type(DType::INT32))];
        let x = bench.value("[n,12]");
        let shape = bench.run("Shape", &[], &[&x]).unwrap().remove(0);
        let bounds = ["= [0]", "= [1]", "= [1]"].map(|bound| bench.value(bound));
        let [begin, end, strides] = &bounds;
        let head =
            bench.run("StridedSlice", &int, &[&shape, begin, end, strides]).unwrap().remove(0);
        let (tail, axis) = (bench.value("= [3,4]"), bench.value("= 0"));
        let wanted = bench.run("ConcatV2", &int, &[&head, &tail, &axis]).unwrap().remove(0);
        let outputs = bench.run("Reshape", &[], &[&x, &wanted]).unwrap();
        assert_eq!(bench.show(&outputs[0].shape), "[n,3,4]");
    }

    #[test]
    fn sizes_of_1_are_squeezed() {
        check("Squeeze", &[], &[(&["[1,n,2]"], "?"), (&["[1,3,1]"], "[3]"), (&["?"], "?")]);
        check(
            "Squeeze",
            &[("squeeze_dims", vec![0i64, -1].into())],
            &[
                (&["[1,n,1]"], "[n]"),
                (&["[?,n,?]"], "[n]"),
                (&["[1,n,2]"], "! dimension 2 of input must be 1 to be squeezed, got 2"),
            ],
        );
        check(
            "Squeeze",
            &[("squeeze_dims", vec![3i64].into())],
            &[(&["[1]"], "! squeeze_dims must lie in [-1, 1), got 3")],
        );
    }

    #[test]
    fn a_dimension_is_inserted() {
        check(
            "ExpandDims",
            &[],
            &[
                (&["[n,3]", "= 1"], "[n,1,3]"),
                (&["[n,3]", "= [-1]"], "[n,3,1]"),
                (&["[n,3]", "[]"], "[?,?,?]"),
                (&["?", "= 0"], "?"),
                (&["[2]", "= 2"], "! dim must lie in [-2, 2), got 2"),
                (&["[2]", "= [0,1]"], "! dim must hold 1 values, got 2"),
            ],
        );
    }
}
