//! Random numbers whose generator is a variable: its state, and the key of the algorithm.

use crate::shape::{broadcast_dims, dims_of, input_of_rank, nothing_known};
use tenon_author::{ShapeContext, ShapeResult, register_op};

register_op!(
    "RngReadAndSkip",
    inputs = &["resource: resource", "alg: int32", "delta: uint64"],
    outputs = &["value: int64"],
    stateful = true,
    shape = read_and_skip,
    summary = "The state of a generator before it skips numbers.",
);

register_op!(
    "RngSkip",
    inputs = &["resource: resource", "algorithm: int64", "delta: int64"],
    stateful = true,
    shape = skip,
    summary = "Skips numbers of a generator.",
);

register_op!(
    "StatefulStandardNormal",
    inputs = &["resource: resource", "shape: shape_dtype"],
    outputs = &["output: dtype"],
    attrs = &["dtype: type = float", "shape_dtype: type = int64"],
    stateful = true,
    shape = |c: &ShapeContext<'_>| c.set_output(0, c.constant_as_shape(1)?),
    summary =
        "Normally distributed numbers with mean 0 and deviation 1, from a generator in a variable.",
);

register_op!(
    "StatefulStandardNormalV2",
    inputs = &["resource: resource", "algorithm: int64", "shape: shape_dtype"],
    outputs = &["output: dtype"],
    attrs = &["dtype: type = float", "shape_dtype: type = int64"],
    stateful = true,
    shape = of_shape,
    summary =
        "Normally distributed numbers with mean 0 and deviation 1, from a generator in a variable.",
);

register_op!(
    "StatefulTruncatedNormal",
    inputs = &["resource: resource", "algorithm: int64", "shape: shape_dtype"],
    outputs = &["output: dtype"],
    attrs = &["dtype: type = float", "shape_dtype: type = int64"],
    stateful = true,
    shape = of_shape,
    summary =
        "Normally distributed numbers, those beyond 2 drawn again, from a generator in a variable.",
);

register_op!(
    "StatefulUniform",
    inputs = &["resource: resource", "algorithm: int64", "shape: shape_dtype"],
    outputs = &["output: dtype"],
    attrs = &["dtype: type = float", "shape_dtype: type = int64"],
    stateful = true,
    shape = of_shape,
    summary = "Numbers between 0 and 1, 1 excluded, from a generator in a variable.",
);

register_op!(
    "StatefulUniformFullInt",
    inputs = &["resource: resource", "algorithm: int64", "shape: shape_dtype"],
    outputs = &["output: dtype"],
    attrs = &["dtype: type = uint64", "shape_dtype: type = int64"],
    stateful = true,
    shape = of_shape,
    summary = "Integers of all values, from a generator in a variable.",
);

register_op!(
    "StatefulUniformInt",
    inputs = &[
        "resource: resource",
        "algorithm: int64",
        "shape: shape_dtype",
        "minval: dtype",
        "maxval: dtype"
    ],
    outputs = &["output: dtype"],
    attrs = &["dtype: type = int64", "shape_dtype: type = int64"],
    stateful = true,
    shape = integers,
    summary = "Integers from minval to below maxval, from a generator in a variable.",
);

register_op!(
    "StatefulRandomBinomial",
    inputs = &["resource: resource", "algorithm: int64", "shape: S", "counts: T", "probs: T"],
    outputs = &["output: dtype"],
    attrs = &[
        "S: {int32, int64}",
        "T: {half, float, double, int32, int64} = double",
        "dtype: {half, float, double, int32, int64} = int64"
    ],
    stateful = true,
    shape = binomial,
    summary = "How many of counts trials succeed, each with probability probs, from a generator in a variable.",
);

fn read_and_skip(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 1, "alg", 0)?;
    input_of_rank(c, 2, "delta", 0)?;
    c.set_output(0, c.unknown_of_rank(1))
}

fn skip(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 1, "algorithm", 0)?;
    input_of_rank(c, 2, "delta", 0)?;
    nothing_known(c)
}

fn of_shape(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 1, "algorithm", 0)?;
    c.set_output(0, c.constant_as_shape(2)?)
}

fn integers(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 3, "minval", 0)?;
    input_of_rank(c, 4, "maxval", 0)?;
    of_shape(c)
}

fn binomial(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 1, "algorithm", 0)?;
    broadcast_dims(c, &dims_of(c, c.input(3)), &dims_of(c, c.input(4)))?;
    c.set_output(0, c.constant_as_shape(2)?)
}
