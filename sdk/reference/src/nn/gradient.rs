//! `ReluGrad`, `BiasAddGrad`, `MaxPoolGrad`, `Conv2DBackpropInput`, `Conv2DBackpropFilter`,
//! `SparseSoftmaxCrossEntropyWithLogits`.

use super::pool::window;
use crate::{Accumulate, LowestFinite, math_binary::larger};
use tenon_framework::element::{Float, Number};
use tenon_geometry::{ChannelSplit, Conv2dGeometry, Pool2dGeometry};

/// The gradient times 1 where the feature is positive, and times 0 elsewhere: NaN and infinity then give NaN.
pub fn relu_grad<T: Number>(gradients: &[T], features: &[T], backprops: &mut [T]) {
    for ((to, g), x) in backprops.iter_mut().zip(gradients).zip(features) {
        *to = g.mul(if *x > T::ZERO { T::ONE } else { T::ZERO });
    }
}

/// The sum of each channel's gradients.
pub fn bias_add_grad<T: Accumulate>(split: &ChannelSplit, gradients: &[T], bias: &mut [T]) {
    let mut sums = vec![T::Total::ZERO; bias.len()];
    for (i, g) in gradients.iter().enumerate() {
        let sum = &mut sums[i / split.inner % split.channels];
        *sum = sum.add(g.total());
    }
    bias.iter_mut().zip(sums).for_each(|(to, sum)| *to = T::rounded(sum));
}

/// Adds the gradient of each window to the first of its largest elements; there is no pooling over depth. A window
/// without an element above the lowest finite value gives its gradient to none.
pub fn max_pool_grad<T: Accumulate + LowestFinite>(
    g: &Pool2dGeometry,
    input: &[T],
    gradients: &[T],
    backprops: &mut [T],
) {
    let mut sums = vec![T::Total::ZERO; backprops.len()];
    window(g, |output, inputs| {
        let (mut best, mut at) = (T::LOWEST_FINITE, None);
        for i in inputs {
            if input[i] > best {
                (best, at) = (input[i], Some(i));
            }
        }
        if let Some(at) = at {
            sums[at] = sums[at].add(gradients[output].total());
        }
    });
    backprops.iter_mut().zip(sums).for_each(|(to, sum)| *to = T::rounded(sum));
}

/// Calls `f` for each product of a convolution, with the offsets of the input, the filter and the output.
fn products(g: &Conv2dGeometry, mut f: impl FnMut(usize, usize, usize)) {
    let (rows, cols) = (g.height.output as usize, g.width.output as usize);
    let (channels, outputs) = (g.filter_channels as usize, g.out_channels as usize);
    let at =
        g.format.strides(g.height.input as usize, g.width.input as usize, g.in_channels as usize);
    let out = g.format.strides(rows, cols, outputs);
    for n in 0..g.batch as usize {
        for (y, x) in (0..rows).flat_map(|y| (0..cols).map(move |x| (y, x))) {
            for ky in g.height.taps(y) {
                for kx in g.width.taps(x) {
                    let (Some(iy), Some(ix)) = (g.height.input_at(y, ky), g.width.input_at(x, kx))
                    else {
                        continue;
                    };
                    let pixel = n * at[0] + iy * at[1] + ix * at[2];
                    let result = n * out[0] + y * out[1] + x * out[2];
                    let tap = (ky * g.width.kernel as usize + kx) * channels;
                    for o in 0..outputs {
                        let first = o / g.group_outputs() as usize * channels;
                        for c in 0..channels {
                            let image = pixel + (first + c) * at[3];
                            f(image, (tap + c) * outputs + o, result + o * out[3]);
                        }
                    }
                }
            }
        }
    }
}

/// The gradient of a convolution by its input. Every size of the geometry is known.
pub fn conv2d_backprop_input<T: Accumulate>(
    g: &Conv2dGeometry,
    filter: &[T],
    gradients: &[T],
    backprops: &mut [T],
) {
    let mut sums = vec![T::Total::ZERO; backprops.len()];
    products(g, |image, tap, result| {
        sums[image] = sums[image].add(filter[tap].total().mul(gradients[result].total()));
    });
    backprops.iter_mut().zip(sums).for_each(|(to, sum)| *to = T::rounded(sum));
}

/// The gradient of a convolution by its filter. Every size of the geometry is known.
pub fn conv2d_backprop_filter<T: Accumulate>(
    g: &Conv2dGeometry,
    input: &[T],
    gradients: &[T],
    backprops: &mut [T],
) {
    let mut sums = vec![T::Total::ZERO; backprops.len()];
    products(g, |image, tap, result| {
        sums[tap] = sums[tap].add(input[image].total().mul(gradients[result].total()));
    });
    backprops.iter_mut().zip(sums).for_each(|(to, sum)| *to = T::rounded(sum));
}

