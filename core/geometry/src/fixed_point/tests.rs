use super::*;
use tenon_abi::DType;

/// Results computed in exact arithmetic by testdata/fixed_point.py.
const VECTORS: &str = include_str!("../../testdata/fixed_point.txt");

fn vectors(name: &str) -> impl Iterator<Item = Vec<i64>> {
    VECTORS.lines().filter_map(move |line| {
        let numbers = line.strip_prefix(name)?.strip_prefix(' ')?;
        Some(numbers.split(' ').map(|number| number.parse().expect("a number")).collect())
    })
}

fn check(name: &str, compute: impl Fn(&[i64]) -> Vec<i64>, inputs: usize) {
    let mut seen = 0;
    for line in vectors(name) {
        assert_eq!(compute(&line[..inputs]), line[inputs..], "{name} {:?}", &line[..inputs]);
        seen += 1;
    }
    assert!(seen >= 500, "{name}: only {seen} vectors");
}

#[test]
fn stages_are_those_computed_in_exact_arithmetic() {
    check(
        "high_mul",
        |x| vec![saturating_rounding_doubling_high_mul(x[0] as i32, x[1] as i32).into()],
        2,
    );
    check("divide", |x| vec![rounding_divide_by_pot(x[0] as i32, x[1] as u32).into()], 2);
    check("shift", |x| vec![saturating_shift_left(x[0] as i32, x[1] as u32).into()], 2);
    check(
        "float",
        |x| {
            let (scale, bounds) = (f32::from_bits(x[0] as u32), [x[2] as i32, x[3] as i32]);
            vec![multiply_by_float(x[1] as i32, scale, bounds).into()]
        },
        4,
    );
}

#[test]
fn multipliers_are_those_computed_in_exact_arithmetic() {
    check(
        "requantize",
        |x| {
            let [left, right, out] = [0, 1, 2].map(|at| f32::from_bits(x[at] as u32));
            let scale =
                Scale::requantize(["a_scale", "b_scale"], left, right, out).expect("a scale");
            let by = Multiplier::new(scale).expect("a multiplier");
            vec![by.mantissa().into(), by.exponent().into(), by.apply(x[3] as i32).into()]
        },
        4,
    );
}

#[test]
fn a_mantissa_that_rounds_up_to_two_becomes_one() {
    let scale = Scale { what: "x", value: f64::from_bits(1f64.to_bits() - 1) };
    let by = Multiplier::new(scale).expect("just below 1");
    assert_eq!((by.mantissa(), by.exponent()), (1 << 30, 1));
    let scale = Scale { what: "x", value: f64::from_bits(2f64.powi(30).to_bits() - 1) };
    assert!(Multiplier::new(scale).is_err(), "rounds to 2^30, which is too large");
}

#[test]
fn scales_and_multipliers_out_of_range_are_errors() {
    for bad in [0.0, -0.0, -1.0, f32::NAN, f32::INFINITY] {
        for scales in [[bad, 1.0, 1.0], [1.0, bad, 1.0], [1.0, 1.0, bad]] {
            let [left, right, out] = scales;
            let error = Scale::requantize(["a_scale", "b_scale"], left, right, out)
                .expect_err("a bad scale");
            assert!(error.to_string().contains("must be finite and above 0, got"), "{error}");
        }
    }
    for (left, out) in [(1e-20, 1.0), (1e9, 0.5), (1.0, f32::from_bits(1))] {
        let scale = Scale::requantize(["a_scale", "b_scale"], left, 1.0, out).expect("scales");
        let error = Multiplier::new(scale).expect_err("too far from 1").to_string();
        assert!(error.contains("must be in [2^-32, 2^30)"), "{error}");
        assert_eq!(scale.as_float().expect_err("the same").to_string(), error);
    }
}

#[test]
fn zero_points_are_values_of_their_type() {
    let cases =
        [(DType::QUINT8, 0, 255), (DType::QINT8, -128, 127), (DType::QINT16, -32768, 32767)];
    for (dtype, low, high) in cases {
        for inside in [low, high] {
            assert_eq!(ZeroPoint::new("z", dtype, inside).map(ZeroPoint::value), Ok(inside));
        }
        for outside in [low - 1, high + 1] {
            let error = ZeroPoint::new("z", dtype, outside).expect_err("outside");
            let expected =
                format!("z must be a value of {dtype}, in [{low}, {high}], got {outside}");
            assert_eq!(error.to_string(), expected);
        }
    }
    assert!(matches!(ZeroPoint::new("z", DType::FLOAT, 0), Err(FixedPointError::Type { .. })));
    let reach = |dtype, value| ZeroPoint::new("z", dtype, value).map(ZeroPoint::reach);
    assert_eq!((reach(DType::QUINT8, 0), reach(DType::QUINT8, 128)), (Ok(255), Ok(128)));
    assert_eq!((reach(DType::QINT8, 0), reach(DType::QINT8, -128)), (Ok(128), Ok(255)));
}

/// Checks the table of [`Depth`] with actual sums: the maximum depth fits, one product more does
/// not.
#[test]
fn the_deepest_sum_fits_and_the_next_does_not() {
    for (left, right, bias, most) in [
        (255, 255, 0, 33025),
        (255, 128, 0, 65793),
        (128, 128, 0, 131_071),
        (255, 255, 65025, 33024),
    ] {
        let depth = Depth { left, right, bias };
        depth.check(most).expect("the deepest");
        assert!(i32::try_from(most as i64 * left * right + bias).is_ok());
        let error = depth.check(most + 1).expect_err("one too deep").to_string();
        assert!(error.contains(&format!("allow up to {most} products")), "{error}");
        assert!(i32::try_from((most as i64 + 1) * left * right + bias).is_err());
    }
    let full = Depth { left: 1, right: 1, bias: 1 << 31 };
    assert!(full.check(0).is_err(), "a bias of -2^31 leaves no room to negate");
}

#[test]
fn activations_are_bounds_in_the_quantised_range() {
    let range = |activation, zero_point| {
        let range = QuantizedRange::new(activation, DType::QUINT8, 0.05, zero_point);
        range.map(|range| [range.low, range.high])
    };
    assert_eq!(range(Activation::None, 10), Ok([0, 255]));
    assert_eq!(range(Activation::Relu, 10), Ok([10, 255]));
    assert_eq!(range(Activation::Relu6, 10), Ok([10, 130]));
    assert_eq!(range(Activation::Clamp { low: -0.5, high: 0.126 }, 10), Ok([0, 13]));
    assert!(range(Activation::None, 300).is_err());
    assert!(QuantizedRange::new(Activation::None, DType::QINT8, f32::NAN, 0).is_err());
    assert_eq!(Activation::parse("RELU6", [0.0; 2]), Ok(Activation::Relu6));
    for bounds in [[1.0, 1.0], [2.0, 1.0], [f32::NAN, 1.0], [0.0, f32::NAN]] {
        assert!(matches!(Activation::parse("CLAMP", bounds), Err(FixedPointError::Clamp { .. })));
    }
    assert!(matches!(
        Activation::parse("Relu7", [0.0; 2]),
        Err(FixedPointError::Activation { .. })
    ));
}
