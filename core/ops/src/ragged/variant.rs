//! Ragged tensors as values of variants, one for the whole or one for each row.

use crate::shape::{input_of_rank, input_of_rank_at_least};
use tenon_author::{ShapeContext, ShapeResult, register_op};
use tenon_geometry::GeometryError;

register_op!(
    "RaggedTensorToVariant",
    inputs = &["rt_nested_splits: RAGGED_RANK * Tsplits", "rt_dense_values: Tvalues"],
    outputs = &["encoded_ragged: variant"],
    attrs = &[
        "RAGGED_RANK: int >= 0",
        "Tvalues: type",
        "Tsplits: {int32, int64} = DT_INT64",
        "batched_input: bool",
    ],
    shape = encoded,
    summary = "A ragged tensor as a variant, or each of its rows as one.",
);

register_op!(
    "RaggedTensorFromVariant",
    inputs = &["encoded_ragged: variant"],
    outputs =
        &["output_nested_splits: output_ragged_rank * Tsplits", "output_dense_values: Tvalues"],
    attrs = &[
        "input_ragged_rank: int >= -1",
        "output_ragged_rank: int >= 0",
        "Tvalues: type",
        "Tsplits: {int32, int64} = DT_INT64",
    ],
    shape = decoded,
    summary = "The ragged tensor of variants, each of which is a row, or a row of rows.",
);

register_op!(
    "RaggedTensorToVariantGradient",
    inputs = &["encoded_ragged_grad: variant", "row_splits: Tsplits", "dense_values_shape: int32"],
    outputs = &["dense_values_grad: Tvalues"],
    attrs = &["Tvalues: type", "Tsplits: {int32, int64} = DT_INT64"],
    shape = gradient,
    summary = "The gradient of RaggedTensorToVariant for the values: those of all rows, zeros where a row has none.",
);

fn encoded(c: &ShapeContext<'_>) -> ShapeResult {
    let ragged = c.attr::<i64>("RAGGED_RANK")? as usize;
    for at in 0..ragged {
        input_of_rank(c, at, "rt_nested_splits", 1)?;
    }
    let by_row: bool = c.attr("batched_input")?;
    let least = usize::from(by_row || ragged > 0);
    let values = input_of_rank_at_least(c, ragged, "rt_dense_values", least)?;
    if !by_row {
        return c.set_output(0, c.scalar());
    }
    let rows = match (ragged, c.rank(values)) {
        (0, Some(_)) => c.dim(values, 0),
        (0, None) => c.make_dim(None),
        _ => c.make_dim(
            c.value(c.dim(c.input(0), 0)).filter(|&count| count > 0).map(|count| count - 1),
        ),
    };
    c.set_output(0, c.make_shape(&[rows]))
}

fn decoded(c: &ShapeContext<'_>) -> ShapeResult {
    let (inner, outer) =
        (c.attr::<i64>("input_ragged_rank")?, c.attr::<i64>("output_ragged_rank")?);
    if let Some(rank) = c.rank(c.input(0)).filter(|_| inner >= 0 && outer > 0) {
        let (what, expected, found) = ("output_ragged_rank", inner + rank as i64, outer);
        if expected != found {
            return Err(GeometryError::SizeMismatch { what, expected, found }.into());
        }
    }
    for at in 0..outer as usize {
        c.set_output(at, c.unknown_of_rank(1))?;
    }
    c.set_output(outer as usize, c.unknown())
}

fn gradient(c: &ShapeContext<'_>) -> ShapeResult {
    let shape = input_of_rank(c, 2, "dense_values_shape", 1)?;
    let output = match (c.constant_integers(2), c.value(c.dim(shape, 0))) {
        (Some(sizes), _) => match sizes.iter().find(|&&size| size < 0) {
            Some(&found) => {
                let what = "dense_values_shape";
                return Err(GeometryError::TooSmall { what, least: 0, found }.into());
            }
            None => c.shape_of(&sizes),
        },
        (None, Some(rank)) => c.unknown_of_rank(rank as usize),
        (None, None) => c.unknown(),
    };
    c.set_output(0, output)
}

#[cfg(test)]
mod tests {
    use crate::testing::infer;
    use tenon_framework::attr::AttrValue;

    #[test]
    fn each_row_is_a_variant() {
        let attrs = |ragged: i64, by_row: bool| {
            [("RAGGED_RANK", ragged.into()), ("batched_input", AttrValue::Bool(by_row))]
        };
        assert_eq!(infer("RaggedTensorToVariant", &attrs(1, true), &["[4]", "[n,2]"]), "[3]");
        assert_eq!(infer("RaggedTensorToVariant", &attrs(1, false), &["[4]", "[n]"]), "[]");
        assert_eq!(infer("RaggedTensorToVariant", &attrs(0, true), &["[4,2]"]), "[4]");
        let found = infer("RaggedTensorToVariant", &attrs(0, true), &["[]"]);
        assert!(found.starts_with("! rt_dense_values must have at least 1 dimensions"), "{found}");
    }

    #[test]
    fn variants_become_rows() {
        let attrs = |inner: i64, outer: i64| {
            [("input_ragged_rank", inner.into()), ("output_ragged_rank", outer.into())]
        };
        assert_eq!(infer("RaggedTensorFromVariant", &attrs(1, 2), &["[n]"]), "[?]; [?]; ?");
        assert_eq!(infer("RaggedTensorFromVariant", &attrs(-1, 1), &["?"]), "[?]; ?");
        let found = infer("RaggedTensorFromVariant", &attrs(1, 2), &["[2,2]"]);
        assert!(found.starts_with("! output_ragged_rank must be 3, got 2"), "{found}");
        let inputs = ["[n]", "[4]", "= [7,2]"];
        assert_eq!(infer("RaggedTensorToVariantGradient", &[], &inputs), "[7,2]");
        assert_eq!(infer("RaggedTensorToVariantGradient", &[], &["[n]", "[4]", "[2]"]), "[?,?]");
    }
}
