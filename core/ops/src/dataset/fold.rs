//! Datasets whose elements a function makes from a state that it carries from one element to the next.

use super::element;
use crate::shape::scalar_output;
use tenon_author::register_op;
use tenon_framework::op::GradientRule;

register_op!(
    "ScanDataset",
    inputs = &["input_dataset: variant", "initial_state: Tstate", "other_arguments: Targuments"],
    outputs = &["handle: variant"],
    attrs = &[
        "f: func",
        "Tstate: list(type) >= 1",
        "Targuments: list(type) >= 0",
        "output_types: list(type) >= 1",
        "output_shapes: list(shape) >= 1",
        "preserve_cardinality: bool = false",
        "use_default_device: bool = true",
        "metadata: string = ''"
    ],
    shape = scalar_output,
    summary = "A dataset of the results of a function for the elements of another and for a state, which the function returns anew with each.",
);

register_op!(
    "GeneratorDataset",
    inputs = &[
        "init_func_other_args: Tinit_func_args",
        "next_func_other_args: Tnext_func_args",
        "finalize_func_other_args: Tfinalize_func_args"
    ],
    outputs = &["handle: variant"],
    attrs = &[
        "init_func: func",
        "next_func: func",
        "finalize_func: func",
        "Tinit_func_args: list(type) >= 0",
        "Tnext_func_args: list(type) >= 0",
        "Tfinalize_func_args: list(type) >= 0",
        "output_types: list(type) >= 1",
        "output_shapes: list(shape) >= 1",
        "metadata: string = ''"
    ],
    stateful = true,
    shape = scalar_output,
    summary = "A dataset of the results of a function that is called until it ends with OUT_OF_RANGE, with a state that another function makes.",
);

register_op!(
    "ReduceDataset",
    inputs = &["input_dataset: variant", "initial_state: Tstate", "other_arguments: Targuments"],
    outputs = &["components: output_types"],
    attrs = &[
        "f: func",
        "Tstate: list(type) >= 1",
        "Targuments: list(type) >= 0",
        "output_types: list(type) >= 1",
        "output_shapes: list(shape) >= 1",
        "use_inter_op_parallelism: bool = true",
        "metadata: string = ''"
    ],
    stateful = true,
    shape = element,
    gradient = GradientRule::None,
    summary = "The state that a function made of an initial one and of all elements of a dataset, one after the other.",
);
