//! The numerics contract of the results, and the choice of the convolutions that use the algorithm.
//!
//! **Bound.** With unit roundoff `u = 2^-24` and `C` channels, each result is within `(C + R) u W`
//! of the exact one, to first order in `u`. `R` counts the other roundings on the longest way: one
//! of the factor, two or eight in `B^T d B` and four or ten in `A^T m A` where products are rounded
//! too, so 7 for F(2, 3) and 19 for F(4, 3). `W` is the sum of the absolute terms on the way:
//!
//! `W = |A^T| (sum over c of |G g_c G^T| . (|B^T| |d_c| |B|)) |A|`
//!
//! since a sum of products errs by at most its absolute terms times the number of roundings on the
//! longest way (B. Barabasz et al., Error analysis and improving the accuracy of Winograd
//! convolution, 2018, there in norms). In norms, `W <= k^2 * sum over c of |g_c|_1 |d_c|_max`, with
//! the greatest value over the tile, and `k` is the greatest element of `|A^T| (|G| . b)`, `b` the
//! row sums of `|B^T|`: 4 for F(2, 3), 13.25 for F(4, 3), which would be 29.3 with the points 0,
//! ±1, ±2.
//!
//! **Contract.** That bound is for the worst case. As elsewhere, kernels state the error of sums
//! whose rounding errors have no common sign: over 64 channels of uniform numbers the root mean
//! square of the error is 0.25 `u` for F(2, 3), 0.73 `u` for F(4, 3) and 0.40 `u` for plain sums,
//! relative to the sum of the absolute terms. So F(2, 3) states the error of the ordinary kernel,
//! and F(4, 3) twice that. F(2, 5) has the `W` and `k` of F(4, 3), whose points it has, with 18
//! roundings, and a root mean square of 0.45 `u`, since two outputs need no high powers of the points:
//! it states the error of the ordinary kernel. The error is relative to the absolute terms of the tile. Where one of
//! the tile's inputs is much greater than the others, these are more than the terms of a single
//! output.

use super::{
    blocks::{self, POINT_NS},
    factors,
    transforms::{Backward, Transform, Two},
};
use crate::kernels::{
    linalg::gemm::isa::fastest,
    nn::conv_grad::phases::{phases, transposed},
};
use tenon_sdk::{
    KernelError,
    author::{CreateContext, Knobs, Supported},
    geometry::{Conv2dGeometry, ConvAttributes, DataFormat, Padding, WindowDim},
    register_knob,
};

register_knob!(
    "winograd": STRING = "faster",
    "Which float convolutions with 3x3 and 5x5 filters are computed by Winograd's algorithm: `never`, `faster` (those that it is faster for) or `always` (all that it can)."
);
register_knob!(
    "convolution_error": FLOAT = "8e-6",
    "The greatest relative error, as numerics contracts state it, of a variant of a float convolution that may run: under 8e-6 `winograd4` does not, under 4e-6 `winograd2` and `winograd5` neither."
);

/// With fewer outputs of an image, the factors of a constant filter cost more memory than they save time.
/// Those of other filters are in memory during a call only.
const LEAST_PIXELS: i64 = 14 * 14;
/// Multiplications per nanosecond, in products of tiles, and in products of windows including the
/// gathering of the windows.
const TILES_RATE: f64 = 55.0;
const PATCHES_RATE: f64 = 52.0;
/// Approximate nanoseconds to read a factor from memory, as far as products do not hide it, and to
/// transform it in a call.
const FACTOR_NS: f64 = 0.25;
const TRANSFORM_NS: f64 = 3.0;
/// Multiplications per nanosecond in sums over pixels.
const PIXELS_RATE: f64 = 46.0;
/// Approximate nanoseconds to add to a sum at a point, and to transform it into those of taps.
const ADD_NS: f64 = 0.15;
const END_NS: f64 = 0.5;
/// The least number of rows and columns of the gradients of outputs in the gradient by a filter.
const LEAST_SIDE: i64 = 8;
/// The least number of channels, on either side, in the gradient by a filter.
const LEAST_BY_FILTER: i64 = 32;

