//! Formats numbers like C's `printf` (ISO C, 7.21.6.1), with at most one flag.

use tenon_sdk::{KernelError, growth};

/// A conversion of a float.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conversion {
    /// `%f`
    Fixed,
    /// `%e`
    Scientific,
    /// `%g`
    Shortest,
}

/// Flag, width and precision of a conversion.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spec {
    /// One of `-`, `+`, space, `0` and `#`.
    pub flag: Option<u8>,
    /// Least number of characters.
    pub width: usize,
    /// Number of digits, 6 by default.
    pub precision: Option<usize>,
}

/// Most digits of a double before or after the point.
const MOST_DIGITS: usize = 1100;

impl Spec {
    /// Appends an unsigned integer; flags for signs have no effect.
    pub fn unsigned(&self, value: u64, to: &mut Vec<u8>) -> Result<(), KernelError> {
        self.pad("", &value.to_string().into(), true, to)
    }

    /// Appends a signed integer.
    pub fn signed(&self, value: i64, to: &mut Vec<u8>) -> Result<(), KernelError> {
        self.pad(self.sign(value < 0), &value.unsigned_abs().to_string().into(), true, to)
    }

    /// Appends a float.
    pub fn float(
        &self,
        value: f64,
        conversion: Conversion,
        to: &mut Vec<u8>,
    ) -> Result<(), KernelError> {
        let sign = self.sign(value.is_sign_negative());
        let size = value.abs();
        if value.is_nan() || value.is_infinite() {
            return self.pad(sign, &name(size).to_owned().into(), false, to);
        }
        let precision = self.precision.unwrap_or(6);
        let digits = match conversion {
            Conversion::Fixed => self.fixed(size, precision),
            Conversion::Scientific => self.scientific(size, precision),
            Conversion::Shortest => self.shortest(size, precision.max(1)).into(),
        };
        self.pad(sign, &digits, true, to)
    }

    /// Appends a text, padded with spaces.
    pub fn text(&self, text: &[u8], to: &mut Vec<u8>) -> Result<(), KernelError> {
        let spaces = self.width.saturating_sub(text.len());
        let (before, after) = if self.flag == Some(b'-') { (0, spaces) } else { (spaces, 0) };
        repeat(b' ', before, to)?;
        growth::append(to, text)?;
        repeat(b' ', after, to)
    }

    fn sign(&self, negative: bool) -> &'static str {
        match self.flag {
            _ if negative => "-",
            Some(b'+') => "+",
            Some(b' ') => " ",
            _ => "",
        }
    }

    fn pad(
        &self,
        sign: &str,
        digits: &Digits,
        finite: bool,
        to: &mut Vec<u8>,
    ) -> Result<(), KernelError> {
        let missing = self.width.saturating_sub(sign.len() + digits.len());
        let (before, zeros, after) = match self.flag {
            Some(b'-') => (0, 0, missing),
            Some(b'0') if finite => (0, missing, 0),
            _ => (missing, 0, 0),
        };
        repeat(b' ', before, to)?;
        growth::append(to, sign.as_bytes())?;
        repeat(b'0', zeros, to)?;
        growth::append(to, digits.head.as_bytes())?;
        repeat(b'0', digits.zeros, to)?;
        growth::append(to, digits.tail.as_bytes())?;
        repeat(b' ', after, to)
    }

    fn fixed(&self, size: f64, precision: usize) -> Digits {
        let known = precision.min(MOST_DIGITS);
        let point = if precision == 0 && self.flag == Some(b'#') { "." } else { "" };
        let head = format!("{size:.known$}{point}");
        Digits { head, zeros: precision - known, tail: String::new() }
    }

    fn scientific(&self, size: f64, precision: usize) -> Digits {
        let (mantissa, exponent) = parts(size, precision.min(MOST_DIGITS));
        let point = if precision == 0 && self.flag == Some(b'#') { "." } else { "" };
        let zeros = precision.saturating_sub(MOST_DIGITS);
        Digits { head: mantissa + point, zeros, tail: exponent_text(exponent) }
    }

    fn shortest(&self, size: f64, precision: usize) -> String {
        // Further digits would be zeros, which are dropped unless the flag keeps them.
        let precision = precision.min(MOST_DIGITS);
        let (mantissa, exponent) = parts(size, precision - 1);
        let fixed = (-4..precision as i32).contains(&exponent);
        let digits = if fixed {
            let decimals = (precision as i32 - 1 - exponent) as usize;
            format!("{size:.decimals$}")
        } else {
            mantissa
        };
        let digits = match (self.flag, digits.contains('.')) {
            (Some(b'#'), false) => digits + ".",
            (Some(b'#'), true) | (_, false) => digits,
            _ => digits.trim_end_matches('0').trim_end_matches('.').to_owned(),
        };
        if fixed { digits } else { digits + &exponent_text(exponent) }
    }
}

