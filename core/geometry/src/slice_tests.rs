use super::*;
use proptest::prelude::*;

fn spec<'a>(
    begin: &'a [i64],
    end: &'a [i64],
    strides: &'a [i64],
    masks: SliceMasks,
) -> StridedSliceSpec<'a> {
    StridedSliceSpec { begin: Some(begin), end: Some(end), strides, masks }
}

const NONE: SliceMasks = SliceMasks { begin: 0, end: 0, ellipsis: 0, new_axis: 0, shrink_axis: 0 };

#[test]
fn plain_and_negative_strides() {
    // x[1:-1, ::-2] of a 4x5 tensor
    let masks = SliceMasks { begin: 0b10, end: 0b10, ..NONE };
    let s = StridedSlice::new(&[4, 5], &spec(&[1, 0], &[-1, 0], &[1, -2], masks)).unwrap();
    assert_eq!((s.begin, s.end), (dims(&[1, 4]), dims(&[3, -1])));
    assert_eq!(s.output, [2, 3]);
    assert!(!s.is_identity && !s.is_simple && !s.is_dim0);
    let offsets: Vec<usize> = s.offsets(&[4, 5]).collect();
    assert_eq!(offsets, [9, 7, 5, 14, 12, 10]);
}

fn dims(values: &[i64]) -> Dims {
    Dims::from_slice(values).unwrap()
}

#[test]
fn ellipsis_new_axis_and_shrink() {
    // x[1, ..., tf.newaxis, 0:2] of a 3x4x5 tensor
    let masks = SliceMasks { ellipsis: 0b10, new_axis: 0b100, shrink_axis: 0b1, ..NONE };
    let s = StridedSlice::new(&[3, 4, 5], &spec(&[1, 0, 0, 0], &[2, 0, 0, 2], &[1; 4], masks));
    let s = s.unwrap();
    assert_eq!(s.processing, [1, 4, 2]);
    assert_eq!(s.output, [4, 1, 2]);
    // x[tf.newaxis, ..., 0] of a vector, ellipsis over nothing
    let masks = SliceMasks { ellipsis: 0b10, new_axis: 0b1, shrink_axis: 0b100, ..NONE };
    let s = StridedSlice::new(&[3], &spec(&[0; 3], &[0; 3], &[1; 3], masks)).unwrap();
    assert_eq!(s.output, [1]);
}

#[test]
fn shrink_ignores_masks_and_wraps_negative_indices() {
    let masks = SliceMasks { begin: 1, end: 1, shrink_axis: 1, ..NONE };
    let s = StridedSlice::new(&[4, 2], &spec(&[-1], &[0], &[1], masks)).unwrap();
    assert_eq!(s.output, [2]);
    assert_eq!(s.offsets(&[4, 2]).collect::<Vec<_>>(), [6, 7]);
    assert!(s.is_dim0 && !s.is_identity);
}

#[test]
fn shortcuts() {
    let s = StridedSlice::new(&[4, 2], &spec(&[0], &[9], &[1], NONE)).unwrap();
    assert!(s.is_identity && s.is_dim0 && s.is_simple);
    let s = StridedSlice::new(&[4, 2], &spec(&[1, 0], &[3, 2], &[1, 1], NONE)).unwrap();
    assert!(!s.is_identity && s.is_dim0 && s.is_simple);
    let s = StridedSlice::new(&[], &spec(&[], &[], &[], NONE)).unwrap();
    assert!(s.is_identity);
    assert_eq!(s.output, []);
}

#[test]
fn unknown_dimensions_and_values() {
    let masks = SliceMasks { begin: 0b1, end: 0b1, shrink_axis: 0b100, ..NONE };
    let unknown = StridedSliceSpec { begin: None, end: None, strides: &[2, 1, 1], masks };
    let s = StridedSlice::new(&[5, 6, 7, -1], &unknown).unwrap();
    assert_eq!(s.output, [3, -1, -1]);
    // A whole slice of an unknown dimension has its unknown size, and so has half of it.
    let s = StridedSlice::new(&[-1, 4], &spec(&[0], &[2], &[1], NONE)).unwrap();
    assert_eq!(s.output, [-1, 4]);
}

