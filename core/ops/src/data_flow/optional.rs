//! Optional values: variants that hold tensors, or nothing. Gradients of conditionals pass the values of a branch by them.

use crate::shape::{by_attribute, scalar_output};
use tenon_author::register_op;

register_op!(
    "OptionalFromValue",
    inputs = &["components: Toutput_types"],
    outputs = &["optional: variant"],
    attrs = &["Toutput_types: list(type) >= 1"],
    shape = scalar_output,
    summary = "An optional value that holds tensors.",
);

register_op!(
    "OptionalNone",
    outputs = &["optional: variant"],
    shape = scalar_output,
    summary = "An optional value that holds nothing.",
);

register_op!(
    "OptionalHasValue",
    inputs = &["optional: variant"],
    outputs = &["has_value: bool"],
    shape = scalar_output,
    summary = "Whether an optional value holds tensors.",
);

register_op!(
    "OptionalGetValue",
    inputs = &["optional: variant"],
    outputs = &["components: output_types"],
    attrs = &["output_types: list(type) >= 1", "output_shapes: list(shape) >= 1"],
    shape = by_attribute,
    summary = "The tensors that an optional value holds.",
);
