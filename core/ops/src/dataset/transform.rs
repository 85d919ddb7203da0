//! Datasets of the elements of other datasets, as they are or in batches.

use super::dataset;
use crate::shape::scalar_output;
use tenon_author::{ShapeContext, register_op};

/// The attributes of a dataset that says the types and shapes of its elements.
const OF_ELEMENTS: &[&str] =
    &["output_types: list(type) >= 1", "output_shapes: list(shape) >= 1", "metadata: string = ''"];

register_op!(
    "BatchDataset",
    inputs = &["input_dataset: variant", "batch_size: int64"],
    outputs = &["handle: variant"],
    attrs = OF_ELEMENTS,
    shape = |c: &ShapeContext<'_>| dataset(c, &["input_dataset", "batch_size"]),
    summary = "A dataset whose elements are batches of elements of another.",
);

register_op!(
    "BatchDatasetV2",
    inputs = &["input_dataset: variant", "batch_size: int64", "drop_remainder: bool"],
    outputs = &["handle: variant"],
    attrs = &[
        "parallel_copy: bool = false",
        "output_types: list(type) >= 1",
        "output_shapes: list(shape) >= 1",
        "metadata: string = ''"
    ],
    shape = |c: &ShapeContext<'_>| dataset(c, &["input_dataset", "batch_size", "drop_remainder"]),
    summary = "A dataset whose elements are batches of elements of another; the last one may be smaller or dropped.",
);

register_op!(
    "PaddedBatchDataset",
    inputs = &[
        "input_dataset: variant",
        "batch_size: int64",
        "padded_shapes: N * int64",
        "padding_values: Toutput_types"
    ],
    outputs = &["handle: variant"],
    attrs = &[
        "Toutput_types: list(type) >= 1",
        "output_shapes: list(shape) >= 1",
        "N: int >= 1",
        "metadata: string = ''"
    ],
    shape = |c: &ShapeContext<'_>| dataset(c, &["input_dataset", "batch_size"]),
    summary = "A dataset whose elements are batches of elements of another, padded to one shape.",
);

register_op!(
    "PaddedBatchDatasetV2",
    inputs = &[
        "input_dataset: variant",
        "batch_size: int64",
        "padded_shapes: N * int64",
        "padding_values: Toutput_types",
        "drop_remainder: bool"
    ],
    outputs = &["handle: variant"],
    attrs = &[
        "parallel_copy: bool = false",
        "Toutput_types: list(type) >= 1",
        "output_shapes: list(shape) >= 1",
        "N: int >= 1",
        "metadata: string = ''"
    ],
    shape = |c: &ShapeContext<'_>| dataset(c, &["input_dataset", "batch_size"]),
    summary = "A dataset whose elements are batches of elements of another, padded to one shape; the last one may be smaller or dropped.",
);

register_op!(
    "RepeatDataset",
    inputs = &["input_dataset: variant", "count: int64"],
    outputs = &["handle: variant"],
    attrs = OF_ELEMENTS,
    shape = |c: &ShapeContext<'_>| dataset(c, &["input_dataset", "count"]),
    summary = "A dataset of the elements of another, several times.",
);

register_op!(
    "TakeDataset",
    inputs = &["input_dataset: variant", "count: int64"],
    outputs = &["handle: variant"],
    attrs = OF_ELEMENTS,
    shape = |c: &ShapeContext<'_>| dataset(c, &["input_dataset", "count"]),
    summary = "A dataset of the first elements of another.",
);

register_op!(
    "SkipDataset",
    inputs = &["input_dataset: variant", "count: int64"],
    outputs = &["handle: variant"],
    attrs = OF_ELEMENTS,
    shape = |c: &ShapeContext<'_>| dataset(c, &["input_dataset", "count"]),
    summary = "A dataset of the elements of another without the first ones.",
);

register_op!(
    "ShardDataset",
    inputs = &["input_dataset: variant", "num_shards: int64", "index: int64"],
    outputs = &["handle: variant"],
    attrs = &[
        "require_non_empty: bool = false",
        "output_types: list(type) >= 1",
        "output_shapes: list(shape) >= 1",
        "metadata: string = ''"
    ],
    shape = |c: &ShapeContext<'_>| dataset(c, &["input_dataset", "num_shards", "index"]),
    summary = "A dataset of every n-th element of another.",
);

