//! Datasets in random order, and what iterators of them share: generators of seeds, and caches.

use super::{dataset, handle_and_deleter};
use crate::shape::{nothing_known, scalar_output};
use tenon_author::{ShapeContext, register_op};

/// The attributes of a dataset that says the types and shapes of its elements.
const OF_ELEMENTS: &[&str] =
    &["output_types: list(type) >= 1", "output_shapes: list(shape) >= 1", "metadata: string = ''"];

/// The attributes of a dataset in random order.
const OF_SHUFFLE: &[&str] = &[
    "reshuffle_each_iteration: bool = true",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "metadata: string = ''",
];

register_op!(
    "ShuffleDataset",
    inputs = &["input_dataset: variant", "buffer_size: int64", "seed: int64", "seed2: int64"],
    outputs = &["handle: variant"],
    attrs = OF_SHUFFLE,
    shape = |c: &ShapeContext<'_>| dataset(c, &["input_dataset", "buffer_size", "seed", "seed2"]),
    summary = "A dataset of the elements of another in random order.",
);

register_op!(
    "ShuffleDatasetV2",
    inputs = &["input_dataset: variant", "buffer_size: int64", "seed_generator: resource"],
    outputs = &["handle: variant"],
    attrs = OF_ELEMENTS,
    stateful = true,
    shape = |c: &ShapeContext<'_>| dataset(c, &["input_dataset", "buffer_size", "seed_generator"]),
    summary = "A dataset of the elements of another in random order, by the seeds of a generator.",
);

register_op!(
    "ShuffleDatasetV3",
    inputs = &[
        "input_dataset: variant",
        "buffer_size: int64",
        "seed: int64",
        "seed2: int64",
        "seed_generator: resource"
    ],
    outputs = &["handle: variant"],
    attrs = OF_SHUFFLE,
    stateful = true,
    shape = |c: &ShapeContext<'_>| dataset(
        c,
        &["input_dataset", "buffer_size", "seed", "seed2", "seed_generator"]
    ),
    summary = "A dataset of the elements of another in random order, by the seeds of a generator or its own.",
);

register_op!(
    "ShuffleAndRepeatDataset",
    inputs = &[
        "input_dataset: variant",
        "buffer_size: int64",
        "seed: int64",
        "seed2: int64",
        "count: int64"
    ],
    outputs = &["handle: variant"],
    attrs = &[
        "output_types: list(type) >= 1",
        "output_shapes: list(shape) >= 1",
        "reshuffle_each_iteration: bool = true",
        "metadata: string = ''"
    ],
    shape = |c: &ShapeContext<'_>| dataset(
        c,
        &["input_dataset", "buffer_size", "seed", "seed2", "count"]
    ),
    summary = "A dataset of the elements of another several times, in random order.",
);

register_op!(
    "ShuffleAndRepeatDatasetV2",
    inputs = &[
        "input_dataset: variant",
        "buffer_size: int64",
        "seed: int64",
        "seed2: int64",
        "count: int64",
        "seed_generator: resource"
    ],
    outputs = &["handle: variant"],
    attrs = OF_SHUFFLE,
    stateful = true,
    shape = |c: &ShapeContext<'_>| dataset(
        c,
        &["input_dataset", "buffer_size", "seed", "seed2", "count", "seed_generator"]
    ),
    summary = "A dataset of the elements of another several times, in random order, by the seeds of a generator or its own.",
);

register_op!(
    "AnonymousSeedGenerator",
    inputs = &["seed: int64", "seed2: int64", "reshuffle: bool"],
    outputs = &["handle: resource", "deleter: variant"],
    stateful = true,
    shape = handle_and_deleter,
    summary = "A generator of seeds, and what deletes it.",
);

register_op!(
    "AnonymousRandomSeedGenerator",
    inputs = &["seed: int64", "seed2: int64"],
    outputs = &["handle: resource", "deleter: variant"],
    stateful = true,
    shape = handle_and_deleter,
    summary = "A generator of seeds that differ each time, and what deletes it.",
);

register_op!(
    "DeleteSeedGenerator",
    inputs = &["handle: resource", "deleter: variant"],
    stateful = true,
    shape = nothing_known,
    summary = "Deletes a generator of seeds.",
);

register_op!(
    "DeleteRandomSeedGenerator",
    inputs = &["handle: resource", "deleter: variant"],
    stateful = true,
    shape = nothing_known,
    summary = "Deletes a generator of seeds.",
);

register_op!(
    "DummySeedGenerator",
    outputs = &["handle: resource"],
    stateful = true,
    shape = scalar_output,
    summary = "A handle of no generator.",
);

register_op!(
    "AnonymousMemoryCache",
    outputs = &["handle: resource", "deleter: variant"],
    stateful = true,
    shape = handle_and_deleter,
    summary = "A cache of elements in memory, and what deletes it.",
);

register_op!(
    "DeleteMemoryCache",
    inputs = &["handle: resource", "deleter: variant"],
    stateful = true,
    shape = nothing_known,
    summary = "Deletes a cache of elements.",
);

register_op!(
    "DummyMemoryCache",
    outputs = &["handle: resource"],
    stateful = true,
    shape = scalar_output,
    summary = "A handle of no cache.",
);

register_op!(
    "DummyIterationCounter",
    outputs = &["handle: resource"],
    stateful = true,
    shape = scalar_output,
    summary = "A handle of no counter of iterations.",
);
