use super::*;

fn floats(values: &[f32]) -> Tensor {
    Tensor::from_slice(&[values.len() as i64], values).unwrap()
}

fn right(got: f32, expected: f32, rule: &Rule) -> bool {
    compare(&floats(&[got]), &floats(&[expected]), rule).is_ok()
}

#[test]
fn exact_minds_the_sign_of_zero_and_not_the_payload_of_nan() {
    assert!(right(0.0, 0.0, &Rule::Exact));
    assert!(!right(0.0, -0.0, &Rule::Exact));
    assert!(!right(-0.0, 0.0, &Rule::Exact));
    assert!(right(f32::from_bits(0xffc0_1234), f32::NAN, &Rule::Exact));
    assert!(!right(0.0, f32::NAN, &Rule::Exact));
    assert!(!right(f32::NAN, 0.0, &Rule::Exact));
    assert!(!right(1.000_000_1, 1.0, &Rule::Exact));
}

#[test]
fn ulp_takes_both_zeros_for_one_and_counts_across_it() {
    assert!(right(0.0, -0.0, &Rule::Ulp(0)));
    assert!(right(f32::from_bits(1), -0.0, &Rule::Ulp(1)));
    assert!(!right(f32::from_bits(1), -f32::from_bits(1), &Rule::Ulp(1)));
    assert!(right(1.000_000_2, 1.0, &Rule::Ulp(2)));
    assert!(!right(1.000_000_4, 1.0, &Rule::Ulp(2)));
}

#[test]
fn an_infinity_is_near_nothing_else() {
    for rule in [Rule::Exact, Rule::Ulp(4), Rule::Close { absolute: 1e39, relative: 1.0 }] {
        assert!(right(f32::INFINITY, f32::INFINITY, &rule));
        assert!(!right(f32::NEG_INFINITY, f32::INFINITY, &rule));
        assert!(!right(f32::MAX, f32::INFINITY, &rule));
        assert!(!right(f32::INFINITY, f32::MAX, &rule));
        assert!(right(f32::NAN, f32::NAN, &rule));
        assert!(!right(f32::NAN, f32::INFINITY, &rule));
    }
}

#[test]
fn levels_may_be_near_and_other_integers_may_not() {
    let rule = Rule::Close { absolute: 2.0, relative: 0.0 };
    let near = |got: Tensor, expected: Tensor| compare(&got, &expected, &rule).is_ok();
    let narrow = |level: u8| Tensor::from_slice(&[1], &[level]).unwrap();
    assert!(near(narrow(10), narrow(12)) && !near(narrow(10), narrow(13)));
    let wide = |level: u16| Tensor::from_slice(&[1], &[level]).unwrap();
    assert!(near(wide(300), wide(298)) && !near(wide(300), wide(297)));
    let count = |count: i32| Tensor::from_slice(&[1], &[count]).unwrap();
    assert!(near(count(5), count(5)) && !near(count(5), count(6)));
}

#[test]
fn abs_terms_scale_with_epsilon_and_leave_the_smallest_normal() {
    let rule = |terms: f64| Rule::AbsTerms { factor: 2.0, terms: vec![terms] };
    // 2 * 2^-23 * 4 = 2^-20.
    let step = (-20f32).exp2();
    assert!(right(1.0 + step, 1.0, &rule(4.0)));
    assert!(!right(1.0 + 1.5 * step, 1.0, &rule(4.0)));
    assert!(right(f32::MIN_POSITIVE, 0.0, &rule(0.0)));
    assert!(!right(2.0 * f32::MIN_POSITIVE, 0.0, &rule(0.0)));
    assert!(right(f32::NAN, f32::NAN, &rule(f64::NAN)));
    assert!(!right(0.5, 1.0, &rule(f64::NAN)), "a NaN among the terms allows nothing");
    let short = Rule::AbsTerms { factor: 2.0, terms: Vec::new() };
    assert!(matches!(
        compare(&floats(&[1.0]), &floats(&[1.0]), &short),
        Err(Mismatch::Unreadable(_))
    ));
}

