//! Ops that write a strided box of a variable.

use crate::shape::{nothing_known, unchanged};
use tenon_author::register_op;

register_op!(
    "ResourceStridedSliceAssign",
    inputs = &["ref: resource", "begin: Index", "end: Index", "strides: Index", "value: T"],
    attrs = &[
        "T: type",
        "Index: {int32, int64}",
        "begin_mask: int = 0",
        "end_mask: int = 0",
        "ellipsis_mask: int = 0",
        "new_axis_mask: int = 0",
        "shrink_axis_mask: int = 0"
    ],
    stateful = true,
    shape = nothing_known,
    summary = "Writes a strided box of a variable.",
);

register_op!(
    "StridedSliceAssign",
    inputs = &["ref: Ref(T)", "begin: Index", "end: Index", "strides: Index", "value: T"],
    outputs = &["output_ref: Ref(T)"],
    attrs = &[
        "T: type",
        "Index: {int32, int64}",
        "begin_mask: int = 0",
        "end_mask: int = 0",
        "ellipsis_mask: int = 0",
        "new_axis_mask: int = 0",
        "shrink_axis_mask: int = 0"
    ],
    shape = unchanged,
    summary =
        "Writes a strided box of the variable behind a reference, and passes the reference on.",
);
