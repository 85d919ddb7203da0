//! Whether an op is a sum of terms, and the sums of their absolute values.

use super::{is_float, reference::Call, widen};
use crate::check::{Fill, Subject, case::Argument};
use std::{cell::RefCell, collections::BTreeMap};
use tenon_framework::{Tensor, abi::ToleranceKind, attr::AttrMap, registry::KernelDef};

/// What an op is in its floating inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Linear in each.
    Multilinear,
    /// Linear in all together.
    Linear,
    /// Neither.
    Other,
}

/// What was found out of ops, by name and attributes.
#[derive(Debug, Default)]
pub(super) struct Known {
    kinds: RefCell<BTreeMap<String, (Kind, usize)>>,
}

/// So many cases of some size must agree on an op before it is taken for what they say.
const AGREEING: usize = 3;
/// Fewer elements may hide what an op is: the greatest of one number is linear.
const TELLING: usize = 64;

impl Known {
    /// The sums of the absolute values of the terms, per output and number; `None` where the op is no sum, or
    /// no contract asks for them.
    pub fn of(
        &self,
        call: &Call<'_>,
        subject: &Subject,
        inputs: &[Tensor],
        outputs: &[Tensor],
    ) -> Option<Vec<Vec<f64>>> {
        let asked = |def: &KernelDef| {
            !matches!(def.numerics.tolerance, ToleranceKind::EXACT | ToleranceKind::ULPS)
        };
        let floats = outputs.iter().all(|output| is_float(output.dtype()));
        if !(asked(&subject.kernel) || asked(&call.found.def)) || !floats || outputs.is_empty() {
            return None;
        }
        let (def, types) = call.widest(subject);
        let run = |inputs: &[Tensor]| -> Option<Vec<Vec<f64>>> {
            let outputs = call.in_types(&def, &types, inputs).ok()?;
            outputs.iter().map(widen::numbers).collect()
        };
        let data: Vec<usize> =
            (0..inputs.len()).filter(|&at| is_float(inputs[at].dtype())).collect();
        if data.is_empty() {
            return None;
        }
        let kind = self.kind(&key(subject, &call.case.attrs), inputs, &data, &run);
        let sums = sums(kind, inputs, &data, &run)?;
        let fits = sums.iter().zip(outputs).all(|(sums, output)| {
            widen::numbers(output).is_some_and(|numbers| numbers.len() == sums.len())
        });
        fits.then_some(sums)
    }

    fn kind(&self, key: &str, inputs: &[Tensor], data: &[usize], run: &Run<'_>) -> Kind {
        if let Some(&(kind, agreeing)) = self.kinds.borrow().get(key)
            && (kind == Kind::Other || agreeing >= AGREEING)
        {
            return kind;
        }
        let kind = probe(inputs, data, run);
        let telling = data.iter().any(|&at| inputs[at].elements() >= TELLING);
        if telling || kind == Kind::Other {
            let mut kinds = self.kinds.borrow_mut();
            let known = kinds.entry(key.to_owned()).or_insert((kind, 0));
            *known = if known.0 == kind { (kind, known.1 + 1) } else { (Kind::Other, 0) };
        }
        kind
    }
}

type Run<'a> = dyn Fn(&[Tensor]) -> Option<Vec<Vec<f64>>> + 'a;

/// Attributes but the types, which do not change what an op is.
fn key(subject: &Subject, attrs: &AttrMap) -> String {
    let others = attrs.iter().filter(|(name, _)| !subject.types.contains_key(*name));
    let text: Vec<String> = others.map(|(name, value)| format!("{name}={value:?}")).collect();
    format!("{} {}", subject.op.name, text.join(" "))
}

/// Finds out over ordinary numbers in the places of the case's own.
fn probe(inputs: &[Tensor], data: &[usize], run: &Run<'_>) -> Kind {
    let Some(ordinary) = ordinary(inputs, data) else { return Kind::Other };
    let Some(plain) = run(&ordinary) else { return Kind::Other };
    let scales = |places: &[usize], factor: f64| {
        let mut changed = ordinary.clone();
        for &at in places {
            let Some(scaled) = widen::map(&ordinary[at], |x| x * factor) else { return false };
            changed[at] = scaled;
        }
        run(&changed).is_some_and(|got| is_multiple(&got, &plain, factor))
    };
    let linear_in = |places: &[usize]| scales(places, -1.0) && scales(places, 2.0);
    if data.iter().all(|&at| linear_in(&[at])) {
        Kind::Multilinear
    } else if linear_in(data) {
        Kind::Linear
    } else {
        Kind::Other
    }
}

