//! Isotonic regression.

use crate::shape::unchanged;
use tenon_author::{ShapeContext, ShapeResult, register_op};

register_op!(
    "IsotonicRegression",
    inputs = &["input: T"],
    outputs = &["output: output_dtype", "segments: int32"],
    attrs = &["T: realnumbertype", "output_dtype: {half, bfloat16, float, double} = DT_FLOAT"],
    shape = regression,
    summary = "Per row the sequence that does not ascend and is nearest by squares, and the number of its constant part for each element.",
);

fn regression(c: &ShapeContext<'_>) -> ShapeResult {
    unchanged(c)?;
    c.set_output(1, c.input(0))
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn each_element_has_a_value_and_a_part() {
        check("IsotonicRegression", &[], &[(&["[n,3]"], "[n,3]; [n,3]"), (&["?"], "?; ?")]);
    }
}