#[test]
fn what_is_not_floating_is_compared_by_value() {
    let ints = |values: &[i16]| Tensor::from_slice(&[2, 2], values).unwrap();
    let error = compare(&ints(&[1, 2, -3, 4]), &ints(&[1, 2, 3, 4]), &Rule::Ulp(100)).unwrap_err();
    assert_eq!(error.to_string(), "1 of 4 elements are wrong; at [1, 0] got -3, expected 3");
    let words = |values: &[&str]| Tensor::from_strings(&[2], values).unwrap();
    let error = compare(&words(&["a", "b\0"]), &words(&["a", "b"]), &Rule::Exact).unwrap_err();
    assert_eq!(
        error.to_string(),
        "1 of 2 elements are wrong; at [1] got \"b\\x00\", expected \"b\""
    );
}

#[test]
fn types_and_shapes_come_first() {
    let one = Tensor::scalar(1i32).unwrap();
    let error = compare(&one, &Tensor::scalar(1i64).unwrap(), &Rule::Exact).unwrap_err();
    assert_eq!(error.to_string(), "expected int64, got int32");
    let vector = Tensor::from_slice(&[1], &[1i32]).unwrap();
    let error = compare(&one, &vector, &Rule::Exact).unwrap_err();
    assert_eq!(error.to_string(), "expected shape [1], got []");
    let empty = Tensor::from_slice::<f32>(&[0, 3], &[]).unwrap();
    assert!(compare(&empty, &empty, &Rule::Exact).is_ok());
}

#[test]
fn a_difference_tells_place_values_distance_and_what_is_allowed() {
    let error = compare(&floats(&[1.0, 2.5]), &floats(&[1.0, 2.0]), &Rule::Ulp(1)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "1 of 2 elements are wrong; at [1] got 2.5e0 (0x40200000), expected 2e0 (0x40000000), \
         2097152 ulp apart; largest error 5.0000e-1 at [1], largest relative error 2.5000e-1 at [1]"
    );
    let rule = Rule::Close { absolute: 0.25, relative: 0.0 };
    let error = compare(&floats(&[2.5]), &floats(&[2.0]), &rule).unwrap_err();
    assert!(error.to_string().contains("at most 2.5e-1 allowed; largest"), "{error}");
}

/// A distance of more than a factor of two, or between signs, is not given in representable numbers.
#[test]
fn no_ulps_are_told_of_zero_against_two() {
    let told = |got: f32, expected: f32| {
        compare(&floats(&[got]), &floats(&[expected]), &Rule::Exact).unwrap_err().to_string()
    };
    for (got, expected) in [(0.0, 2.0), (-1.0, 1.0), (f32::MIN_POSITIVE, 0.0), (1.0, 2.5)] {
        let text = told(got, expected);
        assert!(!text.contains("ulp") && text.contains("; largest error "), "{text}");
    }
    assert!(told(1.0, 1.000_001).contains("8 ulp apart"), "{}", told(1.0, 1.000_001));
    assert!(told(1.0, 0.0).ends_with("largest error 1.0000e0 at [0]"), "{}", told(1.0, 0.0));
    assert!(!told(f32::NAN, 1.0).contains("largest"), "{}", told(f32::NAN, 1.0));
}

/// Among wrong elements the largest errors have an index each.
#[test]
fn the_largest_errors_are_told_with_their_places() {
    let (got, expected) = (floats(&[0.0, 0.5, 110.0, 7.0]), floats(&[0.0, 0.25, 100.0, 7.0]));
    let text = compare(&got, &expected, &Rule::Exact).unwrap_err().to_string();
    assert!(text.starts_with("2 of 4 elements are wrong; at [1] got 5e-1"), "{text}");
    let largest = "; largest error 1.0000e1 at [2], largest relative error 1.0000e0 at [1]";
    assert!(text.ends_with(largest), "{text}");
}

#[test]
fn elements_are_shown_as_what_they_are() {
    let of = |tensor: Tensor| shown(&tensor, 1);
    assert_eq!(of(floats(&[0.0, f32::NAN])).as_deref(), Some("NaN (0x7fc00000)"));
    assert_eq!(of(Tensor::from_slice(&[2], &[0i8, -5]).unwrap()).as_deref(), Some("-5"));
    assert_eq!(of(Tensor::from_slice(&[2], &[false, true]).unwrap()).as_deref(), Some("true"));
    assert_eq!(
        of(Tensor::from_strings(&[2], &["", "a\0"]).unwrap()).as_deref(),
        Some("\"a\\x00\"")
    );
    let parts: Vec<u8> = [1.0f32, 2.0, 3.0, -4.0].iter().flat_map(|x| x.to_ne_bytes()).collect();
    let complex = Tensor::from_bytes(DType::COMPLEX64, &[2], &parts).unwrap();
    assert_eq!(of(complex).as_deref(), Some("3e0 (0x40400000) + i -4e0 (0xc0800000)"));
    assert_eq!(of(Tensor::from_slice(&[1], &[1i32]).unwrap()), None);
}

