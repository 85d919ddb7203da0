//! `LRN` and `LRNGrad`: local response normalisation (A. Krizhevsky et al., "ImageNet
//! classification with deep convolutional neural networks", 2012, section 3.3), pixel by pixel in
//! double precision.
//!
//! With `n[j] = bias + alpha * sum x[k]^2` over the channels `k` at most `depth_radius` from `j`,
//! the output is `x[j] n[j]^-beta`.

use crate::{
    kernels::elementwise::any::{from_double, to_double},
    lane::Compute,
    split::try_rows,
};
use half::f16;
use std::{marker::PhantomData, ops::Range};
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    geometry::{response_channels, response_radius},
    growth,
    reg::Numerics,
    register_kernel,
};

/// Approximate nanoseconds of a channel: per channel of its window, and for its power.
const COST_NS: [f64; 2] = [1.0, 30.0];

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

    fn window(&self, at: usize, channels: usize) -> Range<usize> {
        at.saturating_sub(self.radius)..(at + self.radius + 1).min(channels)
    }

    /// `n` of each channel.
    fn norms<'a>(&'a self, x: &'a [f64]) -> impl Iterator<Item = f64> + 'a {
        (0..x.len()).map(|at| {
            let squares = x[self.window(at, x.len())].iter().map(|x| x * x);
            self.bias + self.alpha * squares.sum::<f64>()
        })
    }

    fn cost(&self, channels: usize) -> f64 {
        let window = (2 * self.radius + 1).min(channels) as f64;
        channels as f64 * (COST_NS[0] * window + COST_NS[1])
    }
}

/// Elements as doubles, converted in `wide` where necessary.
fn doubles<'w, T: Compute>(x: &[T], wide: &'w mut Vec<f64>) -> &'w [f64] {
    wide.clear();
    wide.extend(x.iter().map(|&x| to_double(x)));
    wide
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
        try_rows(c, y, channels, self.response.cost(channels), |first, y| {
            let mut wide = growth::with_room(channels)?;
            for (pixel, y) in (first..).zip(y.chunks_exact_mut(channels)) {
                let x = doubles(&x.data[pixel * channels..][..channels], &mut wide);
                for ((y, x), norm) in y.iter_mut().zip(x).zip(self.response.norms(x)) {
                    *y = from_double(x * norm.powf(-self.response.beta));
                }
            }
            Ok(())
        })
    }
}

struct LrnGrad<T> {
    response: Response,
    element: PhantomData<T>,
}

impl<T: Compute> LrnGrad<T> {
    /// The gradient of one pixel from that of its output, its input and its output.
    fn pixel(&self, [dy, x, y]: [&[f64]; 3], gradient: &mut [f64]) {
        let Response { alpha, beta, .. } = self.response;
        gradient.fill(0.0);
        for (j, norm) in self.response.norms(x).enumerate() {
            let shared = -2.0 * alpha * beta * y[j] / norm * dy[j];
            for k in self.response.window(j, x.len()) {
                gradient[k] += shared * x[k];
            }
            gradient[j] += norm.powf(-beta) * dy[j];
        }
    }
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
        try_rows(c, output, channels, self.response.cost(channels), |first, output| {
            let mut wide = [(); 3].map(|()| Vec::new());
            for wide in &mut wide {
                growth::reserve(wide, channels)?;
            }
            let mut gradient = growth::filled(channels, 0.0)?;
            for (pixel, output) in (first..).zip(output.chunks_exact_mut(channels)) {
                for (wide, input) in wide.iter_mut().zip(&inputs) {
                    doubles(&input.data[pixel * channels..][..channels], wide);
                }
                self.pixel(wide.each_ref().map(Vec::as_slice), &mut gradient);
                output.iter_mut().zip(&gradient).for_each(|(y, &x)| *y = from_double(x));
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

    #[test]
    fn the_gradient_is_the_slope_of_the_function() {
        let response = Response { radius: 1, bias: 1.5, alpha: 0.7, beta: 0.6 };
        let grad = LrnGrad::<f32> { response, element: PhantomData };
        let apply = |x: &[f64]| -> Vec<f64> {
            let norms = grad.response.norms(x);
            x.iter().zip(norms).map(|(x, norm)| x * norm.powf(-0.6)).collect()
        };
        let (x, dy) = ([0.5, -1.0, 2.0, 0.25], [1.0, -2.0, 0.5, 3.0]);
        let mut found = vec![0.0; x.len()];
        grad.pixel([&dy, &x, &apply(&x)], &mut found);
        for (at, found) in found.into_iter().enumerate() {
            let step = |by: f64| {
                let mut moved = x;
                moved[at] += by;
                apply(&moved).iter().zip(dy).map(|(y, dy)| y * dy).sum::<f64>()
            };
            let slope = (step(1e-6) - step(-1e-6)) / 2e-6;
            assert!((found - slope).abs() < 1e-7, "{at}: {found} {slope}");
        }
    }
}
