use super::*;
use crate::{
    arch::Level,
    testing::{assert_close, values},
};
use tenon_reference::nn::conv2d;
use tenon_sdk::geometry::{Conv2dParams, Padding};

fn geometry(
    input: [i64; 4],
    filter: [i64; 4],
    [stride, dilation]: [i64; 2],
    padding: Padding,
    format: DataFormat,
) -> Option<Conv2dGeometry> {
    Conv2dGeometry::depthwise(&Conv2dParams {
        input: &input,
        filter: &filter,
        strides: &format.order(1, stride, stride, 1),
        dilations: &format.order(1, dilation, dilation, 1),
        padding,
        explicit_paddings: &[],
        format,
    })
    .ok()
}

/// Computes the rows of all images in two parts, the first of `first` rows.
fn in_parts(all: &Rows<'_, f32>, first: usize, y: &mut [f32]) {
    let rows = y.len() / all.len();
    let (above, below) = y.split_at_mut(first * all.len());
    all.compute(0..first, above);
    all.compute(first..rows, below);
}

/// Computes slabs of two rows.
fn in_slabs(g: &Conv2dGeometry, x: &[f32], filter: &[f32], y: &mut [f32]) {
    let slabs = slabs::Slabs { g, x, filter, after: None, rows: 2 };
    let (row, line) = (slabs.row_len()[0], slabs.row_len()[1]);
    let mut slab = vec![7.0; slabs.most_lines() * line];
    for (image, y) in y.chunks_exact_mut(g.height.output as usize * row).enumerate() {
        for at in 0..slabs.count() {
            let rows = slabs.rows_of(at);
            let y = &mut y[rows.start * row..rows.end * row];
            slabs.compute(image, at, y, &mut slab, &mut []);
        }
    }
}

fn check(g: &Conv2dGeometry) {
    let image = (g.height.input * g.width.input * g.in_channels) as usize;
    let (outputs, pixels) = (g.out_channels as usize, (g.height.output * g.width.output) as usize);
    let window = (g.height.kernel * g.width.kernel) as usize;
    let (x, f) = (values::<f32>(g.batch as usize * image, 1), values::<f32>(window * outputs, 2));
    let len = g.batch as usize * pixels * outputs;
    let (mut expected, mut found) = (vec![0.0; len], vec![9.0; len]);
    conv2d(g, &x, &f, &mut expected);
    if g.format == DataFormat::Nhwc && g.in_channels != g.out_channels && len > 0 {
        in_slabs(g, &x, &f, &mut found);
    } else if g.format == DataFormat::Nhwc && len > 0 {
        let mut all = Rows::new(g, &x, &f, Ending::NONE);
        for level in [Level::Baseline, Level::Avx2, Level::Avx512] {
            all.tiles.iter_mut().for_each(|tiles| tiles.level = level);
            found.fill(9.0);
            in_parts(&all, len / all.len() / 3, &mut found);
            assert_close(&found, &expected, 1e-4, 1e-5);
        }
    } else if len > 0 {
        for (n, y) in found.chunks_exact_mut(pixels * outputs).enumerate() {
            let x = &x[n * image..][..image];
            let plane = (g.height.input * g.width.input) as usize;
            for (o, y) in y.chunks_exact_mut(pixels).enumerate() {
                let channel = o / (outputs / g.in_channels as usize);
                let x = &x[channel * plane..][..plane];
                plane_channels_first(g, x, &f[o..], outputs, y);
            }
        }
    }
    assert_close(&found, &expected, 1e-4, 1e-5);
}

#[test]
fn both_formats_agree_with_the_reference() {
    let check = |input, filter, steps, format| {
        check(&geometry(input, filter, steps, Padding::Same, format).unwrap());
    };
    for steps in [[1, 1], [2, 1], [1, 2], [3, 1]] {
        check([2, 7, 8, 70], [3, 3, 70, 1], steps, DataFormat::Nhwc);
        check([1, 7, 8, 3], [3, 2, 3, 4], steps, DataFormat::Nhwc);
        check([2, 3, 7, 9], [3, 3, 3, 2], steps, DataFormat::Nchw);
        check([1, 2, 5, 4], [5, 7, 2, 1], steps, DataFormat::Nchw);
    }
}

