//! Calls of functions: of a function of the graph's library, under a condition, and in a loop.

use crate::shape::{by_attribute, input_of_rank, pass_on, scalar_output};
use tenon_author::{ShapeContext, ShapeResult, register_op};
use tenon_framework::{PartialShape, op::OpRole};

/// An op that calls functions with its inputs; `$outputs` is the list of its output types.
macro_rules! register_call {
    ($name:literal, $inputs:expr, $attrs:expr, $shape:expr, $stateful:literal, $summary:literal) => {
        register_op!(
            $name,
            inputs = $inputs,
            outputs = &["output: Tout"],
            attrs = $attrs,
            shape = $shape,
            stateful = $stateful,
            role = OpRole::Call,
            summary = $summary,
        );
    };
}

const CALL: &[&str] = &[
    "Tin: list(type) >= 0",
    "Tout: list(type) >= 0",
    "f: func",
    "config: string = ''",
    "config_proto: string = ''",
    "executor_type: string = ''",
];

register_call!(
    "PartitionedCall",
    &["args: Tin"],
    CALL,
    by_definition,
    false,
    "The results of a function without state."
);
register_call!(
    "StatefulPartitionedCall",
    &["args: Tin"],
    CALL,
    by_definition,
    true,
    "The results of a function, which may have state."
);
register_call!(
    "RemoteCall",
    &["target: string", "args: Tin"],
    &["Tin: list(type) >= 1", "Tout: list(type) >= 1", "f: func"],
    by_definition,
    true,
    "The results of a function that runs on the device of this name."
);

register_op!(
    "SymbolicGradient",
    inputs = &["input: Tin"],
    outputs = &["output: Tout"],
    attrs = &["Tin: list(type) >= 1", "Tout: list(type) >= 1", "f: func"],
    shape = |c: &ShapeContext<'_>| (0..c.output_count()).try_for_each(|at| pass_on(c, at, at)),
    role = OpRole::Call,
    summary = "The gradients of the arguments of a function, from its arguments and the gradients of its results.",
);

const IF: &[&str] = &[
    "Tcond: type",
    "Tin: list(type) >= 0",
    "Tout: list(type) >= 0",
    "then_branch: func",
    "else_branch: func",
    "output_shapes: list(shape) = []",
];

register_call!(
    "If",
    &["cond: Tcond", "input: Tin"],
    IF,
    by_attribute,
    true,
    "The results of one of two functions, which the condition selects."
);
register_call!(
    "StatelessIf",
    &["cond: Tcond", "input: Tin"],
    IF,
    by_attribute,
    false,
    "The results of one of two functions without state, which the condition selects."
);

const CASE: &[&str] = &[
    "Tin: list(type) >= 0",
    "Tout: list(type) >= 0",
    "branches: list(func) >= 1",
    "output_shapes: list(shape) = []",
];

register_call!(
    "Case",
    &["branch_index: int32", "input: Tin"],
    CASE,
    by_attribute,
    true,
    "The results of the function of this number; of the last one for another number."
);
register_call!(
    "StatelessCase",
    &["branch_index: int32", "input: Tin"],
    CASE,
    by_attribute,
    false,
    "The results of the function without state of this number; of the last one for another number."
);

/// A loop over values whose types are `T`.
macro_rules! register_loop {
    ($name:literal, $stateful:literal, $summary:literal) => {
        register_op!(
            $name,
            inputs = &["input: T"],
            outputs = &["output: T"],
            attrs = &[
                "T: list(type) >= 0",
                "cond: func",
                "body: func",
                "output_shapes: list(shape) = []",
                "parallel_iterations: int = 10",
            ],
            shape = looped,
            stateful = $stateful,
            role = OpRole::Call,
            summary = $summary,
        );
    };
}

register_loop!("While", true, "The values after calls of a function as long as a condition holds.");
register_loop!(
    "StatelessWhile",
    false,
    "The values after calls of a function without state as long as a condition holds."
);

register_op!(
    "For",
    inputs = &["start: int32", "limit: int32", "delta: int32", "input: T"],
    outputs = &["output: T"],
    attrs = &["T: list(type) >= 0", "body: func"],
    shape = |c: &ShapeContext<'_>| {
        for (input, name) in ["start", "limit", "delta"].iter().enumerate() {
            input_of_rank(c, input, name, 0)?;
        }
        (0..c.output_count()).try_for_each(|at| c.set_output(at, c.unknown()))
    },
    summary =
        "The values after a call of a function for each value of a counter, which it gets first.",
);

register_op!(
    "_SwitchN",
    inputs = &["data: T", "output_index: int32"],
    outputs = &["outputs: num_outs * T"],
    attrs = &["num_outs: int >= 1", "T: type"],
    shape = |c: &ShapeContext<'_>| (0..c.output_count()).try_for_each(|at| pass_on(c, 0, at)),
    role = OpRole::Switch,
    summary = "The data on the output of this number, or on the last one; the others are dead.",
);

register_op!(
    "ToBool",
    inputs = &["input: T"],
    outputs = &["output: bool"],
    attrs = &["T: type"],
    shape = scalar_output,
    summary = "Whether a scalar is not 0 and not empty, or a tensor has elements.",
);

register_op!(
    "FakeParam",
    outputs = &["output: dtype"],
    attrs = &["dtype: type", "shape: shape"],
    shape = |c: &ShapeContext<'_>| {
        let shape: PartialShape = c.attr("shape")?;
        match shape.dims() {
            Some(dims) => c.set_output(0, c.shape_of(dims)),
            None => c.set_output(0, c.unknown()),
        }
    },
    summary = "A value for an output that a branch does not have.",
);

/// The results of a call are known once the function is.
fn by_definition(_: &ShapeContext<'_>) -> ShapeResult {
    Ok(())
}

/// A value may have another shape after each iteration; what a handle leads to stays.
fn looped(c: &ShapeContext<'_>) -> ShapeResult {
    by_attribute(c)?;
    for at in 0..c.output_count() {
        let parts = c.input_handle(at);
        parts.into_iter().try_for_each(|(dtype, shape)| c.add_output_handle(at, dtype, shape))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn a_switch_of_many_outputs() {
        let outputs = [("num_outs", 3.into())];
        check("_SwitchN", &outputs, &[(&["[n,3]", "[]"], "[n,3]; [n,3]; [n,3]")]);
    }

    #[test]
    fn a_truth_value() {
        check("ToBool", &[], &[(&["[n,3]"], "[]"), (&["?"], "[]")]);
    }
}
