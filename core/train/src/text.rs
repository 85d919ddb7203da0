//! Values as text, for lines that a person reads.

use tenon_framework::{
    DType, Tensor,
    element::{bf16, f16},
};

/// The most elements that are shown.
const MOST: usize = 6;

/// The elements of a small tensor; of a large one the first elements and the shape.
pub(crate) fn shown(value: &Tensor) -> String {
    fn texts<T: tenon_framework::element::Element>(
        value: &Tensor,
        text: impl Fn(&T) -> String,
    ) -> Option<Vec<String>> {
        Some(value.as_slice::<T>().ok()?.iter().take(MOST).map(text).collect())
    }
    let elements = match value.dtype() {
        DType::FLOAT => texts(value, |x: &f32| x.to_string()),
        DType::DOUBLE => texts(value, |x: &f64| x.to_string()),
        DType::HALF => texts(value, |x: &f16| x.to_string()),
        DType::BFLOAT16 => texts(value, |x: &bf16| x.to_string()),
        DType::INT32 => texts(value, |x: &i32| x.to_string()),
        DType::INT64 => texts(value, |x: &i64| x.to_string()),
        DType::BOOL => texts(value, |x: &bool| x.to_string()),
        DType::STRING => value.as_strings().ok().map(|strings| {
            let shown = strings.iter().take(MOST).map(|text| String::from_utf8_lossy(text));
            shown.map(|text| format!("{text:?}")).collect()
        }),
        _ => None,
    };
    let shape = value.shape();
    match elements {
        None => format!("{} of shape {shape}", value.dtype()),
        Some(elements) if shape.rank() == 0 => elements.concat(),
        Some(elements) if value.elements() <= MOST => format!("[{}]", elements.join(", ")),
        Some(elements) => format!("[{}, ...] of shape {shape}", elements.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_tensors_are_shown_in_part() {
        assert_eq!(shown(&Tensor::scalar(0.25f32).unwrap()), "0.25");
        assert_eq!(shown(&Tensor::from_slice(&[2], &[1i64, 2]).unwrap()), "[1, 2]");
        let large = Tensor::from_slice(&[2, 4], &[0i32, 1, 2, 3, 4, 5, 6, 7]).unwrap();
        assert_eq!(shown(&large), "[0, 1, 2, 3, 4, 5, ...] of shape [2, 4]");
        assert_eq!(shown(&Tensor::from_strings(&[1], &["a"]).unwrap()), "[\"a\"]");
    }
}
