//! Ops between quantised products: conversion from real numbers to 8 bits and back, and ops that
//! compute on 8 bits. A value `q` represents `scale * (q - zero_point)`, as in
//! [`super::quantized`].

use crate::{
    math_binary::broadcast,
    nn::pool_nhwc,
    reduction::reduce,
    shape::{input_of_rank, unchanged},
};
use tenon_author::{ShapeContext, ShapeResult, register_op};
use tenon_geometry::{GeometryError, Pool2dGeometry};

const BYTES: &str = "T: {quint8, qint8}";
const ACTIVATION: &str = "activation: {'NONE', 'RELU', 'RELU6', 'CLAMP'} = 'NONE'";
const CLAMP_MIN: &str = "clamp_min: float = 0.0";
const CLAMP_MAX: &str = "clamp_max: float = 6.0";

/// The number of values in a lookup table: one for each 8-bit value.
const TABLE: i64 = 256;

register_op!(
    "_AffineQuantize",
    inputs = &["x: float", "scale: float", "zero_point: int32"],
    outputs = &["y: T"],
    attrs = &[BYTES],
    shape = affine,
    summary = "The values that represent real numbers: x / scale as a float, rounded to nearest with ties to even, plus \
               zero_point, clamped to the type. For NaN, the least value.",
    cases = &[
        "plain; x: [a, b] uniform(-3, 3); scale: [] uniform(0.01, 0.02); zero_point: [] uniform(0, 127)"
    ],
);

register_op!(
    "_AffineDequantize",
    inputs = &["x: T", "scale: float", "zero_point: int32"],
    outputs = &["y: float"],
    attrs = &[BYTES],
    shape = affine,
    summary = "The real numbers that values represent: x - zero_point as a float, times scale.",
    cases = &["plain; x: [a, b]; scale: [] uniform(0.01, 0.02); zero_point: [] uniform(0, 127)"],
);

register_op!(
    "_AffineRange",
    inputs = &["x: float"],
    outputs = &["scale: float", "zero_point: int32"],
    attrs = &[BYTES],
    shape = range,
    summary = "Scale and zero point with which values of type T represent the numbers from the least to the greatest of \
               x, including 0. NaN and infinities are refused.",
    cases = &["plain; T in {quint8, qint8}; x: [a, b] uniform(-3, 5)"],
);

register_op!(
    "_QuantizedLookup",
    inputs = &["x: T", "table: Tout"],
    outputs = &["y: Tout"],
    attrs = &[BYTES, "Tout: {quint8, qint8}"],
    shape = lookup,
    summary = "Looks each value up in table, whose first entry is for the least value of T: any function of one number, \
               computed on 8 bits.",
    cases = &["plain; Tout in {quint8, qint8}; x: [a, b]; table: [256]"],
);

register_op!(
    "_QuantizedFusedAdd",
    inputs = &[
        "a: T",
        "b: T",
        "a_scale: float",
        "a_zero_point: int32",
        "b_scale: float",
        "b_zero_point: int32",
        "out_scale: float",
        "out_zero_point: int32",
    ],
    outputs = &["sum: T"],
    attrs = &[BYTES, ACTIVATION, CLAMP_MIN, CLAMP_MAX],
    shape = add,
    summary = "The sum of a_scale * (a - a_zero_point) and b_scale * (b - b_zero_point), which broadcast, quantised as \
               sum / out_scale + out_zero_point: both are multiplied by integers of 21 bits, added, and rounded once, \
               ties upwards. The activation bounds the real values: RELU by 0, RELU6 by 0 and 6, CLAMP by clamp_min and \
               clamp_max.",
    cases = &[
        "same; activation in {'NONE', 'RELU'}; a: [m, n]; b: [m, n]; a_scale: [] uniform(0.01, 0.02); \
         a_zero_point: [] uniform(0, 127); b_scale: [] uniform(0.01, 0.02); b_zero_point: [] uniform(0, 127); \
         out_scale: [] uniform(0.01, 0.05); out_zero_point: [] uniform(0, 127)",
        "rows; activation = 'RELU6'; a: [m, n]; b: [n]; a_scale: [] uniform(0.01, 0.02); \
         a_zero_point: [] uniform(0, 127); b_scale: [] uniform(0.01, 0.02); b_zero_point: [] uniform(0, 127); \
         out_scale: [] uniform(0.01, 0.05); out_zero_point: [] uniform(0, 127)",
    ],
);

