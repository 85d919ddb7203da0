//! `Conv2D` and `DepthwiseConv2dNative`.

use crate::Accumulate;
use tenon_framework::element::Number;
use tenon_geometry::Conv2dGeometry;

/// A convolution, grouped and dilated as the geometry says; also a depthwise one, with
/// `Conv2dGeometry::depthwise`.
///
/// `output[n, y, x, f] = sum over ky, kx, c of input[n, iy, ix, g * C + c] * filter[ky, kx, c, f]`, with
/// `iy = y * stride - pad_before + ky * dilation` (`ix` likewise), `C` the filter's input channels and
/// `g = f / (outputs / groups)` the output's group. Inputs in the padding count as 0, and are left out, so an
/// infinite filter makes no NaN of them. Every size of the geometry is known.
pub fn conv2d<T: Accumulate>(g: &Conv2dGeometry, input: &[T], filter: &[T], output: &mut [T]) {
    let (batch, outputs) = (g.batch as usize, g.out_channels as usize);
    let (rows, cols) = (g.height.output as usize, g.width.output as usize);
    let out = g.format.strides(rows, cols, outputs);
    for n in 0..batch {
        for y in 0..rows {
            for x in 0..cols {
                for f in 0..outputs {
                    output[n * out[0] + y * out[1] + x * out[2] + f * out[3]] =
                        T::rounded(element(g, input, filter, [n, y, x, f]));
                }
            }
        }
    }
}

