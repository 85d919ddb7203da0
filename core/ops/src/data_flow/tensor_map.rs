//! Maps from tensors to tensors: values of variants. An op that changes a map gives a new one.

use crate::shape::{nothing_known, scalar_output};
use tenon_author::register_op;

register_op!(
    "EmptyTensorMap",
    outputs = &["handle: variant"],
    shape = scalar_output,
    summary = "A map without entries.",
);

register_op!(
    "TensorMapSize",
    inputs = &["input_handle: variant"],
    outputs = &["size: int32"],
    shape = scalar_output,
    summary = "How many entries a map has.",
);

register_op!(
    "TensorMapLookup",
    inputs = &["input_handle: variant", "key: key_dtype"],
    outputs = &["value: value_dtype"],
    attrs = &["key_dtype: type", "value_dtype: type"],
    shape = nothing_known,
    summary = "The value of a key of a map.",
);

register_op!(
    "TensorMapInsert",
    inputs = &["input_handle: variant", "key: key_dtype", "value: value_dtype"],
    outputs = &["output_handle: variant"],
    attrs = &["key_dtype: type", "value_dtype: type"],
    shape = scalar_output,
    summary = "A map with one more entry, or another value for a key.",
);

register_op!(
    "TensorMapErase",
    inputs = &["input_handle: variant", "key: key_dtype"],
    outputs = &["output_handle: variant"],
    attrs = &["key_dtype: type", "value_dtype: type"],
    shape = scalar_output,
    summary = "A map without the entry of a key.",
);

register_op!(
    "TensorMapHasKey",
    inputs = &["input_handle: variant", "key: key_dtype"],
    outputs = &["has_key: bool"],
    attrs = &["key_dtype: type"],
    shape = scalar_output,
    summary = "Whether a map has an entry of a key.",
);

register_op!(
    "TensorMapStackKeys",
    inputs = &["input_handle: variant"],
    outputs = &["keys: key_dtype"],
    attrs = &["key_dtype: type"],
    shape = nothing_known,
    summary = "The keys of a map as the rows of a tensor.",
);