fn is_multiple(got: &[Vec<f64>], plain: &[Vec<f64>], factor: f64) -> bool {
    let same = |a: f64, b: f64| a == b * factor || (a.is_nan() && b.is_nan());
    got.len() == plain.len()
        && got.iter().zip(plain).all(|(got, plain)| {
            got.len() == plain.len() && got.iter().zip(plain).all(|(&a, &b)| same(a, b))
        })
}

/// The inputs with numbers of [-2, 2) for all that are floating.
fn ordinary(inputs: &[Tensor], data: &[usize]) -> Option<Vec<Tensor>> {
    let mut all = inputs.to_vec();
    for &at in data {
        let (dtype, dims) = (inputs[at].dtype(), inputs[at].shape().dims().to_vec());
        let fill = Fill::Uniform { low: -2.0, high: 2.0, seed: at as u64 };
        all[at] = Argument { dtype, dims, fill, constant: false }.tensor().ok()?;
    }
    Some(all)
}

fn sums(kind: Kind, inputs: &[Tensor], data: &[usize], run: &Run<'_>) -> Option<Vec<Vec<f64>>> {
    let magnitude =
        |at: usize, keep: bool| widen::map(&inputs[at], |x| if keep { x.abs() } else { 0.0 });
    let over = |kept: &dyn Fn(usize) -> bool| {
        let mut changed = inputs.to_vec();
        for &at in data {
            changed[at] = magnitude(at, kept(at))?;
        }
        let mut outputs = run(&changed)?;
        // `Neg` and the like turn the sign of a term.
        outputs.iter_mut().flatten().for_each(|x| *x = x.abs());
        Some(outputs)
    };
    match kind {
        Kind::Other => None,
        Kind::Multilinear => over(&|_| true),
        Kind::Linear => {
            let mut total = over(&|at| at == data[0])?;
            for &own in &data[1..] {
                let more = over(&|at| at == own)?;
                for (total, more) in total.iter_mut().flatten().zip(more.into_iter().flatten()) {
                    *total += more;
                }
            }
            Some(total)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Op = fn(&[Vec<f64>]) -> Vec<f64>;

    fn kind_of(op: Op, count: usize) -> Kind {
        let inputs: Vec<Tensor> =
            (0..count).map(|_| Tensor::from_slice(&[4], &[1.0f64; 4]).unwrap()).collect();
        let data: Vec<usize> = (0..count).collect();
        probe(&inputs, &data, &|inputs| {
            let inputs: Option<Vec<Vec<f64>>> = inputs.iter().map(widen::numbers).collect();
            Some(vec![op(&inputs?)])
        })
    }

    fn each(x: &[Vec<f64>], f: impl Fn(f64, f64) -> f64) -> Vec<f64> {
        x[0].iter().zip(x.last().unwrap()).map(|(&a, &b)| f(a, b)).collect()
    }

    #[test]
    fn sums_and_products_are_told_from_what_is_neither() {
        let dot: Op = |x| vec![each(x, |a, b| a * b).iter().sum()];
        assert_eq!(kind_of(dot, 2), Kind::Multilinear);
        assert_eq!(kind_of(|x| vec![x[0].iter().sum::<f64>() / 4.0], 1), Kind::Multilinear);
        assert_eq!(kind_of(|x| each(x, |a, b| a - b), 2), Kind::Linear);
        assert_eq!(kind_of(|x| each(x, f64::max), 2), Kind::Other);
        assert_eq!(kind_of(|x| each(x, |a, _| a.max(0.0)), 1), Kind::Other);
        assert_eq!(kind_of(|x| each(x, |a, _| a.tanh()), 1), Kind::Other);
        assert_eq!(kind_of(|x| each(x, |a, b| a / b), 2), Kind::Other);
    }

    #[test]
    fn terms_of_a_difference_do_not_cancel() {
        let inputs =
            [[3.0f64, -1.0], [3.0, 2.0]].map(|values| Tensor::from_slice(&[2], &values).unwrap());
        let sums = sums(Kind::Linear, &inputs, &[0, 1], &|inputs| {
            let numbers: Option<Vec<Vec<f64>>> = inputs.iter().map(widen::numbers).collect();
            Some(vec![each(&numbers?, |a, b| a - b)])
        });
        assert_eq!(sums.unwrap(), [[6.0, 3.0]]);
    }
}
