use super::*;
use proptest::prelude::*;

fn window(input: i64, kernel: i64, stride: i64, dilation: i64, padding: DimPadding) -> WindowDim {
    WindowDim::new("rows", input, kernel, stride, dilation, padding).unwrap()
}

/// (pad_before, pad_after, output)
fn solved(w: WindowDim) -> (i64, i64, i64) {
    (w.pad_before, w.pad_after, w.output)
}

#[test]
fn same_padding_as_in_tensorflow_s_guide() {
    // input 13, window 6, stride 5: 3 outputs, 3 pads, 1 before and 2 after
    assert_eq!(solved(window(13, 6, 5, 1, DimPadding::Same)), (1, 2, 3));
    assert_eq!(solved(window(28, 5, 1, 1, DimPadding::Same)), (2, 2, 28));
    assert_eq!(solved(window(224, 7, 2, 1, DimPadding::Same)), (2, 3, 112));
    assert_eq!(solved(window(5, 1, 2, 1, DimPadding::Same)), (0, 0, 3));
    assert_eq!(solved(window(7, 3, 1, 3, DimPadding::Same)), (3, 3, 7));
    assert_eq!(solved(window(0, 3, 1, 1, DimPadding::Same)), (1, 1, 0));
}

#[test]
fn valid_and_explicit_padding() {
    assert_eq!(solved(window(13, 6, 5, 1, DimPadding::Valid)), (0, 0, 2));
    assert_eq!(solved(window(10, 3, 1, 2, DimPadding::Valid)), (0, 0, 6));
    let explicit = DimPadding::Explicit { before: 3, after: 3 };
    assert_eq!(solved(window(224, 7, 2, 1, explicit)), (3, 3, 112));
}

#[test]
fn a_window_that_does_not_fit() {
    // (1 - 5 + 5) / 5 = 0 outputs, (1 - 5 + 1) / 1 = -3
    assert_eq!(window(1, 5, 5, 1, DimPadding::Valid).output, 0);
    assert_eq!(window(1, 5, 3, 1, DimPadding::Valid).output, 0);
    assert_eq!(
        WindowDim::new("rows", 1, 5, 1, 1, DimPadding::Valid).unwrap_err().to_string(),
        "the window is larger than the input over the rows: 1 with a padding of 0 is less than the dilated window's 5; make the window smaller, or set padding to SAME"
    );
}

#[test]
fn a_window_larger_than_a_known_input_is_refused_whatever_the_stride() {
    let explicit = DimPadding::Explicit { before: 1, after: 1 };
    let fits = |w: WindowDim, padding| w.check_fits(padding);
    assert_eq!(
        fits(window(3, 4, 1, 1, DimPadding::Valid), Padding::Valid).unwrap_err(),
        GeometryError::WindowTooLarge { dim: "rows", input: 3, padding: 0, window: 4 }
    );
    assert!(fits(window(3, 5, 3, 1, DimPadding::Valid), Padding::Valid).is_err());
    assert!(fits(window(3, 6, 1, 1, explicit), Padding::Explicit).is_err());
    assert_eq!(fits(window(3, 5, 1, 1, explicit), Padding::Explicit), Ok(()));
    assert_eq!(fits(window(3, 3, 1, 1, DimPadding::Valid), Padding::Valid), Ok(()));
    assert_eq!(fits(window(0, 3, 1, 1, DimPadding::Same), Padding::Same), Ok(()));
    assert_eq!(fits(window(-1, 4, 1, 1, DimPadding::Valid), Padding::Valid), Ok(()));
    assert_eq!(fits(window(3, -1, 1, 1, DimPadding::Valid), Padding::Valid), Ok(()));
}

#[test]
fn dimensions_have_names() {
    assert_eq!(dim_names::<2>(), ["rows", "columns"]);
    assert_eq!(dim_names::<3>(), ["planes", "rows", "columns"]);
}

#[test]
fn unknown_sizes() {
    assert_eq!(solved(window(-1, 3, 2, 1, DimPadding::Same)), (-1, -1, -1));
    assert_eq!(solved(window(9, -1, 2, 1, DimPadding::Same)), (-1, -1, 5));
    assert_eq!(solved(window(9, -1, 2, 1, DimPadding::Valid)), (0, 0, -1));
}

#[test]
fn bad_numbers_are_errors() {
    let fails = |i, k, s, d| WindowDim::new("rows", i, k, s, d, DimPadding::Same).is_err();
    assert!(fails(5, 0, 1, 1));
    assert!(fails(5, 3, 0, 1));
    assert!(fails(5, 3, 1, 0));
    assert!(fails(-2, 3, 1, 1));
    assert!(fails(1, i64::MAX, 1, i64::MAX));
    let negative = DimPadding::Explicit { before: -1, after: 0 };
    assert!(WindowDim::new("rows", 5, 3, 1, 1, negative).is_err());
}

#[test]
fn explicit_paddings_are_checked() {
    use Padding::{Explicit, Same};
    assert_eq!(check_explicit_paddings(Explicit, &[0, 0, 1, 2, 3, 4, 0, 0], 3), Ok(()));
    assert!(check_explicit_paddings(Explicit, &[0, 0, 1, 2, 3, 4, 0, 0], 1).is_err());
    assert!(check_explicit_paddings(Explicit, &[0, 0, 1, 2], 3).is_err());
    assert!(check_explicit_paddings(Explicit, &[0, 0, -1, 2, 3, 4, 0, 0], 3).is_err());
    assert_eq!(
        check_explicit_paddings(Same, &[1], 3).unwrap_err().to_string(),
        "explicit_paddings must be empty unless padding is EXPLICIT, got 1 values"
    );
}

proptest! {
    #[test]
    fn taps_are_those_that_read_an_input(
        input in 0i64..12, kernel in 1i64..6, stride in 1i64..5, dilation in 1i64..4,
        before in 0i64..9, after in 0i64..9, same: bool,
    ) {
        let padding =
            if same { DimPadding::Same } else { DimPadding::Explicit { before, after } };
        let Ok(w) = WindowDim::new("rows", input, kernel, stride, dilation, padding) else {
            return Ok(());
        };
        for o in 0..w.output as usize {
            let reading: Vec<usize> =
                (0..kernel as usize).filter(|&k| w.input_at(o, k).is_some()).collect();
            prop_assert_eq!(w.taps(o).collect::<Vec<_>>(), reading);
        }
        // No window starts after the padded input.
        prop_assert!(w.output == 0 || (w.output - 1) * stride < input + w.pad_before + w.pad_after);
    }
}
