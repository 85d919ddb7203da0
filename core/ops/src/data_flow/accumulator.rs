//! Accumulators: gradients of several workers are added up until enough of them are there.
//!
//! The kernels are plugins/data/src/accumulator.

use super::queue::reference;
use crate::shape::{input_of_rank, scalar_output};
use tenon_author::{ShapeContext, ShapeResult, register_op};

/// The attributes of ops that make an accumulator.
const OF_ACCUMULATOR: &[&str] = &[
    "dtype: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64}",
    "shape: shape",
    "container: string = ''",
    "shared_name: string = ''",
    "reduction_type: {'MEAN', 'SUM'} = 'MEAN'",
];

/// The attribute of ops that add or take a gradient.
const OF_GRADIENT: &[&str] = &[
    "dtype: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64}",
];

register_op!(
    "ConditionalAccumulator",
    outputs = &["handle: Ref(string)"],
    attrs = OF_ACCUMULATOR,
    stateful = true,
    shape = reference,
    summary = "Adds gradients up until enough of them are there.",
);

register_op!(
    "SparseConditionalAccumulator",
    outputs = &["handle: Ref(string)"],
    attrs = OF_ACCUMULATOR,
    stateful = true,
    shape = reference,
    summary = "Adds sparse gradients up by row until enough of them are there.",
);

register_op!(
    "ResourceConditionalAccumulator",
    outputs = &["handle: resource"],
    attrs = OF_ACCUMULATOR,
    stateful = true,
    shape = scalar_output,
    summary = "Adds gradients up until enough of them are there.",
);

register_op!(
    "AccumulatorApplyGradient",
    inputs = &["handle: Ref(string)", "local_step: int64", "gradient: dtype"],
    attrs = OF_GRADIENT,
    shape = at_a_step,
    summary = "Adds a gradient, unless it is of an earlier step.",
);

register_op!(
    "SparseAccumulatorApplyGradient",
    inputs = &[
        "handle: Ref(string)",
        "local_step: int64",
        "gradient_indices: int64",
        "gradient_values: dtype",
        "gradient_shape: int64",
    ],
    attrs = &[
        "dtype: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64}",
        "has_known_shape: bool",
    ],
    shape = at_a_step,
    summary = "Adds a sparse gradient, unless it is of an earlier step.",
);

register_op!(
    "ResourceAccumulatorApplyGradient",
    inputs = &["handle: resource", "local_step: int64", "gradient: dtype"],
    attrs = OF_GRADIENT,
    stateful = true,
    shape = at_a_step,
    summary = "Adds a gradient, unless it is of an earlier step.",
);

register_op!(
    "AccumulatorNumAccumulated",
    inputs = &["handle: Ref(string)"],
    outputs = &["num_accumulated: int32"],
    shape = scalar_output,
    summary = "The number of gradients that were added up.",
);

register_op!(
    "ResourceAccumulatorNumAccumulated",
    inputs = &["handle: resource"],
    outputs = &["num_accumulated: int32"],
    stateful = true,
    shape = scalar_output,
    summary = "The number of gradients that were added up.",
);

register_op!(
    "AccumulatorSetGlobalStep",
    inputs = &["handle: Ref(string)", "new_global_step: int64"],
    shape = at_a_step,
    summary = "Sets the step of an accumulator.",
);

register_op!(
    "ResourceAccumulatorSetGlobalStep",
    inputs = &["handle: resource", "new_global_step: int64"],
    stateful = true,
    shape = at_a_step,
    summary = "Sets the step of an accumulator.",
);

register_op!(
    "AccumulatorTakeGradient",
    inputs = &["handle: Ref(string)", "num_required: int32"],
    outputs = &["average: dtype"],
    attrs = OF_GRADIENT,
    shape = at_a_step,
    summary = "Takes the mean or sum of the gradients, once enough of them are there.",
);

register_op!(
    "SparseAccumulatorTakeGradient",
    inputs = &["handle: Ref(string)", "num_required: int32"],
    outputs = &["indices: int64", "values: dtype", "shape: int64"],
    attrs = OF_GRADIENT,
    shape = at_a_step,
    summary = "Takes the mean or sum of the sparse gradients, once enough of them are there.",
);

register_op!(
    "ResourceAccumulatorTakeGradient",
    inputs = &["handle: resource", "num_required: int32"],
    outputs = &["average: dtype"],
    attrs = OF_GRADIENT,
    stateful = true,
    shape = at_a_step,
    summary = "Takes the mean or sum of the gradients, once enough of them are there.",
);

/// The input after the handle is a step or a number of gradients.
fn at_a_step(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 1, "the step or number", 0).map(drop)
}