/// The digits of a number: significant ones, zeros, and what follows.
struct Digits {
    head: String,
    zeros: usize,
    tail: String,
}

impl Digits {
    fn len(&self) -> usize {
        self.head.len() + self.zeros + self.tail.len()
    }
}

impl From<String> for Digits {
    fn from(head: String) -> Digits {
        Digits { head, zeros: 0, tail: String::new() }
    }
}

/// Appends a byte `times` times.
fn repeat(byte: u8, times: usize, to: &mut Vec<u8>) -> Result<(), KernelError> {
    growth::reserve(to, times)?;
    to.resize(to.len() + times, byte);
    Ok(())
}

/// The name of a number that is not finite.
fn name(value: f64) -> &'static str {
    if value.is_nan() { "nan" } else { "inf" }
}

/// The digits before the exponent, and the exponent.
fn parts(size: f64, precision: usize) -> (String, i32) {
    let text = format!("{size:.precision$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    (mantissa.to_owned(), exponent.parse().unwrap_or(0))
}

fn exponent_text(exponent: i32) -> String {
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("e{sign}{:02}", exponent.unsigned_abs())
}

/// `%.*g`
fn general(value: f64, digits: usize) -> String {
    let sign = if value.is_sign_negative() { "-" } else { "" };
    let size = value.abs();
    match size.is_finite() {
        true => format!("{sign}{}", Spec::default().shortest(size, digits)),
        false => format!("{sign}{}", name(size)),
    }
}

/// A float with 6 digits if these identify it, else with 9, as in TensorFlow's messages.
pub fn single(value: f32) -> String {
    let short = general(value.into(), 6);
    let exact = short.parse() == Ok(value) || value.is_nan();
    if exact { unsigned_nan(short) } else { general(value.into(), 9) }
}

/// A double with 15 digits if these identify it, else with 17.
pub fn double(value: f64) -> String {
    let short = general(value, 15);
    let exact = short.parse() == Ok(value) || value.is_nan();
    if exact { unsigned_nan(short) } else { general(value, 17) }
}

fn unsigned_nan(text: String) -> String {
    if text == "-nan" { "nan".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::{Conversion, Spec, double, single};

    fn text(spec: Spec, value: f64, conversion: Conversion) -> String {
        let mut text = Vec::new();
        spec.float(value, conversion, &mut text).expect("there is memory");
        crate::shown(&text)
    }

    #[test]
    fn floats_are_written_as_the_c_library_writes_them() {
        use Conversion::{Fixed, Scientific, Shortest};
        let none = Spec::default();
        let cases = [
            (none, Fixed, 2.5, "2.500000"),
            (Spec { precision: Some(0), ..none }, Fixed, 2.5, "2"),
            (Spec { precision: Some(0), flag: Some(b'#'), ..none }, Scientific, 15.0, "2.e+01"),
            (none, Shortest, 1e-5, "1e-05"),
            (none, Shortest, 0.0001, "0.0001"),
            (none, Shortest, 999_999.5, "1e+06"),
            (Spec { precision: Some(0), ..none }, Shortest, 123.0, "1e+02"),
            (Spec { flag: Some(b'0'), width: 9, ..none }, Shortest, -1.5, "-000001.5"),
            (Spec { flag: Some(b'0'), width: 5, ..none }, Fixed, f64::NEG_INFINITY, " -inf"),
            (Spec { flag: Some(b'-'), width: 5, ..none }, Fixed, f64::NAN, "nan  "),
            (none, Scientific, 1e-300, "1.000000e-300"),
            (none, Shortest, 0.0, "0"),
        ];
        for (spec, conversion, value, expected) in cases {
            assert_eq!(text(spec, value, conversion), expected, "{value} {spec:?} {conversion:?}");
        }
    }

    #[test]
    fn many_digits_are_zeros() {
        let spec = Spec { precision: Some(70_000), ..Spec::default() };
        let fixed = text(spec, 0.5, Conversion::Fixed);
        assert_eq!(fixed.len(), 70_002);
        assert_eq!(fixed.trim_end_matches('0'), "0.5");
        assert_eq!(text(spec, 0.5, Conversion::Shortest), "0.5");
        assert_eq!(text(spec, 0.5, Conversion::Scientific).len(), 70_006);
    }

    #[test]
    fn as_many_digits_as_say_which_it_is() {
        assert_eq!(single(1.0 / 3.0), "0.333333343");
        assert_eq!(single(1e10), "1e+10");
        assert_eq!(single(0.1), "0.1");
        assert_eq!(double(0.1 + 0.2), "0.30000000000000004");
        assert_eq!(double(f64::NEG_INFINITY), "-inf");
    }
}
