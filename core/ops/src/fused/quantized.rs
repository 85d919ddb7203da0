//! Products of quantised values, converted to the scale of the output. The arithmetic is that of
//! `tenon_geometry::fixed_point`.

use crate::{
    linalg::matmul_shape,
    shape::{dims_of, input_of_rank, scalar_or_vector},
};
use tenon_author::{Dim, ShapeContext, ShapeHandle, ShapeResult, register_op};
use tenon_framework::KernelError;
use tenon_geometry::GeometryError;

register_op!(
    "_QuantizedFusedMatMul",
    inputs = &[
        "a: Ta",
        "b: Tb",
        "a_scale: float",
        "a_zero_point: int32",
        "b_scale: float",
        "b_zero_point: int32",
        "out_scale: float",
        "out_zero_point: int32",
        "bias: num_bias * int32",
    ],
    outputs = &["product: Tout"],
    attrs = &[
        "Ta: {quint8, qint8}",
        "Tb: {quint8, qint8}",
        "Tout: {quint8, qint8, qint16, qint32, float}",
        "num_bias: int >= 0",
        "transpose_a: bool = false",
        "transpose_b: bool = false",
        "requantize: {'FLOAT', 'FIXED_POINT'} = 'FLOAT'",
        "activation: {'NONE', 'RELU', 'RELU6', 'CLAMP'} = 'NONE'",
        "clamp_min: float = 0.0",
        "clamp_max: float = 6.0",
    ],
    shape = quantized_matmul,
    summary = "MatMul of a_scale * (a - a_zero_point) and b_scale * (b - b_zero_point) plus bias, quantised as \
               product / out_scale + out_zero_point. Scales and zero points are scalars; those of b may be vectors of \
               one value per column. There is one bias or none, a vector of one value per column, in steps of \
               a_scale * b_scale. Sums are exact in 32 bits: a product too deep for them is refused. The output of \
               type qint32 is the sums, that of type float is a_scale * b_scale times them: for both, out_scale and \
               out_zero_point are not looked at. Else sums are multiplied by a_scale * b_scale / out_scale as floats \
               (rounded to nearest, ties to even) or in fixed point (as gemmlowp does), and saturate. An activation \
               bounds the real values: RELU by 0, RELU6 by 0 and 6, CLAMP by clamp_min and clamp_max.",
    cases = &[
        "plain; num_bias = 0; requantize in {'FLOAT', 'FIXED_POINT'}; a: [m, k]; b: [k, n]; \
         a_scale: [] uniform(0.01, 0.02); a_zero_point: [] uniform(0, 127); b_scale: [] uniform(0.01, 0.02); \
         b_zero_point: [] uniform(0, 127); out_scale: [] uniform(0.25, 0.5); out_zero_point: [] uniform(0, 127)",
        "columns; requantize in {'FLOAT', 'FIXED_POINT'}; activation in {'NONE', 'RELU'}; transpose_a = true; \
         transpose_b = true; a: [k, m]; b: [n, k]; a_scale: [] uniform(0.01, 0.02); \
         a_zero_point: [] uniform(0, 127); b_scale: [n] uniform(0.01, 0.02); b_zero_point: [n] uniform(0, 127); \
         out_scale: [] uniform(0.25, 0.5); out_zero_point: [] uniform(0, 127); bias: [n] uniform(-9999, 9999)",
    ],
);

/// Position of the bias among the inputs.
const BIAS: usize = 8;

fn quantized_matmul(c: &ShapeContext<'_>) -> ShapeResult {
    let product = matmul_shape(c)?;
    c.set_output(0, with_parameters(c, product, 1, PARAMETERS)?)
}

/// Names of the scales and zero points of both factors, which are inputs 2 to 5.
pub(super) type Parameters = [&'static str; 4];
const PARAMETERS: Parameters = ["a_scale", "a_zero_point", "b_scale", "b_zero_point"];

/// The shape of quantised products; dimension `channel` has as many values as the vectors among the
/// parameters.
pub(super) fn with_parameters(
    c: &ShapeContext<'_>,
    product: ShapeHandle,
    channel: usize,
    [a_scale, a_zero_point, b_scale, b_zero_point]: Parameters,
) -> Result<ShapeHandle, KernelError> {
    let mut dims: Vec<Dim> = dims_of(c, product);
    for (at, name) in [(2, a_scale), (3, a_zero_point), (6, "out_scale"), (7, "out_zero_point")] {
        input_of_rank(c, at, name, 0)?;
    }
    for (at, name) in [(4, b_scale), (5, b_zero_point)] {
        scalar_or_vector(c, at, name)?;
        if c.rank(c.input(at)) == Some(1) {
            dims[channel] = c.merge_dim(dims[channel], c.dim(c.input(at), 0))?;
        }
    }
    match c.input_count() - BIAS {
        0 => {}
        1 => {
            let bias = input_of_rank(c, BIAS, "bias", 1)?;
            dims[channel] = c.merge_dim(dims[channel], c.dim(bias, 0))?;
        }
        found => return Err(GeometryError::Length { what: "bias", expected: 1, found }.into()),
    }
    Ok(c.make_shape(&dims))
}
