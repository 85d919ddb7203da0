//! `QuantizeDownAndShrinkRange`, `Requantize` and `RequantizationRange`: codes of 32 bits in fewer
//! bits.

use super::{
    channels::map,
    range::{Ends, Range, ToCodes, ToReals},
};
use tenon_sdk::{
    DType, KernelError,
    author::ComputeContext,
    element::{QInt8, QInt32, QUInt8},
    reg::Numerics,
    register_kernel,
};

const INPUT: Ends = ["input_min", "input_max"];
const REQUESTED: Ends = ["requested_output_min", "requested_output_max"];

/// Fractional bits of a number in fixed point.
const POINT: u32 = 16;
const ONE: f64 = (1u32 << POINT) as f64;

/// Converts 32-bit codes to 8-bit ones in fixed point: `(code * scale / 2^32 + offset) / 2^16`,
/// where the first division truncates and the second rounds halves up. TensorFlow computes in 64
/// bits, which a product may exceed; this uses 128.
struct FixedPoint {
    scale: i64,
    offset: i128,
}

impl FixedPoint {
    /// The conversion from one range to another, rounded where TensorFlow rounds.
    fn new(from: Range, to: Range) -> FixedPoint {
        if to.width() == 0.0 {
            return FixedPoint { scale: 0, offset: 1 << (POINT - 1) };
        }
        let width = f64::from(to.width());
        let middle = (f64::from(from.min + from.max) / 2.0) as f32;
        let scale = 255.0 * ONE * f64::from(from.width()) / width;
        let middle = (middle * (255.0 / width) as f32 * ONE as f32) as i64;
        let start = (ONE * (f64::from(to.min) * 255.0) / width) as i64;
        let offset = i128::from(middle) - i128::from(start) + (1 << (POINT - 1));
        FixedPoint { scale: scale as i64, offset }
    }

    #[inline(always)]
    fn code(&self, code: QInt32) -> QUInt8 {
        let product = (i128::from(code.0) * i128::from(self.scale)) >> 32;
        QUInt8(((product + self.offset) >> POINT).clamp(0, 255) as u8)
    }
}

/// A target type of `Requantize`.
trait Target: Sized + Send {
    /// Writes the codes of one range in another.
    fn convert(
        c: &ComputeContext<'_>,
        data: (&[QInt32], &mut [Self]),
        from: Range,
        to: Range,
    ) -> Result<(), KernelError>;
}

impl Target for QUInt8 {
    fn convert(
        c: &ComputeContext<'_>,
        data: (&[QInt32], &mut [Self]),
        from: Range,
        to: Range,
    ) -> Result<(), KernelError> {
        let fixed = FixedPoint::new(from, to);
        map(c, data, 1.5, |code| fixed.code(code))
    }
}

impl Target for QInt8 {
    fn convert(
        c: &ComputeContext<'_>,
        data: (&[QInt32], &mut [Self]),
        from: Range,
        to: Range,
    ) -> Result<(), KernelError> {
        let (reals, codes) = (ToReals::<QInt32>::new(from), ToCodes::<QInt8>::new(to));
        map(c, data, 2.0, |code| codes.code(reals.real(code)))
    }
}

fn requantize<T: Target + tenon_sdk::element::Element>(
    c: &ComputeContext<'_>,
) -> Result<(), KernelError> {
    let (from, to) = (Range::of(c, 1, INPUT)?, Range::of(c, 3, REQUESTED)?);
    if to.min > 0.0 {
        return Err(KernelError::invalid_argument(format!(
            "requested_output_min must be at most 0, found {}",
            to.min
        )));
    }
    let x = c.input::<QInt32>(0)?;
    T::convert(c, (x.data, c.output::<T>(0, x.dims)?.data), from, to)?;
    to.write(c, 1)
}

/// The range of the codes' numbers, widened to a lower end of at most 0; without codes it is 0.
fn filled(codes: &[QInt32], range: Range) -> Result<Range, KernelError> {
    let ends = codes.iter().min().zip(codes.iter().max());
    let [least, greatest] =
        ends.map_or([0.0; 2], |(least, greatest)| [range.real(*least), range.real(*greatest)]);
    Range::new(least.min(0.0), greatest, INPUT)
}

fn shrink(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let (from, x) = (Range::of(c, 1, INPUT)?, c.input::<QInt32>(0)?);
    let to = filled(x.data, from)?;
    QUInt8::convert(c, (x.data, c.output::<QUInt8>(0, x.dims)?.data), from, to)?;
    to.write(c, 1)
}

fn requantization_range(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    filled(c.input::<QInt32>(0)?.data, Range::of(c, 1, INPUT)?)?.write(c, 0)
}

register_kernel!("Requantize" on "CPU": fn requantize<T> for "out_type" in [QUInt8, QInt8],
    types = ("Tinput", &[DType::QINT32]), numerics = Numerics::EXACT,
    host_memory = &["input_min", "input_max", "requested_output_min", "requested_output_max"]);
register_kernel!("QuantizeDownAndShrinkRange" on "CPU": fn shrink,
    types = ("Tinput", &[DType::QINT32]), types = ("out_type", &[DType::QUINT8]),
    host_memory = &["input_min", "input_max"], numerics = Numerics::EXACT);
register_kernel!("RequantizationRange" on "CPU": fn requantization_range,
    types = ("Tinput", &[DType::QINT32]), host_memory = &["input_min", "input_max"],
    numerics = Numerics::EXACT);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_of_more_than_64_bits_reach_the_ends_of_the_codes() {
        let range = |end: f32| Range { min: -end, max: end };
        let fixed = FixedPoint::new(range(1e20), range(1e-10));
        assert_eq!(fixed.code(QInt32(i32::MAX)), QUInt8(255));
        assert_eq!(fixed.code(QInt32(i32::MIN)), QUInt8(0));
        assert_eq!(fixed.code(QInt32(0)), QUInt8(128));
    }

    #[test]
    fn a_range_is_filled_from_0_at_most() {
        let range = Range { min: -2.0, max: 3.0 };
        let ends = |codes: &[QInt32]| filled(codes, range).map(|range| [range.min, range.max]);
        assert_eq!(ends(&[]).unwrap(), [0.0, 0.0]);
        assert_eq!(ends(&[QInt32(i32::MAX)]).unwrap(), [0.0, 3.0]);
        assert_eq!(ends(&[QInt32(i32::MIN)]).unwrap(), [-2.0, -2.0]);
    }
}
