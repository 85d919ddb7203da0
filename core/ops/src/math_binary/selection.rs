//! Sums of equal shapes, selection, clipping, and reinterpretation of bytes.

use crate::shape::{broadcast_dims, dims_of, same_size, unchanged};
use tenon_author::{ShapeContext, ShapeHandle, ShapeResult, register_op};
use tenon_framework::{DType, KernelError, PartialShape, op::Refusal};
use tenon_geometry::bitcast_dims;

register_op!(
    "AccumulateNV2",
    inputs = &["inputs: N * T"],
    outputs = &["sum: T"],
    attrs = &[
        "N: int >= 1",
        "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64}",
        "shape: shape"
    ],
    commutative = true,
    aggregate = true,
    shape = accumulate,
    summary = "The sum of tensors of one shape.",
);

register_op!(
    "Select",
    inputs = &["condition: bool", "t: T", "e: T"],
    outputs = &["output: T"],
    attrs = &["T: type"],
    shape = select,
    summary = "Elements of t where the condition holds, of e elsewhere; the condition has their shape, is a scalar, or has a value per row.",
);

register_op!(
    "SelectV2",
    inputs = &["condition: bool", "t: T", "e: T"],
    outputs = &["output: T"],
    attrs = &["T: type"],
    shape = select_v2,
    elementwise = true,
    refuses = Refusal::Shapes,
    summary = "Elements of t where the condition holds, of e elsewhere, broadcast.",
);

register_op!(
    "ClipByValue",
    inputs = &["t: T", "clip_value_min: T", "clip_value_max: T"],
    outputs = &["output: T"],
    attrs = &[
        "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64}"
    ],
    shape = unchanged,
    summary = "Each element, at least the minimum and at most the maximum.",
);

register_op!(
    "Bitcast",
    inputs = &["input: T"],
    outputs = &["output: type"],
    attrs = &[
        "T: {bfloat16, half, float, double, int64, int32, uint8, uint16, uint32, uint64, int8, int16, complex64, complex128, qint8, quint8, qint16, quint16, qint32}",
        "type: {bfloat16, half, float, double, int64, int32, uint8, uint16, uint32, uint64, int8, int16, complex64, complex128, qint8, quint8, qint16, quint16, qint32}"
    ],
    shape = bitcast,
    summary = "The bytes of the input as elements of another type.",
);

/// All inputs have the shape in the attribute.
fn accumulate(c: &ShapeContext<'_>) -> ShapeResult {
    let shape: PartialShape = c.attr("shape")?;
    let mut sum = match shape.dims() {
        Some(dims) => c.shape_of(dims),
        None => c.unknown(),
    };
    for at in 0..c.input_count() {
        sum = c.merge(sum, c.input(at))?;
    }
    c.set_output(0, sum)
}

/// A condition of rank 1 has a value per row of `t` and `e`; of another rank it is a scalar or has their shape.
fn select(c: &ShapeContext<'_>) -> ShapeResult {
    let values = c.merge(c.input(1), c.input(2))?;
    let condition = c.input(0);
    let output = match (c.rank(condition), c.rank(values)) {
        (None | Some(0), _) | (_, None) => values,
        (Some(1), Some(rank)) if rank > 1 => {
            let what = "the length of condition";
            same_size(c, what, c.dim(values, 0), c.dim(condition, 0))?;
            values
        }
        _ => c.merge(values, condition)?,
    };
    c.set_output(0, output)
}

fn select_v2(c: &ShapeContext<'_>) -> ShapeResult {
    let inputs = [c.input(0), c.input(1), c.input(2)];
    if inputs.iter().any(|&input| c.rank(input).is_none()) {
        return c.set_output(0, c.unknown());
    }
    let values = broadcast_dims(c, &dims_of(c, inputs[1]), &dims_of(c, inputs[2]))?;
    c.set_output(0, broadcast_dims(c, &dims_of(c, inputs[0]), &dims_of(c, values))?)
}

