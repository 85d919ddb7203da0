//! Element types and shapes, as functions tell them.

use crate::{client::versioned::Versioned, fail::Failure, raw::Array};
use std::ffi::c_int;
use tenon_framework::{DType, PartialShape, abi::MAX_RANK};

/// An element type, as C passes it.
pub type TypeNumber = c_int;

/// The element type and the shape of a tensor, as far as they are known.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ValueInfo {
    /// sizeof(tn_value_info), which the caller sets.
    pub size: usize,
    /// The element type; 0 if it is not known.
    pub dtype: TypeNumber,
    /// The number of dimensions; -1 if it is not known.
    pub rank: c_int,
    /// The dimensions, of which the first "rank" count; -1 for those that are not known.
    pub dims: [i64; MAX_RANK],
}

// SAFETY: `repr(C)`, the size comes first, and zeros are numbers.
unsafe impl Versioned for ValueInfo {
    const NAME: &'static str = "tn_value_info";
}

impl ValueInfo {
    /// What is known of a value.
    pub fn of(dtype: Option<DType>, shape: &PartialShape) -> ValueInfo {
        let mut made = ValueInfo::defaults();
        made.dtype = dtype.map_or(0, |dtype| dtype.base().0 as c_int);
        made.rank = -1;
        if let Some(dims) = shape.dims() {
            made.rank = dims.len() as c_int;
            made.dims.iter_mut().zip(dims).for_each(|(to, &dim)| *to = dim);
        }
        made
    }
}

/// The element type with this number.
///
/// # Errors
/// The number names none, or is a reference type.
pub fn dtype(number: TypeNumber) -> Result<DType, Failure> {
    let dtype = DType(u32::try_from(number).unwrap_or(0));
    match dtype.is_valid() && !dtype.is_ref() {
        true => Ok(dtype),
        false => Err(Failure::invalid(format!(
            "{number} is no element type: expected a value of tn_dtype, such as TN_FLOAT"
        ))),
    }
}

/// The dimensions of a tensor.
///
/// # Errors
/// A rank that no tensor has, or null with a rank that is not 0.
pub fn dims<'a>(dims: Array<'a, i64>, rank: c_int) -> Result<&'a [i64], Failure> {
    let dims = dims.checked(rank, "the dimensions")?;
    if dims.len() > MAX_RANK {
        return Err(Failure::invalid(format!(
            "{} dimensions: expected {MAX_RANK} at most",
            dims.len()
        )));
    }
    Ok(dims)
}

/// A shape that may be known in part: -1 as a dimension is one that is not known, -1 as the rank a shape of which nothing is known.
///
/// # Errors
/// A rank that no tensor has, a dimension below -1.
pub fn shape(given: Array<'_, i64>, rank: c_int) -> Result<PartialShape, Failure> {
    match rank {
        -1 => Ok(PartialShape::UNKNOWN),
        _ => Ok(PartialShape::new(dims(given, rank)?)?),
    }
}
