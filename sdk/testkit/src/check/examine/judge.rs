//! Whether outputs are what they are to be: what an oracle says, or what an earlier call gave.

use crate::{
    compare::{Rule, compare},
    float::Format,
    golden::ExpectedOutput,
    harness::{WrongOutput, compare_bytes, wrong_output},
};
use tenon_framework::{
    DType, Tensor,
    abi::{Determinism, ToleranceKind},
    registry::KernelDef,
};

/// The problem with the outputs, held against those of an oracle.
pub(super) fn against(expected: &[(Tensor, Rule)], got: &[Tensor]) -> Result<(), WrongOutput> {
    let expected: Vec<ExpectedOutput> = expected
        .iter()
        .map(|(tensor, rule)| ExpectedOutput {
            dtype: tensor.dtype(),
            dims: tensor.shape().dims().to_vec(),
            value: Some((tensor.clone(), rule.clone())),
        })
        .collect();
    wrong_output(got, &expected)
}

/// What two calls of a kernel on the same inputs have in common.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Likeness<'a> {
    /// The same bits, any NaN for any other.
    Bits,
    /// Within twice the kernel's contract.
    Contract,
    /// Within these rules, one for each output.
    Rules(&'a [Rule]),
}

impl Likeness<'_> {
    /// What the kernel promises of two calls, on as many threads or, `across` numbers of threads, on others.
    pub fn of(kernel: &KernelDef, across: bool) -> Likeness<'static> {
        let promised = kernel.numerics.determinism;
        let enough = if across { Determinism::BITWISE } else { Determinism::RUN_TO_RUN };
        if promised >= enough { Likeness::Bits } else { Likeness::Contract }
    }
}

/// How two results on the same inputs differ by more than `likeness` allows.
pub(super) fn alike(
    kernel: &KernelDef,
    likeness: Likeness<'_>,
    first: &[Tensor],
    second: &[Tensor],
) -> Result<(), String> {
    if first.len() != second.len() {
        return Err(format!("{} outputs, then {}", first.len(), second.len()));
    }
    for (at, (first, second)) in first.iter().zip(second).enumerate() {
        let said = |problem: String| format!("output {at}: {problem}");
        if is_opaque(first.dtype()) {
            continue;
        }
        if likeness == Likeness::Bits && is_same(first, second) {
            continue;
        }
        let rule = match likeness {
            Likeness::Bits => Rule::Exact,
            Likeness::Contract => rule_of(kernel, first),
            Likeness::Rules(rules) => rules.get(at).map_or(Rule::Exact, Rule::clone),
        };
        // Which NaN an operation gives, languages and compilers leave open.
        compare(second, first, &rule).map_err(|mismatch| said(mismatch.to_string()))?;
    }
    Ok(())
}

/// The same type, shape and bytes.
pub(super) fn is_same(a: &Tensor, b: &Tensor) -> bool {
    a.dtype() == b.dtype() && a.shape() == b.shape() && compare_bytes(a, b)
}

/// Elements that refer to something elsewhere: they cannot be compared.
pub(super) fn is_opaque(dtype: DType) -> bool {
    matches!(dtype.base(), DType::RESOURCE | DType::VARIANT)
}

/// How far two results of one kernel may be apart where no bits are promised: twice as far as one from the
/// exact result; of sums, relative to the largest element.
fn rule_of(kernel: &KernelDef, value: &Tensor) -> Rule {
    let numerics = &kernel.numerics;
    match numerics.tolerance {
        ToleranceKind::EXACT => Rule::Exact,
        ToleranceKind::ULPS => Rule::Ulp((2.0 * numerics.ulps).ceil() as u64),
        ToleranceKind::ABSOLUTE_RELATIVE => {
            let absolute = 2.0 * (numerics.absolute + numerics.relative * largest(value));
            Rule::Close { absolute, relative: 2.0 * numerics.relative }
        }
        _ => {
            let epsilon = Format::of(value.dtype()).map_or(0.0, Format::epsilon);
            Rule::Close { absolute: 64.0 * epsilon * largest(value), relative: 0.0 }
        }
    }
}

/// The largest finite magnitude.
fn largest(value: &Tensor) -> f64 {
    let (Some(format), Ok(bytes)) = (Format::of(value.dtype()), value.as_bytes()) else {
        return 0.0;
    };
    let magnitudes = (0..value.elements()).map(|at| format.read(bytes, at).value().abs());
    magnitudes.filter(|magnitude| magnitude.is_finite()).fold(0.0, f64::max)
}
