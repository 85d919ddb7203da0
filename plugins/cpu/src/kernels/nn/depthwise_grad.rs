//! `DepthwiseConv2dNativeBackpropInput` and `DepthwiseConv2dNativeBackpropFilter`, directly.

use super::{
    conv_grad::Backprop,
    conv_volume::convolutions,
    volume::{Images, Sizes, for_taps, images, wide},
};
use crate::{kernels::linalg::product::Factor, lane::Compute, split::for_rows};
use half::{bf16, f16};
use std::marker::PhantomData;
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::Number,
    geometry::DataFormat,
    growth,
    reg::Numerics,
    register_kernel,
};

struct ByInput<T> {
    backprop: Backprop,
    element: PhantomData<T>,
}

impl<T: Compute<Wide: Factor>> Kernel for ByInput<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(ByInput { backprop: Backprop::new(c)?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let dims = self.backprop.input_dims(c)?;
        let g = self.backprop.geometry(c, &dims, c.dims(1))?;
        let s = Sizes::new(&g);
        let output = Images::<T>::new(c, &dims, g.format)?;
        if output.values.is_empty() || s.outputs == 0 {
            output.finish();
            return Ok(());
        }
        let (filter, dy) = (wide::<T>(c, 1)?, images::<T>(c, 2, g.format)?);
        let (image_len, multiplier) = (s.input_pixels * s.channels, s.group_outputs);
        let cost = (s.pixels * s.taps * s.outputs) as f64;
        for_rows(c, output.values, image_len, cost, |first, dx| {
            for (image, dx) in (first..).zip(dx.chunks_exact_mut(image_len)) {
                let dy = &dy[image * s.pixels * s.outputs..];
                for_taps(&g, 0..s.pixels, |pixel, tap, input| {
                    let Some(input) = input else { return };
                    let dx = &mut dx[input * s.channels..][..s.channels];
                    let products = dy[pixel * s.outputs..].iter().zip(&filter[tap * s.outputs..]);
                    for (at, (&dy, &weight)) in products.take(s.outputs).enumerate() {
                        let dx = &mut dx[at / multiplier];
                        *dx = dx.add(dy.mul(weight));
                    }
                });
            }
        })?;
        output.finish();
        Ok(())
    }
}

struct ByFilter<T> {
    backprop: Backprop,
    element: PhantomData<T>,
}

impl<T: Compute<Wide: Factor>> Kernel for ByFilter<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(ByFilter { backprop: Backprop::new(c)?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let dims = self.backprop.filter_dims(c)?;
        let g = self.backprop.geometry(c, c.dims(0), &dims)?;
        let s = Sizes::new(&g);
        let output = Images::<T>::new(c, &dims, DataFormat::Nhwc)?;
        if output.values.is_empty() {
            output.finish();
            return Ok(());
        }
        let (x, dy) = (images::<T>(c, 0, g.format)?, images::<T>(c, 2, g.format)?);
        // Each image separately, so that the rounding errors of many do not accumulate.
        let mut sums = growth::filled(s.taps * s.outputs, T::Wide::ZERO)?;
        for image in 0..s.batch {
            c.watch().check()?;
            sums.fill(T::Wide::ZERO);
            let (x, dy) =
                (&x[image * s.input_pixels * s.channels..], &dy[image * s.pixels * s.outputs..]);
            for_taps(&g, 0..s.pixels, |pixel, tap, input| {
                let Some(input) = input else { return };
                let x = &x[input * s.channels..];
                let sums = &mut sums[tap * s.outputs..][..s.outputs];
                for (at, (sum, &dy)) in sums.iter_mut().zip(&dy[pixel * s.outputs..]).enumerate() {
                    *sum = sum.add(x[at / s.group_outputs].mul(dy));
                }
            });
            for (total, &sum) in output.values.iter_mut().zip(&sums) {
                *total = total.add(sum);
            }
        }
        output.finish();
        Ok(())
    }
}

convolutions! {
    "DepthwiseConv2dNativeBackpropInput" ByInput, host_memory = &["input_sizes"];
    "DepthwiseConv2dNativeBackpropFilter" ByFilter, host_memory = &["filter_sizes"];
}
