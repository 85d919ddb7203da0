//! Messages, assertions and the time.

use crate::shape::{input_of_rank, nothing_known, passed_on, scalar_output};
use tenon_author::{ShapeContext, ShapeResult, register_op};
use tenon_framework::op::GradientRule;

register_op!(
    "Assert",
    inputs = &["condition: bool", "data: T"],
    outputs = &[],
    attrs = &["T: list(type) >= 1", "summarize: int = 3"],
    stateful = true,
    shape = nothing_known,
    checks = true,
    gradient = GradientRule::None,
    summary = "Fails the step with the data in its message unless the condition holds.",
);

register_op!(
    "Print",
    inputs = &["input: T", "data: U"],
    outputs = &["output: T"],
    attrs = &[
        "T: type",
        "U: list(type) >= 0",
        "message: string = ''",
        "first_n: int = -1",
        "summarize: int = 3",
    ],
    stateful = true,
    shape = passed_on,
    checks = true,
    summary =
        "The input as it is; a message with the data goes to the standard error, the first times.",
);

register_op!(
    "PrintV2",
    inputs = &["input: string"],
    outputs = &[],
    attrs = &["output_stream: string = 'stderr'", "end: string = '\n'"],
    stateful = true,
    shape = one_text,
    checks = true,
    summary = "Writes a text to a standard stream, the log or the end of a file.",
);

register_op!(
    "Timestamp",
    inputs = &[],
    outputs = &["ts: double"],
    attrs = &[],
    stateful = true,
    shape = scalar_output,
    gradient = GradientRule::None,
    summary = "Seconds since 1970.",
);

fn one_text(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 0, "input", 0).map(|_| ())
}

#[cfg(test)]
mod tests {
    use crate::testing::check;
    use tenon_framework::{
        DType,
        attr::{AttrList, AttrValue},
    };

    #[test]
    fn what_is_printed_is_a_scalar() {
        check(
            "PrintV2",
            &[],
            &[(&["[]"], ""), (&["[1]"], "! input must have 0 dimensions, got 1")],
        );
        let data = AttrValue::List(AttrList::Type(vec![DType::INT32]));
        check("Print", &[("U", data)], &[(&["[n,2]", "?"], "[n,2]")]);
        check("Timestamp", &[], &[(&[], "[]")]);
    }
}
