//! Parses numbers.

/// A number that can be parsed from a text.
pub trait Parse: Sized {
    /// The number, or `None` if the text is not a number or it does not fit. Surrounding white
    /// space is ignored.
    fn parse(text: &[u8]) -> Option<Self>;
}

macro_rules! integers {
    ($($ty:ty, $minus:literal;)*) => {$(
        impl Parse for $ty {
            fn parse(text: &[u8]) -> Option<Self> {
                let text = trimmed(text)?;
                // A minus sign is invalid for an unsigned number, even for zero.
                if !$minus && text.starts_with('-') { None } else { text.parse().ok() }
            }
        }
    )*};
}

integers! { i32, true; i64, true; u32, false; u64, false; }

macro_rules! floats {
    ($($ty:ty, $least:literal;)*) => {$(
        impl Parse for $ty {
            fn parse(text: &[u8]) -> Option<Self> {
                let text = trimmed(text)?;
                let (sign, size) = match text.as_bytes().first()? {
                    b'-' => (-1.0, &text[1..]),
                    b'+' => (1.0, &text[1..]),
                    _ => (1.0, text),
                };
                match size.strip_prefix("0x").or_else(|| size.strip_prefix("0X")) {
                    Some(digits) => {
                        let (mantissa, exponent) = hexadecimal(digits)?;
                        let exponent = exponent.clamp($least, -$least);
                        // In two steps, since the power of two of a denormal alone would be zero.
                        let half = exponent / 2;
                        let two: $ty = 2.0;
                        Some(sign * mantissa as $ty * two.powi(half) * two.powi(exponent - half))
                    }
                    // The parser would accept a second sign.
                    None if size.starts_with(['+', '-']) => None,
                    None => Some(sign * size.parse::<$ty>().ok()?),
                }
            }
        }
    )*};
}

floats! { f32, -400; f64, -2400; }

fn trimmed(text: &[u8]) -> Option<&str> {
    let space = |c: char| c.is_ascii_whitespace() || c == '\x0b';
    Some(std::str::from_utf8(text).ok()?.trim_matches(space))
}

/// Mantissa and binary exponent of `1F`, `1.8p-3`. The last bit represents all truncated ones, so
/// that rounding is the same.
fn hexadecimal(digits: &str) -> Option<(u64, i32)> {
    let (digits, power) = match digits.split_once(['p', 'P']) {
        Some((digits, power)) => (digits, power.parse::<i32>().ok()?),
        None => (digits, 0),
    };
    let (mut mantissa, mut exponent, mut point, mut any) = (0u64, 0i32, false, false);
    for c in digits.chars() {
        if c == '.' && !point {
            point = true;
            continue;
        }
        let digit = u64::from(c.to_digit(16)?);
        any = true;
        if mantissa >> 58 == 0 {
            mantissa = mantissa << 4 | digit;
            exponent = exponent.saturating_sub(if point { 4 } else { 0 });
        } else {
            mantissa |= u64::from(digit != 0);
            exponent = exponent.saturating_add(if point { 0 } else { 4 });
        }
    }
    any.then_some((mantissa, exponent.saturating_add(power)))
}

#[cfg(test)]
mod tests {
    use super::Parse;

    #[test]
    fn integers_are_decimal_and_fit() {
        assert_eq!(i32::parse(b" \t-2147483648\n"), Some(i32::MIN));
        assert_eq!(u32::parse(b"+5"), Some(5));
        assert_eq!(i64::parse(b"010"), Some(10));
        for text in ["", " ", "-", "1.", "0x1F", "1e3", "2147483648", "1 2"] {
            assert_eq!(i32::parse(text.as_bytes()), None, "{text}");
        }
        assert_eq!(u64::parse(b"-0"), None);
    }

    #[test]
    fn floats_are_decimal_hexadecimal_or_named() {
        let cases = [
            ("1.", 1.0),
            (".5", 0.5),
            ("-0x1F", -31.0),
            ("0x1p3", 8.0),
            ("0x1.8p-1", 0.75),
            ("1e400", f64::INFINITY),
            ("-Infinity", f64::NEG_INFINITY),
            ("+inf", f64::INFINITY),
            ("0x1p-1074", f64::from_bits(1)),
            ("0x1p99999", f64::INFINITY),
        ];
        for (text, expected) in cases {
            assert_eq!(f64::parse(text.as_bytes()), Some(expected), "{text}");
        }
        assert!(f32::parse(b"-NaN").is_some_and(f32::is_nan));
        for text in ["", ".", "1e", "0x", "--1", "+ 1", "1f", "1_0", "+-1", "0xg"] {
            assert_eq!(f64::parse(text.as_bytes()), None, "{text}");
        }
    }
}