#[test]
fn bad_slices_are_refused() {
    let error = |input: &[i64], s: &StridedSliceSpec<'_>| {
        StridedSlice::new(input, s).unwrap_err().to_string()
    };
    assert_eq!(error(&[4], &spec(&[0], &[1], &[0], NONE)), "strides[0] must not be 0");
    assert_eq!(
        error(&[4], &spec(&[0; 2], &[1; 2], &[1; 2], NONE)),
        "begin, end and strides must index at most the 1 dimensions of input, got more"
    );
    assert_eq!(
        error(&[4], &spec(&[0; 2], &[1; 1], &[1; 2], NONE)),
        "end must hold 2 values, got 1"
    );
    let shrink = SliceMasks { shrink_axis: 1, ..NONE };
    assert_eq!(
        error(&[4], &spec(&[-5], &[0], &[1], shrink)),
        "begin must lie in dimension 0 of input, which has size 4, got -5"
    );
    assert_eq!(
        error(&[4], &spec(&[1], &[0], &[-1], shrink)),
        "strides[0] must be positive for an index that removes its dimension, got -1"
    );
    let two = SliceMasks { ellipsis: 0b11, ..NONE };
    assert_eq!(
        error(&[4], &spec(&[0; 2], &[0; 2], &[1; 2], two)),
        "ellipsis_mask must have at most one bit set, got 0b11"
    );
    assert!(StridedSlice::new(&[4], &spec(&[0; 32], &[0; 32], &[1; 32], NONE)).is_err());
    let all_new = SliceMasks { new_axis: u32::MAX, ..NONE };
    assert!(StridedSlice::new(&[4], &spec(&[0; 31], &[0; 31], &[1; 31], all_new)).is_err());
}

/// The indices that a slice of one dimension takes, found by walking.
fn walk(size: i64, begin: Option<i64>, end: Option<i64>, stride: i64) -> Vec<usize> {
    let wrap = |x: i64| if x < 0 { x + size } else { x };
    let (mut taken, last) = (Vec::new(), size - 1);
    let mut i = begin.map_or(if stride > 0 { 0 } else { last }, wrap);
    i = if stride > 0 { i.max(0) } else { i.min(last) };
    let end = end.map_or(if stride > 0 { size } else { -1 }, |x| wrap(x).max(-1));
    while (0..size).contains(&i) && if stride > 0 { i < end } else { i > end } {
        taken.push(i as usize);
        i += stride;
    }
    taken
}

proptest! {
    #[test]
    fn one_dimension_is_what_walking_takes(
        size in 0i64..9, begin in -12i64..12, end in -12i64..12, mask in 0u32..4,
        stride in (-4i64..4).prop_filter("not 0", |s| *s != 0),
    ) {
        let masks = SliceMasks { begin: mask & 1, end: mask >> 1, ..NONE };
        let s = StridedSlice::new(&[size], &spec(&[begin], &[end], &[stride], masks)).unwrap();
        let taken: Vec<usize> = s.offsets(&[size]).collect();
        let begin = (mask & 1 == 0).then_some(begin);
        let end = (mask & 2 == 0).then_some(end);
        prop_assert_eq!(taken, walk(size, begin, end, stride));
    }

    #[test]
    fn no_argument_panics(
        input in prop::collection::vec(-1i64..4, 0..4),
        entries in prop::collection::vec((any::<i64>(), any::<i64>(), any::<i64>()), 0..5),
        m in any::<[u32; 5]>(),
    ) {
        let list = |f: fn(&(i64, i64, i64)) -> i64| entries.iter().map(f).collect::<Vec<_>>();
        let (begin, end, strides) = (list(|e| e.0), list(|e| e.1), list(|e| e.2));
        let masks = SliceMasks {
            begin: m[0], end: m[1], ellipsis: m[2], new_axis: m[3], shrink_axis: m[4],
        };
        if let Ok(s) = StridedSlice::new(&input, &spec(&begin, &end, &strides, masks))
            && !input.contains(&-1)
        {
            let count: i64 = input.iter().product();
            prop_assert!(s.offsets(&input).all(|o| (o as i64) < count));
            let elements = |dims: &Dims| dims.iter().product::<i64>();
            prop_assert_eq!(elements(&s.output), elements(&s.processing));
        }
    }
}
