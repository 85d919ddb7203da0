//! `ScaleAndTranslate` and its gradient: each pixel of the result is a sum of pixels around the place that scaling and
//! moving brings to it, with the weights of a kernel. Rows are summed before columns, in single precision.

use crate::resize::{Sizes, check_grad, single};
use half::{bf16, f16};
use std::{f32::consts::PI, marker::PhantomData};
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::Number,
    growth,
    reg::Numerics,
    register_kernel,
};

/// A kernel: the weight at a distance, and the distance from which on it is 0.
#[derive(Clone, Copy)]
struct Weigh {
    at: fn(f32) -> f32,
    radius: f32,
}

/// The product of two sines, of which the second is stretched by the radius.
fn lanczos(radius: f32, x: f32) -> f32 {
    match x {
        x if x > radius => 0.0,
        x if x <= 1e-3 => 1.0,
        x => radius * (PI * x).sin() * (PI * x / radius).sin() / (PI * PI * x * x),
    }
}

/// A normal distribution with a deviation of a third of the radius, 1.5.
fn gaussian(x: f32) -> f32 {
    if x >= 1.5 { 0.0 } else { (f64::from(-x * x) / (2.0 * 0.5 * 0.5)).exp() as f32 }
}

fn box_of_one(x: f32) -> f32 {
    if x < 0.5 {
        return 1.0;
    }
    if x == 0.5 { 0.5 } else { 0.0 }
}

/// The cubic of Keys, "Cubic convolution interpolation for digital image processing", 1981.
fn keys(x: f32) -> f32 {
    match x {
        x if x >= 2.0 => 0.0,
        x if x >= 1.0 => ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0,
        x => ((1.5 * x - 2.5) * x) * x + 1.0,
    }
}

/// The cubic of Mitchell and Netravali, "Reconstruction filters in computer graphics", 1988.
fn mitchell(x: f32) -> f32 {
    match x {
        x if x >= 2.0 => 0.0,
        x if x >= 1.0 => (((-7.0 / 18.0) * x + 2.0) * x - 10.0 / 3.0) * x + 16.0 / 9.0,
        x => (((7.0 / 6.0) * x - 2.0) * x) * x + 8.0 / 9.0,
    }
}

impl Weigh {
    fn new(name: &str) -> Result<Weigh, KernelError> {
        let (at, radius): (fn(f32) -> f32, f32) = match name {
            "lanczos1" => (|x| lanczos(1.0, x), 1.0),
            "lanczos3" => (|x| lanczos(3.0, x), 3.0),
            "lanczos5" => (|x| lanczos(5.0, x), 5.0),
            "gaussian" => (gaussian, 1.5),
            "box" => (box_of_one, 1.0),
            "triangle" => (|x| (1.0 - x).max(0.0), 1.0),
            "keyscubic" => (keys, 2.0),
            "mitchellcubic" => (mitchell, 2.0),
            found => {
                return Err(KernelError::invalid_argument(format!(
                    "kernel_type must be 'lanczos1', 'lanczos3', 'lanczos5', 'gaussian', 'box', 'triangle', 'keyscubic' or \
                     'mitchellcubic', found '{found}'"
                )));
            }
        };
        Ok(Weigh { at, radius })
    }
}

/// For each pixel along a dimension of the result, the pixels that it is made of and their weights.
struct Spans {
    starts: Vec<usize>,
    weighed: Vec<(usize, f32)>,
}

impl Spans {
    fn of(&self, pixel: usize) -> &[(usize, f32)] {
        &self.weighed[self.starts[pixel]..self.starts[pixel + 1]]
    }

