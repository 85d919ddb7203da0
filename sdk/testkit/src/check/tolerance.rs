//! How far a result may be from the oracle's, from the numerics contracts of both kernels.
//!
//! Both stay within their contracts of the true value, so their distance is at most the sum of both. A contract
//! of
//! - `EXACT` allows nothing; where the op is a selection among equal values (`Maximum`, `Relu`, ...), both zeros
//!   are one number, since IEEE 754 leaves open which of them is chosen.
//! - `ULPS` allows this many representable numbers; both zeros are one number.
//! - `ABSOLUTE_RELATIVE` allows `absolute + relative * base`. The base is `|expected|`, or more where terms cancel
//!   and their rounding stays, so that no implementation is near relative to the rest: for a sum the absolute
//!   values of its terms, for another function its sensitivity ([`oracle`](super::oracle) says how they are had).
//! - `UNSPECIFIED` allows PyTorch's defaults for the element type (`torch.testing.assert_close`): relative and
//!   absolute 1.3e-6 and 1e-5 for float, 1e-7 and 1e-7 for double, 1e-3 and 1e-5 for half, 1.6e-2 and 1e-5 for
//!   bfloat16. For a sum of n terms it allows `(2 sqrt(n) + 2) epsilon` more of their absolute values, the law of
//!   the golden data (tests/goldens/README.md), with the epsilon of the type in which sums are kept: what the
//!   registration says, else float for 16 bits, as TensorFlow keeps them, else the element type.
//!
//! A reference that keeps its sums in a wider type than its output rounds once and takes half a step. Integers,
//! bools and strings are compared by value under every contract.

use crate::{compare::Rule, float::Format};
use tenon_framework::{
    DType, Tensor,
    abi::{Numerics, ToleranceKind},
};

/// What is known of one output.
#[derive(Clone, Copy)]
pub(super) struct Output<'a> {
    /// What the oracle gives.
    pub expected: &'a Tensor,
    /// What a relative contract is about besides the result, number by number.
    pub bases: Option<&'a [f64]>,
    /// Numbers of which nothing is known, not even whether they are finite.
    pub open: Option<&'a [bool]>,
    /// For a sum: it has no more terms than these, and `bases` are the sums of their absolute values.
    pub terms: Option<usize>,
    /// Whether the op selects among its inputs.
    pub selects: bool,
}

/// The rule for an output of a kernel against a reference with these contracts.
pub(super) fn rule(kernel: &Numerics, reference: &Numerics, output: Output<'_>) -> Rule {
    let dtype = output.expected.dtype();
    let Some(format) = Format::of_parts(dtype) else { return Rule::Exact };
    let ulps = (ulps_of(kernel, dtype, false), ulps_of(reference, dtype, true));
    if let (Some(own), Some(its)) = ulps {
        return match own + its {
            0 if output.selects => Rule::Ulp(0),
            0 => Rule::Exact,
            sum => Rule::Ulp(sum),
        };
    }
    Rule::Within { allowed: distances(kernel, reference, output, format) }
}

/// The contract as a number of representable numbers, where it is one. A reference that rounds once is within half
/// of one, which moves no result by a whole one.
fn ulps_of(numerics: &Numerics, dtype: DType, is_reference: bool) -> Option<u64> {
    match numerics.tolerance {
        ToleranceKind::EXACT => Some(0),
        ToleranceKind::ULPS if is_reference && is_wider(numerics.accumulation, dtype) => Some(0),
        ToleranceKind::ULPS => Some(numerics.ulps as u64),
        _ => None,
    }
}

fn is_wider(accumulation: DType, dtype: DType) -> bool {
    let bits = |dtype| Format::of_parts(dtype).map_or(0, Format::mantissa);
    bits(accumulation) > bits(dtype)
}

/// The distance that is allowed for each number.
fn distances(
    kernel: &Numerics,
    reference: &Numerics,
    output: Output<'_>,
    format: Format,
) -> Vec<f64> {
    let dtype = output.expected.dtype();
    let Ok(bytes) = output.expected.as_bytes() else { return Vec::new() };
    let count = bytes.len() / format.size();
    (0..count)
        .map(|at| {
            let number = format.read(bytes, at);
            if output.open.is_some_and(|open| open[at]) {
                return f64::INFINITY;
            }
            let base = output.bases.map_or(0.0, |bases| bases[at]);
            // The greater of a number and NaN is the number.
            let base = base.max(number.value().abs());
            let base = if base.is_finite() { base } else { 0.0 };
            let one = |numerics| allowed(numerics, dtype, base, number.step(), output.terms);
            // The reference's rounding of its result is not in its contract's relative part.
            one(kernel) + one(reference).max(number.step() / 2.0)
        })
        .collect()
}

/// What a contract allows about a number.
fn allowed(numerics: &Numerics, dtype: DType, base: f64, step: f64, terms: Option<usize>) -> f64 {
    match numerics.tolerance {
        ToleranceKind::EXACT => 0.0,
        ToleranceKind::ULPS => numerics.ulps * step,
        ToleranceKind::ABSOLUTE_RELATIVE => numerics.absolute + numerics.relative * base,
        _ => {
            let (relative, absolute) = defaults(dtype);
            let summed = terms.map_or(0.0, |count| {
                (2.0 * (count as f64).sqrt() + 2.0) * accumulation_epsilon(numerics, dtype)
            });
            absolute + (relative + summed) * base
        }
    }
}

