//! `Dilation2DBackpropInput` and `Dilation2DBackpropFilter`: the gradient of each window goes to the
//! first pixel, or filter element, of the greatest sum. NaN is skipped; of a window of NaN alone it
//! goes to the window's first pixel inside the image, or to the filter's first element, as in
//! TensorFlow.

use crate::{
    arch::vectorised,
    kernels::reduction::{BFLOAT16, DOUBLE, FLOAT, HALF},
    lane::Compute,
    split::try_rows,
};
use half::{bf16, f16};
use std::{marker::PhantomData, ops::Range};
use tenon_reference::LowestFinite;
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::Number,
    geometry::{Dilation2dGeometry, Dilation2dParams, Padding},
    growth,
    reg::Numerics,
    register_kernel,
};

/// The tap of a window without a sum above the lowest finite value.
const NONE: usize = usize::MAX;

/// Types among whose elements the greatest is found.
trait Ordered: Compute + LowestFinite {}
impl<T: Compute + LowestFinite> Ordered for T {}

struct Attributes {
    strides: Vec<i64>,
    rates: Vec<i64>,
    padding: Padding,
}

impl Attributes {
    fn new(c: &CreateContext<'_>) -> Result<Attributes, KernelError> {
        Ok(Attributes {
            strides: c.attr("strides")?,
            rates: c.attr("rates")?,
            padding: Padding::parse(c.attr("padding")?)?,
        })
    }

    /// The geometry of a call, whose third input must be shaped as the dilation's output.
    fn geometry(&self, c: &ComputeContext<'_>) -> Result<Dilation2dGeometry, KernelError> {
        let g = Dilation2dGeometry::new(&Dilation2dParams {
            input: c.dims(0),
            filter: c.dims(1),
            strides: &self.strides,
            rates: &self.rates,
            padding: self.padding,
        })?;
        if c.dims(2) == g.output_dims() {
            return Ok(g);
        }
        Err(KernelError::invalid_argument(format!(
            "out_backprop must have the shape of the dilation's output, {:?}, found {:?}",
            g.output_dims(),
            c.dims(2)
        )))
    }
}

/// The inputs of a gradient, and lengths.
struct Call<'a, T> {
    g: Dilation2dGeometry,
    x: &'a [T],
    filter: &'a [T],
    grad: &'a [T],
    channels: usize,
    /// The number of elements of an input image.
    image_len: usize,
    /// The number of elements of a row of outputs.
    row_len: usize,
}

impl<'a, T: Ordered> Call<'a, T> {
    fn new(c: &ComputeContext<'a>, attributes: &Attributes) -> Result<Self, KernelError> {
        let g = attributes.geometry(c)?;
        Ok(Call {
            x: c.input::<T>(0)?.data,
            filter: c.input::<T>(1)?.data,
            grad: c.input::<T>(2)?.data,
            channels: g.channels as usize,
            image_len: (g.height.input * g.width.input * g.channels) as usize,
            row_len: (g.width.output * g.channels) as usize,
            g,
        })
    }

    fn rows(&self) -> usize {
        self.g.height.output as usize
    }

    /// Approximate nanoseconds of a row of outputs.
    fn cost(&self) -> f64 {
        self.row_len as f64 * (1.0 + (self.g.height.kernel * self.g.width.kernel) as f64)
    }
}

/// The greatest sum of each channel, and its tap.
struct Best<T> {
    sums: Vec<T>,
    taps: Vec<usize>,
}

impl<T: Ordered> Best<T> {
    fn new(channels: usize) -> Result<Best<T>, KernelError> {
        let sums = growth::filled(channels, T::LOWEST_FINITE)?;
        Ok(Best { sums, taps: growth::filled(channels, NONE)? })
    }
}

vectorised! {
    /// Finds the greatest sums of the window of an output.
    fn find[T: Ordered](
        call: &Call<'_, T>,
        image: &[T],
        place: [usize; 2],
        best: &mut Best<T>,
    ) {
        let (g, channels) = (&call.g, call.channels);
        let (width, columns) = (g.width.input as usize, g.width.kernel as usize);
        best.sums.fill(T::LOWEST_FINITE);
        best.taps.fill(NONE);
        for ky in g.height.taps(place[0]) {
            let iy = (g.height.start(place[0]) + ky as i64 * g.height.dilation) as usize;
            for kx in g.width.taps(place[1]) {
                let ix = (g.width.start(place[1]) + kx as i64 * g.width.dilation) as usize;
                let tap = ky * columns + kx;
                let pixel = &image[(iy * width + ix) * channels..][..channels];
                let element = &call.filter[tap * channels..][..channels];
                let found = best.sums.iter_mut().zip(&mut best.taps);
                for (((sum, at), &pixel), &element) in found.zip(pixel).zip(element) {
                    let other = pixel.add(element);
                    let greater = other > *sum;
                    *sum = if greater { other } else { *sum };
                    *at = if greater { tap } else { *at };
                }
            }
        }
    }
}

/// Calls `add` for each output of a row, with its column, the taps of its channels, and its
/// gradient.
fn each_output<T: Ordered>(
    call: &Call<'_, T>,
    unit: usize,
    best: &mut Best<T>,
    mut add: impl FnMut(usize, &[usize], &[T]),
) {
    let image = &call.x[unit / call.rows() * call.image_len..][..call.image_len];
    let grads = &call.grad[unit * call.row_len..][..call.row_len];
    for (column, grad) in grads.chunks_exact(call.channels).enumerate() {
        find(call, image, [unit % call.rows(), column], best);
        add(column, &best.taps, grad);
    }
}

