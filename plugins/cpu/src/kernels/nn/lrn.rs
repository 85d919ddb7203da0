//! `LRN` and `LRNGrad`: local response normalisation (A. Krizhevsky et al., "ImageNet
//! classification with deep convolutional neural networks", 2012, section 3.3), in double precision.
//!
//! With `n[j] = bias + alpha * sum x[k]^2` over the channels `k` at most `depth_radius` from `j`,
//! the output is `x[j] n[j]^-beta`.
//!
//! Some pixels are computed together. Their channels are in one slice with as many zeros after each
//! pixel as a window reaches beyond its channel, so that sums over windows are sums of shifted
//! slices, whatever the number of channels.

use crate::{
    arch::vectorised,
    kernels::{
        elementary::Elementary,
        elementwise::any::{from_double, to_double},
    },
    lane::Compute,
    split::try_rows,
};
use half::f16;
use std::marker::PhantomData;
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    geometry::{response_channels, response_radius},
    growth,
    reg::Numerics,
    register_kernel,
};

/// Approximate nanoseconds of a channel: per channel of its window, and for its power.
const COST_NS: [f64; 2] = [0.3, 5.0];
/// The number of channels and zeros of the pixels that are computed together, where a pixel has
/// fewer.
const TOGETHER: usize = 1024;

/// Attributes.
struct Response {
    radius: usize,
    bias: f64,
    alpha: f64,
    beta: f64,
}

impl Response {
    fn new(c: &CreateContext<'_>) -> Result<Response, KernelError> {
        let float = |name: &str| c.attr::<f32>(name).map(f64::from);
        Ok(Response {
            radius: response_radius(c.attr("depth_radius")?)? as usize,
            bias: float("bias")?,
            alpha: float("alpha")?,
            beta: float("beta")?,
        })
    }

    fn cost(&self, channels: usize) -> f64 {
        let window = (2 * self.radius + 1).min(channels) as f64;
        channels as f64 * (COST_NS[0] * window + COST_NS[1])
    }
}

/// The layout of pixels that are computed together.
#[derive(Clone, Copy)]
struct Layout {
    channels: usize,
    /// The reach of a window, within the channels.
    radius: usize,
    /// The number of pixels.
    pixels: usize,
}

impl Layout {
    fn new(response: &Response, channels: usize) -> Layout {
        let radius = response.radius.min(channels.saturating_sub(1));
        let pixels = (TOGETHER / (channels + radius).max(1)).max(1);
        Layout { channels, radius, pixels }
    }

    /// From a pixel to the next.
    fn step(self) -> usize {
        self.channels + self.radius
    }

    /// Memory for the pixels, with zeros also before the first one.
    fn memory(self) -> Result<Vec<f64>, KernelError> {
        growth::filled(self.radius + self.pixels * self.step(), 0.0)
    }

    /// Writes channels of pixels.
    fn scatter<T: Compute>(self, x: &[T], to: &mut [f64]) {
        let pixels = to[self.radius..].chunks_exact_mut(self.step());
        for (x, to) in x.chunks_exact(self.channels).zip(pixels) {
            to.iter_mut().zip(x).for_each(|(to, &x)| *to = to_double(x));
        }
    }

    /// Reads channels of pixels.
    fn gather<T: Compute>(self, x: &[f64], to: &mut [T]) {
        for (to, x) in to.chunks_exact_mut(self.channels).zip(x.chunks_exact(self.step())) {
            to.iter_mut().zip(x).for_each(|(to, &x)| *to = from_double(x));
        }
    }
}

vectorised! {
    /// Sums each window of `x` into `sums`, which begins with the first channel.
    fn windows[](x: &[f64], radius: usize, sums: &mut [f64]) {
        let len = sums.len() - radius;
        sums[..len].copy_from_slice(&x[..len]);
        for shift in 1..2 * radius + 1 {
            sums[..len].iter_mut().zip(&x[shift..]).for_each(|(sum, x)| *sum += x);
        }
    }
}

vectorised! {
    /// `y[i] = x[i]^2`.
    fn squares[](x: &[f64], y: &mut [f64]) {
        y.iter_mut().zip(x).for_each(|(y, x)| *y = x * x);
    }
}

