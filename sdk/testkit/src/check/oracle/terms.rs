//! Whether an op is a sum of terms, and what the contract of its results is relative to.

use super::{elementwise, is_float, reference::Call, widen};
use crate::{
    check::{Fill, Subject, case::Argument, fill::Random},
    float::Format,
};
use std::{cell::RefCell, collections::BTreeMap};
use tenon_framework::{DType, Tensor, abi::ToleranceKind, attr::AttrMap, registry::KernelDef};

/// What an op is in its floating inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Linear in each.
    Multilinear,
    /// Linear in all together.
    Linear,
    /// Neither, but a product of many terms: twice the inputs give the results times a power of two.
    Product,
    /// None of these.
    Other,
}

/// What contracts are relative to, per output and number.
pub(super) struct Bases {
    pub numbers: Vec<Vec<f64>>,
    /// Whether they are sums of the absolute values of terms.
    pub are_sums: bool,
    /// Numbers that overflow or not, in the end or on the way, as an implementation has it.
    pub open: Vec<Vec<bool>>,
    /// Whether an infinity may meet a zero that the op's definition does not know of.
    pub may_be_nan: bool,
}

/// What was found out of ops, by name and attributes.
#[derive(Debug, Default)]
pub(super) struct Known {
    kinds: RefCell<BTreeMap<String, (Kind, usize)>>,
}

/// This many cases of some size must agree on an op before it is taken for what they say.
const AGREEING: usize = 3;
/// Fewer elements may hide what an op is: the greatest of one number is linear.
const TELLING: usize = 64;

