//! `MaxPool3DGrad` and `AvgPool3DGrad`. With channels first, each channel is an image of its own
//! with one channel.
//!
//! Gradients of overlapping windows are added in the order of the outputs, in the type of
//! computation.

use super::{pool_grad::check_shape, pool_volume::held};
use crate::{arch::vectorised, lane::Compute, lists, panels::as_wide, split::try_rows};
use half::bf16;
use std::marker::PhantomData;
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::Number,
    geometry::{DataFormat, Pool3dGeometry, PoolAttributes, validate_dims},
    growth,
    reg::Numerics,
    register_kernel,
};

/// How the gradient of a window is divided among its elements.
pub trait Shares<T: Compute>: Sync {
    /// Adds to the sums of the elements of one pixel, of which the window has `count`, the shares
    /// of the output numbered `output` of the image.
    fn add(&self, sums: &mut [T::Wide], pixel: usize, output: usize, count: usize, grad: &[T]);
}

/// The whole gradient for each element that equals the window's output.
struct ToMaxima<'a, T> {
    x: &'a [T],
    maxima: &'a [T],
}

impl<T: Compute> Shares<T> for ToMaxima<'_, T> {
    #[inline(always)]
    fn add(&self, sums: &mut [T::Wide], pixel: usize, output: usize, _: usize, grad: &[T]) {
        let len = sums.len();
        let (x, maxima) = (&self.x[pixel..][..len], &self.maxima[output..][..len]);
        for (((sum, x), max), grad) in sums.iter_mut().zip(x).zip(maxima).zip(grad) {
            let grad = if x == max { grad.up() } else { T::Wide::ZERO };
            *sum = sum.add(grad);
        }
    }
}

/// Equal parts for all elements.
pub struct Equal;

impl<T: Compute> Shares<T> for Equal {
    #[inline(always)]
    fn add(&self, sums: &mut [T::Wide], _: usize, _: usize, count: usize, grad: &[T]) {
        let share = <T::Wide as Number>::from_f64(1.0 / count as f64);
        for (sum, grad) in sums.iter_mut().zip(grad) {
            *sum = sum.add(grad.up().mul(share));
        }
    }
}

vectorised! {
    /// Adds the shares of all outputs of one image.
    fn spread[T: Compute, S: Shares<T>](
        g: &Pool3dGeometry,
        channels: usize,
        shares: &S,
        grad: &[T],
        sums: &mut [T::Wide],
    ) {
        let [_, height, width] = g.windows.map(|window| window.input as usize);
        let [outputs, lines, pixels] = g.windows.map(|window| window.output as usize);
        let places = (0..outputs).flat_map(|z| (0..lines).map(move |y| (z, y)));
        for (line, (z, y)) in places.enumerate() {
            let (planes, rows) = (held(&g.windows[0], z), held(&g.windows[1], y));
            for x in 0..pixels {
                let columns = held(&g.windows[2], x);
                let count = planes.len() * rows.len() * columns.len();
                let output = (line * pixels + x) * channels;
                let grad = &grad[output..][..channels];
                for plane in planes.clone() {
                    for row in rows.clone() {
                        for column in columns.clone() {
                            let at = ((plane * height + row) * width + column) * channels;
                            let sums = &mut sums[at..at + channels];
                            shares.add(sums, at, output, count, grad);
                        }
                    }
                }
            }
        }
    }
}

