//! Queues: elements of several components wait between steps.
//!
//! A queue is reached by a handle, or in older graphs by a reference to its container and name. The
//! kernels are plugins/data/src/queue.

use crate::shape::{nothing_known, scalar_output, unchanged};
use tenon_author::{Dim, ShapeContext, ShapeHandle, ShapeResult, register_op};
use tenon_framework::{KernelError, op::GradientRule};

/// The attributes of queues in the order of arrival.
const OF_ARRIVAL: &[&str] = &[
    "component_types: list(type) >= 1",
    "shapes: list(shape) >= 0 = []",
    "capacity: int = -1",
    "container: string = ''",
    "shared_name: string = ''",
];

/// The attributes of a queue in random order.
const OF_RANDOM_ORDER: &[&str] = &[
    "component_types: list(type) >= 1",
    "shapes: list(shape) >= 0 = []",
    "capacity: int = -1",
    "min_after_dequeue: int = 0",
    "seed: int = 0",
    "seed2: int = 0",
    "container: string = ''",
    "shared_name: string = ''",
];

/// The attributes of a queue by priority.
const OF_PRIORITIES: &[&str] = &[
    "component_types: list(type) >= 0 = []",
    "shapes: list(shape) >= 0",
    "capacity: int = -1",
    "container: string = ''",
    "shared_name: string = ''",
];

register_op!(
    "FIFOQueueV2",
    outputs = &["handle: resource"],
    attrs = OF_ARRIVAL,
    stateful = true,
    shape = scalar_output,
    summary = "A queue that gives its elements in the order in which they came.",
);

register_op!(
    "FIFOQueue",
    outputs = &["handle: Ref(string)"],
    attrs = OF_ARRIVAL,
    stateful = true,
    shape = reference,
    summary = "A queue that gives its elements in the order in which they came.",
);

register_op!(
    "PaddingFIFOQueueV2",
    outputs = &["handle: resource"],
    attrs = OF_ARRIVAL,
    stateful = true,
    shape = scalar_output,
    summary = "A queue in the order of arrival, whose batches are padded to their largest element.",
);

register_op!(
    "PaddingFIFOQueue",
    outputs = &["handle: Ref(string)"],
    attrs = OF_ARRIVAL,
    stateful = true,
    shape = reference,
    summary = "A queue in the order of arrival, whose batches are padded to their largest element.",
);

register_op!(
    "RandomShuffleQueueV2",
    outputs = &["handle: resource"],
    attrs = OF_RANDOM_ORDER,
    stateful = true,
    shape = scalar_output,
    summary = "A queue that gives its elements in random order.",
);

register_op!(
    "RandomShuffleQueue",
    outputs = &["handle: Ref(string)"],
    attrs = OF_RANDOM_ORDER,
    stateful = true,
    shape = reference,
    summary = "A queue that gives its elements in random order.",
);

register_op!(
    "PriorityQueueV2",
    outputs = &["handle: resource"],
    attrs = OF_PRIORITIES,
    stateful = true,
    shape = scalar_output,
    summary = "A queue that gives the element with the least first component.",
);

register_op!(
    "PriorityQueue",
    outputs = &["handle: Ref(string)"],
    attrs = OF_PRIORITIES,
    stateful = true,
    shape = reference,
    summary = "A queue that gives the element with the least first component.",
);

register_op!(
    "FakeQueue",
    inputs = &["resource: resource"],
    outputs = &["handle: Ref(string)"],
    stateful = true,
    shape = reference,
    summary = "The reference form of the handle of a queue.",
);

register_op!(
    "QueueEnqueueV2",
    inputs = &["handle: resource", "components: Tcomponents"],
    attrs = &["Tcomponents: list(type) >= 1", "timeout_ms: int = -1"],
    stateful = true,
    shape = nothing_known,
    summary = "Adds an element to a queue, once there is room.",
);