fn bitcast(c: &ShapeContext<'_>) -> ShapeResult {
    let output = bitcast_shape(c)?;
    c.set_output(0, output)
}

fn bitcast_shape(c: &ShapeContext<'_>) -> Result<ShapeHandle, KernelError> {
    let size = |attr| Ok::<_, KernelError>(c.attr::<DType>(attr)?.size().unwrap_or(1));
    let (from, to) = (size("T")?, size("type")?);
    let Some(dims) = c.dims(c.input(0)) else { return Ok(c.unknown()) };
    let output = bitcast_dims(&dims, from, to)?;
    let own = dims_of(c, c.input(0));
    Ok(crate::shape::with_identity(c, &output, |at| own.get(at).copied()))
}

#[cfg(test)]
mod tests {
    use crate::testing::check;
    use tenon_framework::{DType, PartialShape, attr::AttrValue};

    #[test]
    fn a_sum_has_the_shape_of_its_attribute() {
        let shape = PartialShape::new(&[2, -1]).unwrap();
        let attrs = [("shape", AttrValue::Shape(shape))];
        let differ = "! shapes [2,?] and [3,4] must be equal: dimension 0: expected 2, found 3: inputs[0] is [3,4]";
        check("AccumulateNV2", &attrs, &[(&["[2,3]", "[n,3]"], "[2,3]"), (&["[3,4]"], differ)]);
    }

    #[test]
    fn a_condition_is_a_scalar_or_has_a_value_per_row_or_element() {
        check(
            "Select",
            &[],
            &[
                (&["[]", "[2,3]", "[n,3]"], "[2,3]"),
                (&["[2]", "[2,3]", "[2,3]"], "[2,3]"),
                (&["[n]", "[4]", "?"], "[4]"),
                (&["[2,3]", "[2,3]", "[2,3]"], "[2,3]"),
                (&["?", "?", "[2]"], "[2]"),
                (&["[2]", "?", "?"], "?"),
                (&["[3]", "[2,3]", "[2,3]"], "! the length of condition must be 2, got 3"),
                (
                    &["[2]", "[2,3]", "[2,4]"],
                    "! shapes [2,3] and [2,4] must be equal: dimension 1: expected 3, found 4: condition is [2], t is [2,3], e is [2,4]",
                ),
            ],
        );
    }

    #[test]
    fn three_shapes_broadcast() {
        check(
            "SelectV2",
            &[],
            &[
                (&["[2,1]", "[3]", "[]"], "[2,3]"),
                (&["[n,1]", "[1,m]", "[1]"], "[n,m]"),
                (&["[]", "?", "[]"], "?"),
                (
                    &["[3]", "[2]", "[2]"],
                    "! shapes [3] and [2] do not broadcast: each pair of dimensions must be equal or hold a 1: condition is [3], t is [2], e is [2]",
                ),
            ],
        );
    }

    #[test]
    fn other_views_of_bytes_split_or_join_the_last_dimension() {
        let types = |from, to| [("T", AttrValue::Type(from)), ("type", AttrValue::Type(to))];
        check("Bitcast", &types(DType::FLOAT, DType::INT32), &[(&["[n,3]"], "[n,3]")]);
        check("Bitcast", &types(DType::FLOAT, DType::UINT8), &[(&["[n,3]"], "[n,3,4]")]);
        check(
            "Bitcast",
            &types(DType::UINT8, DType::FLOAT),
            &[
                (&["[n,4]"], "[n]"),
                (&["[n,?]"], "[n]"),
                (&["?"], "?"),
                (
                    &["[3]"],
                    "! the last dimension of input must be 4, of elements of 1 bytes that join to 4, got [3]",
                ),
                (
                    &["[]"],
                    "! the last dimension of input must be 4, of elements of 1 bytes that join to 4, got []",
                ),
            ],
        );
    }

    #[test]
    fn limits_leave_the_shape() {
        check("ClipByValue", &[], &[(&["[n,3]", "[]", "[]"], "[n,3]")]);
    }
}