    /// The spans of `to` pixels of a dimension that had `from`.
    fn new(
        way: &ScaleAndTranslate,
        [from, to]: [usize; 2],
        scale: f32,
        moved: f32,
    ) -> Result<Spans, KernelError> {
        let inverse = 1.0 / scale;
        let shift = -inverse * moved;
        let stretch = if way.antialias { inverse.max(1.0) } else { 1.0 };
        let reach = way.weigh.radius * stretch;
        let mut spans = Spans { starts: growth::with_room(to + 1)?, weighed: Vec::new() };
        spans.starts.push(0);
        for pixel in 0..to {
            let place = (pixel as f32 + 0.5) * inverse + shift;
            if from > 0 && (0.0..=from as f32).contains(&place) {
                let last = from as i64 - 1;
                let start = ((place - reach - 0.5).ceil() as i64).clamp(0, last) as usize;
                let end = ((place + reach - 0.5).floor() as i64).clamp(0, last) as usize;
                spans.add(start..end + 1, |at| {
                    let distance = at as f32 + 0.5 - place;
                    (way.weigh.at)((distance * (1.0 / stretch)).abs())
                })?;
            }
            spans.starts.push(spans.weighed.len());
        }
        Ok(spans)
    }

    /// Adds pixels, whose weights are divided by their sum; none where that is nearly 0.
    fn add(
        &mut self,
        pixels: std::ops::Range<usize>,
        weight: impl Fn(usize) -> f32,
    ) -> Result<(), KernelError> {
        let first = self.weighed.len();
        growth::reserve(&mut self.weighed, pixels.len())?;
        self.weighed.extend(pixels.map(|at| (at, weight(at))));
        let sum: f32 = self.weighed[first..].iter().map(|(_, weight)| weight).sum();
        if sum.abs() < 1000.0 * f32::MIN_POSITIVE {
            self.weighed.truncate(first);
            return Ok(());
        }
        let inverse = 1.0 / sum;
        self.weighed[first..].iter_mut().for_each(|(_, weight)| *weight *= inverse);
        Ok(())
    }

    /// For each of `from` pixels, the pixels that are made of it.
    fn turned(&self, from: usize) -> Result<Spans, KernelError> {
        let mut starts = growth::filled(from + 1, 0usize)?;
        self.weighed.iter().for_each(|(at, _)| starts[at + 1] += 1);
        (0..from).for_each(|at| starts[at + 1] += starts[at]);
        let mut next = growth::copied(&starts)?;
        let mut weighed = growth::filled(self.weighed.len(), (0, 0.0))?;
        for pixel in 0..self.starts.len() - 1 {
            for &(at, weight) in self.of(pixel) {
                weighed[next[at]] = (pixel, weight);
                next[at] += 1;
            }
        }
        Ok(Spans { starts, weighed })
    }
}

struct ScaleAndTranslate {
    weigh: Weigh,
    antialias: bool,
}

impl ScaleAndTranslate {
    /// The spans of rows and of columns of images of one size, given that of the results.
    fn spans(
        &self,
        [scale, moved]: [[f32; 2]; 2],
        from: [usize; 2],
        to: [usize; 2],
    ) -> Result<[Spans; 2], KernelError> {
        let of = |at: usize| Spans::new(self, [from[at], to[at]], scale[at], moved[at]);
        Ok([of(0)?, of(1)?])
    }
}

/// The scales and the translations of rows and of columns.
fn parameters(c: &ComputeContext<'_>) -> Result<[[f32; 2]; 2], KernelError> {
    let (scale, moved) = (pair(c, 2, "scale")?, pair(c, 3, "translation")?);
    // NaN is not greater either.
    let is_right = |scale: f32| scale > 0.0;
    match scale.iter().find(|&&scale| !is_right(scale)) {
        None => Ok([scale, moved]),
        Some(found) => Err(KernelError::invalid_argument(format!(
            "scale must be greater than 0, found {found}"
        ))),
    }
}

/// The two numbers of an input, of rows and of columns.
fn pair(c: &ComputeContext<'_>, input: usize, what: &str) -> Result<[f32; 2], KernelError> {
    let found = c.input::<f32>(input)?;
    match (found.data, found.dims.len()) {
        (&[rows, columns], 1) => Ok([rows, columns]),
        _ => Err(KernelError::invalid_argument(format!(
            "{what} must be a vector of 2, found shape {:?}",
            found.dims
        ))),
    }
}

