//! `MaxPoolGradGrad`, `MaxPoolGradGradV2`, `MaxPool3DGradGrad` and `MaxPoolGradGradWithArgmax`:
//! elements of a gradient, picked where the maxima of the windows are.
//!
//! A pooling over rows and columns is one over a single plane. With channels first, each channel is
//! an image of its own with one channel.

use super::{
    pool_grad::{check_shape, planar_max, window_list},
    pool_volume::held,
};
use crate::{
    arch::vectorised,
    split::{for_rows, try_rows},
};
use half::{bf16, f16};
use std::marker::PhantomData;
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::Number,
    geometry::{DataFormat, Pool2dGeometry, Pool2dParams, Pool3dGeometry, PoolAttributes},
    reg::Numerics,
    register_kernel,
};

/// An image, the outputs of its windows, and the gradient to pick from.
struct Image<'a, T> {
    x: &'a [T],
    grad: &'a [T],
    channels: usize,
}

vectorised! {
    /// Picks for one row of outputs, `[columns, channels]`, of plane and row `place`.
    fn pick_row[T: Number](
        g: &Pool3dGeometry,
        image: &Image<'_, T>,
        place: [usize; 2],
        maxima: &[T],
        picked: &mut [T],
    ) {
        let [_, height, width] = g.windows.map(|window| window.input as usize);
        let (planes, rows) = (held(&g.windows[0], place[0]), held(&g.windows[1], place[1]));
        let channels = image.channels;
        picked.fill(T::ZERO);
        let pixels = picked.chunks_exact_mut(channels).zip(maxima.chunks_exact(channels));
        for (x, (picked, maxima)) in pixels.enumerate() {
            // From the last element to the first, so that the first equal one remains.
            for plane in planes.clone().rev() {
                for row in rows.clone().rev() {
                    for column in held(&g.windows[2], x).rev() {
                        let at = ((plane * height + row) * width + column) * channels;
                        let x = &image.x[at..][..channels];
                        let grad = &image.grad[at..][..channels];
                        let elements = picked.iter_mut().zip(maxima).zip(x).zip(grad);
                        for (((picked, max), x), &grad) in elements {
                            *picked = if x == max { grad } else { *picked };
                        }
                    }
                }
            }
        }
    }
}

/// Computes a second gradient from inputs 0 to 2: the pooling's input, its output, the gradient.
fn pick<T: Number>(
    c: &ComputeContext<'_>,
    g: &Pool3dGeometry,
    output: &[i64],
) -> Result<(), KernelError> {
    check_shape("orig_output", output, c.dims(1))?;
    if c.dims(2) != c.dims(0) {
        return Err(KernelError::invalid_argument(format!(
            "grad must have the shape of orig_input, {:?}, found {:?}",
            c.dims(0),
            c.dims(2)
        )));
    }
    let [x, maxima, grad] = [c.input::<T>(0)?.data, c.input::<T>(1)?.data, c.input::<T>(2)?.data];
    let picked = c.output::<T>(0, output)?.data;
    let channels = match g.format {
        DataFormat::Nhwc => g.channels as usize,
        DataFormat::Nchw => 1,
    };
    let [planes, rows, columns] = g.windows.map(|window| window.output as usize);
    let image_len =
        g.windows.iter().map(|window| window.input as usize).product::<usize>() * channels;
    let window: f64 = g.windows.iter().map(|window| window.kernel as f64).product();
    let row_len = columns * channels;
    for_rows(c, picked, row_len, (0.3 * window + 1.0) * row_len as f64, |first, picked| {
        for (unit, picked) in (first..).zip(picked.chunks_exact_mut(row_len)) {
            let from = unit / rows / planes * image_len;
            let image = Image {
                x: &x[from..from + image_len],
                grad: &grad[from..from + image_len],
                channels,
            };
            let maxima = &maxima[unit * row_len..][..row_len];
            pick_row(g, &image, [unit / rows % planes, unit % rows], maxima, picked);
        }
    })
}

struct PlanarGradGrad<T> {
    attributes: PoolAttributes,
    element: PhantomData<T>,
}