/// The values of the knobs.
#[derive(Debug, Clone, Copy)]
struct Settings {
    always: bool,
    never: bool,
    error: f64,
}

impl Settings {
    fn read(knobs: Knobs<'_>) -> Result<Settings, KernelError> {
        let when = knobs.text("winograd")?;
        if !["never", "faster", "always"].contains(&&*when) {
            return Err(KernelError::invalid_argument(format!(
                "knob winograd: expected never, faster or always, found {when}"
            )));
        }
        let error = knobs.float("convolution_error")?;
        Ok(Settings { always: when == "always", never: when == "never", error })
    }
}

/// What a kernel computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A convolution.
    Forward,
    /// The gradient of a convolution by its input.
    ByInput,
}

/// Whether a kernel computes by this transformation.
pub fn supports<T: Transform>(c: &CreateContext<'_>, role: Role) -> Supported {
    answer::<T>(c, role).unwrap_or_else(|error| Supported::No(error.message))
}

fn answer<T: Transform>(c: &CreateContext<'_>, role: Role) -> Result<Supported, KernelError> {
    let no = |reason: &str| Ok(Supported::No(reason.to_owned()));
    let (settings, attributes) = (Settings::read(c.knobs())?, ConvAttributes::new(c)?);
    if let Some(reason) = refusal::<T>(&settings, &attributes) {
        return no(&reason);
    }
    let images = if role == Role::Forward { 0 } else { 2 };
    let (input, filter) = (c.input_shape(images), c.input_shape(1));
    let is_constant = role == Role::Forward && c.constant(1).is_some();
    let channels = if is_constant { T::LEAST_CHANNELS } else { T::LEAST_OF_VARIABLE };
    let least = if settings.always { 0 } else { channels };
    if filter.dims().is_some_and(|dims| !is_worthwhile::<T>(dims, least)) {
        let taps = T::TAPS;
        return Ok(Supported::No(format!(
            "the filter must be {taps}x{taps}, with {channels} channels or more on both sides: found {filter}"
        )));
    }
    let (Some(input), Some(filter)) = (input.full(), filter.full()) else {
        return Ok(Supported::DependsOnShapes);
    };
    let g = match role {
        Role::Forward => {
            Some(Conv2dGeometry::new(&attributes.params(input.dims(), filter.dims()))?)
        }
        Role::ByInput => by_input(&attributes, input.dims(), filter.dims())?,
    };
    let Some(g) = g.filter(fits::<T>) else {
        return Ok(Supported::No(format!(
            "another padding than SAME for a gradient, groups, nothing to compute, or sizes that cannot be counted: found input {:?} and filter {:?}",
            input.dims(),
            filter.dims()
        )));
    };
    if !settings.always && !is_fastest::<T>(&g, is_constant) {
        return no("other kernels are faster for these shapes");
    }
    Ok(Supported::Yes)
}

/// Why a kernel does not compute by this transformation, whatever the shapes.
fn refusal<T: Transform>(settings: &Settings, attributes: &ConvAttributes) -> Option<String> {
    if settings.never {
        return Some("the knob winograd is never".to_owned());
    }
    if T::RELATIVE > settings.error {
        return Some(format!(
            "its relative error is {:e}, and the knob convolution_error allows {:e}",
            T::RELATIVE,
            settings.error
        ));
    }
    if !attributes.is_dense() || attributes.format() != DataFormat::Nhwc {
        return Some(format!(
            "strides and dilations must be 1, and channels last: found {attributes}"
        ));
    }
    None
}

