use super::*;
use proptest::prelude::{any, proptest};
use tenon_sdk::element::{QInt8, QInt32, QUInt8};

const RANGE: Range = Range { min: -1.0, max: 2.0 };

#[test]
fn the_ends_of_a_range_have_the_ends_of_the_codes() {
    assert_eq!((RANGE.code::<QUInt8>(-1.0), RANGE.code::<QUInt8>(2.0)), (QUInt8(0), QUInt8(255)));
    assert_eq!((RANGE.code::<QInt8>(-9.0), RANGE.code::<QInt8>(9.0)), (QInt8(-128), QInt8(127)));
    assert_eq!(RANGE.unclamped::<QUInt8>(-2.0), -85);
    assert_eq!(RANGE.code::<QInt32>(2.0), QInt32(i32::MAX));
    let point = Range { min: 3.0, max: 3.0 };
    assert_eq!((point.code::<QInt8>(7.0), point.real(QInt8(5))), (QInt8(-128), 3.0));
}

#[test]
fn ranges_are_refused_by_name() {
    let error = |min, max| Range::new(min, max, ["min_x", "max_x"]).unwrap_err().message;
    let says = |found: &str| {
        format!(
            "min_x and max_x must be finite, min_x at most max_x, and their difference below 3.4e38, found {found}"
        )
    };
    assert_eq!(error(2.0, 1.0), says("2 and 1"));
    assert_eq!(error(f32::NAN, 1.0), says("NaN and 1"));
    assert_eq!(error(0.0, f32::INFINITY), says("0 and inf"));
    assert!(Range::new(-3e38, 3e38, ["", ""]).is_err());
}

proptest! {
    /// A number in the range differs by at most half a level, plus the rounding of 0, from the
    /// number of its code.
    #[test]
    fn codes_are_near(min in -100f32..0.0, width in 0.1f32..100.0, at in 0f32..1.0) {
        let range = Range { min, max: min + width };
        let x = min + at * width;
        let level = range.level::<QUInt8>();
        assert!((range.real(range.code::<QUInt8>(x)) - x).abs() <= 1.01 * level);
        let (codes, reals) = (ToCodes::<QUInt8>::new(range), ToReals::<QUInt8>::new(range));
        assert!((reals.real(codes.code(x)) - x).abs() <= 1.01 * level);
    }

    /// Dequantising and quantising again yields the same code.
    #[test]
    fn codes_return(code in any::<u8>(), min in -100f32..0.0, width in 0.1f32..100.0) {
        let range = Range { min, max: min + width };
        assert_eq!(range.code::<QUInt8>(range.real(QUInt8(code))), QUInt8(code));
    }
}
