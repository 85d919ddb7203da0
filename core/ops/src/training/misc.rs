//! What old training graphs use beside optimisers: rows written into a tensor, copies, checks of numbers, hits
//! among sampled classes.

use crate::shape::{input_of_rank, same_size, unchanged};
use tenon_author::{ShapeContext, ShapeResult, register_op};

register_op!(
    "InplaceUpdate",
    inputs = &["x: T", "i: int32", "v: T"],
    outputs = &["y: T"],
    attrs = &["T: type"],
    shape = unchanged,
    summary = "The tensor x with the rows i (modulo their number) taken from v.",
);

register_op!(
    "InplaceAdd",
    inputs = &["x: T", "i: int32", "v: T"],
    outputs = &["y: T"],
    attrs = &["T: type"],
    shape = unchanged,
    summary = "The tensor x with v added to the rows i (modulo their number).",
);

register_op!(
    "InplaceSub",
    inputs = &["x: T", "i: int32", "v: T"],
    outputs = &["y: T"],
    attrs = &["T: type"],
    shape = unchanged,
    summary = "The tensor x with v subtracted from the rows i (modulo their number).",
);

register_op!(
    "DeepCopy",
    inputs = &["x: T"],
    outputs = &["y: T"],
    attrs = &["T: type"],
    stateful = true,
    shape = unchanged,
    summary = "A copy of the tensor in memory of its own.",
);

register_op!(
    "CheckNumericsV2",
    inputs = &["tensor: T"],
    outputs = &["output: T"],
    attrs = &["T: {bfloat16, half, float, double}", "message: string"],
    stateful = true,
    shape = unchanged,
    checks = true,
    summary =
        "The tensor; fails with the message, and says which it contains, for a NaN or an infinity.",
);

register_op!(
    "ComputeAccidentalHits",
    inputs = &["true_classes: int64", "sampled_candidates: int64"],
    outputs = &["indices: int32", "ids: int64", "weights: float"],
    attrs = &["num_true: int", "seed: int = 0", "seed2: int = 0"],
    shape = hits,
    summary = "For each true class that was sampled too: its row, the position of the sample, the least float.",
);

/// True classes are a matrix with a column for each class of a row.
fn hits(c: &ShapeContext<'_>) -> ShapeResult {
    let classes = input_of_rank(c, 0, "true_classes", 2)?;
    let expected = c.make_dim(Some(c.attr("num_true")?));
    same_size(c, "columns of true_classes", expected, c.dim(classes, 1))?;
    input_of_rank(c, 1, "sampled_candidates", 1)?;
    let hits = c.make_dim(None);
    (0..3).try_for_each(|at| c.set_output(at, c.make_shape(&[hits])))
}

#[cfg(test)]
mod tests {
    use crate::testing::check;
    use tenon_framework::attr::AttrValue;

    #[test]
    fn true_classes_have_as_many_columns_as_the_attribute_says() {
        check(
            "ComputeAccidentalHits",
            &[("num_true", AttrValue::Int(2))],
            &[
                (&["[3,2]", "[5]"], "[?]; [?]; [?]"),
                (&["[3,4]", "[5]"], "! columns of true_classes must be 2, got 4"),
            ],
        );
        check("InplaceUpdate", &[], &[(&["[3,4]", "[1]", "[1,4]"], "[3,4]")]);
    }
}
