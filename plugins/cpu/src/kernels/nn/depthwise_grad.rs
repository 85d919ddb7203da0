//! `DepthwiseConv2dNativeBackpropInput` and `DepthwiseConv2dNativeBackpropFilter`, directly.
//!
//! The gradient by the input is a convolution for each phase of the inputs
//! ([`super::conv_grad::phases`]), and the gradient by the filter is summed for some channels side
//! by side. A channel with several outputs is as many channels for both: the inputs are repeated,
//! or their gradients added.

mod by_filter;

use super::{
    conv::Ending,
    conv_grad::{
        Backprop,
        phases::{Phase, phases, transposed},
    },
    conv_volume::convolutions,
    depthwise::{
        Rows,
        slabs::{add_repeated, repeat},
    },
    volume::{Images, images, planar, wide},
};
use crate::{
    kernels::linalg::product::Factor,
    lane::Compute,
    panels::{Panels, uninitialised},
    split::for_rows,
};
use half::{bf16, f16};
use std::marker::PhantomData;
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    geometry::{Conv2dGeometry, DataFormat, WindowDim},
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
        let output = Images::<T>::new(c, &dims, g.format)?;
        let (filter, dy) = (wide::<T>(c, 1)?, images::<T>(c, 2, g.format)?);
        if output.values.is_empty() || dy.is_empty() {
            output.zeros();
            return Ok(());
        }
        let (times, g) = repeated(&planar(&g).expect("the convolution is one of images"));
        if times == 1 {
            input_by_phases(c, &g, [filter, dy], output.values)?;
        } else {
            let dx = uninitialised::<T::Wide>(c, output.values.len().saturating_mul(times))?;
            input_by_phases(c, &g, [filter, dy], dx)?;
            add_repeated(dx, times, output.values);
        }
        output.finish();
        Ok(())
    }
}

/// The number of outputs of each channel, and the convolution with a channel for each output.
fn repeated(g: &Conv2dGeometry) -> (usize, Conv2dGeometry) {
    let channels = g.out_channels;
    let times = (channels / g.in_channels) as usize;
    (times, Conv2dGeometry { in_channels: channels, groups: channels, ..*g })
}

/// The phases of a dimension; of each, its number among those with taps.
fn numbered(w: &WindowDim) -> Result<Vec<(Phase, usize)>, KernelError> {
    let (mut all, mut next) = (growth::with_room(w.stride.min(w.input) as usize)?, 0);
    for phase in phases(w) {
        all.push((phase, next));
        next += usize::from(phase.window.kernel > 0);
    }
    Ok(all)
}

fn with_taps(phases: &[(Phase, usize)]) -> impl Iterator<Item = &Phase> + Clone {
    phases.iter().map(|(phase, _)| phase).filter(|phase| phase.window.kernel > 0)
}

/// The filter of two phases.
fn turned<W: Factor>(
    g: &Conv2dGeometry,
    filter: &[W],
    [y, x]: [&Phase; 2],
) -> Result<Vec<W>, KernelError> {
    let (channels, taps) = (g.in_channels as usize, x.window.kernel as usize);
    let mut turned = growth::filled(y.window.kernel as usize * taps * channels, W::ZERO)?;
    for (at, turned) in turned.chunks_exact_mut(channels).enumerate() {
        let tap = y.tap(at / taps) * g.width.kernel as usize + x.tap(at % taps);
        turned.copy_from_slice(&filter[tap * channels..][..channels]);
    }
    Ok(turned)
}

/// The gradient by the input, of convolutions with one output for each channel.
fn input_by_phases<W: Factor>(
    c: &ComputeContext<'_>,
    g: &Conv2dGeometry,
    [filter, dy]: [&[W]; 2],
    dx: &mut [W],
) -> Result<(), KernelError> {
    let (ys, xs) = (numbered(&g.height)?, numbered(&g.width)?);
    let in_row = with_taps(&xs).count();
    let count = with_taps(&ys).count() * in_row;
    let (mut sources, mut parts) = (growth::with_room(count)?, growth::with_room(count)?);
    for [y, x] in with_taps(&ys).flat_map(|y| with_taps(&xs).map(move |x| [y, x])) {
        sources.push((transposed(g, y, x), turned(g, filter, [y, x])?));
    }
    parts.extend(sources.iter().map(|(g, filter)| Rows::new(g, dy, filter, Ending::NONE)));
    let (channels, height) = (g.in_channels as usize, g.height.input as usize);
    let line = g.width.input as usize * channels;
    let strides = [g.height.stride as usize, g.width.stride as usize];
    let cost = parts.iter().map(Rows::cost).sum::<f64>() / strides[0] as f64 + line as f64 * 0.1;
    let scratch = Panels::new(c, dx.len() / line, line)?;
    for_rows(c, dx, line, cost, |first, dx| {
        let mut scratch = scratch.take();
        for (row, dx) in (first..).zip(dx.chunks_exact_mut(line)) {
            let (image, row) = (row / height, row % height);
            let (y, number) = &ys[row % strides[0]];
            let unit = image * y.window.output as usize + row / strides[0];
            for (x, at) in &xs {
                let pixels = dx.chunks_exact_mut(channels).skip(x.first).step_by(strides[1]);
                if y.window.kernel == 0 || x.window.kernel == 0 {
                    pixels.for_each(|dx| dx.fill(W::ZERO));
                    continue;
                }
                let part = &parts[number * in_row + at];
                if strides[1] == 1 {
                    part.compute(unit..unit + 1, dx);
                    continue;
                }
                let scratch = &mut scratch[..part.len()];
                part.compute(unit..unit + 1, scratch);
                for (dx, from) in pixels.zip(scratch.chunks_exact(channels)) {
                    dx.copy_from_slice(from);
                }
            }
        }
    })
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
        let output = Images::<T>::new(c, &dims, DataFormat::Nhwc)?;
        let (x, dy) = (images::<T>(c, 0, g.format)?, images::<T>(c, 2, g.format)?);
        if output.values.is_empty() || x.is_empty() || dy.is_empty() {
            output.zeros();
            return Ok(());
        }
        let (times, g) = repeated(&planar(&g).expect("the convolution is one of images"));
        if times == 1 {
            by_filter::by_lines(c, &g, [x, dy], output.values)?;
        } else {
            let wide = uninitialised::<T::Wide>(c, x.len().saturating_mul(times))?;
            repeat(x, times, wide);
            by_filter::by_lines(c, &g, [wide, dy], output.values)?;
        }
        output.finish();
        Ok(())
    }
}

convolutions! {
    "DepthwiseConv2dNativeBackpropInput" ByInput, host_memory = &["input_sizes"];
    "DepthwiseConv2dNativeBackpropFilter" ByFilter, host_memory = &["filter_sizes"];
}