register_op!(
    "QueueEnqueue",
    inputs = &["handle: Ref(string)", "components: Tcomponents"],
    attrs = &["Tcomponents: list(type) >= 1", "timeout_ms: int = -1"],
    shape = nothing_known,
    gradient = GradientRule::None,
    summary = "Adds an element to a queue, once there is room.",
);

register_op!(
    "QueueEnqueueManyV2",
    inputs = &["handle: resource", "components: Tcomponents"],
    attrs = &["Tcomponents: list(type) >= 1", "timeout_ms: int = -1"],
    stateful = true,
    shape = nothing_known,
    summary = "Adds the rows of tensors to a queue, each once there is room.",
);

register_op!(
    "QueueEnqueueMany",
    inputs = &["handle: Ref(string)", "components: Tcomponents"],
    attrs = &["Tcomponents: list(type) >= 1", "timeout_ms: int = -1"],
    shape = nothing_known,
    gradient = GradientRule::None,
    summary = "Adds the rows of tensors to a queue, each once there is room.",
);

register_op!(
    "QueueDequeueV2",
    inputs = &["handle: resource"],
    outputs = &["components: component_types"],
    attrs = &["component_types: list(type) >= 1", "timeout_ms: int = -1"],
    stateful = true,
    shape = behind_handle,
    summary = "Takes an element from a queue, once there is one.",
);

register_op!(
    "QueueDequeue",
    inputs = &["handle: Ref(string)"],
    outputs = &["components: component_types"],
    attrs = &["component_types: list(type) >= 1", "timeout_ms: int = -1"],
    shape = nothing_known,
    gradient = GradientRule::None,
    summary = "Takes an element from a queue, once there is one.",
);

register_op!(
    "QueueDequeueManyV2",
    inputs = &["handle: resource", "n: int32"],
    outputs = &["components: component_types"],
    attrs = &["component_types: list(type) >= 1", "timeout_ms: int = -1"],
    stateful = true,
    shape = a_batch,
    summary = "Takes n elements from a queue, once they are there, as a batch.",
);

register_op!(
    "QueueDequeueMany",
    inputs = &["handle: Ref(string)", "n: int32"],
    outputs = &["components: component_types"],
    attrs = &["component_types: list(type) >= 1", "timeout_ms: int = -1"],
    shape = nothing_known,
    gradient = GradientRule::None,
    summary = "Takes n elements from a queue, once they are there, as a batch.",
);

register_op!(
    "QueueDequeueUpToV2",
    inputs = &["handle: resource", "n: int32"],
    outputs = &["components: component_types"],
    attrs = &["component_types: list(type) >= 1", "timeout_ms: int = -1"],
    stateful = true,
    shape = up_to_a_batch,
    summary = "Takes n elements from a queue as a batch, or fewer when it is closed.",
);

register_op!(
    "QueueDequeueUpTo",
    inputs = &["handle: Ref(string)", "n: int32"],
    outputs = &["components: component_types"],
    attrs = &["component_types: list(type) >= 1", "timeout_ms: int = -1"],
    shape = nothing_known,
    gradient = GradientRule::None,
    summary = "Takes n elements from a queue as a batch, or fewer when it is closed.",
);

register_op!(
    "QueueCloseV2",
    inputs = &["handle: resource"],
    attrs = &["cancel_pending_enqueues: bool = false"],
    stateful = true,
    shape = nothing_known,
    summary = "Closes a queue to further elements.",
);

register_op!(
    "QueueClose",
    inputs = &["handle: Ref(string)"],
    attrs = &["cancel_pending_enqueues: bool = false"],
    shape = behind_references,
    gradient = GradientRule::None,
    summary = "Closes a queue to further elements.",
);

register_op!(
    "QueueIsClosedV2",
    inputs = &["handle: resource"],
    outputs = &["is_closed: bool"],
    stateful = true,
    shape = scalar_output,
    summary = "Whether a queue is closed.",
);

