//! Constants that patterns treat as numbers.

use half::{bf16, f16};
use tenon_framework::{DType, Tensor, element::Number};

/// The maximum number of elements of a constant that is examined.
const MAX_ELEMENTS: usize = 64;

/// Whether each element of a constant is the nearest value of its type to a number. Computing with
/// the number in that type then gives the same result.
pub(super) fn is_number(tensor: &Tensor, number: f64) -> bool {
    fn all<T: Number>(tensor: &Tensor, number: f64) -> bool {
        let nearest = T::from_f64(number);
        let is_nearest = |value: &T| {
            let (value, nearest) = (value.to_f64(), nearest.to_f64());
            value.to_bits() == nearest.to_bits()
        };
        let exact = T::IS_FLOAT || nearest.to_f64().to_bits() == number.to_bits();
        exact && tensor.as_slice::<T>().is_ok_and(|values| values.iter().all(is_nearest))
    }
    if !(1..=MAX_ELEMENTS).contains(&tensor.elements()) {
        return false;
    }
    match tensor.dtype() {
        DType::DOUBLE => all::<f64>(tensor, number),
        DType::FLOAT => all::<f32>(tensor, number),
        DType::HALF => all::<f16>(tensor, number),
        DType::BFLOAT16 => all::<bf16>(tensor, number),
        DType::INT32 => all::<i32>(tensor, number),
        DType::INT64 => all::<i64>(tensor, number),
        _ => false,
    }
}

/// The element of a constant with a single element.
pub(super) fn single(tensor: &Tensor) -> Option<f64> {
    fn only<T: Number>(tensor: &Tensor) -> Option<f64> {
        match tensor.as_slice::<T>().ok()? {
            [value] => Some(value.to_f64()),
            _ => None,
        }
    }
    match tensor.dtype() {
        DType::DOUBLE => only::<f64>(tensor),
        DType::FLOAT => only::<f32>(tensor),
        DType::HALF => only::<f16>(tensor),
        DType::BFLOAT16 => only::<bf16>(tensor),
        DType::INT32 => only::<i32>(tensor),
        _ => None,
    }
}

#[cfg(test)]
#[allow(clippy::approx_constant, reason = "graphs have the number with few digits")]
mod tests {
    use super::*;
    use std::f64::consts::FRAC_1_SQRT_2;

    fn scalar<T: Number>(value: T) -> Tensor {
        Tensor::scalar(value).unwrap()
    }

    #[test]
    fn a_number_is_the_nearest_value_of_the_type_of_the_constant() {
        assert!(is_number(&scalar(FRAC_1_SQRT_2), FRAC_1_SQRT_2));
        assert!(is_number(&scalar(FRAC_1_SQRT_2 as f32), FRAC_1_SQRT_2));
        assert!(is_number(&scalar(0.707_106_78_f32), FRAC_1_SQRT_2));
        assert!(is_number(&scalar(f16::from_f32(0.7071)), FRAC_1_SQRT_2));
        assert!(is_number(&scalar(bf16::from_f32(0.7071)), FRAC_1_SQRT_2));
        assert!(is_number(&scalar(3i32), 3.0));
        assert!(is_number(&Tensor::from_slice(&[2], &[2i64, 2]).unwrap(), 2.0));
    }

    #[test]
    fn a_neighbour_of_the_nearest_value_is_another_number() {
        // Eight digits are enough for single precision, but not for double.
        assert!(!is_number(&scalar(0.707_106_78_f64), FRAC_1_SQRT_2));
        assert!(!is_number(&scalar((FRAC_1_SQRT_2 as f32).next_up()), FRAC_1_SQRT_2));
        let half = f16::from_bits(f16::from_f64(FRAC_1_SQRT_2).to_bits() + 1);
        assert!(!is_number(&scalar(half), FRAC_1_SQRT_2));
        assert!(!is_number(&scalar(0i32), FRAC_1_SQRT_2));
        assert!(!is_number(&scalar(-0.0f32), 0.0));
        assert!(!is_number(&scalar(f32::NAN), 0.5));
        assert!(!is_number(&Tensor::from_slice(&[2], &[2f32, 3.0]).unwrap(), 2.0));
        assert!(!is_number(&Tensor::from_slice::<f32>(&[0], &[]).unwrap(), 2.0));
    }

    #[test]
    fn the_one_value_of_a_constant_is_read() {
        assert_eq!(single(&scalar(f16::from_f32(0.125))), Some(0.125));
        assert_eq!(single(&Tensor::from_slice(&[1, 1], &[-2.5f64]).unwrap()), Some(-2.5));
        assert_eq!(single(&Tensor::from_slice(&[2], &[1f32, 1.0]).unwrap()), None);
    }
}
