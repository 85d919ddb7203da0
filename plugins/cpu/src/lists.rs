//! Lists of integers in inputs, without memory from the system.

use tenon_sdk::{DType, KernelError, author::ComputeContext, geometry::Dims};

/// As [`ComputeContext::integers`], of a list that the rank of a tensor bounds: axes, sizes, strides.
///
/// # Errors
/// As of [`ComputeContext::integers`]; or there are more integers than a tensor has dimensions.
pub fn short(c: &ComputeContext<'_>, input: usize) -> Result<Dims, KernelError> {
    match c.slot(input)?.dtype {
        DType::INT32 => {
            let mut dims = Dims::EMPTY;
            c.input::<i32>(input)?.data.iter().try_for_each(|&x| dims.push(x.into()))?;
            Ok(dims)
        }
        DType::INT64 => Ok(Dims::from_slice(c.input::<i64>(input)?.data)?),
        _ => Ok(Dims::from_slice(&c.integers(input)?)?),
    }
}

/// As [`ComputeContext::integer_list`], of a list that the rank of a tensor bounds.
///
/// # Errors
/// As of [`ComputeContext::integer_list`] and [`short`].
pub fn axes(c: &ComputeContext<'_>, input: usize, name: &str) -> Result<Dims, KernelError> {
    match c.dims(input) {
        [] | [_] => short(c, input),
        _ => Ok(Dims::from_slice(&c.integer_list(input, name)?)?),
    }
}

/// As [`ComputeContext::integers`], of a list of any length: the input itself where it has 64 bits,
/// else scratch memory of the call.
///
/// # Errors
/// As of [`ComputeContext::integers`].
pub fn long<'a>(c: &ComputeContext<'a>, input: usize) -> Result<&'a [i64], KernelError> {
    match c.slot(input)?.dtype {
        DType::INT64 => Ok(c.input::<i64>(input)?.data),
        DType::INT32 => {
            let x = c.input::<i32>(input)?.data;
            let wide = c.scratch_slice::<i64>(x.len())?;
            wide.iter_mut().zip(x).for_each(|(wide, &x)| *wide = x.into());
            Ok(wide)
        }
        _ => {
            let x = c.integers(input)?;
            let wide = c.scratch_slice::<i64>(x.len())?;
            wide.copy_from_slice(&x);
            Ok(wide)
        }
    }
}