vectorised! {
    /// Replaces sums of squares by `n`, and writes `n^-beta`; the usual exponents by square roots.
    fn powers[](response: &Response, sums: &mut [f64], powers: &mut [f64]) {
        let &Response { bias, alpha, beta, .. } = response;
        sums.iter_mut().for_each(|sum| *sum = bias + alpha * *sum);
        let both = powers.iter_mut().zip(sums);
        if beta == 0.5 {
            both.for_each(|(power, sum)| *power = 1.0 / sum.sqrt());
        } else if beta == 0.75 {
            both.for_each(|(power, sum)| *power = 1.0 / (sum.sqrt() * sum.sqrt().sqrt()));
        } else if beta == 1.0 {
            both.for_each(|(power, sum)| *power = 1.0 / *sum);
        } else {
            both.for_each(|(power, sum)| {
                *power = Elementary::exp::<I>(-beta * Elementary::ln::<I>(*sum));
            });
        }
    }
}

/// Memory for pixels that are computed together.
struct Room {
    layout: Layout,
    x: Vec<f64>,
    padded: Vec<f64>,
    norms: Vec<f64>,
    powers: Vec<f64>,
}

impl Room {
    fn new(layout: Layout) -> Result<Room, KernelError> {
        let memory = || layout.memory();
        Ok(Room { layout, x: memory()?, padded: memory()?, norms: memory()?, powers: memory()? })
    }

    /// Computes `n` and `n^-beta` of pixels.
    fn norms<T: Compute>(&mut self, response: &Response, x: &[T]) {
        let radius = self.layout.radius;
        self.layout.scatter(x, &mut self.x);
        squares(&self.x, &mut self.padded);
        windows(&self.padded, radius, &mut self.norms);
        powers(response, &mut self.norms, &mut self.powers);
    }

    /// Computes the output of pixels.
    fn forward<T: Compute>(&mut self, response: &Response, x: &[T], y: &mut [T]) {
        self.norms(response, x);
        let own = &self.x[self.layout.radius..];
        self.powers.iter_mut().zip(own).for_each(|(power, x)| *power *= x);
        self.layout.gather(&self.powers, y);
    }

    /// Computes the gradient of pixels from that of their output, their input and their output:
    /// `x[k]` times the sum of `-2 alpha beta y[j] dy[j] / n[j]` over its window, and `dy[k]
    /// n[k]^-beta`.
    fn backward<T: Compute>(&mut self, response: &Response, [dy, x, y]: [&[T]; 3], dx: &mut [T]) {
        let (radius, factor) = (self.layout.radius, -2.0 * response.alpha * response.beta);
        self.norms(response, x);
        self.layout.scatter(dy, &mut self.padded);
        let both = self.powers.iter_mut().zip(&self.padded[radius..]);
        both.for_each(|(power, dy)| *power *= dy);
        let steps = self.norms.chunks_exact(self.layout.step());
        let shared = self.padded[radius..].chunks_exact_mut(self.layout.step());
        for ((y, norms), shared) in y.chunks_exact(self.layout.channels).zip(steps).zip(shared) {
            for ((shared, &y), norm) in shared.iter_mut().zip(y).zip(norms) {
                *shared *= factor * to_double(y) / norm;
            }
        }
        windows(&self.padded, radius, &mut self.norms);
        for ((power, x), sum) in self.powers.iter_mut().zip(&self.x[radius..]).zip(&self.norms) {
            *power += x * sum;
        }
        self.layout.gather(&self.powers, dx);
    }
}

struct Lrn<T> {
    response: Response,
    element: PhantomData<T>,
}

impl<T: Compute> Kernel for Lrn<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Lrn { response: Response::new(c)?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let channels = response_channels(c.dims(0))? as usize;
        let x = c.input::<T>(0)?;
        let y = c.output::<T>(0, x.dims)?.data;
        let layout = Layout::new(&self.response, channels);
        try_rows(c, y, channels, self.response.cost(channels), |first, y| {
            let mut room = Room::new(layout)?;
            let x = &x.data[first * channels..][..y.len()];
            let together = layout.pixels * channels;
            for (x, y) in x.chunks(together).zip(y.chunks_mut(together)) {
                room.forward(&self.response, x, y);
            }
            Ok(())
        })
    }
}

struct LrnGrad<T> {
    response: Response,
    element: PhantomData<T>,
}

