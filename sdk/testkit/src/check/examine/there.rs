//! The elements of the inputs that a wrong element was computed from, where that can be told.

use crate::{check::case::CheckCase, compare::shown};
use tenon_framework::Tensor;

/// `; at the same place input 0 holds -1.5e0 (0xbfc00000), input 1 ...`: of an op whose inputs have the shape of the
/// output, or are broadcast to it; `None` for any other.
pub(super) fn inputs(
    case: &CheckCase,
    inputs: &[Tensor],
    index: &[i64],
    dims: &[i64],
) -> Option<String> {
    let is_constant = |at: usize| case.inputs.get(at).is_some_and(|input| input.constant);
    let data = || inputs.iter().enumerate().filter(|(at, _)| !is_constant(*at));
    let is_whole = data().any(|(_, input)| input.shape().dims() == dims);
    let words = data().map(|(at, input)| {
        let element = flat(input.shape().dims(), index, dims)?;
        Some(format!("input {at} holds {}", shown(input, element)?))
    });
    let words = words.collect::<Option<Vec<_>>>()?;
    (is_whole && !words.is_empty()).then(|| format!("; at the same place {}", words.join(", ")))
}

/// The flat position of an index of an output of these dimensions in an input that is broadcast to it.
fn flat(own: &[i64], index: &[i64], dims: &[i64]) -> Option<usize> {
    let missing = dims.len().checked_sub(own.len())?;
    let mut at = 0;
    for ((&own, &dim), &index) in own.iter().zip(&dims[missing..]).zip(index.get(missing..)?) {
        let place = match own {
            1 => 0,
            own if own == dim => index,
            _ => return None,
        };
        at = at * own + place;
    }
    usize::try_from(at).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_framework::attr::AttrMap;

    fn told(inputs: &[Tensor], index: &[i64], dims: &[i64]) -> Option<String> {
        let (tags, attrs) = (Vec::new(), AttrMap::new());
        let case = CheckCase { name: String::new(), tags, attrs, inputs: Vec::new() };
        super::inputs(&case, inputs, index, dims)
    }

    #[test]
    fn the_elements_of_an_elementwise_op_are_told() {
        let x = Tensor::from_slice(&[2, 3], &[1i32, 2, 3, 4, 5, 6]).unwrap();
        let row = Tensor::from_slice(&[3], &[7i32, 8, 9]).unwrap();
        let column = Tensor::from_slice(&[2, 1], &[10i32, 11]).unwrap();
        let scalar = Tensor::scalar(true).unwrap();
        let all = [x.clone(), row, column, scalar];
        assert_eq!(
            told(&all, &[1, 2], &[2, 3]).as_deref(),
            Some(
                "; at the same place input 0 holds 6, input 1 holds 9, input 2 holds 11, input 3 holds true"
            )
        );
        // A sum, and a product of matrices.
        assert_eq!(told(&all[..1], &[1], &[2]), None);
        assert_eq!(told(&[x.clone(), x], &[0, 0], &[2, 2]), None);
    }
}