impl<T: Number> Kernel for PlanarGradGrad<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(PlanarGradGrad { attributes: PoolAttributes::new(c)?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let g = planar_max(&self.attributes.params(c.dims(0)))?;
        pick::<T>(c, &g.into(), &g.output_dims())
    }
}

/// [`PlanarGradGrad`] with windows and strides as inputs.
struct PlanarGradGradV2<T> {
    attributes: PoolAttributes,
    element: PhantomData<T>,
}

impl<T: Number> Kernel for PlanarGradGradV2<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(PlanarGradGradV2 { attributes: PoolAttributes::new(c)?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (ksize, strides) = (window_list(c, 3, "ksize")?, window_list(c, 4, "strides")?);
        let params = self.attributes.params(c.dims(0));
        let g = planar_max(&Pool2dParams { ksize: &ksize, strides: &strides, ..params })?;
        pick::<T>(c, &g.into(), &g.output_dims())
    }
}

struct VolumeGradGrad<T> {
    attributes: PoolAttributes,
    element: PhantomData<T>,
}

impl<T: Number> Kernel for VolumeGradGrad<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(VolumeGradGrad { attributes: PoolAttributes::new(c)?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let g = Pool3dGeometry::new(&self.attributes.params(c.dims(0)))?;
        pick::<T>(c, &g, &g.output_dims())
    }
}

struct GradGradWithArgmax<T> {
    attributes: PoolAttributes,
    include_batch: bool,
    element: PhantomData<T>,
}

impl<T: Number> Kernel for GradGradWithArgmax<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(GradGradWithArgmax {
            attributes: PoolAttributes::new(c)?,
            include_batch: c.attr("include_batch_in_index")?,
            element: PhantomData,
        })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let g = Pool2dGeometry::average(&self.attributes.params(c.dims(0)))?;
        if c.dims(1) != c.dims(0) {
            return Err(KernelError::invalid_argument(format!(
                "grad must have the shape of input, {:?}, found {:?}",
                c.dims(0),
                c.dims(1)
            )));
        }
        check_shape("argmax", &g.output_dims(), c.dims(2))?;
        let (grad, places) = (c.input::<T>(1)?.data, c.integers(2)?);
        let picked = c.output::<T>(0, c.dims(2))?.data;
        let images = (g.batch as usize).max(1);
        let (image_len, picked_len) = (grad.len() / images, picked.len() / images);
        try_rows(c, picked, picked_len, picked_len as f64, |first, picked| {
            for (n, picked) in (first..).zip(picked.chunks_exact_mut(picked_len)) {
                let from =
                    if self.include_batch { grad } else { &grad[n * image_len..][..image_len] };
                for (picked, &place) in picked.iter_mut().zip(&places[n * picked_len..]) {
                    let found = usize::try_from(place).ok().and_then(|place| from.get(place));
                    *picked = *found.ok_or_else(|| outside(place, from.len()))?;
                }
            }
            Ok(())
        })
    }
}

fn outside(place: i64, range: usize) -> KernelError {
    KernelError::invalid_argument(format!(
        "argmax must lie in [0, {range}), the elements of an image or with \
         include_batch_in_index of the input, found {place}"
    ))
}

register_kernel!("MaxPoolGradGrad" on "CPU": PlanarGradGrad<T>
    for "T" in [i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64], numerics = Numerics::EXACT);
register_kernel!("MaxPoolGradGradV2" on "CPU": PlanarGradGradV2<T>
    for "T" in [i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64],
    host_memory = &["ksize", "strides"], numerics = Numerics::EXACT);
register_kernel!("MaxPool3DGradGrad" on "CPU": VolumeGradGrad<T> for "T" in [bf16, f32],
    numerics = Numerics::EXACT);
register_kernel!("MaxPoolGradGradWithArgmax" on "CPU": GradGradWithArgmax<T>
    for "T" in [i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64],
    types = ("Targmax", &[DType::INT32, DType::INT64]), numerics = Numerics::EXACT);
