//! Comparisons with the definition in double, within the bound of `super::contract`.

use super::{
    blocks::Work,
    factors::{self, Factors},
    transforms::{Four, MOST_OUTPUTS, MOST_POINTS, Transform, Two, TwoOfFive},
};
use crate::{
    kernels::{
        linalg::{
            gemm::isa::fastest,
            product::{Operand, dense_product},
        },
        nn::im2col::im2col,
    },
    testing::values,
};
use tenon_reference::nn::conv2d;
use tenon_sdk::geometry::{Conv2dGeometry, Conv2dParams, DataFormat, Padding};

/// The unit roundoff: half a unit in the last place of 1.
const ROUNDOFF: f64 = 1.0 / 16_777_216.0;

/// The roundings of a result except those of its sum over channels.
fn roundings<T: Transform>() -> usize {
    match (T::OUTPUTS, T::TAPS) {
        (2, 3) => 1 + 2 + 4,
        (2, _) => 1 + 8 + 9,
        _ => 1 + 8 + 10,
    }
}

/// A convolution and its inputs.
struct Case {
    g: Conv2dGeometry,
    x: Vec<f32>,
    filter: Vec<f32>,
}

type Matrix = [[f64; MOST_POINTS]; MOST_POINTS];

/// The matrix of a transformation as absolute values: each column is the transformed unit vector of
/// that position.
fn magnitudes<const N: usize>(
    columns: usize,
    apply: impl Fn([[f32; 4]; MOST_POINTS]) -> [[f32; 4]; N],
) -> Matrix {
    let mut matrix = [[0.0; MOST_POINTS]; MOST_POINTS];
    for column in 0..columns {
        let mut unit = [[0.0; 4]; MOST_POINTS];
        unit[column] = [1.0; 4];
        for (row, value) in matrix.iter_mut().zip(apply(unit)) {
            row[column] = f64::from(value[0].abs());
        }
    }
    matrix
}

/// `M x M^T`.
fn both_sides(m: &Matrix, x: &Matrix) -> Matrix {
    let mut result = [[0.0; MOST_POINTS]; MOST_POINTS];
    for (i, j) in pairs(MOST_POINTS) {
        result[i][j] = pairs(MOST_POINTS).map(|(k, l)| m[i][k] * x[k][l] * m[j][l]).sum();
    }
    result
}

fn pairs(n: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..n).flat_map(move |i| (0..n).map(move |j| (i, j)))
}

impl Case {
    fn new(input: [i64; 4], outputs: i64, padding: Padding, explicit: &[i64]) -> Case {
        Case::of_taps(3, input, outputs, padding, explicit)
    }

    fn of_taps(
        taps: i64,
        input: [i64; 4],
        outputs: i64,
        padding: Padding,
        explicit: &[i64],
    ) -> Case {
        let filter = [taps, taps, input[3], outputs];
        let g = Conv2dGeometry::new(&Conv2dParams {
            input: &input,
            filter: &filter,
            strides: &[1; 4],
            dilations: &[1; 4],
            padding,
            explicit_paddings: explicit,
            format: DataFormat::Nhwc,
        });
        let count = |dims: [i64; 4]| dims.iter().product::<i64>() as usize;
        let (x, filter) = (values(count(input), 1), values(count(filter), 2));
        Case { g: g.unwrap(), x, filter }
    }

    fn channels(&self) -> [usize; 2] {
        [self.g.in_channels as usize, self.g.out_channels as usize]
    }

    fn len(&self) -> usize {
        self.g.output_dims().iter().product::<i64>() as usize
    }

    fn winograd<T: Transform>(&self) -> Vec<f32> {
        let (isa, size) = (fastest().unwrap(), self.channels());
        let mut memory = vec![f32::NAN; factors::len::<T>(isa, size).unwrap()];
        factors::transform::<T>(&self.filter, size[1], isa.columns, &mut memory);
        let factors = Factors::new(isa, size, &memory);
        let mut y = vec![f32::NAN; self.len()];
        Work::<T>::new(&self.g, [&self.x, &self.filter], factors, &mut y, None).on_one_thread();
        y
    }

