//! Ops that forward their inputs.

use super::source::shape_attr;
use crate::shape::{passed_on, unchanged};
use tenon_author::{ShapeContext, ShapeResult, register_op};
use tenon_framework::op::{GradientRule, Refusal};

register_op!(
    "Identity",
    inputs = &["input: T"],
    outputs = &["output: T"],
    attrs = &["T: type"],
    shape = passed_on,
    passes_input = (0, 0),
    refuses = Refusal::Nothing,
    summary = "The input.",
);

register_op!(
    "IdentityN",
    inputs = &["input: T"],
    outputs = &["output: T"],
    attrs = &["T: list(type) >= 1"],
    shape = passed_on,
    passes_input = (0, 0),
    refuses = Refusal::Nothing,
    summary = "The inputs.",
);

register_op!(
    "Snapshot",
    inputs = &["input: T"],
    outputs = &["output: T"],
    attrs = &["T: type"],
    shape = passed_on,
    passes_input = (0, 0),
    refuses = Refusal::Nothing,
    summary = "A copy of the input in a new buffer.",
);

register_op!(
    "GuaranteeConst",
    inputs = &["input: T"],
    outputs = &["output: T"],
    attrs = &["T: type"],
    stateful = true,
    shape = passed_on,
    passes_input = (0, 0),
    refuses = Refusal::Nothing,
    summary = "The input, of which the graph says that it is the same in every step.",
);

register_op!(
    "StopGradient",
    inputs = &["input: T"],
    outputs = &["output: T"],
    attrs = &["T: type"],
    shape = passed_on,
    passes_input = (0, 0),
    refuses = Refusal::Nothing,
    gradient = GradientRule::None,
    summary = "The input, through which no gradient flows.",
);

register_op!(
    "PreventGradient",
    inputs = &["input: T"],
    outputs = &["output: T"],
    attrs = &["T: type", "message: string = ''"],
    shape = passed_on,
    checks = true,
    passes_input = (0, 0),
    refuses = Refusal::Nothing,
    summary = "The input; asking for a gradient through it is an error.",
);

register_op!(
    "EnsureShape",
    inputs = &["input: T"],
    outputs = &["output: T"],
    attrs = &["shape: shape", "T: type"],
    shape = ensure_shape,
    checks = true,
    passes_input = (0, 0),
    summary = "The input, which must have the shape of the attribute.",
);

register_op!(
    "CheckNumerics",
    inputs = &["tensor: T"],
    outputs = &["output: T"],
    attrs = &["T: {bfloat16, half, float, double}", "message: string"],
    stateful = true,
    shape = unchanged,
    checks = true,
    summary = "The tensor; fails with the message if it contains a NaN or an infinity.",
    cases = &[
        "finite; message = 'checked'; tensor: [n, m] uniform(-4, 4)",
        "vector; message in {'', 'x'}; tensor: [n] uniform(-1, 1)",
        "scalar; message = 'one'; tensor: [] uniform(-1, 1)",
    ],
);

fn ensure_shape(c: &ShapeContext<'_>) -> ShapeResult {
    c.set_output(0, c.merge(shape_attr(c)?, c.input(0))?)
}

#[cfg(test)]
mod tests {
    use crate::testing::{Bench, check};
    use tenon_framework::{
        DType, PartialShape, attr::AttrValue, infer::HandlePart, infer::SymbolicShape,
        infer::ValueInfo,
    };

    #[test]
    fn the_input_is_handed_on() {
        for op in ["Identity", "GuaranteeConst", "Snapshot", "StopGradient", "PreventGradient"] {
            check(op, &[], &[(&["[n,3]"], "[n,3]"), (&["?"], "?"), (&["[]"], "[]")]);
            let mut bench = Bench::new();
            let constant = bench.value("= [1,2]");
            let part = HandlePart { dtype: DType::INT8, shape: SymbolicShape::UNKNOWN };
            let given = ValueInfo { handle: vec![part], ..constant };
            let outputs = bench.run(op, &[], &[&given]).unwrap();
            assert!(outputs[0].constant.is_some(), "{op}");
            assert_eq!(outputs[0].handle, given.handle, "{op}");
        }
        check("Identity", &[], &[(&[], "! op Identity: expected 1 inputs, found 0")]);
        check("IdentityN", &[], &[(&["[n]", "?", "[2]"], "[n]; ?; [2]")]);
    }

    #[test]
    fn a_shape_is_ensured() {
        let shape = PartialShape::new(&[-1, 3]).unwrap();
        check(
            "EnsureShape",
            &[("shape", AttrValue::Shape(shape))],
            &[
                (&["[2,?]"], "[2,3]"),
                (&["[n,3]"], "[n,3]"),
                (&["?"], "[?,3]"),
                (
                    &["[2,4]"],
                    "! shapes [?,3] and [2,4] must be equal: dimension 1: expected 3, found 4: input is [2,4]",
                ),
            ],
        );
    }
}
