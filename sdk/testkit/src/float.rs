//! Floating-point elements as numbers in order, whatever their format.
//!
//! Formats are IEEE 754's: sign, exponent, mantissa. Read as an integer with the sign taken off, the bits
//! of finite numbers grow with their magnitude, one per representable number; so the distance of two
//! numbers in ULP is the difference of these integers with their signs.

use tenon_framework::DType;

/// A floating-point format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Format {
    bits: u32,
    mantissa: u32,
}

/// An element, as its bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Number {
    format: Format,
    bits: u64,
}

impl Format {
    /// The format of an element type; `None` for types that are not floating.
    pub fn of(dtype: DType) -> Option<Format> {
        let (bits, mantissa) = match dtype {
            DType::HALF => (16, 10),
            DType::BFLOAT16 => (16, 7),
            DType::FLOAT => (32, 23),
            DType::DOUBLE => (64, 52),
            _ => return None,
        };
        Some(Format { bits, mantissa })
    }

    /// The format of an element type, or of the two parts of a complex one.
    pub fn of_parts(dtype: DType) -> Option<Format> {
        match dtype {
            DType::COMPLEX64 => Format::of(DType::FLOAT),
            DType::COMPLEX128 => Format::of(DType::DOUBLE),
            _ => Format::of(dtype),
        }
    }

    /// Bytes of an element.
    pub fn size(self) -> usize {
        self.bits as usize / 8
    }

    /// The distance from 1 to the next number: 2 to the power of minus the mantissa's bits.
    pub fn epsilon(self) -> f64 {
        (-f64::from(self.mantissa)).exp2()
    }

    /// The smallest normal number.
    pub fn tiny(self) -> f64 {
        Number { format: self, bits: 1 << self.mantissa }.value()
    }

    /// The element at `at` of these bytes in native order.
    ///
    /// # Panics
    /// When it is past the end.
    pub fn read(self, bytes: &[u8], at: usize) -> Number {
        let size = self.size();
        let mut word = [0u8; 8];
        let part = &bytes[at * size..(at + 1) * size];
        if cfg!(target_endian = "little") {
            word[..size].copy_from_slice(part);
        } else {
            word[8 - size..].copy_from_slice(part);
        }
        Number { format: self, bits: u64::from_ne_bytes(word) }
    }

    /// Bits of the mantissa that are stored.
    pub(crate) fn mantissa(self) -> u32 {
        self.mantissa
    }

    /// The bit of the sign.
    pub(crate) fn sign(self) -> u64 {
        1 << (self.bits - 1)
    }

    /// The bits of positive infinity.
    pub(crate) fn infinity(self) -> u64 {
        self.sign() - self.normal()
    }

    /// The bits of the smallest normal number, by which the bits of a number grow that is doubled.
    pub(crate) fn normal(self) -> u64 {
        1 << self.mantissa
    }

    /// The bits of 1.
    pub(crate) fn one(self) -> u64 {
        self.infinity() / 2 / self.normal() * self.normal()
    }

    /// This many quiet NaN in native order.
    pub(crate) fn quiet_nans(self, count: usize) -> Vec<u8> {
        let bits = self.infinity() | (self.normal() >> 1);
        let bytes = bits.to_ne_bytes();
        let size = self.size();
        let part = if cfg!(target_endian = "little") { &bytes[..size] } else { &bytes[8 - size..] };
        part.repeat(count)
    }

    /// The greatest finite number.
    pub(crate) fn greatest(self) -> f64 {
        Number { format: self, bits: self.infinity() - 1 }.value()
    }
}

impl Number {
    /// As a double, exactly.
    pub fn value(self) -> f64 {
        match (self.format.bits, self.format.mantissa) {
            (16, 10) => half::f16::from_bits(self.bits as u16).to_f64(),
            (16, _) => half::bf16::from_bits(self.bits as u16).to_f64(),
            (32, _) => f64::from(f32::from_bits(self.bits as u32)),
            _ => f64::from_bits(self.bits),
        }
    }

    /// The bits.
    pub fn bits(self) -> u64 {
        self.bits
    }

    fn magnitude(self) -> u64 {
        self.bits & !self.format.sign()
    }

    /// Whether it is not a number, of any payload.
    pub fn is_nan(self) -> bool {
        self.magnitude() > self.format.infinity()
    }

    /// Whether it is an infinity.
    pub fn is_infinite(self) -> bool {
        self.magnitude() == self.format.infinity()
    }

    /// The distance to the next number of greater magnitude.
    pub fn step(self) -> f64 {
        let format = self.format;
        let bias = (format.one() >> format.mantissa) as i32;
        // Denormals have the step of the smallest normal number.
        let exponent = ((self.magnitude() >> format.mantissa) as i32).max(1);
        f64::from(exponent - bias - format.mantissa as i32).exp2()
    }

    /// The number, or zero of its sign for a denormal one.
    pub fn flushed(self) -> Number {
        let denormal = self.magnitude() < self.format.normal();
        let bits = if denormal { self.bits & self.format.sign() } else { self.bits };
        Number { bits, ..self }
    }

    /// Whether it is below the smallest normal number and not zero.
    pub fn is_denormal(self) -> bool {
        self.flushed() != self && self.magnitude() != 0
    }