    /// Computes the convolution as the ordinary kernel does.
    fn patches(&self) -> Vec<f32> {
        let [channels, outputs] = self.channels();
        let pixels = (self.g.height.output * self.g.width.output) as usize;
        let image = (self.g.height.input * self.g.width.input) as usize * channels;
        let patch = (self.g.height.kernel * self.g.width.kernel) as usize * channels;
        let mut y = vec![f32::NAN; self.len()];
        for (x, y) in self.x.chunks_exact(image).zip(y.chunks_exact_mut(pixels * outputs)) {
            let mut patches = vec![0.0; pixels * patch];
            im2col(&self.g, 0, 0..pixels, x, &mut patches);
            let filter = Operand::dense(&self.filter, patch, outputs);
            dense_product(Operand::dense(&patches, pixels, patch), filter, y);
        }
        y
    }

    fn exact(&self) -> Vec<f64> {
        let wide = |x: &[f32]| x.iter().map(|&x| f64::from(x)).collect::<Vec<f64>>();
        let mut y = vec![0.0; self.len()];
        conv2d(&self.g, &wide(&self.x), &wide(&self.filter), &mut y);
        y
    }

    /// The error bound for each output.
    fn bounds<T: Transform>(&self) -> Vec<f64> {
        let [channels, outputs] = self.channels();
        let outer = magnitudes::<MOST_OUTPUTS>(T::POINTS, T::outputs);
        // One panel per output, so that the factors are in plain order.
        let plane = channels * T::POINTS * T::POINTS;
        let mut factors = vec![0.0; outputs * plane];
        for (output, factors) in factors.chunks_exact_mut(plane).enumerate() {
            let own: Vec<f32> = self.filter.iter().skip(output).step_by(outputs).copied().collect();
            factors::transform::<T>(&own, 1, 1, factors);
        }
        let roundings = (channels + roundings::<T>()) as f64 * ROUNDOFF;
        let [height, width] = [&self.g.height, &self.g.width].map(|dim| dim.output as usize);
        let mut bounds = vec![0.0; self.len()];
        for (image, bounds) in bounds.chunks_exact_mut(height * width * outputs).enumerate() {
            for (row, column) in pairs(height.max(width)).filter(|at| at.0 < height && at.1 < width)
            {
                if row % T::OUTPUTS + column % T::OUTPUTS > 0 {
                    continue;
                }
                let inputs = self.inputs::<T>(image, row, column);
                for output in 0..outputs {
                    let factors = &factors[output * plane..][..plane];
                    let mut sums = [[0.0; MOST_POINTS]; MOST_POINTS];
                    for (i, j) in pairs(T::POINTS) {
                        let factors = &factors[(i * T::POINTS + j) * channels..][..channels];
                        let terms = inputs.iter().zip(factors);
                        sums[i][j] = terms.map(|(v, u)| v[i][j] * f64::from(u.abs())).sum();
                    }
                    let sums = both_sides(&outer, &sums);
                    for (i, j) in pairs(T::OUTPUTS) {
                        if row + i < height && column + j < width {
                            let at = ((row + i) * width + column + j) * outputs + output;
                            bounds[at] = roundings * sums[i][j];
                        }
                    }
                }
            }
        }
        bounds
    }

