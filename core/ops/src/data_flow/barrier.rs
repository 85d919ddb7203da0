//! Barriers: elements whose components come one by one, under keys.
//!
//! The kernels are plugins/data/src/barrier.

use super::queue::{behind_references, pair, reference};
use crate::shape::{input_of_rank, input_of_rank_at_least, nothing_known, same_size};
use tenon_author::{ShapeContext, ShapeResult, register_op};

register_op!(
    "Barrier",
    outputs = &["handle: Ref(string)"],
    attrs = &[
        "component_types: list(type) >= 1",
        "shapes: list(shape) >= 0 = []",
        "capacity: int = -1",
        "container: string = ''",
        "shared_name: string = ''",
    ],
    stateful = true,
    shape = reference,
    summary = "Gathers the components of elements by their keys.",
);

register_op!(
    "BarrierInsertMany",
    inputs = &["handle: Ref(string)", "keys: string", "values: T"],
    attrs = &["T: type", "component_index: int"],
    shape = insert_many,
    summary = "Gives a component to each of several keys.",
);

register_op!(
    "BarrierTakeMany",
    inputs = &["handle: Ref(string)", "num_elements: int32"],
    outputs = &["indices: int64", "keys: string", "values: component_types"],
    attrs = &[
        "component_types: list(type) >= 1",
        "allow_small_batch: bool = false",
        "wait_for_incomplete: bool = false",
        "timeout_ms: int = -1",
    ],
    shape = nothing_known,
    summary = "Takes complete elements, in the order in which their keys came.",
);

register_op!(
    "BarrierClose",
    inputs = &["handle: Ref(string)"],
    attrs = &["cancel_pending_enqueues: bool = false"],
    shape = behind_references,
    summary = "Closes a barrier to new keys.",
);

register_op!(
    "BarrierReadySize",
    inputs = &["handle: Ref(string)"],
    outputs = &["size: int32"],
    shape = behind_references,
    summary = "The number of complete elements.",
);

register_op!(
    "BarrierIncompleteSize",
    inputs = &["handle: Ref(string)"],
    outputs = &["size: int32"],
    shape = behind_references,
    summary = "The number of keys that lack components.",
);

/// One row of values for each key.
fn insert_many(c: &ShapeContext<'_>) -> ShapeResult {
    pair(c, 0)?;
    let keys = input_of_rank(c, 1, "keys", 1)?;
    let values = input_of_rank_at_least(c, 2, "values", 1)?;
    same_size(c, "values", c.dim(keys, 0), c.dim(values, 0)).map(drop)
}

#[cfg(test)]
mod tests {
    use crate::testing::{check, infer};

    #[test]
    fn there_is_a_value_for_each_key() {
        check(
            "BarrierInsertMany",
            &[],
            &[(&["[2]", "[3]", "[3,4]"], ""), (&["?", "?", "?"], ""), (&["[2]", "[3]", "[n]"], "")],
        );
        for wrong in [["[2]", "[3]", "[2]"], ["[2]", "[]", "[1]"], ["[2]", "[1]", "[]"]] {
            assert!(infer("BarrierInsertMany", &[], &wrong).starts_with("! "), "{wrong:?}");
        }
    }
}
