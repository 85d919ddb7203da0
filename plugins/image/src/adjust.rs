//! `AdjustHue` and `AdjustSaturation`.

use tenon_sdk::{
    DType, KernelError, author::ComputeContext, geometry::GeometryError, reg::Numerics,
    register_kernel,
};

/// Bounds: some steps in single precision, of numbers up to 6.
const NUMERICS: Numerics = Numerics::relative(1e-6, 1e-5).accumulation(DType::FLOAT);

/// Changes each pixel by the number in input 1.
fn adjust(
    c: &ComputeContext<'_>,
    what: &'static str,
    change: impl Fn([f32; 3], f32) -> [f32; 3] + Sync,
) -> Result<(), KernelError> {
    let (x, by) = (c.input::<f32>(0)?, c.input::<f32>(1)?);
    let (&[by], []) = (by.data, by.dims) else {
        let found = by.dims.len();
        return Err(GeometryError::Rank { what, expected: 0, found }.into());
    };
    let [_, .., _, channels] = x.dims else {
        let found = x.dims.len();
        return Err(GeometryError::RankTooSmall { what: "images", expected: 3, found }.into());
    };
    if *channels != 3 {
        let (what, found) = ("the last dimension of images", *channels);
        return Err(GeometryError::SizeMismatch { what, expected: 3, found }.into());
    }
    let y = c.output::<f32>(0, x.dims)?.data;
    let parts = y.chunks_mut(3 << 10).zip(x.data.chunks(3 << 10));
    c.parallel_items(parts, 20e3, |_, (y, x)| {
        for (y, x) in y.chunks_exact_mut(3).zip(x.chunks_exact(3)) {
            y.copy_from_slice(&change([x[0], x[1], x[2]], by));
        }
        Ok(())
    })
}

/// The places of the greatest, the middle and the least part of a pixel for each sixth of the circle of hues.
const SIXTHS: [[usize; 3]; 6] = [[0, 1, 2], [1, 0, 2], [1, 2, 0], [2, 1, 0], [2, 0, 1], [0, 2, 1]];

/// The sixth in which the hue of a pixel is.
fn sixth([red, green, blue]: [f32; 3]) -> usize {
    if red < green {
        match () {
            () if blue < red => 1,
            () if blue > green => 3,
            () => 2,
        }
    } else {
        match () {
            () if blue < green => 0,
            () if blue > red => 4,
            () => 5,
        }
    }
}

/// A pixel whose hue is turned by a part of the circle.
fn turned(pixel: [f32; 3], turn: f32) -> [f32; 3] {
    let at = sixth(pixel);
    let [most, middle, least] = SIXTHS[at].map(|part| pixel[part]);
    let mut hue = 0.0;
    if most != least {
        let part = (middle - least) / (most - least);
        hue = at as f32 + if at.is_multiple_of(2) { part } else { 1.0 - part };
    }
    // The remainder may round up to a whole circle.
    let hue = Some((hue + turn * 6.0).rem_euclid(6.0)).filter(|hue| *hue < 6.0).unwrap_or(0.0);
    let at = hue as usize;
    let part = hue - at as f32;
    let part = if at.is_multiple_of(2) { part } else { 1.0 - part };
    let mut result = [0.0; 3];
    for (place, level) in SIXTHS[at].into_iter().zip([most, least + part * (most - least), least]) {
        result[place] = level;
    }
    result
}

/// Hue, saturation and value of a pixel.
fn to_hsv([red, green, blue]: [f32; 3]) -> [f32; 3] {
    let value = red.max(green).max(blue);
    let range = value - red.min(green).min(blue);
    let saturation = if value > 0.0 { range / value } else { 0.0 };
    if range <= 0.0 {
        return [0.0, saturation, value];
    }
    let norm = 1.0 / (6.0 * range);
    let hue = match () {
        () if red == value => norm * (green - blue),
        () if green == value => norm * (blue - red) + 2.0 / 6.0,
        () => norm * (red - green) + 4.0 / 6.0,
    };
    [if hue < 0.0 { hue + 1.0 } else { hue }, saturation, value]
}

/// The pixel of a hue, a saturation and a value.
fn to_rgb([hue, saturation, value]: [f32; 3]) -> [f32; 3] {
    let range = saturation * value;
    let hue = hue * 6.0;
    let middle = range * (1.0 - (hue.rem_euclid(2.0) - 1.0).abs());
    let least = value - range;
    let mut result = [least; 3];
    if let Some(&[most, second, _]) = SIXTHS.get(hue as usize) {
        result[most] += range;
        result[second] += middle;
    }
    result
}

/// A pixel whose saturation is multiplied.
fn saturated(pixel: [f32; 3], scale: f32) -> [f32; 3] {
    let [hue, saturation, value] = to_hsv(pixel);
    to_rgb([hue, (saturation * scale).clamp(0.0, 1.0), value])
}

fn hue(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    adjust(c, "delta", turned)
}

fn saturation(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    adjust(c, "scale", saturated)
}

register_kernel!("AdjustHue" on "CPU": fn hue, types = ("T", &[DType::FLOAT]),
    host_memory = &["delta"], numerics = NUMERICS);
register_kernel!("AdjustSaturation" on "CPU": fn saturation, types = ("T", &[DType::FLOAT]),
    host_memory = &["scale"], numerics = NUMERICS);