/// Writes images of so many rows and columns whose pixels are sums.
fn gather<T: Number>(
    c: &ComputeContext<'_>,
    (x, from): (&[T], [usize; 2]),
    (y, to): (&mut [f32], [usize; 2]),
    channels: usize,
    [rows, columns]: &[Spans; 2],
) -> Result<(), KernelError> {
    let (line, image) = (from[1] * channels, from[0] * from[1] * channels);
    let len = to[1] * channels;
    let work = (rows.weighed.len() / to[0] * line + columns.weighed.len() * channels) as f64;
    c.parallel_items(y.chunks_exact_mut(len), work + len as f64, |number, y| {
        let x = &x[number / to[0] * image..][..image];
        let mut sums = growth::filled(line, 0.0f32)?;
        for &(row, weight) in rows.of(number % to[0]) {
            let pixels = x[row * line..][..line].iter();
            sums.iter_mut().zip(pixels).for_each(|(sum, &x)| *sum += weight * single(x));
        }
        for (column, y) in y.chunks_exact_mut(channels).enumerate() {
            y.fill(0.0);
            for &(at, weight) in columns.of(column) {
                let pixel = sums[at * channels..][..channels].iter();
                y.iter_mut().zip(pixel).for_each(|(y, &sum)| *y += weight * sum);
            }
        }
        Ok(())
    })
}

fn created(c: &CreateContext<'_>) -> Result<ScaleAndTranslate, KernelError> {
    Ok(ScaleAndTranslate {
        weigh: Weigh::new(c.attr("kernel_type")?)?,
        antialias: c.attr("antialias")?,
    })
}

struct Forward<T>(ScaleAndTranslate, PhantomData<fn(T)>);

impl<T: Number> Kernel for Forward<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Forward(created(c)?, PhantomData))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (sizes, parameters) = (Sizes::new(c)?, parameters(c)?);
        let x = c.input::<T>(0)?.data;
        let y = c.output::<f32>(0, &sizes.output)?.data;
        if y.is_empty() {
            return Ok(());
        }
        let spans = self.0.spans(parameters, sizes.from, sizes.to)?;
        gather(c, (x, sizes.from), (y, sizes.to), sizes.channels, &spans)
    }
}

struct Backward(ScaleAndTranslate);

impl Kernel for Backward {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        created(c).map(Backward)
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (grads, image) = (c.dims(0), c.dims(1));
        check_grad(grads, image)?;
        let pair = |dims: &[i64]| [dims[1] as usize, dims[2] as usize];
        let (from, to, parameters) = (pair(image), pair(grads), parameters(c)?);
        let x = c.input::<f32>(0)?.data;
        let y = c.output::<f32>(0, image)?.data;
        if y.is_empty() || x.is_empty() {
            y.fill(0.0);
            return Ok(());
        }
        let [rows, columns] = self.0.spans(parameters, from, to)?;
        let spans = [rows.turned(from[0])?, columns.turned(from[1])?];
        gather(c, (x, to), (y, from), image[3] as usize, &spans)
    }
}

const NUMERICS: Numerics = Numerics::relative(1e-30, 1e-4).accumulation(tenon_sdk::DType::FLOAT);

register_kernel!("ScaleAndTranslate" on "CPU": Forward<T> for "T" in [
    i8, u8, i16, u16, i32, i64, bf16, f16, f32, f64],
    host_memory = &["size", "scale", "translation"], numerics = NUMERICS);
register_kernel!("ScaleAndTranslateGrad" on "CPU": Backward,
    host_memory = &["scale", "translation"], numerics = NUMERICS);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_one_in_the_middle_and_nothing_beyond() {
        let names =
            ["lanczos1", "lanczos3", "lanczos5", "gaussian", "box", "triangle", "keyscubic"];
        for name in names {
            let weigh = Weigh::new(name).unwrap();
            assert_eq!((weigh.at)(0.0), 1.0, "{name}");
            assert_eq!((weigh.at)(weigh.radius + 0.01), 0.0, "{name}");
        }
        assert_eq!((Weigh::new("mitchellcubic").unwrap().at)(0.0), 8.0 / 9.0);
        assert!(Weigh::new("cubic").is_err());
    }
}