struct ByInput<T> {
    attributes: Attributes,
    element: PhantomData<T>,
}

impl<T: Ordered> Kernel for ByInput<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(ByInput { attributes: Attributes::new(c)?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let call = Call::<T>::new(c, &self.attributes)?;
        let dx = c.output::<T>(0, c.dims(0))?.data;
        let (image_len, rows) = (call.image_len, call.rows());
        try_rows(c, dx, image_len, call.cost() * rows as f64, |first, dx| {
            let mut best = Best::new(call.channels)?;
            let mut sums = growth::filled(image_len, T::Wide::ZERO)?;
            for (image, dx) in (first..).zip(dx.chunks_exact_mut(image_len)) {
                sums.fill(T::Wide::ZERO);
                for row in 0..rows {
                    each_output(&call, image * rows + row, &mut best, |column, taps, grad| {
                        to_pixels(&call, [row, column], taps, grad, &mut sums);
                    });
                }
                dx.iter_mut().zip(&sums).for_each(|(dx, &sum)| *dx = T::down(sum));
            }
            Ok(())
        })
    }
}

/// Adds the gradient of an output to the pixels that its taps read.
fn to_pixels<T: Ordered>(
    call: &Call<'_, T>,
    [row, column]: [usize; 2],
    taps: &[usize],
    grad: &[T],
    sums: &mut [T::Wide],
) {
    let g = &call.g;
    let (width, columns) = (g.width.input as usize, g.width.kernel as usize);
    let (top, left) = (g.height.start(row), g.width.start(column));
    for (channel, (&tap, &grad)) in taps.iter().zip(grad).enumerate() {
        let (y, x) = match tap {
            NONE => (top.max(0), left.max(0)),
            tap => (
                top + (tap / columns) as i64 * g.height.dilation,
                left + (tap % columns) as i64 * g.width.dilation,
            ),
        };
        let sum = &mut sums[(y as usize * width + x as usize) * call.channels + channel];
        *sum = sum.add(grad.up());
    }
}

struct ByFilter<T> {
    attributes: Attributes,
    element: PhantomData<T>,
}

/// The largest number of sums of the filter's gradient that are made side by side.
const PARTS: usize = 16;

impl<T: Ordered> Kernel for ByFilter<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(ByFilter { attributes: Attributes::new(c)?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let call = Call::<T>::new(c, &self.attributes)?;
        let output = c.output::<T>(0, c.dims(1))?.data;
        let units = call.grad.len().checked_div(call.row_len).unwrap_or(0);
        // The number of parts depends on sizes only, so that the sums do not depend on threads.
        let parts = (call.grad.len() / output.len().max(1)).min(units).clamp(1, PARTS);
        let (part, len) = (units.div_ceil(parts), output.len());
        let mut sums = growth::filled(parts * len, T::Wide::ZERO)?;
        if !output.is_empty() {
            try_rows(c, &mut sums, len, call.cost() * part as f64, |first, sums| {
                for (at, sums) in (first..).zip(sums.chunks_exact_mut(len)) {
                    let rows = (at * part).min(units)..((at + 1) * part).min(units);
                    to_elements(&call, rows, sums)?;
                }
                Ok(())
            })?;
        }
        let (total, others) = sums.split_at_mut(len);
        for part in others.chunks_exact(len.max(1)) {
            total.iter_mut().zip(part).for_each(|(sum, &part)| *sum = sum.add(part));
        }
        output.iter_mut().zip(total).for_each(|(output, &mut sum)| *output = T::down(sum));
        Ok(())
    }
}

/// Adds the gradients of some rows of outputs to the sums of the filter's elements.
fn to_elements<T: Ordered>(
    call: &Call<'_, T>,
    rows: Range<usize>,
    sums: &mut [T::Wide],
) -> Result<(), KernelError> {
    let mut best = Best::new(call.channels)?;
    for unit in rows {
        each_output(call, unit, &mut best, |_, taps, grad| {
            for (channel, (&tap, &grad)) in taps.iter().zip(grad).enumerate() {
                let tap = if tap == NONE { 0 } else { tap };
                let sum = &mut sums[tap * call.channels + channel];
                *sum = sum.add(grad.up());
            }
        });
    }
    Ok(())
}

macro_rules! gradients {
    ($($op:literal $kernel:ident;)*) => {$(
        register_kernel!($op on "CPU": $kernel<T> for "T" in [i8, i16, i32, i64, u8, u16, u32, u64],
            numerics = Numerics::EXACT);
        register_kernel!($op on "CPU": $kernel<T> for "T" in [f32], numerics = FLOAT);
        register_kernel!($op on "CPU": $kernel<T> for "T" in [f64], numerics = DOUBLE);
        register_kernel!($op on "CPU": $kernel<T> for "T" in [f16], numerics = HALF);
        register_kernel!($op on "CPU": $kernel<T> for "T" in [bf16], numerics = BFLOAT16);
    )*};
}

gradients! {
    "Dilation2DBackpropInput" ByInput;
    "Dilation2DBackpropFilter" ByFilter;
}
