//! Whether an op computes each element from the element in the same place, and what that says of an overflow.
//!
//! A sum of squares, in a norm say, overflows in the type that its contract names, and the order of many terms decides
//! where: of such a result nothing is known. One element needs no such sum: a function of one number that is far from
//! the end of the range is infinite because of the way that it is computed, and is wrong.

use super::widen;
use crate::{
    check::{Fill, case::Argument, fill::Random},
    compare::lanes,
    float::Format,
};
use std::cell::RefCell;
use tenon_framework::{
    Tensor,
    abi::{Numerics, ToleranceKind},
};

type Run<'a> = dyn Fn(&[Tensor]) -> Option<Vec<Vec<f64>>> + 'a;

/// Elements from which on independence of the others can be seen.
const TELLING: usize = 16;
/// Seeds of the elements that are changed.
const TURNS: u64 = 3;

/// Whether a contract is about each result as it is, and names no type in which sums are kept: such a type may
/// overflow.
pub(super) fn is_of_elements(numerics: &Numerics) -> bool {
    let is_stated = matches!(
        numerics.tolerance,
        ToleranceKind::EXACT | ToleranceKind::ULPS | ToleranceKind::ABSOLUTE_RELATIVE
    );
    is_stated && Format::of_parts(numerics.accumulation).is_none()
}

/// Whether a function of one floating input, the one at `at`, computes each element from the one in its place.
pub(super) fn is_elementwise(inputs: &[Tensor], at: usize, run: &Run<'_>) -> bool {
    let Some(plain) = sample(&inputs[at]) else { return false };
    let lanes = lanes(plain.dtype());
    let with = |input: &Tensor| {
        let mut all = inputs.to_vec();
        all[at] = input.clone();
        run(&all)
    };
    let Some(before) = with(&plain) else { return false };
    let count = plain.elements() * lanes;
    if before.is_empty() || before.iter().any(|output| output.len() != count) {
        return false;
    }
    (0..TURNS).all(|turn| {
        let mask = mask(plain.elements(), turn);
        let place = RefCell::new(0);
        let changed = widen::map(&plain, |x| {
            let number = place.replace_with(|number| *number + 1);
            if mask[number / lanes] { x * 0.5 + 0.125 } else { x }
        });
        let Some(after) = changed.and_then(|input| with(&input)) else { return false };
        let same = |a: f64, b: f64| a == b || (a.is_nan() && b.is_nan());
        before.iter().zip(&after).all(|(before, after)| {
            let pairs = before.iter().zip(after).enumerate();
            pairs.into_iter().all(|(number, (&a, &b))| mask[number / lanes] || same(a, b))
        })
    })
}

/// Ordinary numbers in the input's shape, or one with more elements where it has few.
fn sample(input: &Tensor) -> Option<Tensor> {
    let mut dims = input.shape().dims().to_vec();
    if input.elements() < TELLING {
        match dims.last_mut() {
            Some(last) => *last = TELLING as i64,
            None => dims.push(TELLING as i64),
        }
    }
    let fill = Fill::Uniform { low: -2.0, high: 2.0, seed: 5 };
    let sample = Argument { dtype: input.dtype(), dims, fill, constant: false }.tensor().ok()?;
    (sample.elements() >= TELLING).then_some(sample)
}

/// About half of so many places.
fn mask(count: usize, seed: u64) -> Vec<bool> {
    let mut random = Random::new(seed);
    (0..count).map(|_| random.word() >> 63 == 0).collect()
}

/// Closes what is open where a result is finite and far from the end of its type's range.
pub(super) fn close(open: &mut [Vec<bool>], outputs: &[Tensor]) {
    /// So many times a result may grow before it overflows, to be far from the end.
    const FAR: f64 = 16.0;
    for (open, output) in open.iter_mut().zip(outputs) {
        let numbers = widen::numbers(output).unwrap_or_default();
        let Some(format) = Format::of_parts(output.dtype()) else { continue };
        for (open, number) in open.iter_mut().zip(numbers) {
            *open &= !number.is_finite() || number.abs() > format.greatest() / FAR;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_framework::{DType, abi::Determinism};

    fn is_so(dims: &[i64], f: fn(&[f64]) -> Vec<f64>) -> bool {
        let fill = Fill::Uniform { low: 1e200, high: 1e210, seed: 1 };
        let input = Argument { dtype: DType::DOUBLE, dims: dims.to_vec(), fill, constant: false };
        let inputs = [input.tensor().unwrap()];
        is_elementwise(&inputs, 0, &|inputs| Some(vec![f(&widen::numbers(&inputs[0])?)]))
    }

    #[test]
    fn functions_of_elements_are_told_from_those_of_rows() {
        let each: fn(&[f64]) -> Vec<f64> = |x| x.iter().map(|x| (x * x).sqrt()).collect();
        let norm: fn(&[f64]) -> Vec<f64> = |x| {
            let sum = x.iter().map(|x| x * x).sum::<f64>().sqrt();
            x.iter().map(|x| x / sum).collect()
        };
        for dims in [&[][..], &[1], &[3, 1], &[40]] {
            assert!(is_so(dims, each), "{dims:?}");
            assert!(!is_so(dims, norm), "{dims:?}");
            assert!(!is_so(dims, |x| x.iter().rev().copied().collect()), "{dims:?}");
        }
        assert!(!is_so(&[0, 3], each), "of nothing, nothing can be seen");
        assert!(!is_so(&[40], |x| vec![x.iter().sum()]));
    }

    #[test]
    fn what_is_finite_and_far_from_the_end_is_closed() {
        let outputs = [Tensor::from_slice(&[4], &[1e25f32, f32::MAX, f32::INFINITY, 0.0]).unwrap()];
        let mut open = [vec![true, true, true, false]];
        close(&mut open, &outputs);
        assert_eq!(open, [[false, true, true, false]]);
    }

    #[test]
    fn a_contract_that_names_a_type_for_sums_may_overflow_in_it() {
        let of = |tolerance, accumulation| Numerics {
            tolerance,
            determinism: Determinism::NONE,
            ulps: 0.0,
            absolute: 0.0,
            relative: 1e-5,
            accumulation,
            reserved: 0,
        };
        assert!(is_of_elements(&of(ToleranceKind::ABSOLUTE_RELATIVE, DType::INVALID)));
        assert!(!is_of_elements(&of(ToleranceKind::ABSOLUTE_RELATIVE, DType::FLOAT)));
        assert!(!is_of_elements(&of(ToleranceKind::UNSPECIFIED, DType::INVALID)));
    }
}
