//! Ops that return shapes.

use crate::shape::scalar_output;
use tenon_author::{ShapeContext, ShapeResult, register_op};
use tenon_framework::op::{GradientRule, Refusal, ValueRule};

const OUT: &str = "out_type: {int32, int64} = DT_INT32";

register_op!(
    "Shape",
    inputs = &["input: T"],
    outputs = &["output: out_type"],
    attrs = &["T: type", OUT],
    shape = shapes,
    value = ValueRule::Shape,
    refuses = Refusal::Nothing,
    gradient = GradientRule::None,
    summary = "The dimensions of a tensor.",
);

register_op!(
    "ShapeN",
    inputs = &["input: N * T"],
    outputs = &["output: N * out_type"],
    attrs = &["N: int >= 1", "T: type", OUT],
    shape = shapes,
    value = ValueRule::Shape,
    refuses = Refusal::Nothing,
    gradient = GradientRule::None,
    summary = "The dimensions of each tensor.",
);

register_op!(
    "Size",
    inputs = &["input: T"],
    outputs = &["output: out_type"],
    attrs = &["T: type", OUT],
    shape = scalar_output,
    value = ValueRule::Size,
    refuses = Refusal::Nothing,
    gradient = GradientRule::None,
    summary = "The number of elements of a tensor.",
);

register_op!(
    "Rank",
    inputs = &["input: T"],
    outputs = &["output: int32"],
    attrs = &["T: type"],
    shape = scalar_output,
    value = ValueRule::Rank,
    refuses = Refusal::Nothing,
    gradient = GradientRule::None,
    summary = "The number of dimensions of a tensor.",
);

fn shapes(c: &ShapeContext<'_>) -> ShapeResult {
    for at in 0..c.input_count() {
        let rank = c.rank(c.input(at)).map(|rank| rank as i64);
        c.set_output(at, c.make_shape(&[c.make_dim(rank)]))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::{Bench, check};
    use tenon_framework::infer::Item;

    #[test]
    fn shapes_of_shapes() {
        check("Shape", &[], &[(&["[2,n]"], "[2]"), (&["[]"], "[0]"), (&["?"], "[?]")]);
        check("ShapeN", &[], &[(&["[2,n]", "?", "[]"], "[2]; [?]; [0]")]);
        check("Size", &[], &[(&["[2,n]"], "[]"), (&["?"], "[]")]);
        check(
            "Rank",
            &[],
            &[(&["?"], "[]"), (&["[]", "[]"], "! op Rank: expected 1 inputs, found 2")],
        );
    }

    #[test]
    fn their_values_are_known_as_far_as_the_shape_is() {
        let mut bench = Bench::new();
        let mut value = |op: &str, shape: &str| {
            let input = bench.value(shape);
            bench.run(op, &[], &[&input]).unwrap()[0].value.as_ref().map(|v| v.items().to_vec())
        };
        assert_eq!(value("Shape", "[2,3]").unwrap(), [Item::Known(2), Item::Known(3)]);
        assert!(matches!(
            value("Shape", "[n,3]").unwrap()[..],
            [Item::Dimension(_), Item::Known(3)]
        ));
        assert_eq!(value("Shape", "?"), None);
        assert_eq!(value("Size", "[2,3]").unwrap(), [Item::Known(6)]);
        assert_eq!(value("Size", "[n,0]").unwrap(), [Item::Known(0)]);
        assert_eq!(value("Size", "[1,n]"), Some(vec![value("Shape", "[n]").unwrap()[0]]));
        assert_eq!(value("Size", "[2,n]"), None);
        assert_eq!(value("Size", "[]").unwrap(), [Item::Known(1)]);
        assert_eq!(value("Rank", "[n,n,n]").unwrap(), [Item::Known(3)]);
        assert_eq!(value("Rank", "?"), None);
    }
}
