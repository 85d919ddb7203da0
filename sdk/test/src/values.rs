//! Tensors in few words.

use tenon_framework::{Tensor, element::Element};

/// A vector of floats.
///
/// # Panics
/// When there is no memory.
pub fn floats(values: &[f32]) -> Tensor {
    shaped(&[values.len() as i64], values)
}

/// A tensor of this shape.
///
/// # Panics
/// When the shape has another number of elements, or there is no memory.
pub fn shaped<T: Element>(dims: &[i64], values: &[T]) -> Tensor {
    Tensor::from_slice(dims, values).unwrap_or_else(|e| panic!("{e}"))
}

/// A single element.
///
/// # Panics
/// When there is no memory.
pub fn scalar<T: Element>(value: T) -> Tensor {
    Tensor::scalar(value).unwrap_or_else(|e| panic!("{e}"))
}

/// The elements of a tensor.
///
/// # Panics
/// When it holds another type.
pub fn elements<T: Element>(tensor: &Tensor) -> Vec<T> {
    tensor.as_slice::<T>().unwrap_or_else(|e| panic!("{e}")).to_vec()
}

/// The texts of a string tensor; bytes that are not UTF-8 are replaced.
///
/// # Panics
/// When it holds another type.
pub fn texts(tensor: &Tensor) -> Vec<String> {
    let texts = tensor.as_strings().unwrap_or_else(|e| panic!("{e}"));
    texts.into_iter().map(|text| String::from_utf8_lossy(text).into_owned()).collect()
}