/// Computes the gradients of all images with channels in their format; `shares` gets the number of an image and the lengths of an
/// image and of its outputs.
pub fn by_image<T: Compute, S: Shares<T>>(
    c: &ComputeContext<'_>,
    g: &Pool3dGeometry,
    grad: &[T],
    dx: &mut [T],
    shares: impl Fn(usize, [usize; 2]) -> S + Sync,
) -> Result<(), KernelError> {
    let (images, channels) = match g.format {
        DataFormat::Nhwc => (g.batch as usize, g.channels as usize),
        DataFormat::Nchw => (g.batch as usize * g.channels as usize, 1),
    };
    let lens = [dx.len() / images.max(1), grad.len() / images.max(1)];
    let window: f64 = g.windows.iter().map(|window| window.kernel as f64).product();
    try_rows(c, dx, lens[0], 0.5 * window * lens[1] as f64, |first, dx| {
        let computes_in_itself = as_wide(&mut *dx).is_some();
        let mut sums = growth::filled(if computes_in_itself { 0 } else { lens[0] }, T::Wide::ZERO)?;
        for (image, dx) in (first..).zip(dx.chunks_exact_mut(lens[0])) {
            let grad = &grad[image * lens[1]..][..lens[1]];
            let shares = shares(image, lens);
            if let Some(dx) = as_wide(&mut *dx) {
                dx.fill(T::Wide::ZERO);
                spread(g, channels, &shares, grad, dx);
                continue;
            }
            sums.fill(T::Wide::ZERO);
            spread(g, channels, &shares, grad, &mut sums[..]);
            dx.iter_mut().zip(&sums).for_each(|(dx, &sum)| *dx = T::down(sum));
        }
        Ok(())
    })
}

struct MaxPool3dGrad<T> {
    attributes: PoolAttributes,
    element: PhantomData<T>,
}

impl<T: Compute> Kernel for MaxPool3dGrad<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(MaxPool3dGrad { attributes: PoolAttributes::new(c)?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let g = Pool3dGeometry::new(&self.attributes.params(c.dims(0)))?;
        check_shape("orig_output", &g.output_dims(), c.dims(1))?;
        check_shape("grad", &g.output_dims(), c.dims(2))?;
        let (x, maxima) = (c.input::<T>(0)?, c.input::<T>(1)?.data);
        let (grad, dx) = (c.input::<T>(2)?.data, c.output::<T>(0, x.dims)?.data);
        by_image(c, &g, grad, dx, |image, [x_len, output_len]| ToMaxima {
            x: &x.data[image * x_len..][..x_len],
            maxima: &maxima[image * output_len..][..output_len],
        })
    }
}

struct AvgPool3dGrad<T> {
    attributes: PoolAttributes,
    element: PhantomData<T>,
}

impl<T: Compute> Kernel for AvgPool3dGrad<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(AvgPool3dGrad { attributes: PoolAttributes::new(c)?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        if c.dims(0) != [5] {
            return Err(KernelError::invalid_argument(format!(
                "orig_input_shape must be a vector of 5, found shape {:?}",
                c.dims(0)
            )));
        }
        let dims = lists::short(c, 0)?;
        validate_dims(&dims)?;
        let g = Pool3dGeometry::new(&self.attributes.params(&dims))?;
        check_shape("grad", &g.output_dims(), c.dims(1))?;
        let (grad, dx) = (c.input::<T>(1)?.data, c.output::<T>(0, &dims)?.data);
        by_image(c, &g, grad, dx, |_, _| Equal)
    }
}

register_kernel!("MaxPool3DGrad" on "CPU": MaxPool3dGrad<T> for "T" in [f32],
    types = ("TInput", &[DType::FLOAT]), numerics = Numerics::relative(1e-37, 2e-6).accumulation(DType::FLOAT));
register_kernel!("MaxPool3DGrad" on "CPU": MaxPool3dGrad<T> for "T" in [bf16],
    types = ("TInput", &[DType::BFLOAT16]), numerics = Numerics::relative(1e-37, 1.6e-2).accumulation(DType::FLOAT));
register_kernel!("AvgPool3DGrad" on "CPU": AvgPool3dGrad<T> for "T" in [f32],
    host_memory = &["orig_input_shape"], numerics = Numerics::relative(1e-37, 2e-6).accumulation(DType::FLOAT));
register_kernel!("AvgPool3DGrad" on "CPU": AvgPool3dGrad<T> for "T" in [bf16],
    host_memory = &["orig_input_shape"], numerics = Numerics::relative(1e-37, 1.6e-2).accumulation(DType::FLOAT));
