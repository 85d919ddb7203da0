//! `MaxPool` and `AvgPool`. Padding is never part of a window.

use crate::{Accumulate, LowestFinite};
use tenon_geometry::Pool2dGeometry;

/// Offsets of the first channel of the input pixels that the window of output pixel (y, x) covers.
fn pixels(
    g: &Pool2dGeometry,
    strides: [usize; 4],
    y: usize,
    x: usize,
) -> impl Iterator<Item = usize> + '_ {
    let rows = g.height.taps(y).filter_map(move |tap| g.height.input_at(y, tap));
    rows.flat_map(move |row| {
        let columns = g.width.taps(x).filter_map(move |tap| g.width.input_at(x, tap));
        columns.map(move |column| row * strides[1] + column * strides[2])
    })
}

/// Calls `f` for each output of a pooling, with its offset and an iterator over the offsets of its inputs. Every size of
/// the geometry is known.
pub(super) fn window(
    g: &Pool2dGeometry,
    mut f: impl FnMut(usize, &mut dyn Iterator<Item = usize>),
) {
    let (rows, cols) = (g.height.output as usize, g.width.output as usize);
    let (height, width) = (g.height.input as usize, g.width.input as usize);
    let depth = g.depth_window as usize;
    let at = g.format.strides(height, width, g.in_channels as usize);
    let out = g.format.strides(rows, cols, g.out_channels as usize);
    for n in 0..g.batch as usize {
        for y in 0..rows {
            for x in 0..cols {
                for c in 0..g.out_channels as usize {
                    let first = n * at[0] + c * depth * at[3];
                    let mut inputs = pixels(g, at, y, x)
                        .flat_map(|pixel| (0..depth).map(move |d| first + pixel + d * at[3]));
                    f(n * out[0] + y * out[1] + x * out[2] + c * out[3], &mut inputs);
                }
            }
        }
    }
}

/// The largest element of each window, starting from the lowest finite value: NaN is passed over, and a window
/// of nothing but NaN and negative infinity gives that value.
pub fn max_pool<T: LowestFinite>(g: &Pool2dGeometry, input: &[T], output: &mut [T]) {
    window(g, |at, inputs| {
        output[at] =
            inputs.fold(T::LOWEST_FINITE, |best, i| if input[i] > best { input[i] } else { best });
    });
}

/// The mean of each window.
pub fn avg_pool<T: Accumulate>(g: &Pool2dGeometry, input: &[T], output: &mut [T]) {
    window(g, |at, inputs| output[at] = T::mean(inputs.map(|i| input[i])));
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_geometry::{DataFormat, Padding, Pool2dParams};

    const BASE: Pool2dParams<'static> = Pool2dParams {
        input: &[1, 3, 4, 1],
        ksize: &[1, 2, 3, 1],
        strides: &[1, 2, 2, 1],
        padding: Padding::Same,
        explicit_paddings: &[],
        format: DataFormat::Nhwc,
    };

    fn max<T: LowestFinite>(p: &Pool2dParams<'_>, input: &[T]) -> Vec<T> {
        let g = Pool2dGeometry::max(p).unwrap();
        let mut output = vec![T::default(); g.output_dims().iter().product::<i64>() as usize];
        max_pool(&g, input, &mut output);
        output
    }

    #[test]
    fn values_are_tensorflow_s() {
        let input: Vec<f32> = (0..12).map(|i| i as f32).collect();
        assert_eq!(max(&BASE, &input), [6.0, 7.0, 10.0, 11.0]);
        let mut output = [0.0; 4];
        avg_pool(&Pool2dGeometry::average(&BASE).unwrap(), &input, &mut output);
        assert_eq!(output, [3.0, 4.5, 9.0, 10.5]);
        let first = Pool2dParams {
            input: &[1, 1, 3, 3],
            ksize: &[1, 1, 2, 2],
            strides: &[1, 1, 1, 1],
            padding: Padding::Valid,
            format: DataFormat::Nchw,
            ..BASE
        };
        assert_eq!(max(&first, &input[..9]), [4.0, 5.0, 7.0, 8.0]);
        let depth = Pool2dParams {
            input: &[1, 1, 1, 6],
            ksize: &[1, 1, 1, 3],
            strides: &[1, 1, 1, 3],
            ..BASE
        };
        assert_eq!(max(&depth, &input[..6]), [2.0, 5.0]);
    }

    #[test]
    fn padding_never_wins() {
        let p = Pool2dParams {
            input: &[1, 3, 3, 1],
            ksize: &[1, 2, 2, 1],
            padding: Padding::Explicit,
            explicit_paddings: &[0, 0, 1, 1, 1, 0, 0, 0],
            ..BASE
        };
        assert_eq!(max(&p, &[-5i32; 9]), [-5; 4]);
    }

    #[test]
    fn nan_is_passed_over() {
        let p = Pool2dParams { input: &[1, 2, 2, 1], ksize: &[1, 2, 2, 1], ..BASE };
        assert_eq!(max(&p, &[1.0, f32::NAN, 2.0, 3.0]), [3.0]);
        assert_eq!(max(&p, &[f32::NAN; 4]), [f32::MIN]);
        assert_eq!(max(&p, &[f64::NEG_INFINITY; 4]), [f64::MIN]);
    }
}
