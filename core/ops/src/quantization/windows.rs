//! Products, convolutions and poolings of codes.

use super::{check_scalars, scalar_outputs};
use crate::{
    linalg::matmul,
    nn::{conv_nhwc, depthwise_nhwc, pool_nhwc},
};
use tenon_author::{ShapeContext, ShapeResult, register_op};
use tenon_geometry::Pool2dGeometry;

const PADDING: &str = "padding: {'SAME', 'VALID'}";

register_op!(
    "QuantizedMatMul",
    inputs = &["a: T1", "b: T2", "min_a: float", "max_a: float", "min_b: float", "max_b: float",],
    outputs = &["out: Toutput", "min_out: float", "max_out: float"],
    attrs = &[
        "T1: quantizedtype",
        "T2: quantizedtype",
        "Toutput: quantizedtype = DT_QINT32",
        "transpose_a: bool = false",
        "transpose_b: bool = false",
        "Tactivation: quantizedtype = DT_QUINT8",
    ],
    cases = &[
        "plain; a: [m, k]; b: [k, n]; min_a: [] values(-3); max_a: [] values(4.5); min_b: [] values(-0.25); \
         max_b: [] values(0.5)",
        "turned; transpose_a = true; transpose_b in {false, true}; k in 1..40; a: [k, m]; b: [k, k]; \
         min_a: [] values(0); max_a: [] values(4.5); min_b: [] values(-0.25); max_b: [] values(0.5)",
    ],
    shape = product,
    summary = "The product of two matrices of codes.",
);

macro_rules! convolutions {
    ($($op:literal, $filter:literal, $shape:expr, $summary:literal;)*) => {$(
        register_op!(
            $op,
            inputs = &[
                "input: Tinput",
                "filter: Tfilter",
                "min_input: float",
                "max_input: float",
                "min_filter: float",
                "max_filter: float",
            ],
            outputs = &["output: out_type", "min_output: float", "max_output: float"],
            attrs = &[
                "Tinput: quantizedtype",
                "Tfilter: quantizedtype",
                "out_type: quantizedtype = DT_QINT32",
                "strides: list(int)",
                PADDING,
                "dilations: list(int) = [1, 1, 1, 1]",
            ],
            cases = &[concat!(
                "plain; strides in {[1, 1, 1, 1], [1, 2, 2, 1]}; padding in {'SAME', 'VALID'}; h in 3..12; \
                 w in 3..12; c in 1..9; m in 1..9; input: [n, h, w, c]; filter: ", $filter, "; \
                 min_input: [] values(-3); max_input: [] values(4.5); min_filter: [] values(-0.5); \
                 max_filter: [] values(0.5)"
            )],
            shape = $shape,
            summary = $summary,
        );
    )*};
}

convolutions! {
    "QuantizedConv2D", "[3, 2, c, m]", conv, "A two-dimensional convolution of codes.";
    "QuantizedDepthwiseConv2D", "[3, 2, c, m]", depthwise,
        "A two-dimensional convolution of each channel of codes by itself.";
}

macro_rules! poolings {
    ($($op:literal, $shape:expr, $summary:literal;)*) => {$(
        register_op!(
            $op,
            inputs = &["input: T", "min_input: float", "max_input: float"],
            outputs = &["output: T", "min_output: float", "max_output: float"],
            attrs = &["T: quantizedtype", "ksize: list(int)", "strides: list(int)", PADDING],
            cases = &[
                "plain; ksize in {[1, 2, 2, 1], [1, 3, 2, 1], [1, 1, 1, 1]}; strides in {[1, 1, 1, 1], [1, 2, 2, 1]}; \
                 padding in {'SAME', 'VALID'}; h in 3..20; w in 3..20; input: [n, h, w, c]; min_input: [] values(-3); \
                 max_input: [] values(4.5)",
            ],
            shape = $shape,
            summary = $summary,
        );
    )*};
}

poolings! {
    "QuantizedMaxPool", max_pool, "The greatest code of each window.";
    "QuantizedAvgPool", average_pool, "The mean of the codes of each window.";
}

fn product(c: &ShapeContext<'_>) -> ShapeResult {
    check_scalars(c, &[(2, "min_a"), (3, "max_a"), (4, "min_b"), (5, "max_b")])?;
    matmul(c)?;
    scalar_outputs(c, 1)
}

const RANGES: &[super::Named] =
    &[(2, "min_input"), (3, "max_input"), (4, "min_filter"), (5, "max_filter")];

fn conv(c: &ShapeContext<'_>) -> ShapeResult {
    check_scalars(c, RANGES)?;
    conv_nhwc(c)?;
    scalar_outputs(c, 1)
}

fn depthwise(c: &ShapeContext<'_>) -> ShapeResult {
    check_scalars(c, RANGES)?;
    depthwise_nhwc(c)?;
    scalar_outputs(c, 1)
}

fn max_pool(c: &ShapeContext<'_>) -> ShapeResult {
    pooled(c, Pool2dGeometry::max)
}

fn average_pool(c: &ShapeContext<'_>) -> ShapeResult {
    pooled(c, Pool2dGeometry::average)
}

fn pooled(c: &ShapeContext<'_>, geometry: crate::nn::Pooling) -> ShapeResult {
    check_scalars(c, &[(1, "min_input"), (2, "max_input")])?;
    c.set_output(0, pool_nhwc(c, geometry)?)?;
    scalar_outputs(c, 1)
}
