//! Element by element, channel by channel and row by row.

use crate::math_binary::larger;
use crate::math_unary::map;
use tenon_framework::element::{Float, Number};
use tenon_geometry::ChannelSplit;

/// `max(x, 0)`; NaN stays NaN.
pub fn relu<T: Number>(x: &[T], y: &mut [T]) {
    map(x, y, |x| if x < T::ZERO { T::ZERO } else { x });
}

/// `min(max(x, 0), 6)`; NaN stays NaN.
pub fn relu6<T: Number>(x: &[T], y: &mut [T]) {
    let six = T::from_f64(6.0);
    map(x, y, |x| match x {
        x if x < T::ZERO => T::ZERO,
        x if x > six => six,
        x => x,
    });
}

/// Adds to each element the bias of its channel; integers wrap.
pub fn bias_add<T: Number>(split: &ChannelSplit, x: &[T], bias: &[T], y: &mut [T]) {
    debug_assert_eq!(bias.len(), split.channels);
    for (i, (y, x)) in y.iter_mut().zip(x).enumerate() {
        *y = x.add(bias[i / split.inner % split.channels]);
    }
}

/// `e^(x - max) / sum of e^(x - max)` over each run of `cols` elements (the last dimension), computed in
/// `f64`. All of a row is NaN when one of it is NaN or positive infinity, or all of it negative infinity.
pub fn softmax<T: Float>(cols: usize, x: &[T], y: &mut [T]) {
    // An empty tensor may have empty rows, of which there is no number.
    for (x, y) in x.chunks_exact(cols.max(1)).zip(y.chunks_exact_mut(cols.max(1))) {
        let max = x.iter().fold(f64::NEG_INFINITY, |max, x| larger(max, x.to_f64()));
        let exp = |x: &T| (x.to_f64() - max).exp();
        let sum: f64 = x.iter().map(exp).sum();
        for (y, x) in y.iter_mut().zip(x) {
            *y = T::from_f64(exp(x) / sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::f16;
    use tenon_geometry::DataFormat;

    #[test]
    fn rectifiers() {
        let x = [f32::NAN, 1.0, -1.0, -0.0, f32::INFINITY, 7.0, f32::NEG_INFINITY];
        let mut y = [9.0; 7];
        relu(&x, &mut y);
        assert!(y[0].is_nan());
        assert_eq!(y[1..], [1.0, 0.0, 0.0, f32::INFINITY, 7.0, 0.0]);
        relu6(&x, &mut y);
        assert!(y[0].is_nan());
        assert_eq!(y[1..], [1.0, 0.0, 0.0, 6.0, 6.0, 0.0]);
        let mut y = [0u8; 2];
        relu6(&[3, 200], &mut y);
        assert_eq!(y, [3, 6]);
    }

    #[test]
    fn biases() {
        let mut y = [0; 12];
        let split = ChannelSplit::new(&[2, 3, 2], DataFormat::Nchw).unwrap();
        bias_add(&split, &[10; 12], &[1, 2, 3], &mut y);
        assert_eq!(y, [11, 11, 12, 12, 13, 13, 11, 11, 12, 12, 13, 13]);
        let split = ChannelSplit::new(&[2, 3, 2], DataFormat::Nhwc).unwrap();
        bias_add(&split, &[i32::MAX; 12], &[0, 1], &mut y);
        assert_eq!(y[..2], [i32::MAX, i32::MIN]);
    }

    #[test]
    fn softmax_is_tensorflow_s() {
        let mut y = [0.0f32; 3];
        softmax(3, &[1.0, 2.0, 3.0], &mut y);
        let expected = [0.09003057f32, 0.24472848, 0.66524094];
        assert!(y.iter().zip(expected).all(|(y, e)| (y - e).abs() < 1e-7), "{y:?}");
        let mut y = [0.0f32; 2];
        for bad in [[f32::INFINITY, 1.0], [f32::NAN, 1.0], [f32::NEG_INFINITY; 2]] {
            softmax(2, &bad, &mut y);
            assert!(y.iter().all(|y| y.is_nan()));
        }
        softmax(2, &[f32::NEG_INFINITY, 1.0], &mut y);
        assert_eq!(y, [0.0, 1.0]);
        // Both round to the same half.
        let mut y = [f16::ZERO; 2];
        softmax(2, &[f16::from_f32(1e4), f16::from_f32(9999.0)], &mut y);
        assert_eq!(y, [f16::from_f32(0.5); 2]);
        softmax::<f32>(0, &[], &mut []);
    }
}
