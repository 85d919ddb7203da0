//! Iterators over datasets, and values that may be there or not.
//!
//! The kernels are plugins/data/src/iterator.rs and plugins/data/src/optional.rs.

use super::{element, from_text, handle_and_deleter, of_iterator};
use crate::shape::{nothing_known, scalar_output};
use tenon_author::register_op;

/// The attributes of a dataset that says the types and shapes of its elements.
const OF_ELEMENTS: &[&str] =
    &["output_types: list(type) >= 1", "output_shapes: list(shape) >= 1", "metadata: string = ''"];

/// The types and shapes of the components of elements.
const OF_FORM: &[&str] = &["output_types: list(type) >= 1", "output_shapes: list(shape) >= 1"];

/// The types and shapes of the components of elements, which need not be given.
const OF_ANY_FORM: &[&str] =
    &["output_types: list(type) >= 0 = []", "output_shapes: list(shape) >= 0 = []"];

/// The attributes of an iterator that sessions share by its name.
const OF_NAMED: &[&str] = &[
    "shared_name: string",
    "container: string",
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
];

register_op!(
    "IteratorV2",
    outputs = &["handle: resource"],
    attrs = OF_NAMED,
    stateful = true,
    shape = scalar_output,
    summary = "The handle of an iterator.",
);

register_op!(
    "Iterator",
    outputs = &["handle: resource"],
    attrs = OF_NAMED,
    stateful = true,
    shape = scalar_output,
    summary = "The handle of an iterator.",
);

register_op!(
    "AnonymousIterator",
    outputs = &["handle: resource"],
    attrs = OF_FORM,
    stateful = true,
    shape = scalar_output,
    summary = "The handle of a new iterator without a name.",
);

register_op!(
    "AnonymousIteratorV2",
    outputs = &["handle: resource", "deleter: variant"],
    attrs = OF_FORM,
    stateful = true,
    shape = handle_and_deleter,
    summary = "The handle of a new iterator without a name, and what deletes it.",
);

register_op!(
    "AnonymousIteratorV3",
    outputs = &["handle: resource"],
    attrs = OF_FORM,
    stateful = true,
    shape = scalar_output,
    summary = "The handle of a new iterator without a name.",
);

register_op!(
    "DeleteIterator",
    inputs = &["handle: resource", "deleter: variant"],
    stateful = true,
    shape = nothing_known,
    summary = "Deletes an iterator.",
);

register_op!(
    "OneShotIterator",
    outputs = &["handle: resource"],
    attrs = &[
        "dataset_factory: func",
        "output_types: list(type) >= 1",
        "output_shapes: list(shape) >= 1",
        "container: string = ''",
        "shared_name: string = ''"
    ],
    stateful = true,
    shape = scalar_output,
    summary = "The handle of an iterator over the dataset that a function makes.",
);

register_op!(
    "MakeIterator",
    inputs = &["dataset: variant", "iterator: resource"],
    stateful = true,
    shape = nothing_known,
    summary = "Puts an iterator before the first element of a dataset.",
);

register_op!(
    "IteratorGetNext",
    inputs = &["iterator: resource"],
    outputs = &["components: output_types"],
    attrs = OF_FORM,
    stateful = true,
    shape = element,
    summary = "The next element of an iterator.",
);

register_op!(
    "IteratorGetNextSync",
    inputs = &["iterator: resource"],
    outputs = &["components: output_types"],
    attrs = OF_FORM,
    stateful = true,
    shape = element,
    summary = "The next element of an iterator.",
);

register_op!(
    "IteratorGetNextAsOptional",
    inputs = &["iterator: resource"],
    outputs = &["optional: variant"],
    attrs = OF_FORM,
    stateful = true,
    shape = of_iterator,
    summary = "The next element of an iterator, or none at its end.",
);

register_op!(
    "IteratorToStringHandle",
    inputs = &["resource_handle: resource"],
    outputs = &["string_handle: string"],
    stateful = true,
    shape = of_iterator,
    summary = "The handle of an iterator as text.",
);

register_op!(
    "IteratorFromStringHandle",
    inputs = &["string_handle: string"],
    outputs = &["resource_handle: resource"],
    attrs = OF_ANY_FORM,
    stateful = true,
    shape = from_text,
    summary = "The handle of an iterator from text.",
);

register_op!(
    "IteratorFromStringHandleV2",
    inputs = &["string_handle: string"],
    outputs = &["resource_handle: resource"],
    attrs = OF_ANY_FORM,
    stateful = true,
    shape = from_text,
    summary = "The handle of an iterator from text.",
);

register_op!(
    "DatasetCardinality",
    inputs = &["input_dataset: variant"],
    outputs = &["cardinality: int64"],
    attrs = &["cardinality_options: string = ''"],
    shape = scalar_output,
    summary = "How many elements a dataset has: -1 for infinitely many, -2 if it is not known.",
);

register_op!(
    "ComputeBatchSize",
    inputs = &["input_dataset: variant"],
    outputs = &["batch_size: int64"],
    shape = scalar_output,
    summary = "The size of the batches that the elements of a dataset are; -1 if it is not known.",
);

register_op!(
    "DatasetToSingleElement",
    inputs = &["dataset: variant"],
    outputs = &["components: output_types"],
    attrs = OF_ELEMENTS,
    stateful = true,
    shape = element,
    summary = "The only element of a dataset.",
);
