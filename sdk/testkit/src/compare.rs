//! Whether a result is the expected one, and where it is not.
//!
//! Rules are those of tests/goldens/README.md. Where NaN is expected, any NaN is right; where an infinity
//! is expected, that infinity is. What is not floating is compared by value, but for integers under a rule that
//! gives a distance: levels of an image.

mod words;

use crate::float::{Format, Number};
use tenon_framework::{DType, Shape, Tensor};
use words::{number_text, plain_text, telling_ulps};
pub(crate) use words::{shown, shown_briefly};

/// How far a result may be from what is expected.
#[derive(Debug, Clone, PartialEq)]
pub enum Rule {
    /// The same value; zeros with the same sign.
    Exact,
    /// At most this many representable numbers apart; both zeros are one number.
    Ulp(u64),
    /// `|got - expected| <= factor * epsilon * terms[i] + tiny`, element by element, with epsilon and the
    /// smallest normal number of the element type.
    AbsTerms {
        /// The factor.
        factor: f64,
        /// Sums of the absolute values of the terms, one per element.
        terms: Vec<f64>,
    },
    /// `|got - expected| <= absolute + relative * |expected|`.
    Close {
        /// The absolute part.
        absolute: f64,
        /// The relative part.
        relative: f64,
    },
    /// `|got - expected| <= allowed[i]`, element by element. Where that is infinite, any value is right: what
    /// the result is follows from nothing.
    Within {
        /// The distances.
        allowed: Vec<f64>,
    },
    /// As another rule, element by element about what is expected or about another value that is as good; and a
    /// denormal result may be zero of its sign, and the other way round.
    Either {
        /// The other rule.
        rule: Box<Rule>,
        /// The other values, each as the bytes of all elements.
        others: Vec<Vec<u8>>,
    },
    /// Any shape and any value: the op leaves the output undefined.
    Undefined,
}

/// One element that is wrong.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// Its index.
    pub index: Vec<i64>,
    /// What was found, as text.
    pub got: String,
    /// What was expected, as text.
    pub expected: String,
    /// How many representable numbers apart; `None` where that says nothing: of another sign, or more than a factor
    /// of two apart.
    pub ulp: Option<u64>,
    /// How far apart; `None` where they are not finite numbers.
    pub distance: Option<f64>,
    /// How far apart, relative to what was expected, where that is not zero.
    pub relative: Option<f64>,
    /// How far they may be apart, where the rule gives a distance.
    pub allowed: Option<f64>,
}

/// Why a result is wrong.
#[derive(Debug, Clone, PartialEq)]
pub enum Mismatch {
    /// Another element type.
    Type {
        /// What was expected.
        expected: DType,
        /// What was found.
        got: DType,
    },
    /// Another shape.
    Shape {
        /// What was expected.
        expected: Box<Shape>,
        /// What was found.
        got: Box<Shape>,
    },
    /// Wrong elements.
    Values {
        /// How many there are.
        total: usize,
        /// How many are wrong.
        wrong: usize,
        /// The first of them.
        first: Vec<Difference>,
        /// The greatest distance, and the greatest relative one, each with its index.
        greatest: [Option<(f64, Vec<i64>)>; 2],
    },
    /// Elements that cannot be read or compared.
    Unreadable(String),
}

impl Mismatch {
    /// The index of the first wrong element.
    pub fn first_index(&self) -> Option<&[i64]> {
        match self {
            Mismatch::Values { first, .. } => Some(&first.first()?.index),
            _ => None,
        }
    }
}

impl Rule {
    /// How many elements it is about; `None` for any number.
    fn length(&self) -> Option<usize> {
        match self {
            Rule::AbsTerms { terms, .. } => Some(terms.len()),
            Rule::Within { allowed } => Some(allowed.len()),
            Rule::Either { rule, .. } => rule.length(),
            Rule::Exact | Rule::Ulp(_) | Rule::Close { .. } | Rule::Undefined => None,
        }
    }

    /// The rule for two results that each keep this one.
    #[must_use]
    pub fn doubled(&self) -> Rule {
        match self {
            Rule::Exact => Rule::Exact,
            Rule::Undefined => Rule::Undefined,
            Rule::Ulp(limit) => Rule::Ulp(limit.saturating_mul(2)),
            Rule::AbsTerms { factor, terms } => {
                Rule::AbsTerms { factor: 2.0 * factor, terms: terms.clone() }
            }
            Rule::Close { absolute, relative } => {
                Rule::Close { absolute: 2.0 * absolute, relative: 2.0 * relative }
            }
            Rule::Within { allowed } => {
                Rule::Within { allowed: allowed.iter().map(|allowed| 2.0 * allowed).collect() }
            }
            Rule::Either { rule, others } => {
                Rule::Either { rule: Box::new(rule.doubled()), others: others.clone() }
            }
        }
    }
}

