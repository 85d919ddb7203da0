//! Staging areas: elements wait between steps, in order or under keys.
//!
//! An area is made by the first of its ops that runs, and shared by name. The kernels are
//! plugins/data/src/staging.

use crate::shape::{nothing_known, scalar_output};
use tenon_author::register_op;

/// The attributes of ops that have the components as inputs or outputs.
const OF_VALUES: &[&str] = &[
    "capacity: int >= 0 = 0",
    "memory_limit: int >= 0 = 0",
    "dtypes: list(type) >= 1",
    "container: string = ''",
    "shared_name: string = ''",
];

/// The attributes of ops that have no components as inputs or outputs.
const OF_AREA: &[&str] = &[
    "capacity: int >= 0 = 0",
    "memory_limit: int >= 0 = 0",
    "dtypes: list(type)",
    "container: string = ''",
    "shared_name: string = ''",
];

/// The attributes of ops that put some of the components into an area.
const OF_SOME_VALUES: &[&str] = &[
    "capacity: int >= 0 = 0",
    "memory_limit: int >= 0 = 0",
    "dtypes: list(type)",
    "fake_dtypes: list(type) >= 1",
    "container: string = ''",
    "shared_name: string = ''",
];

register_op!(
    "Stage",
    inputs = &["values: dtypes"],
    attrs = OF_VALUES,
    stateful = true,
    shape = nothing_known,
    summary = "Puts an element into a staging area, once there is room.",
);

register_op!(
    "Unstage",
    outputs = &["values: dtypes"],
    attrs = OF_VALUES,
    stateful = true,
    shape = nothing_known,
    summary = "Takes the first element of a staging area, once there is one.",
);

register_op!(
    "StagePeek",
    inputs = &["index: int32"],
    outputs = &["values: dtypes"],
    attrs = OF_VALUES,
    stateful = true,
    shape = nothing_known,
    summary = "The element at a place of a staging area, once it is there.",
);

register_op!(
    "StageSize",
    outputs = &["size: int32"],
    attrs = OF_AREA,
    stateful = true,
    shape = scalar_output,
    summary = "The number of elements of a staging area.",
);

register_op!(
    "StageClear",
    attrs = OF_AREA,
    stateful = true,
    shape = nothing_known,
    summary = "Empties a staging area.",
);

register_op!(
    "MapStage",
    inputs = &["key: int64", "indices: int32", "values: fake_dtypes"],
    attrs = OF_SOME_VALUES,
    stateful = true,
    shape = nothing_known,
    summary = "Puts components of an element under a key, once there is room.",
);

register_op!(
    "MapUnstage",
    inputs = &["key: int64", "indices: int32"],
    outputs = &["values: dtypes"],
    attrs = OF_VALUES,
    stateful = true,
    shape = nothing_known,
    summary = "Takes components of the element under a key, once it is complete.",
);

register_op!(
    "MapUnstageNoKey",
    inputs = &["indices: int32"],
    outputs = &["key: int64", "values: dtypes"],
    attrs = OF_VALUES,
    stateful = true,
    shape = nothing_known,
    summary = "Takes components of any complete element, with its key, once there is one.",
);

register_op!(
    "MapPeek",
    inputs = &["key: int64", "indices: int32"],
    outputs = &["values: dtypes"],
    attrs = OF_VALUES,
    stateful = true,
    shape = nothing_known,
    summary = "Components of the element under a key, once it is complete.",
);

register_op!(
    "MapSize",
    outputs = &["size: int32"],
    attrs = OF_AREA,
    stateful = true,
    shape = scalar_output,
    summary = "The number of complete elements.",
);

register_op!(
    "MapIncompleteSize",
    outputs = &["size: int32"],
    attrs = OF_AREA,
    stateful = true,
    shape = scalar_output,
    summary = "The number of keys that lack components.",
);

register_op!(
    "MapClear",
    attrs = OF_AREA,
    stateful = true,
    shape = nothing_known,
    summary = "Empties a staging area with keys.",
);

register_op!(
    "OrderedMapStage",
    inputs = &["key: int64", "indices: int32", "values: fake_dtypes"],
    attrs = OF_SOME_VALUES,
    stateful = true,
    shape = nothing_known,
    summary = "Puts components of an element under a key, once there is room.",
);

register_op!(
    "OrderedMapUnstage",
    inputs = &["key: int64", "indices: int32"],
    outputs = &["values: dtypes"],
    attrs = OF_VALUES,
    stateful = true,
    shape = nothing_known,
    summary = "Takes components of the element under a key, once it is complete.",
);

register_op!(
    "OrderedMapUnstageNoKey",
    inputs = &["indices: int32"],
    outputs = &["key: int64", "values: dtypes"],
    attrs = OF_VALUES,
    stateful = true,
    shape = nothing_known,
    summary = "Takes components of the first complete element, with its key, once there is one.",
);

register_op!(
    "OrderedMapPeek",
    inputs = &["key: int64", "indices: int32"],
    outputs = &["values: dtypes"],
    attrs = OF_VALUES,
    stateful = true,
    shape = nothing_known,
    summary = "Components of the element under a key, once it is complete.",
);

register_op!(
    "OrderedMapSize",
    outputs = &["size: int32"],
    attrs = OF_AREA,
    stateful = true,
    shape = scalar_output,
    summary = "The number of complete elements.",
);

register_op!(
    "OrderedMapIncompleteSize",
    outputs = &["size: int32"],
    attrs = OF_AREA,
    stateful = true,
    shape = scalar_output,
    summary = "The number of keys that lack components.",
);

register_op!(
    "OrderedMapClear",
    attrs = OF_AREA,
    stateful = true,
    shape = nothing_known,
    summary = "Empties a staging area with keys.",
);