impl<T: Compute> Kernel for LrnGrad<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(LrnGrad { response: Response::new(c)?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let channels = response_channels(c.dims(0))? as usize;
        if c.dims(1) != c.dims(0) || c.dims(2) != c.dims(0) {
            return Err(KernelError::invalid_argument(format!(
                "input_grads, input_image and output_image must have one shape, found {:?}, {:?} and {:?}",
                c.dims(0),
                c.dims(1),
                c.dims(2)
            )));
        }
        let inputs = [c.input::<T>(0)?, c.input::<T>(1)?, c.input::<T>(2)?];
        let output = c.output::<T>(0, c.dims(0))?.data;
        let layout = Layout::new(&self.response, channels);
        try_rows(c, output, channels, self.response.cost(channels), |first, dx| {
            let mut room = Room::new(layout)?;
            let together = layout.pixels * channels;
            for (block, dx) in dx.chunks_mut(together).enumerate() {
                let at = first * channels + block * together;
                let some = [0, 1, 2].map(|input: usize| &inputs[input].data[at..][..dx.len()]);
                room.backward(&self.response, some, dx);
            }
            Ok(())
        })
    }
}

register_kernel!("LRN" on "CPU": Lrn<T> for "T" in [f32],
    numerics = Numerics::ulps(2.0).accumulation(DType::DOUBLE));
register_kernel!("LRN" on "CPU": Lrn<T> for "T" in [f16],
    numerics = Numerics::ulps(2.0).accumulation(DType::DOUBLE));
register_kernel!("LRNGrad" on "CPU": LrnGrad<T> for "T" in [f32],
    numerics = Numerics::relative(1e-30, 1e-6).accumulation(DType::DOUBLE));
register_kernel!("LRNGrad" on "CPU": LrnGrad<T> for "T" in [f16],
    numerics = Numerics::relative(6e-8, 1e-3).accumulation(DType::DOUBLE));

#[cfg(test)]
mod tests {
    use super::*;

    /// The output of one pixel, from the definition.
    fn defined(r: &Response, x: &[f64]) -> Vec<f64> {
        (0..x.len())
            .map(|at| {
                let window = at.saturating_sub(r.radius)..(at + r.radius + 1).min(x.len());
                let sum = x[window].iter().map(|x| x * x).sum::<f64>();
                x[at] * (r.bias + r.alpha * sum).powf(-r.beta)
            })
            .collect()
    }

    #[test]
    fn pixels_together_are_as_defined() {
        let sizes = [(1, 5), (3, 1), (3, 5), (17, 2), (64, 5), (2000, 5)];
        for ((channels, radius), beta) in
            sizes.into_iter().flat_map(|size| [0.6, 0.5, 0.75, 1.0].map(|beta| (size, beta)))
        {
            let response = Response { radius, bias: 1.5, alpha: 0.7, beta };
            let layout = Layout::new(&response, channels);
            let x = crate::testing::values::<f64>(channels * (layout.pixels + 3), 1);
            let mut found = vec![0.0; x.len()];
            let mut room = Room::new(layout).unwrap();
            let together = layout.pixels * channels;
            for (x, y) in x.chunks(together).zip(found.chunks_mut(together)) {
                room.forward(&response, x, y);
            }
            let expected =
                x.chunks(channels).flat_map(|x| defined(&response, x)).collect::<Vec<_>>();
            crate::testing::assert_close(&found, &expected, 1e-15, 1e-13);
        }
    }

    #[test]
    fn the_gradient_is_the_slope_of_the_function() {
        let response = Response { radius: 1, bias: 1.5, alpha: 0.7, beta: 0.6 };
        let (x, dy) = ([0.5, -1.0, 2.0, 0.25], [1.0, -2.0, 0.5, 3.0]);
        let mut found = vec![0.0; x.len()];
        let mut room = Room::new(Layout::new(&response, x.len())).unwrap();
        room.backward(&response, [&dy, &x, &defined(&response, &x)], &mut found);
        for (at, found) in found.into_iter().enumerate() {
            let step = |by: f64| {
                let mut moved = x;
                moved[at] += by;
                defined(&response, &moved).iter().zip(dy).map(|(y, dy)| y * dy).sum::<f64>()
            };
            let slope = (step(1e-6) - step(-1e-6)) / 2e-6;
            assert!((found - slope).abs() < 1e-7, "{at}: {found} {slope}");
        }
    }
}
