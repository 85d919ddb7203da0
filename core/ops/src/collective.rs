//! Collective operations: nodes on several devices, one on each, that exchange their values.
//!
//! The nodes of one operation have the same `group_size`, `group_key` and `instance_key`. The kernels are
//! plugins/data/src/collective.

use crate::shape::{dims_of, input_of_rank, input_of_rank_at_least, scalar_output, unchanged};
use tenon_author::{Dim, ShapeContext, ShapeResult, register_op};
use tenon_framework::{PartialShape, op::GradientRule};

/// The attributes of a reduction whose keys are attributes.
const REDUCE: &[&str] = &[
    "T: {bfloat16, float, half, double, int32, int64}",
    "group_size: int",
    "group_key: int",
    "instance_key: int",
    "merge_op: {'Min', 'Max', 'Mul', 'Add'}",
    "final_op: {'Id', 'Div'}",
    "subdiv_offsets: list(int)",
    "wait_for: list(int) = []",
    "communication_hint: string = 'auto'",
    "timeout_seconds: float = 0",
];

/// The attributes of a reduction whose keys are inputs.
const REDUCE_V2: &[&str] = &[
    "T: {bfloat16, float, half, double, int32, int64}",
    "merge_op: {'Min', 'Max', 'Mul', 'Add'}",
    "final_op: {'Id', 'Div'}",
    "communication_hint: string = 'auto'",
    "timeout_seconds: float = 0",
    "is_stateless: bool = false",
    "Nordering_token: int >= 0 = 0",
    "max_subdivs_per_device: int = -1",
];

/// The attributes of a gathering whose keys are attributes.
const GATHER: &[&str] = &[
    "T: {float, half, double, int32, int64}",
    "group_size: int",
    "group_key: int",
    "instance_key: int",
    "shape: shape",
    "communication_hint: string = 'auto'",
    "timeout_seconds: float = 0",
];

/// The attributes of a broadcast whose keys are attributes.
const BROADCAST: &[&str] = &[
    "T: {bool, float, half, double, int32, int64}",
    "group_size: int",
    "group_key: int",
    "instance_key: int",
    "shape: shape",
    "communication_hint: string = 'auto'",
    "timeout_seconds: float = 0",
];

/// The inputs of an operation whose keys are inputs. An ordering token has no value: it is an order of nodes.
const WITH_TOKENS: &[&str] = &[
    "input: T",
    "group_size: int32",
    "group_key: int32",
    "instance_key: int32",
    "ordering_token: Nordering_token * resource",
];

register_op!(
    "CollectiveReduce",
    inputs = &["input: T"],
    outputs = &["data: T"],
    attrs = REDUCE,
    stateful = true,
    gradient = GradientRule::None,
    shape = unchanged,
    summary = "Gives each member the values of all, merged into one.",
);

register_op!(
    "CollectiveReduceV2",
    inputs = WITH_TOKENS,
    outputs = &["data: T"],
    attrs = REDUCE_V2,
    stateful = true,
    gradient = GradientRule::None,
    shape = unchanged,
    summary = "Gives each member the values of all, merged into one.",
);

register_op!(
    "CollectiveReduceScatterV2",
    inputs = WITH_TOKENS,
    outputs = &["data: T"],
    attrs = REDUCE_V2,
    stateful = true,
    gradient = GradientRule::None,
    shape = rows_unknown,
    summary = "Gives each member its part of the values of all, merged into one.",
);

register_op!(
    "CollectiveGather",
    inputs = &["input: T"],
    outputs = &["data: T"],
    attrs = GATHER,
    stateful = true,
    gradient = GradientRule::None,
    shape = gathered,
    summary = "Gives each member the values of all, one after the other.",
);

register_op!(
    "CollectiveGatherV2",
    inputs = WITH_TOKENS,
    outputs = &["data: T"],
    attrs = &[
        "T: {float, half, double, int32, int64}",
        "communication_hint: string = 'auto'",
        "timeout_seconds: float = 0",
        "is_stateless: bool = false",
        "Nordering_token: int >= 0 = 0",
    ],
    stateful = true,
    gradient = GradientRule::None,
    shape = rows_unknown,
    summary = "Gives each member the values of all, one after the other.",
);

