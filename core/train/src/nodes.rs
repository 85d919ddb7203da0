//! Nodes that several parts add.

use crate::TrainError;
use tenon_framework::{
    DType, Shape, Tensor,
    element::{Complex, bf16, f16},
};
use tenon_graph::{GraphBuilder, Output};

/// A scalar of a numeric type.
pub(crate) fn scalar(dtype: DType, value: f64) -> Result<Tensor, TrainError> {
    let tensor = match dtype {
        DType::FLOAT => Tensor::scalar(value as f32),
        DType::DOUBLE => Tensor::scalar(value),
        DType::HALF => Tensor::scalar(f16::from_f64(value)),
        DType::BFLOAT16 => Tensor::scalar(bf16::from_f64(value)),
        DType::COMPLEX64 => Tensor::scalar(Complex::new(value as f32, 0.0)),
        DType::COMPLEX128 => Tensor::scalar(Complex::new(value, 0.0)),
        DType::INT32 => Tensor::scalar(value as i32),
        DType::INT64 => Tensor::scalar(value as i64),
        other => {
            let expected = "float, double, half, bfloat16, complex64, complex128, int32 or int64";
            return Err(TrainError::argument("a number", expected, other.to_string()));
        }
    };
    Ok(tensor?)
}

/// Adds a constant, under this name or one that begins with it.
pub(crate) fn constant(
    b: &mut GraphBuilder<'_>,
    name: &str,
    value: Tensor,
) -> Result<Output, TrainError> {
    let name = b.unused_name(name);
    Ok(b.constant(&name, value)?)
}

/// Adds a scalar.
pub(crate) fn number(
    b: &mut GraphBuilder<'_>,
    name: &str,
    dtype: DType,
    value: f64,
) -> Result<Output, TrainError> {
    constant(b, name, scalar(dtype, value)?)
}

/// Adds a tensor of one number.
pub(crate) fn filled(
    b: &mut GraphBuilder<'_>,
    name: &str,
    dtype: DType,
    shape: &Shape,
    value: f64,
) -> Result<Output, TrainError> {
    if shape.rank() == 0 {
        return number(b, name, dtype, value);
    }
    let dims = dims(b, &format!("{name}/shape_as_tensor"), shape)?;
    let value = number(b, &format!("{name}/Const"), dtype, value)?;
    Ok(b.op("Fill").name(name).input(dims).input(value).build()?.into())
}

/// Adds random values of an op such as `RandomUniform`.
pub(crate) fn random(
    b: &mut GraphBuilder<'_>,
    op: &str,
    name: &str,
    dtype: DType,
    shape: &Shape,
    seed: (i64, i64),
) -> Result<Output, TrainError> {
    let dims = dims(b, &format!("{name}/shape"), shape)?;
    let node = b.op(op).name(name).input(dims).attr("dtype", dtype);
    Ok(node.attr("seed", seed.0).attr("seed2", seed.1).build()?.into())
}

/// Adds the dimensions of a shape, as int64.
fn dims(b: &mut GraphBuilder<'_>, name: &str, shape: &Shape) -> Result<Output, TrainError> {
    constant(b, name, Tensor::from_slice(&[shape.rank() as i64], shape.dims())?)
}