/// Whether a kernel computes the gradient by a filter of these dimensions, if they are known, with the
/// tiles of a transformation.
///
/// # Errors
/// Attributes or knobs that cannot be read.
pub fn supports_by_filter<T: Backward>(
    c: &CreateContext<'_>,
    filter: Option<&[i64]>,
) -> Result<Supported, KernelError> {
    let no = |reason: &str| Ok(Supported::No(reason.to_owned()));
    let (settings, attributes) = (Settings::read(c.knobs())?, ConvAttributes::new(c)?);
    if let Some(reason) = refusal::<T>(&settings, &attributes) {
        return no(&reason);
    }
    let least = if settings.always { 0 } else { LEAST_BY_FILTER };
    let Some(filter) = filter.filter(|dims| is_worthwhile::<T>(dims, least)) else {
        return Ok(Supported::No(format!(
            "filter_sizes must be a constant, of {0}x{0} and {least} channels or more on both sides: found {filter:?}",
            T::TAPS
        )));
    };
    let input = c.input_shape(0);
    let Some(input) = input.full() else { return Ok(Supported::DependsOnShapes) };
    let g = Conv2dGeometry::new(&attributes.params(input.dims(), filter))?;
    if !fits_by_filter::<T>(&g) {
        return Ok(Supported::No(format!(
            "padding of more than half of the taps, fewer than {LEAST_SIDE} rows or columns, groups, or sizes that cannot be counted: found input {:?} and filter {filter:?}",
            input.dims()
        )));
    }
    if !settings.always && by_filter_ns::<T>(&g) >= by_pixels_ns::<T>(&g) {
        return no("other kernels are faster for these shapes");
    }
    Ok(Supported::Yes)
}

/// Whether the algorithm can compute the gradient of this convolution by its filter.
///
/// A tap in a corner sees all gradients but those of the rows and columns whose inputs are in the padding. These
/// must be few: the error is relative to the terms of all tiles.
pub fn fits_by_filter<T: Backward>(g: &Conv2dGeometry) -> bool {
    let sides = [&g.height, &g.width];
    fits::<T>(g)
        && sides.iter().all(|side| {
            let pads = [side.pad_before, side.pad_after];
            side.output >= LEAST_SIDE
                && pads.iter().all(|pad| (0..=T::TAPS as i64 / 2).contains(pad))
        })
}

/// Approximate nanoseconds of the gradient by the filter, on one thread.
fn by_filter_ns<T: Backward>(g: &Conv2dGeometry) -> f64 {
    let points = (T::POINTS * T::POINTS) as f64;
    let cut = blocks::Cut::new::<T>(g);
    let (channels, outputs) = (g.in_channels as f64, g.out_channels as f64);
    let tile = channels * outputs / TILES_RATE + POINT_NS * (channels + outputs);
    let sum = ADD_NS * cut.blocks() as f64 + END_NS;
    points * (cut.all as f64 * tile + sum * channels * outputs)
}

/// The same of the ordinary kernel, which sums over pixels.
fn by_pixels_ns<T: Backward>(g: &Conv2dGeometry) -> f64 {
    let pixels = (g.batch * g.height.output * g.width.output) as f64;
    pixels * (g.in_channels * g.out_channels) as f64 * (T::TAPS * T::TAPS) as f64 / PIXELS_RATE
}

/// Whether a filter with these dimensions, -1 where they are unknown, may suit this algorithm, which needs
/// `least` channels and outputs.
fn is_worthwhile<T: Transform>(filter: &[i64], least: i64) -> bool {
    let [height, width, channels, outputs] = *filter else { return false };
    let known = |n: i64, fits: bool| n < 0 || fits;
    let taps = [height, width].into_iter().all(|n| known(n, n == T::TAPS as i64));
    taps && [channels, outputs].into_iter().all(|n| known(n, n >= least))
}