register_op!(
    "CollectiveBcastSend",
    inputs = &["input: T"],
    outputs = &["data: T"],
    attrs = BROADCAST,
    stateful = true,
    gradient = GradientRule::None,
    shape = as_noted,
    summary = "Gives its value to all members.",
);

register_op!(
    "CollectiveBcastRecv",
    outputs = &["data: T"],
    attrs = BROADCAST,
    stateful = true,
    gradient = GradientRule::None,
    shape = as_noted,
    summary = "Takes the value that one member gives to all.",
);

register_op!(
    "CollectiveBcastSendV2",
    inputs = &["input: T", "group_size: int32", "group_key: int32", "instance_key: int32"],
    outputs = &["data: T"],
    attrs = &[
        "T: {bool, float, half, double, int32, int64}",
        "communication_hint: string = 'auto'",
        "timeout_seconds: float = 0",
    ],
    stateful = true,
    gradient = GradientRule::None,
    shape = unchanged,
    summary = "Gives its value to all members.",
);

register_op!(
    "CollectiveBcastRecvV2",
    inputs = &["group_size: int32", "group_key: int32", "instance_key: int32", "shape: Tshape"],
    outputs = &["data: T"],
    attrs = &[
        "T: {bool, float, half, double, int32, int64}",
        "Tshape: {int32, int64} = DT_INT32",
        "communication_hint: string = 'auto'",
        "timeout_seconds: float = 0",
    ],
    stateful = true,
    gradient = GradientRule::None,
    shape = by_input,
    summary = "Takes the value that one member gives to all.",
);

register_op!(
    "CollectiveAllToAllV2",
    inputs = WITH_TOKENS,
    outputs = &["data: T"],
    attrs = &[
        "T: {bfloat16, float, half, double, int32, int64}",
        "communication_hint: string = 'auto'",
        "timeout_seconds: float = 0",
        "is_stateless: bool = false",
        "Nordering_token: int >= 0 = 0",
    ],
    stateful = true,
    gradient = GradientRule::None,
    shape = unchanged,
    summary = "Gives each member its part of the value of each.",
);

/// The inputs of an operation whose keys a communicator has.
const OF_COMMUNICATOR: &[&str] = &["input: T", "communicator: resource", "group_assignment: int32"];

register_op!(
    "CollectiveInitializeCommunicator",
    inputs = &["group_key: int32", "rank: int32", "group_size: int32"],
    outputs = &["communicator: resource"],
    attrs = &["communication_hint: string = 'auto'", "timeout_seconds: float = 0"],
    stateful = true,
    gradient = GradientRule::None,
    shape = scalar_output,
    summary = "Makes a member of a group of devices, for operations that take their keys from it.",
);

register_op!(
    "CollectiveAssignGroupV2",
    inputs = &["group_assignment: int32", "device_index: int32", "base_key: int32"],
    outputs = &["group_size: int32", "group_key: int32"],
    stateful = true,
    gradient = GradientRule::None,
    shape = assigned,
    summary = "Gives the size and the key of the group that has a device.",
);

register_op!(
    "CollectiveReduceV3",
    inputs = OF_COMMUNICATOR,
    outputs = &["data: T"],
    attrs = &[
        "T: {bfloat16, float, half, double, int32, int64}",
        "reduction: {'Min', 'Max', 'Mul', 'Add'}",
        "timeout_seconds: float = 0",
    ],
    stateful = true,
    gradient = GradientRule::None,
    shape = unchanged,
    summary = "Gives each member the values of all, merged into one.",
);

register_op!(
    "CollectiveAllToAllV3",
    inputs = OF_COMMUNICATOR,
    outputs = &["data: T"],
    attrs = &["T: {bfloat16, float, half, double, int32, int64}", "timeout_seconds: float = 0"],
    stateful = true,
    gradient = GradientRule::None,
    shape = unchanged,
    summary = "Gives each member its part of the value of each.",
);