/// Checks every count of channels up to 40 and every width up to 20, but not every combination.
#[test]
fn windows_of_every_width_agree_with_the_reference() {
    let sizes = (1..=40).map(|channels| (channels, channels * 7 % 20 + 1));
    let sizes = sizes.chain((1..=20).flat_map(|width| [(5, width), (19, width), (200, width)]));
    let mut in_tiles = 0;
    for (channels, width) in sizes {
        for [height, taps] in [[3, 3], [5, 5], [1, 3]] {
            for stride in 1..=3 {
                for padding in [Padding::Same, Padding::Valid] {
                    let input = [2, (channels + width) % 5 + 3, width, channels];
                    let filter = [height, taps, channels, 1];
                    let format = DataFormat::Nhwc;
                    let Some(g) = geometry(input, filter, [stride, 1], padding, format) else {
                        continue;
                    };
                    check(&g);
                    in_tiles += i32::from(Tiles::new(&g, &[], Finish::NONE).is_some());
                }
            }
        }
    }
    assert!(in_tiles > 700, "{in_tiles}");
}

#[test]
fn windows_in_the_padding_agree_with_the_reference() {
    for (left, right, in_tiles) in [(1, 1, true), (0, 4, false), (2, 2, false), (4, 0, false)] {
        let g = Conv2dGeometry::depthwise(&Conv2dParams {
            input: &[1, 4, 6, 20],
            filter: &[3, 3, 20, 1],
            strides: &[1, 2, 2, 1],
            dilations: &[1, 2, 1, 1],
            padding: Padding::Explicit,
            explicit_paddings: &[0, 0, 7, 6, left, right, 0, 0],
            format: DataFormat::Nhwc,
        })
        .unwrap();
        check(&g);
        assert_eq!(Tiles::new(&g, &[], Finish::NONE).is_some(), in_tiles);
    }
}

#[test]
fn what_follows_on_sums_rounds_as_what_follows_on_rows() {
    let g =
        geometry([2, 19, 9, 21], [3, 3, 21, 1], [1, 1], Padding::Same, DataFormat::Nhwc).unwrap();
    let (mut x, f) = (values::<f32>(2 * 19 * 9 * 21, 1), values::<f32>(9 * 21, 2));
    x[500..540].fill(f32::NAN);
    x[900..930].fill(f32::NEG_INFINITY);
    x[3000..3900].fill(-0.0);
    let mut bias = values::<f32>(21, 3);
    bias[7..9].fill(0.0);
    let affine = [4, 5, 6].map(|seed| values::<f32>(21, seed));
    let [mean, factor, offset] = &affine;
    let choices = [
        (true, false, None),
        (false, false, Some(6.0)),
        (false, true, Some(0.5)),
        (true, true, Some(f32::INFINITY)),
    ];
    for (has_bias, has_affine, high) in choices {
        let after = |start: usize, y: &mut [f32]| {
            for (i, y) in y.iter_mut().enumerate() {
                let at = (start + i) % 21;
                let mut sum = if has_bias { *y + bias[at] } else { *y };
                if has_affine {
                    sum = (sum - mean[at]) * factor[at] + offset[at];
                }
                *y = high.map_or(sum, |high| sum.clamped(high));
            }
        };
        let finish = Finish {
            bias: has_bias.then_some(&bias[..]),
            affine: has_affine.then_some([&mean[..], factor, offset]),
            other: None,
            high,
        };
        let endings =
            [Ending::after(Some(&after)), Ending { finish, rest: None, all: Some(&after) }];
        for level in [Level::Baseline, Level::Avx2, Level::Avx512] {
            let [on_rows, on_sums] = endings.map(|ending| {
                let mut all = Rows::new(&g, &x, &f, ending);
                all.tiles.as_mut().unwrap().level = level;
                let mut y = vec![9.0; x.len()];
                in_parts(&all, 11, &mut y);
                y.iter().map(|y| if y.is_nan() { 0 } else { y.to_bits() }).collect::<Vec<u32>>()
            });
            assert!(on_rows == on_sums, "{level:?}, {has_affine}, {high:?}");
        }
    }
}
