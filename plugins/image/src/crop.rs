//! `CropAndResize`.

use crate::resize::single;
use half::f16;
use std::marker::PhantomData;
use tenon_sdk::{
    Code, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::Number,
    geometry::{Dims, GeometryError, byte_size},
    register_kernel,
};

struct Crop<T> {
    nearest: bool,
    outside: f32,
    of: PhantomData<fn() -> T>,
}

/// The sizes of a call.
struct Sizes {
    output: Dims,
    image: [usize; 4],
    crop: [usize; 2],
}

fn sizes(c: &ComputeContext<'_>) -> Result<Sizes, KernelError> {
    let (image, boxes) = (c.dims(0), c.dims(1));
    for (at, what, expected) in
        [(0, "image", 4), (1, "boxes", 2), (2, "box_ind", 1), (3, "crop_size", 1)]
    {
        let found = c.dims(at).len();
        if found != expected {
            return Err(GeometryError::Rank { what, expected, found }.into());
        }
    }
    let size = |what, expected, found| match expected == found {
        true => Ok(()),
        false => Err(GeometryError::SizeMismatch { what, expected, found }),
    };
    size("the second dimension of boxes", 4, boxes[1])?;
    size("the size of box_ind", boxes[0], c.dims(2)[0])?;
    size("the size of crop_size", 2, c.dims(3)[0])?;
    let crop = c.integers(3)?;
    let sides = [("crop_size", crop[0]), ("crop_size", crop[1])];
    let inner = [("the height of image", image[1]), ("the width of image", image[2])];
    for (what, found) in sides.into_iter().chain(inner) {
        if found < 1 {
            return Err(GeometryError::TooSmall { what, least: 1, found }.into());
        }
    }
    let output = Dims::from_slice(&[boxes[0], crop[0], crop[1], image[3]])?;
    byte_size(&output, 4)?;
    let image = [image[0], image[1], image[2], image[3]].map(|size| size as usize);
    Ok(Sizes { output, image, crop: [crop[0] as usize, crop[1] as usize] })
}

/// The position in an image of `pixels` pixels of a pixel of a crop; `None` outside the image.
pub fn place(pixel: usize, crop: usize, [first, last]: [f32; 2], pixels: usize) -> Option<f32> {
    let end = (pixels - 1) as f32;
    let place = if crop > 1 {
        let scale = (last - first) * end / (crop - 1) as f32;
        first * end + pixel as f32 * scale
    } else {
        (0.5 * f64::from(first + last) * f64::from(end)) as f32
    };
    (place >= 0.0 && place <= end).then_some(place)
}

impl<T: Number> Kernel for Crop<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let nearest = c.attr::<&str>("method")? == "nearest";
        Ok(Crop { nearest, outside: c.attr("extrapolation_value")?, of: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let sizes = sizes(c)?;
        let [batch, height, width, channels] = sizes.image;
        let image = height * width * channels;
        let (x, boxes) = (c.input::<T>(0)?.data, c.input::<f32>(1)?.data);
        let indices = c.integers(2)?;
        if let Some(found) = indices.iter().find(|&&at| at < 0 || at >= batch as i64) {
            return Err(KernelError::new(
                Code::OUT_OF_RANGE,
                format!("box_ind must lie in [0, {batch}), found {found}"),
            ));
        }
        let y = c.output::<f32>(0, &sizes.output)?.data;
        if y.is_empty() {
            return Ok(());
        }
        let row_len = sizes.crop[1] * channels;
        let rows = y.chunks_exact_mut(row_len);
        c.parallel_items(rows, 4.0 * row_len as f64, |number, row| {
            let (number, line) = (number / sizes.crop[0], number % sizes.crop[0]);
            let &[top, left, bottom, right] = &boxes[number * 4..][..4] else { return Ok(()) };
            let from = &x[indices[number] as usize * image..][..image];
            let Some(line) = place(line, sizes.crop[0], [top, bottom], height) else {
                row.fill(self.outside);
                return Ok(());
            };
            for (column, pixel) in row.chunks_exact_mut(channels).enumerate() {
                match place(column, sizes.crop[1], [left, right], width) {
                    None => pixel.fill(self.outside),
                    Some(column) => self.pixel(from, [width, channels], [line, column], pixel),
                }
            }
            Ok(())
        })
    }
}

impl<T: Number> Crop<T> {
    fn pixel(
        &self,
        image: &[T],
        [width, channels]: [usize; 2],
        [line, column]: [f32; 2],
        pixel: &mut [f32],
    ) {
        let at = |line: f32, column: f32, channel: usize| {
            single(image[(line as usize * width + column as usize) * channels + channel])
        };
        let (line_weight, column_weight) = (line - line.floor(), column - column.floor());
        for (channel, y) in pixel.iter_mut().enumerate() {
            if self.nearest {
                *y = at(line.round(), column.round(), channel);
                continue;
            }
            let mixed = |line: f32| {
                let (left, right) =
                    (at(line, column.floor(), channel), at(line, column.ceil(), channel));
                left + (right - left) * column_weight
            };
            let (top, bottom) = (mixed(line.floor()), mixed(line.ceil()));
            *y = top + (bottom - top) * line_weight;
        }
    }
}

register_kernel!("CropAndResize" on "CPU":
    Crop<T> for "T" in [u8, u16, i8, i16, i32, i64, f16, f32, f64],
    host_memory = &["crop_size"], numerics = crate::resize::NUMERICS);