register_op!(
    "_QuantizedFusedMean",
    inputs = &[
        "input: T",
        "reduction_indices: Tidx",
        "input_scale: float",
        "input_zero_point: int32",
        "out_scale: float",
        "out_zero_point: int32",
    ],
    outputs = &["output: T"],
    attrs = &["keep_dims: bool = false", BYTES, "Tidx: {int32, int64} = DT_INT32"],
    shape = mean,
    summary = "The mean over some dimensions, requantised: the sum of input - input_zero_point, which must fit in 32 \
               bits, is multiplied by input_scale / (out_scale * count) as a float, and rounded to nearest with ties to \
               even. The mean of nothing is 0.",
    cases = &[
        "columns; keep_dims in {false, true}; input: [m, n]; reduction_indices: [1] values(0); \
         input_scale: [] uniform(0.01, 0.02); input_zero_point: [] uniform(0, 127); \
         out_scale: [] uniform(0.005, 0.02); out_zero_point: [] uniform(0, 127)",
        "image; input: [n, h, w, c]; reduction_indices: [2] values(1, 2); input_scale: [] uniform(0.01, 0.02); \
         input_zero_point: [] uniform(0, 127); out_scale: [] uniform(0.005, 0.02); \
         out_zero_point: [] uniform(0, 127)",
        "apart; input: [m, n, c]; reduction_indices: [2] values(0, 2); input_scale: [] uniform(0.01, 0.02); \
         input_zero_point: [] uniform(0, 127); out_scale: [] uniform(0.005, 0.02); \
         out_zero_point: [] uniform(0, 127)",
    ],
);

register_op!(
    "_QuantizedFusedAvgPool",
    inputs = &[
        "input: T",
        "input_scale: float",
        "input_zero_point: int32",
        "out_scale: float",
        "out_zero_point: int32",
    ],
    outputs = &["output: T"],
    attrs = &[BYTES, "ksize: list(int)", "strides: list(int)", "padding: {'SAME', 'VALID'}"],
    shape = average_pool,
    summary = "The mean of each window of an image [N, H, W, C], requantised like _QuantizedFusedMean. Positions outside \
               the image do not count.",
    cases = &[
        "plain; ksize in {[1, 2, 2, 1], [1, 3, 2, 1], [1, 1, 1, 1]}; strides in {[1, 1, 1, 1], [1, 2, 2, 1]}; \
         padding in {'SAME', 'VALID'}; h in 3..20; w in 3..20; input: [n, h, w, c]; \
         input_scale: [] uniform(0.01, 0.02); input_zero_point: [] uniform(0, 127); \
         out_scale: [] uniform(0.005, 0.02); out_zero_point: [] uniform(0, 127)",
    ],
);

/// Checks that the parameters with these names, at these positions, are scalars.
fn parameters(c: &ShapeContext<'_>, named: &[(usize, &'static str)]) -> ShapeResult {
    named.iter().try_for_each(|&(at, name)| input_of_rank(c, at, name, 0).map(drop))
}

fn affine(c: &ShapeContext<'_>) -> ShapeResult {
    parameters(c, &[(1, "scale"), (2, "zero_point")])?;
    unchanged(c)
}

fn range(c: &ShapeContext<'_>) -> ShapeResult {
    c.set_output(0, c.scalar())?;
    c.set_output(1, c.scalar())
}

fn lookup(c: &ShapeContext<'_>) -> ShapeResult {
    let table = input_of_rank(c, 1, "table", 1)?;
    match c.value(c.dim(table, 0)) {
        Some(found) if found != TABLE => {
            Err(GeometryError::SizeMismatch { what: "the size of table", expected: TABLE, found }
                .into())
        }
        _ => unchanged(c),
    }
}

const OUT: [&str; 2] = ["out_scale", "out_zero_point"];

fn add(c: &ShapeContext<'_>) -> ShapeResult {
    parameters(c, &[(2, "a_scale"), (3, "a_zero_point"), (4, "b_scale"), (5, "b_zero_point")])?;
    parameters(c, &[(6, OUT[0]), (7, OUT[1])])?;
    broadcast(c)
}

fn mean(c: &ShapeContext<'_>) -> ShapeResult {
    parameters(c, &[(2, "input_scale"), (3, "input_zero_point"), (4, OUT[0]), (5, OUT[1])])?;
    reduce(c)
}

fn average_pool(c: &ShapeContext<'_>) -> ShapeResult {
    parameters(c, &[(1, "input_scale"), (2, "input_zero_point"), (3, OUT[0]), (4, OUT[1])])?;
    c.set_output(0, pool_nhwc(c, Pool2dGeometry::average)?)
}