    /// `|B^T| |d| |B|` of each channel of the tile whose first output is this one.
    fn inputs<T: Transform>(&self, image: usize, row: usize, column: usize) -> Vec<Matrix> {
        let inner = magnitudes::<MOST_POINTS>(T::POINTS, T::inputs);
        let (height, width) = (&self.g.height, &self.g.width);
        let tile = |channel: usize| {
            let mut d = [[0.0; MOST_POINTS]; MOST_POINTS];
            for (i, j) in pairs(T::POINTS) {
                let y = (row + i) as i64 - height.pad_before;
                let x = (column + j) as i64 - width.pad_before;
                if (0..height.input).contains(&y) && (0..width.input).contains(&x) {
                    let pixel = (image as i64 * height.input + y) * width.input + x;
                    let at = pixel as usize * self.channels()[0] + channel;
                    d[i][j] = f64::from(self.x[at].abs());
                }
            }
            both_sides(&inner, &d)
        };
        (0..self.channels()[0]).map(tile).collect()
    }

    /// The root mean square of the errors of results. Panics unless all are within the bounds.
    fn error(&self, found: &[f32], bounds: &[f64]) -> f64 {
        let exact = self.exact();
        let mut squares = 0.0;
        for (at, (&found, (&exact, &bound))) in
            found.iter().zip(exact.iter().zip(bounds)).enumerate()
        {
            let error = (f64::from(found) - exact).abs();
            assert!(error <= bound, "output {at}: {found} for {exact}, bound {bound:e}");
            squares += error * error;
        }
        (squares / exact.len() as f64).sqrt()
    }

    fn check<T: Transform>(&self) -> f64 {
        self.error(&self.winograd::<T>(), &self.bounds::<T>())
    }
}

#[test]
fn tiles_cut_off_at_every_side_are_within_the_bound() {
    let (same, valid) = (Padding::Same, Padding::Valid);
    let cases = [
        Case::new([1, 6, 6, 1], 1, valid, &[]),
        Case::new([1, 1, 1, 3], 2, same, &[]),
        Case::new([3, 5, 7, 3], 5, same, &[]),
        Case::new([2, 9, 4, 17], 19, valid, &[]),
        Case::new([1, 13, 22, 16], 33, same, &[]),
        Case::new([2, 8, 3, 5], 70, same, &[]),
        Case::new([1, 7, 6, 20], 6, Padding::Explicit, &[0, 0, 3, 2, 1, 4, 0, 0]),
        // More tiles than fit a product of the library, and more than fit a block.
        Case::new([1, 34, 37, 2], 3, same, &[]),
        Case::new([2, 30, 30, 130], 4, same, &[]),
    ];
    for case in &cases {
        case.check::<Two>();
        case.check::<Four>();
    }
    let cases = [
        Case::of_taps(5, [1, 6, 6, 1], 1, valid, &[]),
        Case::of_taps(5, [1, 1, 1, 3], 2, same, &[]),
        Case::of_taps(5, [3, 5, 7, 3], 5, same, &[]),
        Case::of_taps(5, [2, 9, 6, 17], 19, valid, &[]),
        Case::of_taps(5, [1, 7, 6, 20], 6, Padding::Explicit, &[0, 0, 3, 2, 1, 4, 0, 0]),
        Case::of_taps(5, [2, 14, 14, 32], 64, same, &[]),
    ];
    for case in &cases {
        case.check::<TwoOfFive>();
    }
}

/// Inputs whose terms cancel, or some of which are much greater than the rest.
fn adversaries(taps: i64) -> [Case; 4] {
    let case = || Case::of_taps(taps, [1, 12, 13, 64], 8, Padding::Same, &[]);
    let mut all = [case(), case(), case(), case()];
    // A chessboard, and a filter of its differences, to which the points ±p are most sensitive.
    all[0].x.iter_mut().enumerate().for_each(|(at, x)| {
        let (row, column) = (at / 64 / 13, at / 64 % 13);
        *x = if (row + column) % 2 == 0 { 1.0 } else { -1.0 } * (1.0 + x.abs() / 1024.0);
    });
    // Channels that cancel in pairs except for their last bits.
    for at in (0..all[1].x.len()).step_by(2) {
        all[1].x[at + 1] = -all[1].x[at] * (1.0 + f32::EPSILON);
    }
    all[1].filter.chunks_exact_mut(16).for_each(|pair| {
        let (first, second) = pair.split_at_mut(8);
        second.copy_from_slice(first);
    });
    // One huge channel.
    all[2].x.iter_mut().step_by(64).for_each(|x| *x *= 1e6);
    // One huge pixel, which most outputs of its tile do not depend on.
    all[3].x[(5 * 13 + 5) * 64..][..64].iter_mut().for_each(|x| *x *= 1e6);
    all
}