#[test]
fn denormals_may_be_kept_or_flushed_and_another_value_may_be_as_good() {
    let (small, other) = (f32::from_bits(9), -87.5f32);
    let rule = |other: Option<f32>| Rule::Either {
        rule: Box::new(Rule::Exact),
        others: other.iter().map(|other| other.to_ne_bytes().to_vec()).collect(),
    };
    assert!(right(0.0, small, &rule(None)) && right(small, 0.0, &rule(None)));
    assert!(!right(-0.0, small, &rule(None)), "the sign stays");
    assert!(!right(f32::MIN_POSITIVE, small, &rule(None)));
    assert!(right(1.0, 1.0, &rule(Some(f32::NEG_INFINITY))));
    assert!(right(f32::NEG_INFINITY, other, &rule(Some(f32::NEG_INFINITY))));
    assert!(!right(f32::NEG_INFINITY, other, &rule(None)));
}

#[test]
fn another_value_may_be_as_good_also_where_it_is_no_float() {
    let of = |values: &[bool]| Tensor::from_slice(&[2], values).unwrap();
    let rule = Rule::Either { rule: Box::new(Rule::Exact), others: vec![vec![1, 0]] };
    let right = |got: &[bool]| compare(&of(got), &of(&[false, true]), &rule).is_ok();
    assert!(right(&[false, true]) && right(&[true, true]) && right(&[true, false]));
    let unlike = Rule::Either { rule: Box::new(Rule::Exact), others: vec![vec![0, 1]] };
    let error = compare(&of(&[true, true]), &of(&[false, true]), &unlike).unwrap_err();
    assert!(error.to_string().starts_with("1 of 2 elements are wrong; at [0] got 1"), "{error}");
}

#[test]
fn distances_are_kept_element_by_element() {
    let rule = |allowed: f64| Rule::Within { allowed: vec![allowed] };
    assert!(right(1.5, 1.0, &rule(0.5)) && !right(1.5, 1.0, &rule(0.25)));
    assert!(!right(f32::NAN, 1.0, &rule(1e30)) && !right(f32::INFINITY, 1.0, &rule(1e30)));
    assert!(right(f32::NAN, 1.0, &rule(f64::INFINITY)));
    let message = compare(&floats(&[1.0, 2.0]), &floats(&[1.0, 2.0]), &rule(0.0)).unwrap_err();
    assert_eq!(
        message.to_string(),
        "cannot be compared: the rule is about 1 elements, there are 2"
    );
}

#[test]
fn an_undefined_output_may_be_anything_of_its_type() {
    let got = Tensor::from_slice(&[3], &[1.0f32, 2.0, f32::NAN]).unwrap();
    assert!(compare(&got, &floats(&[1.0]), &Rule::Undefined).is_ok());
    let whole = Tensor::from_slice(&[1], &[1i32]).unwrap();
    assert!(compare(&whole, &floats(&[1.0]), &Rule::Undefined).is_err());
}

#[test]
fn complex_numbers_are_compared_part_by_part() {
    let of = |parts: [f32; 4]| {
        let bytes: Vec<u8> = parts.iter().flat_map(|part| part.to_ne_bytes()).collect();
        Tensor::from_bytes(DType::COMPLEX64, &[2], &bytes).unwrap()
    };
    let expected = of([1.0, 2.0, f32::NAN, 4.0]);
    let rule = Rule::Close { absolute: 0.5, relative: 0.0 };
    assert!(compare(&of([1.25, 2.0, f32::NAN, 4.0]), &expected, &rule).is_ok());
    let error = compare(&of([1.0, 2.0, f32::NAN, 5.0]), &expected, &rule).unwrap_err();
    assert!(error.to_string().starts_with("1 of 2 elements are wrong; at [1] got 5e0"), "{error}");
}
