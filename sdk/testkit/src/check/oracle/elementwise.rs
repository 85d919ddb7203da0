//! Whether an op computes each element from the element in the same place, and what that says of an overflow.
//!
//! A sum of squares, in a norm say, overflows in the type that its contract names, and the order of many terms decides
//! where: of such a result nothing is known. One element needs no such sum: a function of one number that is far from
//! the end of the range is infinite because of the way that it is computed, and is wrong. So is a function of several
//! numbers that grows with them, as the length of a vector does: it can be computed from numbers that are scaled. Of other
//! functions of several numbers (`dy * (1 - y * y)`, say) a part may overflow that the rest makes small.

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

/// Whether the floating inputs, those at `data`, are computed from element by element: each output's element from those
/// in its place. Inputs of several shapes are not looked at.
pub(super) fn is_elementwise(inputs: &[Tensor], data: &[usize], run: &Run<'_>) -> bool {
    let Some(plain) = samples(inputs, data) else { return false };
    let with = |changed: &[Tensor]| {
        let mut all = inputs.to_vec();
        data.iter().zip(changed).for_each(|(&at, input)| all[at] = input.clone());
        run(&all)
    };
    let Some(before) = with(&plain) else { return false };
    let lanes = lanes(plain[0].dtype());
    let count = plain[0].elements() * lanes;
    if before.is_empty() || before.iter().any(|output| output.len() != count) {
        return false;
    }
    (0..TURNS).all(|turn| {
        let mask = mask(plain[0].elements(), turn);
        let change = |input: &Tensor| {
            let place = RefCell::new(0);
            widen::map(input, |x| {
                let number = place.replace_with(|number| *number + 1);
                if mask[number / lanes] { x * 0.5 + 0.125 } else { x }
            })
        };
        let changed: Option<Vec<Tensor>> = plain.iter().map(change).collect();
        let Some(after) = changed.and_then(|inputs| with(&inputs)) else { return false };
        let same = |a: f64, b: f64| a == b || (a.is_nan() && b.is_nan());
        before.iter().zip(&after).all(|(before, after)| {
            let pairs = before.iter().zip(after).enumerate();
            pairs.into_iter().all(|(number, (&a, &b))| mask[number / lanes] || same(a, b))
        })
    })
}

/// Whether the outputs grow with the inputs, or stay as they are: twice the inputs give twice the outputs, or the same.
/// Of such a function of real numbers every step can be scaled, so that nothing on the way is larger than it has to be.
pub(super) fn scales(inputs: &[Tensor], data: &[usize], run: &Run<'_>) -> bool {
    let Some(plain) = samples(inputs, data) else { return false };
    if lanes(plain[0].dtype()) != 1 {
        return false;
    }
    let by = |factor: f64| {
        let mut all = inputs.to_vec();
        for (&at, input) in data.iter().zip(&plain) {
            all[at] = widen::map(input, |x| x * factor)?;
        }
        run(&all)
    };
    let (Some(before), Some(after)) = (by(1.0), by(2.0)) else { return false };
    [1.0, 2.0].iter().any(|factor| {
        let same = |(a, b): (&f64, &f64)| a * factor == *b || (a.is_nan() && b.is_nan());
        before.iter().flatten().zip(after.iter().flatten()).all(same)
    })
}

/// Ordinary numbers in the places of the inputs at `data`; `None` where they have several types or shapes.
fn samples(inputs: &[Tensor], data: &[usize]) -> Option<Vec<Tensor>> {
    let first = &inputs[*data.first()?];
    let is_alike =
        |&at: &usize| inputs[at].dtype() == first.dtype() && inputs[at].shape() == first.shape();
    if !data.iter().all(is_alike) {
        return None;
    }
    data.iter().map(|&at| sample(&inputs[at], 5 + at as u64)).collect()
}

/// Ordinary numbers in the input's shape, or one with more elements where it has few.
fn sample(input: &Tensor, seed: u64) -> Option<Tensor> {
    let mut dims = input.shape().dims().to_vec();
    if input.elements() < TELLING {
        match dims.last_mut() {
            Some(last) => *last = TELLING as i64,
            None => dims.push(TELLING as i64),
        }
    }
    let fill = Fill::Uniform { low: -2.0, high: 2.0, seed };
    let sample = Argument { dtype: input.dtype(), dims, fill, constant: false }.tensor().ok()?;
    (sample.elements() >= TELLING).then_some(sample)
}

/// About half of this many places.
fn mask(count: usize, seed: u64) -> Vec<bool> {
    let mut random = Random::new(seed);
    (0..count).map(|_| random.word() >> 63 == 0).collect()
}

/// Closes what is open where a result is finite and far from the end of its type's range.
pub(super) fn close(open: &mut [Vec<bool>], outputs: &[Tensor]) {
    /// This many times a result may grow before it overflows, to be far from the end.
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
        is_elementwise(&inputs, &[0], &|inputs| Some(vec![f(&widen::numbers(&inputs[0])?)]))
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
    fn functions_of_several_numbers_that_grow_with_them_are_told_from_others() {
        let fill = |seed| Fill::Uniform { low: 1e200, high: 1e210, seed };
        let input = |dims: &[i64], seed| {
            let (dtype, dims) = (DType::DOUBLE, dims.to_vec());
            Argument { dtype, dims, fill: fill(seed), constant: false }.tensor().unwrap()
        };
        let is_so = |other: &[i64], f: fn(f64, f64) -> f64| {
            let inputs = [input(&[40], 1), input(other, 2)];
            let run = |inputs: &[Tensor]| {
                let (x, y) = (widen::numbers(&inputs[0])?, widen::numbers(&inputs[1])?);
                let f = |(at, &x): (usize, &f64)| f(x, y[at % y.len()]);
                Some(vec![x.iter().enumerate().map(f).collect()])
            };
            is_elementwise(&inputs, &[0, 1], &run) && scales(&inputs, &[0, 1], &run)
        };
        assert!(is_so(&[40], |x, y| (x * x + y * y).sqrt()));
        assert!(is_so(&[40], |x, y| x / (x * x + y * y).sqrt()));
        assert!(
            !is_so(&[40], |y, dy| dy * (1.0 - y * y)),
            "a part overflows, and the rest is small"
        );
        assert!(!is_so(&[40], |x, y| x * x * y));
        assert!(!is_so(&[1], |x, y| (x * x + y * y).sqrt()), "other shapes are not looked at");
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
