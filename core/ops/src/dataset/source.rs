//! Datasets of tensors and of numbers.

use super::dataset;
use tenon_author::{ShapeContext, register_op};

register_op!(
    "TensorDataset",
    inputs = &["components: Toutput_types"],
    outputs = &["handle: variant"],
    attrs = &[
        "Toutput_types: list(type) >= 1",
        "output_shapes: list(shape) >= 1",
        "metadata: string = ''"
    ],
    stateful = true,
    shape = |c: &ShapeContext<'_>| dataset(c, &[]),
    summary = "A dataset with one element, whose components are the inputs.",
);

register_op!(
    "TensorSliceDataset",
    inputs = &["components: Toutput_types"],
    outputs = &["handle: variant"],
    attrs = &[
        "Toutput_types: list(type) >= 1",
        "output_shapes: list(shape) >= 1",
        "is_files: bool = false",
        "metadata: string = ''",
        "replicate_on_split: bool = false"
    ],
    stateful = true,
    shape = |c: &ShapeContext<'_>| dataset(c, &[]),
    summary = "A dataset whose elements are the rows of the inputs.",
);

register_op!(
    "RangeDataset",
    inputs = &["start: int64", "stop: int64", "step: int64"],
    outputs = &["handle: variant"],
    attrs = &[
        "output_types: list(type) >= 1",
        "output_shapes: list(shape) >= 1",
        "metadata: string = ''",
        "replicate_on_split: bool = false"
    ],
    stateful = true,
    shape = |c: &ShapeContext<'_>| dataset(c, &["start", "stop", "step"]),
    summary = "A dataset of the numbers from a start up to a stop.",
);