/// The convolution over the gradient of the outputs that gives the gradient by the input, with strides
/// and dilations of 1, channels last; `None` unless the padding is `SAME`.
fn by_input(
    attributes: &ConvAttributes,
    gradient: &[i64],
    filter: &[i64],
) -> Result<Option<Conv2dGeometry>, KernelError> {
    let (&[batch, rows, columns, _], &[_, _, channels, _]) = (gradient, filter) else {
        return Ok(None);
    };
    if attributes.params(gradient, filter).padding != Padding::Same {
        return Ok(None);
    }
    let input = [batch, rows, columns, channels];
    Ok(gradient_of(&Conv2dGeometry::new(&attributes.params(&input, filter))?))
}

/// The convolution over the gradient of the outputs of a convolution that gives the gradient by its
/// input, with the filter in reverse.
///
/// `None` unless strides are 1, channels are last, and no window has more than half of its taps in the
/// padding of a side: the error is relative to the terms of a whole tile, and beside few terms of its
/// own a result would err by more than the contract says.
pub fn gradient_of(g: &Conv2dGeometry) -> Option<Conv2dGeometry> {
    if [g.height.stride, g.width.stride] != [1, 1] || g.format != DataFormat::Nhwc {
        return None;
    }
    let (rows, columns) = (phases(&g.height).next()?, phases(&g.width).next()?);
    let gradient = transposed(g, &rows, &columns);
    let is_near = |w: &WindowDim| {
        [w.pad_before, w.pad_after].into_iter().all(|pad| (0..=w.kernel / 2).contains(&pad))
    };
    [&gradient.height, &gradient.width].into_iter().all(is_near).then_some(gradient)
}

/// Whether the algorithm can compute this convolution.
pub fn fits<T: Transform>(g: &Conv2dGeometry) -> bool {
    let is_plain = [&g.height, &g.width]
        .iter()
        .all(|dim| dim.kernel == T::TAPS as i64 && dim.stride == 1 && dim.dilation == 1);
    let sizes = [g.batch, g.in_channels, g.out_channels, g.height.output, g.width.output];
    is_plain
        && g.format == DataFormat::Nhwc
        && g.groups == 1
        && sizes.into_iter().all(|size| size > 0)
        && are_countable::<T>([g.in_channels, g.out_channels])
        && blocks::are_countable::<T>(g)
}

/// Whether the size of the factors of a filter with these channels and outputs does not overflow.
fn are_countable<T: Transform>(size: [i64; 2]) -> bool {
    let len = |isa| factors::len::<T>(isa, size.map(|size| size as usize));
    fastest::<f32>().and_then(len).is_some()
}

/// Whether no kernel that would be asked after this one is faster.
fn is_fastest<T: Transform>(g: &Conv2dGeometry, is_constant: bool) -> bool {
    let pixels = g.height.output * g.width.output;
    if is_constant && pixels < LEAST_PIXELS {
        return false;
    }
    let plane = (g.in_channels * g.out_channels) as f64;
    let patches = (pixels * g.batch) as f64 * (T::TAPS * T::TAPS) as f64 * plane / PATCHES_RATE;
    let own = cost_ns::<T>(g, is_constant);
    // Where four outputs are not allowed, two are still faster than the definition; that kernel is
    // asked later.
    let others = if T::OUTPUTS > Two::OUTPUTS { cost_ns::<Two>(g, is_constant) } else { own };
    own < patches && own <= others
}

/// Approximate nanoseconds of a convolution on one thread.
fn cost_ns<T: Transform>(g: &Conv2dGeometry, is_constant: bool) -> f64 {
    let points = (T::POINTS * T::POINTS) as f64;
    let tiles = blocks::Cut::new::<T>(g).all as f64;
    let (channels, outputs) = (g.in_channels as f64, g.out_channels as f64);
    let factor = if is_constant { FACTOR_NS } else { FACTOR_NS + TRANSFORM_NS };
    let tile = channels * outputs / TILES_RATE + POINT_NS * (channels + outputs);
    points * (tiles * tile + factor * channels * outputs)
}