/// For each row of `classes` logits the loss `ln(sum of e^(x - max)) - (x[label] - max)`, and its gradient by the
/// logits, the softmax less 1 at the label; computed in `f64`. Each label is a class.
pub fn sparse_softmax_cross_entropy<T: Float>(
    classes: usize,
    logits: &[T],
    labels: &[usize],
    loss: &mut [T],
    backprops: &mut [T],
) {
    let rows = logits.chunks_exact(classes).zip(backprops.chunks_exact_mut(classes));
    for ((loss, label), (x, to)) in loss.iter_mut().zip(labels).zip(rows) {
        let max = x.iter().fold(f64::NEG_INFINITY, |max, x| larger(max, x.to_f64()));
        let exp = |x: &T| (x.to_f64() - max).exp();
        let sum: f64 = x.iter().map(exp).sum();
        *loss = T::from_f64(sum.ln() - (x[*label].to_f64() - max));
        for (class, (to, x)) in to.iter_mut().zip(x).enumerate() {
            *to = T::from_f64(exp(x) / sum - f64::from(u8::from(class == *label)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_geometry::{Conv2dParams, DataFormat, Padding, Pool2dParams};

    const CONV: Conv2dParams<'static> = Conv2dParams {
        input: &[1, 3, 4, 2],
        filter: &[2, 3, 2, 2],
        strides: &[1, 2, 2, 1],
        dilations: &[1, 1, 1, 1],
        padding: Padding::Same,
        explicit_paddings: &[],
        format: DataFormat::Nhwc,
    };

    fn count(len: usize, modulus: usize, shift: f32) -> Vec<f32> {
        (0..len).map(|i| (i % modulus) as f32 + shift).collect()
    }

    /// The expected values are tf.raw_ops.Conv2DBackpropInput's and Conv2DBackpropFilter's.
    #[test]
    fn convolutions() {
        let g = Conv2dGeometry::new(&CONV).unwrap();
        let (input, filter) = (count(24, 7, -3.0), count(24, 5, -2.0));
        let gradients = count(8, 4, -1.0);
        let mut dx = vec![9.0; 24];
        conv2d_backprop_input(&g, &filter, &gradients, &mut dx);
        let expected = [
            2.0, 0.0, -2.0, 1.0, -5.0, 4.0, -2.0, -1.0, 0.0, -2.0, 1.0, -1.0, 4.0, -2.0, -1.0, 5.0,
            2.0, 0.0, -2.0, 1.0, -5.0, 4.0, -2.0, -1.0,
        ];
        assert_eq!(dx, expected);
        let mut dw = vec![9.0; 24];
        conv2d_backprop_filter(&g, &input, &gradients, &mut dw);
        let expected = [
            8.0, 8.0, 1.0, -2.0, 1.0, 2.0, -6.0, -8.0, -4.0, 0.0, 1.0, 0.0, 4.0, 4.0, 4.0, 6.0,
            -3.0, -6.0, -3.0, -4.0, -2.0, 0.0, -3.0, 0.0,
        ];
        assert_eq!(dw, expected);
    }

    /// Windows overlap, the first of two equal elements gets the gradient, and a window of NaN gives it to none.
    #[test]
    fn poolings() {
        let params = Pool2dParams {
            input: &[1, 3, 3, 1],
            ksize: &[1, 2, 2, 1],
            strides: &[1, 1, 1, 1],
            padding: Padding::Valid,
            explicit_paddings: &[],
            format: DataFormat::Nhwc,
        };
        let g = Pool2dGeometry::max(&params).unwrap();
        let mut dx = [7.0f32; 9];
        let x = [1.0, 1.0, 0.0, 1.0, 5.0, 2.0, 5.0, 2.0, 5.0];
        max_pool_grad(&g, &x, &[1.0, 2.0, 4.0, 8.0], &mut dx);
        assert_eq!(dx, [0.0, 0.0, 0.0, 0.0, 15.0, 0.0, 0.0, 0.0, 0.0]);
        max_pool_grad(&g, &[1.0; 9], &[1.0, 2.0, 4.0, 8.0], &mut dx);
        assert_eq!(dx, [1.0, 2.0, 0.0, 4.0, 8.0, 0.0, 0.0, 0.0, 0.0]);
        max_pool_grad(&g, &[f32::NAN; 9], &[1.0; 4], &mut dx);
        assert_eq!(dx, [0.0; 9]);
    }

    #[test]
    fn rectifier_and_bias() {
        let mut to = [9.0f32; 4];
        relu_grad(&[1.0, 2.0, 3.0, f32::INFINITY], &[1.0, 0.0, f32::NAN, -2.0], &mut to);
        assert_eq!(to[..3], [1.0, 0.0, 0.0]);
        assert!(to[3].is_nan());
        let split = ChannelSplit::new(&[2, 3, 2], DataFormat::Nchw).unwrap();
        let mut bias = [9; 3];
        bias_add_grad(&split, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12], &mut bias);
        assert_eq!(bias, [18, 26, 34]);
    }

    /// The expected values are tf.raw_ops.SparseSoftmaxCrossEntropyWithLogits's.
    #[test]
    fn losses() {
        let (mut loss, mut to) = ([0.0f32; 2], [0.0f32; 6]);
        let logits = [1.0, 2.0, 3.0, 0.0, 0.0, 1000.0];
        sparse_softmax_cross_entropy(3, &logits, &[0, 2], &mut loss, &mut to);
        let expected = [-0.909_969_4, 0.244_728_48, 0.665_240_94, 0.0, 0.0, 0.0];
        assert!((loss[0] - 2.407_606).abs() < 1e-6 && loss[1] == 0.0, "{loss:?}");
        assert!(to.iter().zip(expected).all(|(a, b): (&f32, f32)| (a - b).abs() < 1e-6), "{to:?}");
    }
}