/// PyTorch's defaults: relative and absolute.
fn defaults(dtype: DType) -> (f64, f64) {
    match dtype {
        DType::HALF => (1e-3, 1e-5),
        DType::BFLOAT16 => (1.6e-2, 1e-5),
        DType::DOUBLE | DType::COMPLEX128 => (1e-7, 1e-7),
        _ => (1.3e-6, 1e-5),
    }
}

fn accumulation_epsilon(numerics: &Numerics, dtype: DType) -> f64 {
    let own = match dtype {
        DType::HALF | DType::BFLOAT16 => DType::FLOAT,
        _ => dtype,
    };
    let stated = Format::of_parts(numerics.accumulation);
    stated.or_else(|| Format::of_parts(own)).map_or(0.0, Format::epsilon)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::compare;
    use half::f16;

    fn numerics(tolerance: ToleranceKind, figures: [f64; 3], accumulation: DType) -> Numerics {
        let [ulps, absolute, relative] = figures;
        Numerics {
            tolerance,
            determinism: tenon_framework::abi::Determinism::NONE,
            ulps,
            absolute,
            relative,
            accumulation,
            reserved: 0,
        }
    }

    fn exact() -> Numerics {
        numerics(ToleranceKind::EXACT, [0.0; 3], DType::INVALID)
    }

    fn ulps(ulps: f64, accumulation: DType) -> Numerics {
        numerics(ToleranceKind::ULPS, [ulps, 0.0, 0.0], accumulation)
    }

    fn plain(expected: &Tensor) -> Output<'_> {
        Output { expected, bases: None, open: None, terms: None, selects: false }
    }

    fn floats(values: &[f32]) -> Tensor {
        Tensor::from_slice(&[values.len() as i64], values).unwrap()
    }

    #[test]
    fn contracts_of_steps_add_up_and_a_reference_that_rounds_once_adds_none() {
        let expected = floats(&[1.0]);
        let of =
            |kernel: &Numerics, reference: &Numerics| rule(kernel, reference, plain(&expected));
        assert_eq!(of(&exact(), &exact()), Rule::Exact);
        let two = ulps(2.0, DType::INVALID);
        assert_eq!(of(&two, &ulps(1.0, DType::DOUBLE)), Rule::Ulp(2));
        assert_eq!(of(&two, &ulps(1.0, DType::INVALID)), Rule::Ulp(3));
        assert_eq!(of(&exact(), &ulps(1.0, DType::DOUBLE)), Rule::Exact);
        let selects = Output { selects: true, ..plain(&expected) };
        assert_eq!(rule(&exact(), &exact(), selects), Rule::Ulp(0));
    }

    #[test]
    fn what_cancels_is_judged_by_its_terms() {
        let expected = floats(&[0.0, 8.0]);
        let relative = numerics(ToleranceKind::ABSOLUTE_RELATIVE, [0.0, 1e-30, 1e-6], DType::FLOAT);
        let terms = [100.0, 100.0];
        let output = Output { bases: Some(&terms), terms: Some(10), ..plain(&expected) };
        let rule = super::rule(&relative, &ulps(1.0, DType::DOUBLE), output);
        assert!(compare(&floats(&[9e-5, 8.00009]), &expected, &rule).is_ok());
        assert!(compare(&floats(&[1.2e-4, 8.0]), &expected, &rule).is_err());
        let without = super::rule(&relative, &exact(), plain(&expected));
        assert!(compare(&floats(&[9e-5, 8.0]), &expected, &without).is_err());
    }

    #[test]
    fn what_is_open_may_be_anything() {
        let expected = floats(&[f32::MAX, f32::INFINITY]);
        let output = Output { open: Some(&[true, false]), ..plain(&expected) };
        let relative = numerics(ToleranceKind::ABSOLUTE_RELATIVE, [0.0, 0.0, 1e-6], DType::FLOAT);
        let rule = super::rule(&relative, &exact(), output);
        assert!(compare(&floats(&[f32::NAN, f32::INFINITY]), &expected, &rule).is_ok());
        assert!(compare(&floats(&[f32::MAX, f32::NAN]), &expected, &rule).is_err());
    }

    /// Eight thousand ones in half precision: a sum that is kept in half stops at 2048.
    #[test]
    fn sums_that_are_kept_in_half_are_found_without_a_contract() {
        let half = |values: &[f32]| {
            let values: Vec<f16> = values.iter().map(|&x| f16::from_f32(x)).collect();
            Tensor::from_slice(&[values.len() as i64], &values).unwrap()
        };
        let (expected, terms) = (half(&[8000.0]), [8000.0]);
        let output = Output { bases: Some(&terms), terms: Some(8000), ..plain(&expected) };
        let nothing = numerics(ToleranceKind::UNSPECIFIED, [0.0; 3], DType::INVALID);
        let rule = super::rule(&nothing, &ulps(1.0, DType::DOUBLE), output);
        assert!(compare(&half(&[8004.0]), &expected, &rule).is_ok());
        assert!(compare(&half(&[2048.0]), &expected, &rule).is_err());
        assert!(compare(&half(&[7936.0]), &expected, &rule).is_err());
    }

    #[test]
    fn integers_are_compared_by_value_whatever_the_contract() {
        let expected = Tensor::from_slice(&[1], &[7i32]).unwrap();
        assert_eq!(rule(&ulps(4.0, DType::INVALID), &exact(), plain(&expected)), Rule::Exact);
    }
}