register_op!(
    "QueueIsClosed",
    inputs = &["handle: Ref(string)"],
    outputs = &["is_closed: bool"],
    shape = scalar_output,
    summary = "Whether a queue is closed.",
);

register_op!(
    "QueueSizeV2",
    inputs = &["handle: resource"],
    outputs = &["size: int32"],
    stateful = true,
    shape = unchanged,
    summary = "The number of elements of a queue.",
);

register_op!(
    "QueueSize",
    inputs = &["handle: Ref(string)"],
    outputs = &["size: int32"],
    shape = behind_references,
    gradient = GradientRule::None,
    summary = "The number of elements of a queue.",
);

/// The output is a reference to container and name.
pub(super) fn reference(c: &ShapeContext<'_>) -> ShapeResult {
    c.set_output(0, c.shape_of(&[2]))
}

/// The inputs are references to containers and names, the outputs scalars.
pub(super) fn behind_references(c: &ShapeContext<'_>) -> ShapeResult {
    (0..c.input_count()).try_for_each(|input| pair(c, input))?;
    (0..c.output_count()).try_for_each(|output| c.set_output(output, c.scalar()))
}

/// The input has two elements, as far as it is known.
pub(super) fn pair(c: &ShapeContext<'_>, input: usize) -> ShapeResult {
    c.merge(c.input(input), c.shape_of(&[2])).map(drop)
}

/// The components have the shapes behind the handle, where it has as many parts.
fn behind_handle(c: &ShapeContext<'_>) -> ShapeResult {
    with_rows(c, None)
}

fn a_batch(c: &ShapeContext<'_>) -> ShapeResult {
    match c.constant_integers(1).as_deref() {
        Some(&[n]) if n < 0 => Err(KernelError::invalid_argument(format!(
            "n: expected the number of elements of a batch, found {n}"
        ))),
        Some(&[n]) => with_rows(c, Some(c.make_dim(Some(n)))),
        _ => with_rows(c, Some(c.make_dim(None))),
    }
}

fn up_to_a_batch(c: &ShapeContext<'_>) -> ShapeResult {
    with_rows(c, Some(c.make_dim(None)))
}

/// The components, in batches of this many rows.
fn with_rows(c: &ShapeContext<'_>, rows: Option<Dim>) -> ShapeResult {
    let parts = c.input_handle(0);
    if parts.len() != c.output_count() {
        return Ok(());
    }
    for (output, (_, shape)) in parts.into_iter().enumerate() {
        c.set_output(output, batch(c, rows, shape))?;
    }
    Ok(())
}

fn batch(c: &ShapeContext<'_>, rows: Option<Dim>, shape: ShapeHandle) -> ShapeHandle {
    let (Some(rows), Some(rank)) = (rows, c.rank(shape)) else {
        return if rows.is_some() { c.unknown() } else { shape };
    };
    let dims: Vec<Dim> =
        std::iter::once(rows).chain((0..rank).map(|at| c.dim(shape, at))).collect();
    c.make_shape(&dims)
}

#[cfg(test)]
mod tests {
    use crate::testing::{check, infer};
    use tenon_framework::{
        DType,
        attr::{AttrList, AttrValue},
    };

    #[test]
    fn a_reference_has_two_elements() {
        check("QueueSize", &[], &[(&["[2]"], "[]"), (&["?"], "[]")]);
        let wrong = infer("QueueClose", &[], &["[3]"]);
        assert!(wrong.starts_with("! "), "{wrong}");
    }

    #[test]
    fn a_batch_has_a_number_of_rows() {
        let types = AttrValue::List(AttrList::Type(vec![DType::FLOAT]));
        let negative = "! n: expected the number of elements of a batch, found -1";
        check(
            "QueueDequeueManyV2",
            &[("component_types", types)],
            &[(&["[]", "= -1"], negative), (&["[]", "= 3"], "?"), (&["[]", "[]"], "?")],
        );
    }
}
