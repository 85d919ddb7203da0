//! Element types and shapes.

use tenon_framework::DType;
use tenon_framework::shape::{PartialShape, Shape};

use super::ConvertError;
use crate::{Dim, TensorShapeProto};

/// The element type of a number on the wire, reference types included.
///
/// # Errors
/// [`ConvertError::DataType`] when no element type has the number, including 0.
pub fn dtype_from_proto(number: i32) -> Result<DType, ConvertError> {
    let dtype = u32::try_from(number).ok().map(DType).filter(|dtype| dtype.is_valid());
    dtype.ok_or(ConvertError::DataType { found: number })
}

/// The number of an element type on the wire.
#[must_use]
pub fn dtype_to_proto(dtype: DType) -> i32 {
    // The numbers end at 133; an invalid one is written as DT_INVALID.
    i32::try_from(dtype.0).unwrap_or(0)
}

/// A shape, possibly partial.
///
/// # Errors
/// A dimension below -1, dimensions with an unknown rank, too many of them, a product that
/// overflows `i64`.
pub fn shape_from_proto(proto: &TensorShapeProto) -> Result<PartialShape, ConvertError> {
    if proto.unknown_rank {
        return match proto.dim.len() {
            0 => Ok(PartialShape::UNKNOWN),
            dims => Err(ConvertError::UnknownRank { dims }),
        };
    }
    if let Some(index) = proto.dim.iter().position(|dim| dim.size < -1) {
        return Err(ConvertError::Dimension { index, value: proto.dim[index].size });
    }
    let dims: Vec<i64> = proto.dim.iter().map(|dim| dim.size).collect();
    Ok(PartialShape::new(&dims)?)
}

/// The complete shape of a tensor's value; an absent message is the shape of a scalar.
///
/// # Errors
/// As [`shape_from_proto`]; [`ConvertError::Incomplete`] when a part is unknown.
pub fn full_shape_from_proto(proto: Option<&TensorShapeProto>) -> Result<Shape, ConvertError> {
    let Some(proto) = proto else { return Ok(Shape::SCALAR) };
    let shape = shape_from_proto(proto)?;
    shape.full().ok_or(ConvertError::Incomplete { shape })
}

/// The message of a shape.
#[must_use]
pub fn shape_to_proto(shape: &PartialShape) -> TensorShapeProto {
    let dim = |&size: &i64| Dim { size, name: String::new() };
    match shape.dims() {
        Some(dims) => TensorShapeProto { dim: dims.iter().map(dim).collect(), unknown_rank: false },
        None => TensorShapeProto { dim: Vec::new(), unknown_rank: true },
    }
}