/// Floating-point numbers of an element: a complex one has two.
pub(crate) fn lanes(dtype: DType) -> usize {
    if matches!(dtype, DType::COMPLEX64 | DType::COMPLEX128) { 2 } else { 1 }
}

/// How many differences are shown.
const TOLD: usize = 4;

/// Compares a result with what is expected, both in host memory.
///
/// # Errors
/// How they differ: type, shape, or the first wrong elements in row-major order.
pub fn compare(got: &Tensor, expected: &Tensor, rule: &Rule) -> Result<(), Mismatch> {
    if got.dtype() != expected.dtype() {
        return Err(Mismatch::Type { expected: expected.dtype(), got: got.dtype() });
    }
    if *rule == Rule::Undefined {
        return Ok(());
    }
    compare_shape(got, expected.shape())?;
    let (lengths, elements) = (rule.length(), expected.elements());
    if let Some(length) = lengths.filter(|&length| length != elements * lanes(expected.dtype())) {
        let message = format!("the rule is about {length} elements, there are {elements}");
        return Err(Mismatch::Unreadable(message));
    }
    let wrong = differences(got, expected, rule)
        .map_err(|error| Mismatch::Unreadable(error.to_string()))?;
    if wrong.is_empty() {
        return Ok(());
    }
    let (total, count) = (expected.elements(), wrong.len());
    let greatest = [greatest(&wrong, |d| d.distance), greatest(&wrong, |d| d.relative)];
    let first = wrong.into_iter().take(TOLD).collect();
    Err(Mismatch::Values { total, wrong: count, first, greatest })
}

/// The greatest of a figure, with the index where it is.
fn greatest(
    wrong: &[Difference],
    figure: impl Fn(&Difference) -> Option<f64>,
) -> Option<(f64, Vec<i64>)> {
    // From the end, since of equal ones the last is taken.
    let figures = wrong.iter().rev();
    let figures = figures.filter_map(|difference| Some((figure(difference)?, difference)));
    let (greatest, difference) = figures.max_by(|(a, _), (b, _)| a.total_cmp(b))?;
    Some((greatest, difference.index.clone()))
}

/// The largest absolute value of floating-point elements, NaN left out; `None` for other types.
pub fn largest(tensor: &Tensor) -> Option<f64> {
    let format = Format::of(tensor.dtype())?;
    let bytes = tensor.as_bytes().ok()?;
    let values = (0..tensor.elements()).map(|at| format.read(bytes, at).value().abs());
    Some(values.fold(0.0, f64::max))
}

/// Compares the shape only.
///
/// # Errors
/// Another shape.
pub fn compare_shape(got: &Tensor, expected: &Shape) -> Result<(), Mismatch> {
    if got.shape() == expected {
        return Ok(());
    }
    Err(Mismatch::Shape { expected: Box::new(*expected), got: Box::new(*got.shape()) })
}

fn differences(
    got: &Tensor,
    expected: &Tensor,
    rule: &Rule,
) -> Result<Vec<Difference>, tenon_framework::tensor::TensorError> {
    let dims = expected.shape().dims();
    if expected.dtype() == DType::STRING {
        let pairs = got.as_strings()?.into_iter().zip(expected.as_strings()?).enumerate();
        let wrong = pairs.filter(|(_, (got, expected))| got != expected);
        return Ok(wrong
            .map(|(at, (got, expected))| text_difference(dims, at, got, expected))
            .collect());
    }
    let (got, wanted) = (got.as_bytes()?, expected.as_bytes()?);
    if let Some(format) = Format::of_parts(expected.dtype()) {
        let lanes = lanes(expected.dtype());
        let check = |at: usize| {
            let (got, expected) = (format.read(got, at), format.read(wanted, at));
            let (right, allowed) = judge(at, got, expected, rule, format);
            let index = || index_of(dims, at / lanes);
            (!right).then(|| float_difference(index(), got, expected, allowed, format))
        };
        return Ok((0..expected.elements() * lanes).filter_map(check).collect());
    }
    let size = expected.dtype().size().unwrap_or(1);
    let pairs = got.chunks_exact(size).zip(wanted.chunks_exact(size)).enumerate();
    let dtype = expected.dtype();
    let right = |at: usize, got: &[u8], expected: &[u8]| match rule {
        Rule::Either { rule, others } => {
            let also = |other: &Vec<u8>| other.chunks_exact(size).nth(at) == Some(got);
            same_integer(dtype, got, expected, rule) || others.iter().any(also)
        }
        _ => same_integer(dtype, got, expected, rule),
    };
    Ok(pairs
        .filter(|&(at, (got, expected))| !right(at, got, expected))
        .map(|(at, (got, expected))| Difference {
            index: index_of(dims, at),
            got: plain_text(dtype, got),
            expected: plain_text(dtype, expected),
            ulp: None,
            distance: None,
            relative: None,
            allowed: None,
        })
        .collect())
}