register_op!(
    "ConcatenateDataset",
    inputs = &["input_dataset: variant", "another_dataset: variant"],
    outputs = &["handle: variant"],
    attrs = OF_ELEMENTS,
    shape = |c: &ShapeContext<'_>| dataset(c, &["input_dataset", "another_dataset"]),
    summary = "A dataset of the elements of one dataset and then of another.",
);

register_op!(
    "ZipDataset",
    inputs = &["input_datasets: N * variant"],
    outputs = &["handle: variant"],
    attrs = &[
        "output_types: list(type) >= 1",
        "output_shapes: list(shape) >= 1",
        "N: int >= 1",
        "metadata: string = ''"
    ],
    shape = scalar_output,
    summary = "A dataset whose elements have the components of an element of each of several.",
);

register_op!(
    "WindowDataset",
    inputs = &[
        "input_dataset: variant",
        "size: int64",
        "shift: int64",
        "stride: int64",
        "drop_remainder: bool"
    ],
    outputs = &["handle: variant"],
    attrs = OF_ELEMENTS,
    shape = |c: &ShapeContext<'_>| {
        dataset(c, &["input_dataset", "size", "shift", "stride", "drop_remainder"])
    },
    summary = "A dataset whose elements are windows of another: datasets of some of its elements.",
);

register_op!(
    "CacheDataset",
    inputs = &["input_dataset: variant", "filename: string"],
    outputs = &["handle: variant"],
    attrs = OF_ELEMENTS,
    shape = |c: &ShapeContext<'_>| dataset(c, &["input_dataset", "filename"]),
    summary = "A dataset of the elements of another, which are made once.",
);

register_op!(
    "CacheDatasetV2",
    inputs = &["input_dataset: variant", "filename: string", "cache: resource"],
    outputs = &["handle: variant"],
    attrs = OF_ELEMENTS,
    stateful = true,
    shape = |c: &ShapeContext<'_>| dataset(c, &["input_dataset", "filename", "cache"]),
    summary = "A dataset of the elements of another, which are made once and kept in a cache.",
);

register_op!(
    "PrefetchDataset",
    inputs = &["input_dataset: variant", "buffer_size: int64"],
    outputs = &["handle: variant"],
    attrs = &[
        "output_types: list(type) >= 1",
        "output_shapes: list(shape) >= 1",
        "slack_period: int = 0",
        "legacy_autotune: bool = true",
        "buffer_size_min: int = 0",
        "metadata: string = ''"
    ],
    shape = |c: &ShapeContext<'_>| dataset(c, &["input_dataset", "buffer_size"]),
    summary = "A dataset of the elements of another, which are made before they are asked for.",
);

register_op!(
    "OptionsDataset",
    inputs = &["input_dataset: variant"],
    outputs = &["handle: variant"],
    attrs = &[
        "serialized_options: string",
        "output_types: list(type) >= 1",
        "output_shapes: list(shape) >= 1",
        "metadata: string = ''"
    ],
    shape = |c: &ShapeContext<'_>| dataset(c, &["input_dataset"]),
    summary = "A dataset of the elements of another, with options of how they are made.",
);

register_op!(
    "ModelDataset",
    inputs = &["input_dataset: variant"],
    outputs = &["handle: variant"],
    attrs = &[
        "algorithm: int = 0",
        "cpu_budget: int = 0",
        "ram_budget: int = 0",
        "output_types: list(type) >= 1",
        "output_shapes: list(shape) >= 1"
    ],
    shape = |c: &ShapeContext<'_>| dataset(c, &["input_dataset"]),
    summary = "A dataset of the elements of another, whose settings are tuned.",
);

register_op!(
    "OptimizeDataset",
    inputs = &["input_dataset: variant", "optimizations: string"],
    outputs = &["handle: variant"],
    attrs = &[
        "output_types: list(type) >= 1",
        "output_shapes: list(shape) >= 1",
        "optimization_configs: list(string) = []"
    ],
    shape = |c: &ShapeContext<'_>| dataset(c, &["input_dataset"]),
    summary = "A dataset of the elements of another, whose graph is optimised.",
);

register_op!(
    "OptimizeDatasetV2",
    inputs = &[
        "input_dataset: variant",
        "optimizations_enabled: string",
        "optimizations_disabled: string",
        "optimizations_default: string"
    ],
    outputs = &["handle: variant"],
    attrs = &[
        "output_types: list(type) >= 1",
        "output_shapes: list(shape) >= 1",
        "optimization_configs: list(string) = []"
    ],
    shape = |c: &ShapeContext<'_>| dataset(c, &["input_dataset"]),
    summary = "A dataset of the elements of another, whose graph is optimised.",
);