#[test]
fn adversaries_are_within_the_bound() {
    for case in &adversaries(3) {
        case.check::<Two>();
        case.check::<Four>();
    }
    for case in &adversaries(5) {
        case.check::<TwoOfFive>();
    }
}

#[test]
fn the_bound_is_not_idle() {
    let case = Case::new([1, 12, 13, 64], 8, Padding::Same, &[]);
    let (own, bounds) = (case.check::<Four>(), case.bounds::<Four>());
    let plain = case.error(&case.patches(), &bounds);
    assert!(own > 1.2 * plain, "F(4x4) errs by {own:e}, plain sums by {plain:e}");
    // An output that does not depend on the huge pixel of its tile errs by more than plain sums
    // could, since its own terms are small.
    let case = &adversaries(3)[3];
    let (found, exact) = (case.winograd::<Four>(), case.exact());
    let at = (5 * 13 + 7) * 8;
    let terms = case.channels()[0] as f64 * 9.0 * 16.0;
    let error = (f64::from(found[at]) - exact[at]).abs();
    assert!(error > terms * ROUNDOFF, "{error:e}");
}

#[test]
fn errors_of_ordinary_numbers_are_within_the_contract() {
    let case = |taps| Case::of_taps(taps, [1, 16, 17, 96], 8, Padding::Same, &[]);
    let contract = |case: &Case, relative: f64| {
        let terms = Case {
            g: case.g,
            x: case.x.iter().map(|x| x.abs()).collect(),
            filter: case.filter.iter().map(|x| x.abs()).collect(),
        };
        terms.exact().iter().map(|sum| relative * sum).collect::<Vec<_>>()
    };
    let (three, five) = (case(3), case(5));
    three.error(&three.winograd::<Two>(), &contract(&three, Two::RELATIVE));
    three.error(&three.winograd::<Four>(), &contract(&three, Four::RELATIVE));
    five.error(&five.winograd::<TwoOfFive>(), &contract(&five, TwoOfFive::RELATIVE));
}

#[test]
fn infinities_stay_where_the_definition_has_them() {
    for special in [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 1e38] {
        let mut case = Case::new([1, 9, 10, 16], 3, Padding::Same, &[]);
        let mut wider = Case::of_taps(5, [1, 9, 10, 16], 3, Padding::Same, &[]);
        let finite = [case.exact(), wider.exact()];
        for case in [&mut case, &mut wider] {
            case.x[(4 * 10 + 6) * 16 + 5] = special;
        }
        let all = [
            (case.winograd::<Two>(), case.exact(), &finite[0]),
            (case.winograd::<Four>(), case.exact(), &finite[0]),
            (wider.winograd::<TwoOfFive>(), wider.exact(), &finite[1]),
        ];
        for (found, exact, finite) in &all {
            for (at, (&found, &exact)) in found.iter().zip(exact).enumerate() {
                let narrow = exact as f32;
                if !narrow.is_finite() {
                    assert!(found.is_nan() == narrow.is_nan(), "output {at}: {found}, {narrow}");
                    assert!(narrow.is_nan() || found == narrow, "output {at}: {found}, {narrow}");
                } else if exact == finite[at] {
                    assert!((f64::from(found) - exact).abs() < 1e-2, "output {at}: {found}");
                } else {
                    assert!((f64::from(found) / exact - 1.0).abs() < 1e-5, "output {at}: {found}");
                }
            }
        }
    }
}