impl Known {
    /// What contracts are relative to beside the result itself; `None` where no contract asks for it.
    pub fn of(
        &self,
        call: &Call<'_>,
        subject: &Subject,
        inputs: &[Tensor],
        outputs: &[Tensor],
    ) -> Option<Bases> {
        let data: Vec<usize> =
            (0..inputs.len()).filter(|&at| is_float(inputs[at].dtype())).collect();
        let floats = outputs.iter().all(|output| is_float(output.dtype()));
        let asked = is_relative(&subject.kernel) || is_relative(&call.found.def);
        if !asked || !floats || data.is_empty() || outputs.is_empty() {
            return None;
        }
        let (def, types) = call.widest(subject);
        let run = |inputs: &[Tensor]| -> Option<Vec<Vec<f64>>> {
            let outputs = call.in_types(&def, &types, inputs).ok()?;
            outputs.iter().map(widen::numbers).collect()
        };
        let kind = match self.kind(&key(subject, &call.case.attrs), inputs, &data, &run) {
            Kind::Other if is_product(inputs, &data, &run) => Kind::Product,
            kind => kind,
        };
        let mut bases = bases(kind, (inputs, &data), outputs, step(&types), &run)?;
        if kind == Kind::Other
            && elementwise::is_of_elements(&subject.kernel.numerics)
            && bases.open.iter().flatten().any(|open| *open)
            && elementwise::is_elementwise(inputs, &data, &run)
            && (data.len() == 1 || elementwise::scales(inputs, &data, &run))
        {
            elementwise::close(&mut bases.open, outputs);
        }
        let fits = bases.numbers.iter().zip(outputs).all(|(numbers, output)| {
            widen::numbers(output).is_some_and(|own| own.len() == numbers.len())
        });
        fits.then_some(bases)
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

/// Whether a contract is relative to something.
fn is_relative(def: &KernelDef) -> bool {
    !matches!(def.numerics.tolerance, ToleranceKind::EXACT | ToleranceKind::ULPS)
}

fn bases(
    kind: Kind,
    (inputs, data): (&[Tensor], &[usize]),
    outputs: &[Tensor],
    step: f64,
    run: &Run<'_>,
) -> Option<Bases> {
    if matches!(kind, Kind::Other | Kind::Product) {
        let mut open = beyond(inputs, data, run, Beyond::Nearer)?;
        let ends = [Beyond::Infinite, Beyond::Zero, Beyond::Larger];
        for end in ends.into_iter().filter(|_| kind == Kind::Product) {
            let more = beyond(inputs, data, run, end)?;
            let both = open.iter_mut().flatten().zip(more.into_iter().flatten());
            both.for_each(|(open, more)| *open |= more);
        }
        let numbers = sensitivities(inputs, data, run, step)?;
        return Some(Bases { numbers, are_sums: false, open, may_be_nan: false });
    }
    let numbers = sums(kind, inputs, data, run)?;
    let open = match may_overflow(inputs, data, outputs) {
        true => overflows(kind, inputs, data, run, outputs, step)?,
        false => closed(&numbers),
    };
    let infinite =
        |&at: &usize| widen::numbers(&inputs[at]).is_some_and(|n| n.iter().any(|x| !x.is_finite()));
    let may_be_nan = kind == Kind::Multilinear && data.len() > 1 && data.iter().any(infinite);
    Some(Bases { numbers, are_sums: true, open, may_be_nan })
}

fn closed(numbers: &[Vec<f64>]) -> Vec<Vec<bool>> {
    numbers.iter().map(|numbers| vec![false; numbers.len()]).collect()
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

/// Whether twice the inputs give each result times a power of two, and more than four times one of them: of two
/// factors, as of a square, there is but one order. How many there are, differs from case to case.
fn is_product(inputs: &[Tensor], data: &[usize], run: &Run<'_>) -> bool {
    let Some(ordinary) = ordinary(inputs, data) else { return false };
    let mut twice = ordinary.clone();
    for &at in data {
        let Some(scaled) = widen::map(&ordinary[at], |x| 2.0 * x) else { return false };
        twice[at] = scaled;
    }
    let (Some(plain), Some(got)) = (run(&ordinary), run(&twice)) else { return false };
    let ratio = |(&plain, &got): (&f64, &f64)| if plain == 0.0 { 1.0 } else { got / plain };
    let ratios: Vec<f64> = plain.iter().flatten().zip(got.iter().flatten()).map(ratio).collect();
    ratios.iter().all(|ratio| ratio.is_normal() && *ratio >= 1.0 && ratio.log2().fract() == 0.0)
        && ratios.iter().any(|ratio| *ratio > 4.0)
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
        Kind::Product | Kind::Other => None,
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

/// Whether as many terms as there are elements, each a product of the greatest inputs, exceed an output's type.
fn may_overflow(inputs: &[Tensor], data: &[usize], outputs: &[Tensor]) -> bool {
    let greatest = |at: &usize| {
        let numbers = widen::numbers(&inputs[*at]).unwrap_or_default();
        numbers.iter().filter(|x| x.is_finite()).fold(1.0f64, |most, x| most.max(x.abs()))
    };
    let count = inputs.iter().map(Tensor::elements).max().unwrap_or(0);
    let bound = data.iter().map(greatest).product::<f64>() * count as f64;
    let limits = outputs.iter().filter_map(|output| Format::of_parts(output.dtype()));
    limits.into_iter().any(|format| bound >= format.greatest())
}

/// Where the finite terms alone add up to more than the outputs' type holds. They are added up smaller by a power
/// of two, so that they do not overflow here; and once as they are, for a sum that is divided in the end (`Mean`):
/// where it overflows before, their order decides too.
fn overflows(
    kind: Kind,
    inputs: &[Tensor],
    data: &[usize],
    run: &Run<'_>,
    outputs: &[Tensor],
    step: f64,
) -> Option<Vec<Vec<bool>>> {
    let scale = 2f64.powi(if step == DOUBLE_STEP { -512 } else { -64 });
    let finite = |scale: f64| -> Option<Vec<Vec<f64>>> {
        let mut terms = inputs.to_vec();
        for &at in data {
            // In double precision, since a narrow type does not hold what is left.
            let wide = widen::convert(&inputs[at], DType::DOUBLE)?;
            terms[at] = widen::map(&wide, |x| if x.is_finite() { x * scale } else { 0.0 })?;
        }
        sums(kind, &terms, data, run)
    };
    let factors = if kind == Kind::Multilinear { data.len() as i32 } else { 1 };
    let (small, whole) = (finite(scale)?, finite(1.0)?);
    let open = small.iter().zip(&whole).zip(outputs).map(|((small, whole), output)| {
        let greatest = Format::of_parts(output.dtype())?.greatest();
        let limit = greatest * scale.powi(factors);
        let both = small.iter().zip(whole);
        Some(both.map(|(&small, &whole)| small > limit || !whole.is_finite()).collect())
    });
    open.collect()
}

/// Replacements for the numbers at the ends of a type's range.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Beyond {
    /// For one of which the square overflows, the greatest of which it does not.
    Nearer,
    /// For such a one infinity, as if it had met another.
    Infinite,
    /// For one of which the square underflows, zero.
    Zero,
    /// For such a one, the least of which it does not.
    Larger,
}

impl Beyond {
    /// What is put in the place of a number of this format.
    fn of(self, x: f64, format: Format) -> f64 {
        let (most, least) = (format.greatest().sqrt(), format.tiny().sqrt());
        match self {
            Beyond::Nearer if x.is_finite() && x.abs() > most => most.copysign(x),
            Beyond::Infinite if x.is_finite() && x.abs() > most => f64::INFINITY.copysign(x),
            Beyond::Zero if x != 0.0 && x.abs() < least => 0f64.copysign(x),
            Beyond::Larger if x != 0.0 && x.abs() < least => least.copysign(x),
            _ => x,
        }
    }
}

/// Where results depend on numbers at the ends of the range, which any step on the way may make infinite, or zero.
fn beyond(
    inputs: &[Tensor],
    data: &[usize],
    run: &Run<'_>,
    beyond: Beyond,
) -> Option<Vec<Vec<bool>>> {
    let plain = run(inputs)?;
    let mut changed = inputs.to_vec();
    let mut any = false;
    for &at in data {
        let format = Format::of_parts(inputs[at].dtype())?;
        any |= widen::numbers(&inputs[at])?.into_iter().any(|x| {
            let other = beyond.of(x, format);
            other != x && !x.is_nan()
        });
        changed[at] = widen::map(&inputs[at], |x| beyond.of(x, format))?;
    }
    if !any {
        return Some(closed(&plain));
    }
    let same = |a: f64, b: f64| a == b || (a.is_nan() && b.is_nan());
    let moved = run(&changed)?;
    let differs = |(a, b): (&Vec<f64>, &Vec<f64>)| {
        a.iter().zip(b).map(|(&a, &b)| !same(a, b)).collect::<Vec<bool>>()
    };
    Some(plain.iter().zip(&moved).map(differs).collect())
}

/// How far inputs are moved, relative to themselves: further where the reference's own rounding is coarser.
fn step(types: &AttrMap) -> f64 {
    let double = types.values().any(|value| value.as_type() == Some(DType::DOUBLE));
    if double { DOUBLE_STEP } else { 1.0 / 512.0 }
}

/// 2 to the power of -24.
const DOUBLE_STEP: f64 = 1.0 / 16_777_216.0;

/// This many times inputs are moved, each number up or down by the generator.
const MOVES: u64 = 4;

/// How far results move with the inputs, per relative step: what even an implementation without any error of its
/// own must be allowed for, that gets its inputs rounded (the condition of the function at the place).
fn sensitivities(
    inputs: &[Tensor],
    data: &[usize],
    run: &Run<'_>,
    step: f64,
) -> Option<Vec<Vec<f64>>> {
    let plain = run(inputs)?;
    let mut most: Vec<Vec<f64>> = plain.iter().map(|numbers| vec![0.0; numbers.len()]).collect();
    for turn in 0..MOVES {
        let mut moved = inputs.to_vec();
        for &at in data {
            let random = RefCell::new(Random::new(turn * 64 + at as u64));
            let up = || random.borrow_mut().word() >> 63 == 0;
            moved[at] =
                widen::map(&inputs[at], |x| x * if up() { 1.0 + step } else { 1.0 - step })?;
        }
        let results = run(&moved)?;
        let pairs = plain.iter().flatten().zip(results.iter().flatten());
        for (most, (plain, result)) in most.iter_mut().flatten().zip(pairs) {
            // What is not a number does not raise the limit.
            *most = most.max(((result - plain) / step).abs());
        }
    }
    Some(most)
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
    fn products_of_many_terms_are_told_from_squares_and_sums() {
        let product = |op: Op| {
            let inputs = [Tensor::from_slice(&[4], &[1.0f64; 4]).unwrap()];
            is_product(&inputs, &[0], &|inputs| Some(vec![op(&[widen::numbers(&inputs[0])?])]))
        };
        assert!(product(|x| vec![x[0].iter().product()]));
        assert!(!product(|x| each(x, |a, _| a * a)) && !product(|x| each(x, |a, _| a.tanh())));
        assert!(!product(|x| vec![x[0].iter().sum()]) && !product(|x| each(x, |a, _| a.exp())));
    }

    #[test]
    fn what_cancels_inside_a_function_is_seen_by_moving_its_inputs() {
        let inputs = [Tensor::from_slice(&[2], &[1000.0f64, 1.0]).unwrap()];
        // x + 1 - 1000, at 1000 and at 1: one moves by 1000 per relative step, the other by 1.
        let moved = sensitivities(
            &inputs,
            &[0],
            &|inputs| {
                let numbers = widen::numbers(&inputs[0])?;
                Some(vec![numbers.iter().map(|x| x + 1.0 - 1000.0).collect()])
            },
            2f64.powi(-24),
        );
        let moved = &moved.unwrap()[0];
        assert!((moved[0] - 1000.0).abs() < 1e-3 && (moved[1] - 1.0).abs() < 1e-3, "{moved:?}");
    }

    #[test]
    fn a_product_that_overflows_on_the_way_is_open() {
        let run =
            |inputs: &[Tensor]| Some(vec![vec![widen::numbers(&inputs[0])?.iter().product()]]);
        let open = |values: [f64; 3]| {
            let inputs = [Tensor::from_slice(&[3], &values).unwrap()];
            let outputs = [Tensor::from_slice(&[1], &[values.iter().product::<f64>()]).unwrap()];
            bases(Kind::Product, (&inputs, &[0]), &outputs, DOUBLE_STEP, &run).unwrap().open[0][0]
        };
        assert!(open([0.0, 1e200, 1e200]), "0 or NaN, by the order");
        assert!(open([1e-200, 1e-200, f64::INFINITY]), "inf or NaN");
        assert!(!open([0.0, 1e100, 2.0]) && !open([1e-100, 3.0, f64::INFINITY]));
    }

    #[test]
    fn a_mean_whose_sum_overflows_is_open() {
        let most = f64::MAX;
        let mean: Op = |x| vec![x[0].iter().sum::<f64>() / 4.0];
        let run = |inputs: &[Tensor]| {
            let inputs: Option<Vec<Vec<f64>>> = inputs.iter().map(widen::numbers).collect();
            Some(vec![mean(&inputs?)])
        };
        let open = |values: [f64; 4]| {
            let inputs = [Tensor::from_slice(&[4], &values).unwrap()];
            let outputs = [Tensor::from_slice(&[1], &[0.0f64]).unwrap()];
            let kind = Kind::Multilinear;
            overflows(kind, &inputs, &[0], &run, &outputs, DOUBLE_STEP).unwrap()[0][0]
        };
        assert!(open([most, -most, 1.0, 2.0]), "0.75 or 0, by the order");
        assert!(open([f64::INFINITY, -most, -most, 1.0]), "inf or NaN");
        assert!(!open([f64::INFINITY, -most, 1.0, 2.0]) && !open([most / 4.0, 1.0, 2.0, 3.0]));
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