fn assigned(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 0, "group_assignment", 2)?;
    c.set_output(0, c.scalar())?;
    c.set_output(1, c.scalar())
}

/// The dimensions of the input with another first one.
fn with_first(c: &ShapeContext<'_>, first: impl FnOnce(Dim) -> Option<i64>) -> ShapeResult {
    let input = input_of_rank_at_least(c, 0, "input", 1)?;
    if c.rank(input).is_none() {
        return c.set_output(0, c.unknown());
    }
    let mut dims = dims_of(c, input);
    dims[0] = c.make_dim(first(dims[0]));
    c.set_output(0, c.make_shape(&dims))
}

fn rows_unknown(c: &ShapeContext<'_>) -> ShapeResult {
    with_first(c, |_| None)
}

fn gathered(c: &ShapeContext<'_>) -> ShapeResult {
    let size: i64 = c.attr("group_size")?;
    with_first(c, |rows| c.value(rows)?.checked_mul(size).filter(|&rows| rows >= 0))
}

fn as_noted(c: &ShapeContext<'_>) -> ShapeResult {
    let shape: PartialShape = c.attr("shape")?;
    c.set_output(0, shape.dims().map_or_else(|| c.unknown(), |dims| c.shape_of(dims)))
}

fn by_input(c: &ShapeContext<'_>) -> ShapeResult {
    let shape = c.constant_as_shape(3)?;
    c.set_output(0, shape)
}

#[cfg(test)]
mod tests {
    use crate::testing::check;
    use tenon_framework::{PartialShape, attr::AttrValue};

    #[test]
    fn a_reduction_has_the_shape_of_its_input() {
        for op in ["CollectiveReduce", "CollectiveReduceV2", "CollectiveAllToAllV2"] {
            let size = [("group_size", AttrValue::Int(2))];
            let attrs = if op == "CollectiveReduce" { &size[..] } else { &[] };
            let of = |input: &'static str| match op {
                "CollectiveReduce" => vec![input],
                _ => vec![input, "[]", "[]", "[]"],
            };
            check(op, attrs, &[(&of("[4,3]"), "[4,3]"), (&of("?"), "?"), (&of("[]"), "[]")]);
        }
    }

    #[test]
    fn operations_of_a_communicator_have_the_shape_of_their_input() {
        for op in ["CollectiveReduceV3", "CollectiveAllToAllV3"] {
            check(op, &[], &[(&["[4,3]", "[]", "[0]"], "[4,3]"), (&["?", "[]", "[0]"], "?")]);
        }
        check("CollectiveInitializeCommunicator", &[], &[(&["[]", "[]", "[]"], "[]")]);
        check("CollectiveAssignGroupV2", &[], &[(&["[2,2]", "[]", "[]"], "[]; []")]);
    }

    #[test]
    fn gathered_rows_are_those_of_all_members() {
        let size = [("group_size", AttrValue::Int(2))];
        check(
            "CollectiveGather",
            &size,
            &[(&["[4,3]"], "[8,3]"), (&["[?,2]"], "[?,2]"), (&["?"], "?")],
        );
        for op in ["CollectiveGatherV2", "CollectiveReduceScatterV2"] {
            check(
                op,
                &[],
                &[(&["[4,3]", "[]", "[]", "[]"], "[?,3]"), (&["?", "[]", "[]", "[]"], "?")],
            );
        }
    }

    #[test]
    fn a_broadcast_says_its_shape() {
        let shape = PartialShape::new(&[7, 7]).unwrap();
        let shape = [("shape", AttrValue::Shape(shape))];
        check("CollectiveBcastSend", &shape, &[(&["[4]"], "[7,7]")]);
        check("CollectiveBcastRecv", &shape, &[(&[], "[7,7]")]);
        check("CollectiveBcastSendV2", &[], &[(&["[4]", "[]", "[]", "[]"], "[4]")]);
        let of = |shape: &'static str| ["[]", "[]", "[]", shape];
        check("CollectiveBcastRecvV2", &[], &[(&of("= [7,8]"), "[7,8]"), (&of("[2]"), "[?,?]")]);
    }
}
