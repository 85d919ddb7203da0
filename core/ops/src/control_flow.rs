//! Control flow: branches and loops, as the executor runs them.

use crate::shape::{input_of_rank, nothing_known, pass_on, passed_on, unchanged};
use tenon_author::{Dim, ShapeContext, ShapeHandle, ShapeResult, register_op};
use tenon_framework::op::{OpRole, Refusal};

register_op!(
    "NoOp",
    shape = nothing_known,
    role = OpRole::Order,
    checks = true,
    refuses = Refusal::Nothing,
    summary = "Does nothing; an anchor for control edges.",
);

register_op!(
    "ControlTrigger",
    shape = nothing_known,
    role = OpRole::Trigger,
    checks = true,
    summary = "Does nothing; runs even if everything that it waits for is dead.",
);

register_op!(
    "Switch",
    inputs = &["data: T", "pred: bool"],
    outputs = &["output_false: T", "output_true: T"],
    attrs = &["T: type"],
    shape = switch,
    role = OpRole::Switch,
    summary = "The data on the output that the predicate names; the other is dead.",
);

register_op!(
    "RefSwitch",
    inputs = &["data: Ref(T)", "pred: bool"],
    outputs = &["output_false: Ref(T)", "output_true: Ref(T)"],
    attrs = &["T: type"],
    shape = switch,
    allows_uninitialized_input = true,
    role = OpRole::Switch,
    summary = "Switch for references.",
);

register_op!(
    "Merge",
    inputs = &["inputs: N * T"],
    outputs = &["output: T", "value_index: int32"],
    attrs = &["T: type", "N: int >= 1"],
    shape = merge,
    role = OpRole::Merge,
    summary = "The first input that is not dead, and its number.",
);

register_op!(
    "RefMerge",
    inputs = &["inputs: Ref(N * T)"],
    outputs = &["output: Ref(T)", "value_index: int32"],
    attrs = &["T: type", "N: int >= 1"],
    shape = merge,
    role = OpRole::Merge,
    summary = "Merge for references.",
);

register_op!(
    "Enter",
    inputs = &["data: T"],
    outputs = &["output: T"],
    attrs = &[
        "T: type",
        "frame_name: string",
        "is_constant: bool = false",
        "parallel_iterations: int = 10",
    ],
    shape = passed_on,
    role = OpRole::Enter,
    summary = "The data in the first iteration of a frame, or in all if it is constant.",
);

register_op!(
    "RefEnter",
    inputs = &["data: Ref(T)"],
    outputs = &["output: Ref(T)"],
    attrs = &[
        "T: type",
        "frame_name: string",
        "is_constant: bool = false",
        "parallel_iterations: int = 10",
    ],
    shape = unchanged,
    role = OpRole::Enter,
    summary = "Enter for references.",
);

register_op!(
    "Exit",
    inputs = &["data: T"],
    outputs = &["output: T"],
    attrs = &["T: type"],
    shape = passed_on,
    role = OpRole::Exit,
    summary = "The data in the frame around.",
);

register_op!(
    "RefExit",
    inputs = &["data: Ref(T)"],
    outputs = &["output: Ref(T)"],
    attrs = &["T: type"],
    shape = unchanged,
    role = OpRole::Exit,
    summary = "Exit for references.",
);

register_op!(
    "NextIteration",
    inputs = &["data: T"],
    outputs = &["output: T"],
    attrs = &["T: type"],
    shape = passed_on,
    role = OpRole::NextIteration,
    summary = "The data in the next iteration of its frame.",
);

register_op!(
    "RefNextIteration",
    inputs = &["data: Ref(T)"],
    outputs = &["output: Ref(T)"],
    attrs = &["T: type"],
    shape = unchanged,
    role = OpRole::NextIteration,
    summary = "NextIteration for references.",
);

register_op!(
    "LoopCond",
    inputs = &["input: bool"],
    outputs = &["output: bool"],
    shape = loop_cond,
    role = OpRole::LoopCond,
    summary = "The condition of a loop.",
);

fn switch(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 1, "pred", 0)?;
    pass_on(c, 0, 0)?;
    pass_on(c, 0, 1)
}

/// The output is one of the inputs, so only their common properties are known.
fn merge(c: &ShapeContext<'_>) -> ShapeResult {
    let mut output = c.input(0);
    for at in 1..c.input_count() {
        output = in_common(c, output, c.input(at));
    }
    c.set_output(0, output)?;
    c.set_output(1, c.scalar())
}

fn in_common(c: &ShapeContext<'_>, a: ShapeHandle, b: ShapeHandle) -> ShapeHandle {
    let rank = match (c.rank(a), c.rank(b)) {
        (Some(a), Some(b)) if a == b => a,
        _ => return c.unknown(),
    };
    let dim = |at: usize| -> Dim {
        let (a, b) = (c.dim(a, at), c.dim(b, at));
        let same = a == b || (c.value(a).is_some() && c.value(a) == c.value(b));
        if same { a } else { c.make_dim(None) }
    };
    c.make_shape(&(0..rank).map(dim).collect::<Vec<_>>())
}

fn loop_cond(c: &ShapeContext<'_>) -> ShapeResult {
    c.set_output(0, input_of_rank(c, 0, "input", 0)?)
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn branches() {
        for op in ["Switch", "RefSwitch"] {
            check(
                op,
                &[],
                &[
                    (&["[n,3]", "[]"], "[n,3]; [n,3]"),
                    (&["?", "?"], "?; ?"),
                    (&["[2]", "[1]"], "! pred must have 0 dimensions, got 1"),
                ],
            );
        }
        for op in ["Merge", "RefMerge"] {
            check(
                op,
                &[],
                &[
                    (&["[n,3]"], "[n,3]; []"),
                    (&["[n,3]", "[n,4]"], "[n,?]; []"),
                    (&["[n]", "[m]"], "[?]; []"),
                    (&["[n]", "[n,1]"], "?; []"),
                    (&["[2]", "?"], "?; []"),
                    (&["[2,3]", "[2,3]", "[2,3]"], "[2,3]; []"),
                ],
            );
        }
    }

    #[test]
    fn loops() {
        for op in ["Enter", "Exit", "RefExit", "NextIteration", "RefNextIteration", "RefEnter"] {
            check(op, &[("frame_name", "f".into())], &[(&["[n,3]"], "[n,3]"), (&["?"], "?")]);
        }
        let constant = [("frame_name", "f".into()), ("is_constant", true.into())];
        check("Enter", &constant, &[(&["[n,3]"], "[n,3]")]);
        check(
            "LoopCond",
            &[],
            &[(&["[]"], "[]"), (&["?"], "[]"), (&["[1]"], "! input must have 0 dimensions, got 1")],
        );
    }

    #[test]
    fn nothing_has_no_outputs() {
        for op in ["NoOp", "ControlTrigger"] {
            check(
                op,
                &[],
                &[(&[], ""), (&["[]"], &format!("! op {op}: expected 0 inputs, found 1"))],
            );
        }
    }
}