/// Whether two elements that are not floats are equal, or as near as levels may be.
fn same_integer(dtype: DType, got: &[u8], expected: &[u8], rule: &Rule) -> bool {
    let level = |bytes: &[u8]| match (dtype, bytes) {
        (DType::UINT8, &[level]) => Some(f64::from(level)),
        (DType::UINT16, &[a, b]) => Some(f64::from(u16::from_ne_bytes([a, b]))),
        _ => None,
    };
    match (rule, level(got), level(expected)) {
        (&Rule::Close { absolute, relative }, Some(got), Some(expected)) => {
            (got - expected).abs() <= absolute + relative * expected
        }
        _ => got == expected,
    }
}

fn text_difference(dims: &[i64], at: usize, got: &[u8], expected: &[u8]) -> Difference {
    let text = |bytes: &[u8]| format!("\"{}\"", bytes.escape_ascii());
    Difference {
        index: index_of(dims, at),
        got: text(got),
        expected: text(expected),
        ulp: None,
        distance: None,
        relative: None,
        allowed: None,
    }
}

fn float_difference(
    index: Vec<i64>,
    got: Number,
    expected: Number,
    allowed: Option<f64>,
    format: Format,
) -> Difference {
    let distance = Some((got.value() - expected.value()).abs()).filter(|far| far.is_finite());
    let magnitude = expected.value().abs();
    Difference {
        index,
        got: number_text(got, format),
        expected: number_text(expected, format),
        ulp: telling_ulps(got, expected, format),
        distance,
        relative: distance.filter(|_| magnitude > 0.0).map(|distance| distance / magnitude),
        allowed,
    }
}

/// Whether a number is right, and the distance that its rule allows.
fn judge(
    at: usize,
    got: Number,
    expected: Number,
    rule: &Rule,
    format: Format,
) -> (bool, Option<f64>) {
    match rule {
        Rule::Either { rule, others } => {
            return judge_either(at, got, expected, (rule, others), format);
        }
        Rule::Within { allowed } if allowed[at] == f64::INFINITY => return (true, None),
        _ => {}
    }
    if expected.is_nan() || got.is_nan() {
        return (expected.is_nan() && got.is_nan(), None);
    }
    if expected.is_infinite() || got.is_infinite() {
        return (got == expected, None);
    }
    let within = |allowed: f64| {
        let distance = (got.value() - expected.value()).abs();
        (distance <= allowed, Some(allowed))
    };
    match rule {
        Rule::Exact => (got == expected, None),
        Rule::Ulp(limit) => {
            (got.ulp_distance(expected).is_some_and(|distance| distance <= *limit), None)
        }
        Rule::AbsTerms { factor, terms } => {
            within(factor * format.epsilon() * terms[at] + format.tiny())
        }
        Rule::Close { absolute, relative } => within(absolute + relative * expected.value().abs()),
        Rule::Within { allowed } => within(allowed[at]),
        Rule::Either { .. } | Rule::Undefined => (true, None),
    }
}

/// As [`judge`], with any of the expectations, and with denormals on both sides or on none.
fn judge_either(
    at: usize,
    got: Number,
    expected: Number,
    (rule, others): (&Rule, &[Vec<u8>]),
    format: Format,
) -> (bool, Option<f64>) {
    let plain = judge(at, got, expected, rule, format);
    let agrees = |wanted: Number| {
        judge(at, got, wanted, rule, format).0
            || judge(at, got.flushed(), wanted.flushed(), rule, format).0
    };
    let others = others.iter().map(|bytes| format.read(bytes, at));
    (plain.0 || agrees(expected) || others.into_iter().any(agrees), plain.1)
}

/// The index of a flat position in row-major order.
fn index_of(dims: &[i64], at: usize) -> Vec<i64> {
    let mut rest = at as i64;
    let mut index = vec![0; dims.len()];
    for (place, &dim) in index.iter_mut().zip(dims).rev() {
        *place = rest % dim;
        rest /= dim;
    }
    index
}

#[cfg(test)]
#[path = "compare_tests.rs"]
mod tests;