/// One element of the output.
fn element<T: Accumulate>(
    g: &Conv2dGeometry,
    input: &[T],
    filter: &[T],
    [n, y, x, f]: [usize; 4],
) -> T::Total {
    let (height, width) = (g.height.input as usize, g.width.input as usize);
    let (channels, outputs) = (g.filter_channels as usize, g.out_channels as usize);
    let at = g.format.strides(height, width, g.in_channels as usize);
    let first_channel = f / g.group_outputs() as usize * channels;
    let mut sum = T::Total::ZERO;
    for ky in g.height.taps(y) {
        for kx in g.width.taps(x) {
            let (Some(iy), Some(ix)) = (g.height.input_at(y, ky), g.width.input_at(x, kx)) else {
                continue;
            };
            for c in 0..channels {
                let image = n * at[0] + iy * at[1] + ix * at[2] + (first_channel + c) * at[3];
                let tap = ((ky * g.width.kernel as usize + kx) * channels + c) * outputs + f;
                sum = sum.add(input[image].total().mul(filter[tap].total()));
            }
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_geometry::{Conv2dParams, DataFormat, Padding};

    const BASE: Conv2dParams<'static> = Conv2dParams {
        input: &[1, 5, 5, 1],
        filter: &[3, 3, 1, 1],
        strides: &[1, 1, 1, 1],
        dilations: &[1, 1, 1, 1],
        padding: Padding::Same,
        explicit_paddings: &[],
        format: DataFormat::Nhwc,
    };

    fn run(g: Conv2dGeometry, input: &[f32], filter: &[f32]) -> Vec<f32> {
        let mut output = vec![9.0; g.output_dims().iter().product::<i64>() as usize];
        conv2d(&g, input, filter, &mut output);
        output
    }

    fn count(len: usize, modulus: usize, shift: f32) -> Vec<f32> {
        (0..len).map(|i| (i % modulus) as f32 + shift).collect()
    }

    /// 5x5 image 1..=25 and 3x3 filter 1..=9, as in the TensorFlow runs that gave the expected values.
    fn plain(p: &Conv2dParams<'_>) -> Vec<f32> {
        run(Conv2dGeometry::new(p).unwrap(), &count(25, 25, 1.0), &count(9, 9, 1.0))
    }

    #[test]
    fn strides_dilations_and_padding() {
        let strided = [128.0, 241.0, 184.0, 441.0, 681.0, 453.0, 320.0, 457.0, 280.0];
        assert_eq!(plain(&Conv2dParams { strides: &[1, 2, 2, 1], ..BASE }), strided);
        let first = Conv2dParams {
            format: DataFormat::Nchw,
            input: &[1, 1, 5, 5],
            strides: &[1, 1, 2, 2],
            ..BASE
        };
        assert_eq!(plain(&first), strided);
        let dilated = plain(&Conv2dParams { dilations: &[1, 2, 1, 1], ..BASE });
        assert_eq!(dilated[..5], [213.0, 322.0, 361.0, 400.0, 259.0]);
        assert_eq!(dilated[20..], [295.0, 406.0, 427.0, 448.0, 265.0]);
        let explicit = Conv2dParams {
            strides: &[1, 2, 2, 1],
            padding: Padding::Explicit,
            explicit_paddings: &[0, 0, 1, 0, 0, 1, 0, 0],
            ..BASE
        };
        assert_eq!(plain(&explicit), [202.0, 280.0, 636.0, 726.0]);
    }

    /// Two groups, stride and dilation over rows, explicit padding.
    #[test]
    fn groups() {
        let p = Conv2dParams {
            input: &[2, 4, 3, 4],
            filter: &[2, 2, 2, 4],
            strides: &[1, 2, 1, 1],
            dilations: &[1, 2, 1, 1],
            padding: Padding::Explicit,
            explicit_paddings: &[0, 0, 1, 0, 0, 1, 0, 0],
            ..BASE
        };
        let g = Conv2dGeometry::new(&p).unwrap();
        let expected = [
            [22.0, 28.0, 6.0, 16.0, 26.0, 7.0, 23.0, 35.0, 6.0, 12.0, 7.0, 10.0],
            [75.0, 50.0, 38.0, 31.0, 52.0, 54.0, 27.0, 39.0, 2.0, 13.0, 26.0, 38.0],
            [14.0, 21.0, 21.0, 34.0, 39.0, 28.0, 17.0, 25.0, 5.0, 16.0, 2.0, 3.0],
            [58.0, 35.0, 46.0, 50.0, 49.0, 60.0, 35.0, 51.0, 25.0, 9.0, 18.0, 26.0],
        ];
        assert_eq!(run(g, &count(96, 7, 0.0), &count(32, 5, 0.0)), expected.concat());
    }

    #[test]
    fn depthwise() {
        let p = Conv2dParams { input: &[1, 3, 4, 2], filter: &[2, 3, 2, 2], ..BASE };
        // The first two channels of the 3x4x4 image, of the 2x3x4x2 filter.
        let firsts = |all: Vec<f32>, block: usize| -> Vec<f32> {
            all.chunks(2 * block).flat_map(|chunk| chunk[..block].to_vec()).collect()
        };
        let image: Vec<f32> = count(60, 11, -5.0);
        let image: Vec<f32> = image.chunks(20).flat_map(|row| row[..16].to_vec()).collect();
        let output = run(
            Conv2dGeometry::depthwise(&p).unwrap(),
            &firsts(image, 2),
            &firsts(count(48, 7, -3.0), 4),
        );
        assert_eq!(output[..8], [9.0, 4.0, 21.0, -15.0, 13.0, 12.0, 6.0, 25.0]);
        assert_eq!(output[40..], [14.0, 11.0, 8.0, 8.0, -3.0, -1.0, 0.0, 4.0]);
    }

    #[test]
    fn nothing_to_do() {
        let empty = Conv2dParams { input: &[0, 5, 5, 1], ..BASE };
        assert_eq!(run(Conv2dGeometry::new(&empty).unwrap(), &[], &count(9, 9, 1.0)), []);
        let flat = Conv2dParams { input: &[1, 0, 5, 1], ..BASE };
        assert_eq!(run(Conv2dGeometry::new(&flat).unwrap(), &[], &count(9, 9, 1.0)), []);
    }
}
