//! Ops that are sources of tensors.

use crate::shape::{input_of_rank, scalar_or_vector};
use tenon_author::{ShapeContext, ShapeHandle, ShapeResult, register_op};
use tenon_framework::{
    DType, KernelError, PartialShape,
    attr_view::TensorType,
    op::{GradientRule, Refusal, ValueRule},
};
use tenon_geometry::GeometryError;

register_op!(
    "Const",
    outputs = &["output: dtype"],
    attrs = &["value: tensor", "dtype: type"],
    shape = constant,
    value = ValueRule::Constant,
    refuses = Refusal::Nothing,
    gradient = GradientRule::None,
    summary = "A tensor that the graph holds.",
);

register_op!(
    "Placeholder",
    outputs = &["output: dtype"],
    attrs = &["dtype: type", "shape: shape = ?"],
    shape = placeholder,
    placeholder = true,
    declares_shape = true,
    summary = "A tensor that every step feeds.",
);

register_op!(
    "PlaceholderV2",
    outputs = &["output: dtype"],
    attrs = &["dtype: type", "shape: shape"],
    shape = placeholder,
    placeholder = true,
    declares_shape = true,
    summary = "A tensor of a stated shape that every step feeds.",
);

register_op!(
    "PlaceholderWithDefault",
    inputs = &["input: dtype"],
    outputs = &["output: dtype"],
    attrs = &["dtype: type", "shape: shape"],
    shape = placeholder_with_default,
    declares_shape = true,
    summary = "A tensor that a step may feed; its input otherwise.",
);

register_op!(
    "Fill",
    inputs = &["dims: index_type", "value: T"],
    outputs = &["output: T"],
    attrs = &["T: type", "index_type: {int32, int64} = DT_INT32"],
    shape = fill,
    summary = "A tensor of one value.",
);

fn constant(c: &ShapeContext<'_>) -> ShapeResult {
    let value: TensorType = c.attr("value")?;
    let expected: DType = c.attr("dtype")?;
    if value.dtype != expected {
        let found = value.dtype;
        return Err(KernelError::invalid_argument(format!(
            "attribute value: expected a tensor of {expected} as attribute dtype says, found {found}"
        )));
    }
    c.set_output(0, c.shape_of(value.shape.dims()))
}

/// The shape in attribute `shape`.
pub(super) fn shape_attr(c: &ShapeContext<'_>) -> Result<ShapeHandle, KernelError> {
    let shape: PartialShape = c.attr("shape")?;
    Ok(shape.dims().map_or_else(|| c.unknown(), |dims| c.shape_of(dims)))
}

fn placeholder(c: &ShapeContext<'_>) -> ShapeResult {
    c.set_output(0, shape_attr(c)?)
}

fn placeholder_with_default(c: &ShapeContext<'_>) -> ShapeResult {
    let shape = shape_attr(c)?;
    // The default must fit; a fed value may have any shape that the attribute allows. The merge
    // would refine `shape` too, so the output is created again.
    c.merge(shape, c.input(0))?;
    c.set_output(0, shape_attr(c)?)
}

fn fill(c: &ShapeContext<'_>) -> ShapeResult {
    scalar_or_vector(c, 0, "dims")?;
    input_of_rank(c, 1, "value", 0)?;
    if let Some(sizes) = c.constant_integers(0)
        && let Some(index) = sizes.iter().position(|&size| size < 0)
    {
        let (what, found) = ("dims", sizes[index]);
        return Err(GeometryError::TooSmall { what, least: 0, found }.into());
    }
    c.set_output(0, c.constant_as_shape(0)?)
}

#[cfg(test)]
mod tests {
    use crate::testing::{Bench, check, infer};
    use tenon_framework::{DType, PartialShape, Tensor, attr::AttrValue, infer::Item};

    #[test]
    fn a_constant_has_the_shape_and_the_value_of_its_tensor() {
        let value = |dims: &[i64], values: &[i32]| -> AttrValue {
            Tensor::from_slice(dims, values).unwrap().into()
        };
        let int = ("dtype", AttrValue::Type(DType::INT32));
        let attrs = [int.clone(), ("value", value(&[2], &[4, -1]))];
        let outputs = Bench::new().run("Const", &attrs, &[]).unwrap();
        assert_eq!(outputs[0].shape.to_string(), "[2]");
        let known = outputs[0].value.clone().unwrap();
        assert_eq!(known.items(), [Item::Known(4), Item::Known(-1)]);
        assert!(outputs[0].constant.is_some());
        let attrs = [int, ("value", value(&[2, 0, 3], &[]))];
        assert_eq!(infer("Const", &attrs, &[]), "[2,0,3]");
        let wrong = [("value", value(&[], &[1]))];
        assert_eq!(
            infer("Const", &wrong, &[]),
            "! attribute value: expected a tensor of float as attribute dtype says, found int32"
        );
        assert_eq!(infer("Const", &[], &[]), "! attribute value: the node has none");
    }

    #[test]
    fn a_placeholder_has_the_shape_of_its_attribute() {
        let shape = |dims: &[i64]| ("shape", AttrValue::Shape(PartialShape::new(dims).unwrap()));
        check("Placeholder", &[], &[(&[], "?")]);
        check("Placeholder", &[shape(&[-1, 3])], &[(&[], "[?,3]")]);
        check(
            "PlaceholderWithDefault",
            &[shape(&[-1, 3])],
            &[
                (&["[2,3]"], "[?,3]"),
                (&["?"], "[?,3]"),
                (
                    &["[2,4]"],
                    "! shapes [?,3] and [2,4] must be equal: dimension 1: expected 3, found 4: input is [2,4]",
                ),
            ],
        );
    }

    #[test]
    fn a_filled_tensor_has_the_shape_that_is_given() {
        check(
            "Fill",
            &[],
            &[
                (&["= [2,0,3]", "[]"], "[2,0,3]"),
                (&["= []", "?"], "[]"),
                (&["[2]", "[]"], "[?,?]"),
                (&["?", "[]"], "?"),
                (&["= [2,-1]", "[]"], "! dims must be at least 0, got -1"),
                (&["[2,2]", "[]"], "! dims must have 1 dimensions, got 2"),
                (&["[2]", "[1]"], "! value must have 0 dimensions, got 1"),
            ],
        );
    }
}
