//! Datasets whose elements a function of the graph's library makes.

use crate::shape::scalar_output;
use tenon_author::register_op;

/// The attributes of a dataset whose elements a function makes.
const OF_FUNCTION: &[&str] = &[
    "f: func",
    "Targuments: list(type) >= 0",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "metadata: string = ''",
];

/// The attributes of a dataset whose elements several calls of a function make at the same time.
const OF_PARALLEL_FUNCTION: &[&str] = &[
    "f: func",
    "deterministic: string = 'default'",
    "Targuments: list(type) >= 0",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "metadata: string = ''",
];

register_op!(
    "MapDataset",
    inputs = &["input_dataset: variant", "other_arguments: Targuments"],
    outputs = &["handle: variant"],
    attrs = &[
        "f: func",
        "Targuments: list(type) >= 0",
        "output_types: list(type) >= 1",
        "output_shapes: list(shape) >= 1",
        "use_inter_op_parallelism: bool = true",
        "preserve_cardinality: bool = false",
        "force_synchronous: bool = false",
        "metadata: string = ''"
    ],
    shape = scalar_output,
    summary = "A dataset of the results of a function for the elements of another.",
);

register_op!(
    "ParallelMapDataset",
    inputs =
        &["input_dataset: variant", "other_arguments: Targuments", "num_parallel_calls: int32"],
    outputs = &["handle: variant"],
    attrs = &[
        "f: func",
        "Targuments: list(type) >= 0",
        "output_types: list(type) >= 1",
        "output_shapes: list(shape) >= 1",
        "use_inter_op_parallelism: bool = true",
        "sloppy: bool = false",
        "preserve_cardinality: bool = false",
        "metadata: string = ''"
    ],
    shape = scalar_output,
    summary = "A dataset of the results of a function for the elements of another, several of which are computed at the same time.",
);

register_op!(
    "ParallelMapDatasetV2",
    inputs =
        &["input_dataset: variant", "other_arguments: Targuments", "num_parallel_calls: int64"],
    outputs = &["handle: variant"],
    attrs = &[
        "f: func",
        "Targuments: list(type) >= 0",
        "output_types: list(type) >= 1",
        "output_shapes: list(shape) >= 1",
        "use_inter_op_parallelism: bool = true",
        "deterministic: string = 'default'",
        "preserve_cardinality: bool = false",
        "use_unbounded_threadpool: bool = false",
        "metadata: string = ''"
    ],
    shape = scalar_output,
    summary = "A dataset of the results of a function for the elements of another, several of which are computed at the same time.",
);

register_op!(
    "FilterDataset",
    inputs = &["input_dataset: variant", "other_arguments: Targuments"],
    outputs = &["handle: variant"],
    attrs = &[
        "predicate: func",
        "Targuments: list(type) >= 0",
        "output_types: list(type) >= 1",
        "output_shapes: list(shape) >= 1",
        "metadata: string = ''"
    ],
    shape = scalar_output,
    summary = "A dataset of the elements of another for which a function gives true.",
);

register_op!(
    "FlatMapDataset",
    inputs = &["input_dataset: variant", "other_arguments: Targuments"],
    outputs = &["handle: variant"],
    attrs = OF_FUNCTION,
    shape = scalar_output,
    summary = "A dataset of the elements of the datasets that a function makes of the elements of another.",
);

register_op!(
    "InterleaveDataset",
    inputs = &[
        "input_dataset: variant",
        "other_arguments: Targuments",
        "cycle_length: int64",
        "block_length: int64"
    ],
    outputs = &["handle: variant"],
    attrs = OF_FUNCTION,
    shape = scalar_output,
    summary = "A dataset that takes turns between the datasets that a function makes of the elements of another.",
);

register_op!(
    "ParallelInterleaveDatasetV2",
    inputs = &[
        "input_dataset: variant",
        "other_arguments: Targuments",
        "cycle_length: int64",
        "block_length: int64",
        "num_parallel_calls: int64"
    ],
    outputs = &["handle: variant"],
    attrs = &[
        "f: func",
        "Targuments: list(type) >= 0",
        "output_types: list(type) >= 1",
        "output_shapes: list(shape) >= 1",
        "sloppy: bool = false",
        "metadata: string = ''"
    ],
    shape = scalar_output,
    summary = "A dataset that takes turns between the datasets that a function makes of the elements of another, several of which are read at the same time.",
);

register_op!(
    "ParallelInterleaveDatasetV3",
    inputs = &[
        "input_dataset: variant",
        "other_arguments: Targuments",
        "cycle_length: int64",
        "block_length: int64",
        "num_parallel_calls: int64"
    ],
    outputs = &["handle: variant"],
    attrs = OF_PARALLEL_FUNCTION,
    shape = scalar_output,
    summary = "A dataset that takes turns between the datasets that a function makes of the elements of another, several of which are read at the same time.",
);

register_op!(
    "ParallelInterleaveDatasetV4",
    inputs = &[
        "input_dataset: variant",
        "other_arguments: Targuments",
        "cycle_length: int64",
        "block_length: int64",
        "buffer_output_elements: int64",
        "prefetch_input_elements: int64",
        "num_parallel_calls: int64"
    ],
    outputs = &["handle: variant"],
    attrs = OF_PARALLEL_FUNCTION,
    shape = scalar_output,
    summary = "A dataset that takes turns between the datasets that a function makes of the elements of another, several of which are read at the same time.",
);

register_op!(
    "LegacyParallelInterleaveDatasetV2",
    inputs = &[
        "input_dataset: variant",
        "other_arguments: Targuments",
        "cycle_length: int64",
        "block_length: int64",
        "buffer_output_elements: int64",
        "prefetch_input_elements: int64"
    ],
    outputs = &["handle: variant"],
    attrs = OF_PARALLEL_FUNCTION,
    shape = scalar_output,
    summary = "A dataset that takes turns between the datasets that a function makes of the elements of another, all of which are read at the same time.",
);

register_op!(
    "MapAndBatchDataset",
    inputs = &[
        "input_dataset: variant",
        "other_arguments: Targuments",
        "batch_size: int64",
        "num_parallel_calls: int64",
        "drop_remainder: bool"
    ],
    outputs = &["handle: variant"],
    attrs = &[
        "f: func",
        "Targuments: list(type) >= 0",
        "output_types: list(type) >= 1",
        "output_shapes: list(shape) >= 1",
        "preserve_cardinality: bool = false",
        "metadata: string = ''"
    ],
    shape = scalar_output,
    summary = "A dataset of batches of the results of a function for the elements of another.",
);
