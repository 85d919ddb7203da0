//! The elements of the inputs that a wrong element was computed from, if they are known.

use crate::{check::case::CheckCase, compare::shown};
use tenon_framework::Tensor;

/// Says whether the op's shape function takes inputs of these shapes, and gives them an output of this one.
pub(super) type Takes<'a> = dyn Fn(&[Vec<i64>], &[i64]) -> bool + 'a;

/// `; at the same place input 0 holds -1.5e0 (0xbfc00000), input 1 ...`: of an op whose inputs have the shape of the
/// output, or are broadcast to it; `None` for any other, such as a sum along rows or a bias for each channel.
pub(super) fn inputs(
    case: &CheckCase,
    inputs: &[Tensor],
    (index, dims): (&[i64], &[i64]),
    takes: &Takes<'_>,
) -> Option<String> {
    let is_constant = |at: usize| case.inputs.get(at).is_some_and(|input| input.constant);
    let data = || inputs.iter().enumerate().filter(|(at, _)| !is_constant(*at));
    let is_whole = data().any(|(_, input)| input.shape().dims() == dims);
    let all: Vec<Vec<i64>> = inputs.iter().map(|input| input.shape().dims().to_vec()).collect();
    let words = data().map(|(at, input)| {
        let element = flat(input.shape().dims(), index, dims)?;
        is_broadcast(&all, at, dims, takes)
            .then(|| Some(format!("input {at} holds {}", shown(input, element)?)))?
    });
    let words = words.collect::<Option<Vec<_>>>()?;
    (is_whole && !words.is_empty()).then(|| format!("; at the same place {}", words.join(", ")))
}

/// Whether an input meets the output element by element, by broadcasting where it is smaller: then the shape function
/// takes ones in the place of its sizes, and the output's whole shape, and no size that is neither. A bias for each
/// channel may have the size of the last dimension by chance.
fn is_broadcast(all: &[Vec<i64>], at: usize, dims: &[i64], takes: &Takes<'_>) -> bool {
    let own = &all[at];
    if own == dims || own.iter().all(|&size| size == 1) {
        return true;
    }
    let with = |own: Vec<i64>| {
        let mut all = all.to_vec();
        all[at] = own;
        takes(&all, dims)
    };
    let other = own.iter().map(|&size| if size == 1 { 1 } else { size + 1 }).collect();
    with(vec![1; own.len()]) && with(dims.to_vec()) && !with(other)
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

    fn told_of(
        inputs: &[Tensor],
        index: &[i64],
        dims: &[i64],
        takes: &Takes<'_>,
    ) -> Option<String> {
        let (tags, attrs) = (Vec::new(), AttrMap::new());
        let case = CheckCase { name: String::new(), tags, attrs, inputs: Vec::new() };
        super::inputs(&case, inputs, (index, dims), takes)
    }

    /// Of an op that broadcasts.
    fn told(inputs: &[Tensor], index: &[i64], dims: &[i64]) -> Option<String> {
        told_of(inputs, index, dims, &|all, dims| {
            all.iter().all(|own| flat(own, &vec![0; dims.len()], dims).is_some())
        })
    }

    #[test]
    fn a_bias_of_each_channel_is_no_partner_of_the_last_dimension() {
        let x = Tensor::from_slice(&[1, 2, 1, 2], &[1i32, 2, 3, 4]).unwrap();
        let bias = Tensor::from_slice(&[2], &[7i32, 8]).unwrap();
        let all = [x, bias];
        let (index, dims) = ([0, 1, 0, 0], [1, 2, 1, 2]);
        let channels = |all: &[Vec<i64>], dims: &[i64]| all[1] == [dims[1]] && all[0] == dims;
        assert_eq!(told_of(&all, &index, &dims, &channels), None);
        let lax = |_: &[Vec<i64>], _: &[i64]| true;
        assert_eq!(told_of(&all, &index, &dims, &lax), None, "it takes any shape");
        let expected = "; at the same place input 0 holds 3, input 1 holds 7";
        assert_eq!(told(&all, &index, &dims).as_deref(), Some(expected));
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
