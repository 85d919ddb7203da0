//! Resources by their handles, and tensors that a session keeps between steps.

use crate::shape::{nothing_known, scalar_output};
use tenon_author::register_op;
use tenon_framework::op::GradientRule;

register_op!(
    "DestroyResourceOp",
    inputs = &["resource: resource"],
    attrs = &["ignore_lookup_error: bool = true"],
    stateful = true,
    shape = nothing_known,
    summary = "Removes a resource from its container; an anonymous one stays with its handles.",
);

register_op!(
    "IsResourceHandleRefCounting",
    inputs = &["handle: resource"],
    outputs = &["result: bool"],
    stateful = true,
    shape = scalar_output,
    summary = "Whether a resource is anonymous, so that it lives as long as its handles.",
);

register_op!(
    "MakeWeakResourceHandle",
    inputs = &["handle: resource"],
    outputs = &["dup: resource"],
    stateful = true,
    shape = scalar_output,
    summary = "A handle of the same resource, which does not keep an anonymous one.",
);

register_op!(
    "DisableCopyOnRead",
    inputs = &["resource: resource"],
    stateful = true,
    shape = nothing_known,
    summary = "Has reads of a variable share its buffer again, after sparse reads and updates made them copy it.",
);

register_op!(
    "GetSessionHandleV2",
    inputs = &["value: T"],
    outputs = &["handle: resource"],
    attrs = &["T: type"],
    stateful = true,
    shape = scalar_output,
    gradient = GradientRule::None,
    summary = "Keeps a tensor between steps; the handle names it.",
);

register_op!(
    "GetSessionHandle",
    inputs = &["value: T"],
    outputs = &["handle: string"],
    attrs = &["T: type"],
    stateful = true,
    shape = scalar_output,
    gradient = GradientRule::None,
    summary = "Keeps a tensor between steps; the text finds it again.",
);

register_op!(
    "GetSessionTensor",
    inputs = &["handle: string"],
    outputs = &["value: dtype"],
    attrs = &["dtype: type"],
    stateful = true,
    shape = nothing_known,
    gradient = GradientRule::None,
    summary = "The tensor that was kept under a text.",
);

register_op!(
    "DeleteSessionTensor",
    inputs = &["handle: string"],
    stateful = true,
    shape = nothing_known,
    gradient = GradientRule::None,
    summary = "Gives up the tensor that was kept under a text.",
);
