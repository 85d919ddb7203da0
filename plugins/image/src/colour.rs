//! `RGBToHSV`, `HSVToRGB` and `AdjustContrastv2`.

use half::{bf16, f16};
use tenon_sdk::{
    DType, KernelError,
    author::ComputeContext,
    element::Float,
    geometry::{GeometryError, check_colour},
    growth,
    reg::Numerics,
    register_kernel,
};

/// Bounds: each step is rounded to the type; TensorFlow divides in single precision by an
/// approximate inverse.
const NUMERICS: Numerics = Numerics::ulps(8.0);

/// One conversion of a pixel.
trait Conversion {
    fn convert<T: Float>(pixel: [T; 3]) -> [T; 3];
}

/// Rounds to the type.
fn rounded<T: Float>(x: f64) -> T {
    T::from_f64(x)
}

/// Multiplies in `T`'s arithmetic through doubles, which round once: the product of two numbers of
/// at most 53 bits is rounded only once, and a double's is the processor's own.
fn mul<T: Float>(a: T, b: T) -> T {
    a.mul(b)
}

fn div<T: Float>(a: T, b: T) -> T {
    rounded(a.to_f64() / b.to_f64())
}

struct ToHsv;

impl Conversion for ToHsv {
    fn convert<T: Float>([r, g, b]: [T; 3]) -> [T; 3] {
        let greater = |a: T, b: T| if a > b { a } else { b };
        let less = |a: T, b: T| if a < b { a } else { b };
        let value = greater(greater(r, g), b);
        let range = value.sub(less(less(r, g), b));
        let saturation = if value > T::ZERO { div(range, value) } else { T::ZERO };
        if range <= T::ZERO || range.is_nan() {
            return [T::ZERO, saturation, value];
        }
        let sixth = div(T::ONE, rounded(6.0));
        let norm = mul(div(T::ONE, range), sixth);
        let hue = if r == value {
            mul(norm, g.sub(b))
        } else if g == value {
            mul(norm, b.sub(r)).add(div(rounded(2.0), rounded(6.0)))
        } else {
            mul(norm, r.sub(g)).add(div(rounded(4.0), rounded(6.0)))
        };
        let hue = if hue < T::ZERO { hue.add(T::ONE) } else { hue };
        [hue, saturation, value]
    }
}

struct ToRgb;

impl Conversion for ToRgb {
    fn convert<T: Float>([hue, saturation, value]: [T; 3]) -> [T; 3] {
        let dh = mul(hue, rounded(6.0));
        let distance = |from: f64| {
            let d = dh.sub(rounded(from));
            if d < T::ZERO { d.neg() } else { d }
        };
        let clipped = |x: T| {
            let x = if x < T::ZERO { T::ZERO } else { x };
            if x > T::ONE { T::ONE } else { x }
        };
        let parts = [
            clipped(distance(3.0).sub(T::ONE)),
            clipped(distance(2.0).neg().add(rounded(2.0))),
            clipped(distance(4.0).neg().add(rounded(2.0))),
        ];
        let grey = T::ONE.sub(saturation);
        parts.map(|part| mul(grey.add(mul(saturation, part)), value))
    }
}

fn convert<T: Float, C: Conversion>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let x = c.input::<T>(0)?;
    let Some(&found) = x.dims.last() else {
        return Err(GeometryError::RankTooSmall { what: "images", expected: 1, found: 0 }.into());
    };
    check_colour(found)?;
    let y = c.output::<T>(0, x.dims)?.data;
    let parts = y.chunks_mut(3 << 10).zip(x.data.chunks(3 << 10));
    c.parallel_items(parts, 10e3, |_, (y, x)| {
        for (y, x) in y.chunks_exact_mut(3).zip(x.chunks_exact(3)) {
            y.copy_from_slice(&C::convert([x[0], x[1], x[2]]));
        }
        Ok(())
    })
}

fn to_hsv<T: Float>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    convert::<T, ToHsv>(c)
}

fn to_rgb<T: Float>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    convert::<T, ToRgb>(c)
}

register_kernel!("RGBToHSV" on "CPU": fn to_hsv<T> for "T" in [f16, bf16, f32, f64], numerics = NUMERICS);
register_kernel!("HSVToRGB" on "CPU": fn to_rgb<T> for "T" in [f16, bf16, f32, f64], numerics = NUMERICS);

/// `AdjustContrastv2`; the means are taken in double precision.
fn contrast(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let x = c.input::<f32>(0)?;
    let factor = c.input::<f32>(1)?;
    let (&[factor], []) = (factor.data, factor.dims) else {
        let found = factor.dims.len();
        return Err(GeometryError::Rank { what: "contrast_factor", expected: 0, found }.into());
    };
    let [.., height, width, channels] = x.dims else {
        let found = x.dims.len();
        return Err(GeometryError::RankTooSmall { what: "images", expected: 3, found }.into());
    };
    let y = c.output::<f32>(0, x.dims)?.data;
    if y.is_empty() {
        return Ok(());
    }
    let channels = *channels as usize;
    let image = (height * width) as usize * channels;
    let images = y.chunks_exact_mut(image).zip(x.data.chunks_exact(image));
    c.parallel_items(images, 2.0 * image as f64, |_, (y, x)| adjust(x, y, channels, factor))
}

/// Moves the channels of an image away from their means. Loops over a few channels would be short,
/// so some pixels are added, and written, side by side.
fn adjust(x: &[f32], y: &mut [f32], channels: usize, factor: f32) -> Result<(), KernelError> {
    const WIDE: usize = 64;
    let side = (WIDE / channels).max(1) * channels;
    let mut sums = growth::filled(side, 0f64)?;
    for x in x.chunks(side) {
        sums.iter_mut().zip(x).for_each(|(sum, x)| *sum += f64::from(*x));
    }
    let (own, others) = sums.split_at_mut(channels);
    for others in others.chunks(channels) {
        own.iter_mut().zip(others).for_each(|(sum, other)| *sum += *other);
    }
    let pixels = (x.len() / channels) as f64;
    let mean = |at: usize| (own[at % channels] / pixels) as f32;
    let means = growth::collected((0..side).map(mean))?;
    for (y, x) in y.chunks_mut(side).zip(x.chunks(side)) {
        for (y, (x, mean)) in y.iter_mut().zip(x.iter().zip(&means)) {
            *y = (x - mean) * factor + mean;
        }
    }
    Ok(())
}

register_kernel!("AdjustContrastv2" on "CPU": fn contrast,
    types = ("T", &[DType::FLOAT]), host_memory = &["contrast_factor"],
    numerics = Numerics::relative(1e-30, 2e-6).accumulation(DType::DOUBLE));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pixels_side_by_side_have_the_means_of_their_channels() {
        for (channels, pixels) in [(1, 7), (1, 200), (3, 1), (3, 101), (64, 3), (70, 2)] {
            let count = channels * pixels;
            let x: Vec<f32> = (0..count).map(|at| (at * 37 % 23) as f32).collect();
            let mut found = vec![0.0; count];
            adjust(&x, &mut found, channels, 2.0).unwrap();
            for (at, found) in found.into_iter().enumerate() {
                let own = x[at % channels..].iter().step_by(channels);
                let mean = own.map(|&x| f64::from(x)).sum::<f64>() / pixels as f64;
                let expected = (f64::from(x[at]) - mean) * 2.0 + mean;
                assert!((f64::from(found) - expected).abs() < 1e-5, "{channels} {pixels} {at}");
            }
        }
    }
}