    /// Its place among all numbers of the format; both zeros are at 0.
    fn place(self) -> i128 {
        let magnitude = i128::from(self.magnitude());
        if self.bits & self.format.sign() == 0 { magnitude } else { -magnitude }
    }

    /// Number of steps from one to the other over representable numbers; `None` when one is NaN or the
    /// formats differ.
    pub fn ulp_distance(self, other: Number) -> Option<u64> {
        if self.is_nan() || other.is_nan() || self.format != other.format {
            return None;
        }
        u64::try_from((self.place() - other.place()).abs()).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn float(value: f32) -> Number {
        Format::of(DType::FLOAT).unwrap().read(&value.to_ne_bytes(), 0)
    }

    fn double(value: f64) -> Number {
        Format::of(DType::DOUBLE).unwrap().read(&value.to_ne_bytes(), 0)
    }

    fn word(dtype: DType, bits: u16) -> Number {
        Format::of(dtype).unwrap().read(&bits.to_ne_bytes(), 0)
    }

    #[test]
    fn neighbours_are_one_ulp_apart_across_zero_and_across_powers_of_two() {
        assert_eq!(float(1.0).ulp_distance(float(1.000_000_1)), Some(1));
        assert_eq!(float(1.0).ulp_distance(float(0.999_999_94)), Some(1));
        assert_eq!(float(0.0).ulp_distance(float(-0.0)), Some(0));
        assert_eq!(float(f32::from_bits(1)).ulp_distance(float(-f32::from_bits(1))), Some(2));
        assert_eq!(float(f32::MIN_POSITIVE).ulp_distance(float(0.0)), Some(0x0080_0000));
        assert_eq!(float(1.0).ulp_distance(float(2.0)), Some(0x0080_0000));
    }

    #[test]
    fn the_widest_distances_do_not_overflow() {
        assert_eq!(
            double(f64::MAX).ulp_distance(double(f64::MIN)),
            Some(2 * 0x7fef_ffff_ffff_ffff)
        );
        assert_eq!(
            double(f64::INFINITY).ulp_distance(double(f64::NEG_INFINITY)),
            Some(0xffe0_0000_0000_0000)
        );
        assert_eq!(float(f32::MAX).ulp_distance(float(f32::INFINITY)), Some(1));
    }

    #[test]
    fn nan_is_at_no_distance_and_formats_do_not_mix() {
        assert_eq!(float(f32::NAN).ulp_distance(float(f32::NAN)), None);
        assert_eq!(float(1.0).ulp_distance(double(1.0)), None);
        assert!(word(DType::HALF, 0xfe01).is_nan() && !word(DType::HALF, 0x7c00).is_nan());
        assert!(word(DType::HALF, 0xfc00).is_infinite());
        assert!(word(DType::BFLOAT16, 0x7f80).is_infinite());
        assert!(word(DType::BFLOAT16, 0x7f81).is_nan());
    }

    #[test]
    fn steps_double_with_the_exponent_and_denormals_share_one() {
        assert_eq!(float(1.0).step(), f64::from(f32::EPSILON));
        assert_eq!(float(-3.5).step(), 2.0 * f64::from(f32::EPSILON));
        assert_eq!(float(0.0).step(), f64::from(f32::from_bits(1)));
        assert_eq!(float(f32::MIN_POSITIVE).step(), f64::from(f32::from_bits(1)));
        assert_eq!(double(1.0).step(), f64::EPSILON);
        assert_eq!(word(DType::HALF, 0x3c00).step(), 1.0 / 1024.0);
    }

    #[test]
    fn denormals_are_flushed_to_zeros_of_their_sign() {
        assert_eq!(float(-f32::from_bits(7)).flushed(), float(-0.0));
        assert_eq!(float(f32::MIN_POSITIVE).flushed(), float(f32::MIN_POSITIVE));
        assert!(float(f32::from_bits(1)).is_denormal() && !float(-0.0).is_denormal());
    }

    #[test]
    fn values_of_sixteen_bits_are_read_as_their_own_format() {
        assert_eq!(word(DType::HALF, 0x3c00).value(), 1.0);
        assert_eq!(word(DType::BFLOAT16, 0x3f80).value(), 1.0);
        assert_eq!(word(DType::HALF, 0x3c01).value(), 1.0 + 1.0 / 1024.0);
        assert_eq!(word(DType::BFLOAT16, 0x3f81).value(), 1.0 + 1.0 / 128.0);
        assert_eq!(word(DType::HALF, 0x0001).value(), (-24f64).exp2());
    }

    #[test]
    fn epsilon_and_tiny_are_those_of_the_formats() {
        let facts = |dtype| {
            let format = Format::of(dtype).unwrap();
            (format.epsilon(), format.tiny())
        };
        assert_eq!(facts(DType::HALF), ((-10f64).exp2(), (-14f64).exp2()));
        assert_eq!(facts(DType::BFLOAT16), ((-7f64).exp2(), (-126f64).exp2()));
        assert_eq!(facts(DType::FLOAT), (f64::from(f32::EPSILON), f64::from(f32::MIN_POSITIVE)));
        assert_eq!(facts(DType::DOUBLE), (f64::EPSILON, f64::MIN_POSITIVE));
        assert_eq!(Format::of(DType::INT32), None);
    }
}
