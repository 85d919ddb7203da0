//! `CropAndResizeGradImage` and `CropAndResizeGradBoxes`.

use crate::{crop::place, resize::single};
use half::f16;
use std::marker::PhantomData;
use tenon_sdk::{
    Code, DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::Number,
    geometry::{GeometryError, byte_size, validate_dims},
    growth,
    reg::Numerics,
    register_kernel,
};

/// Gradients of crops, and the boxes that were cut out.
struct Crops<'a> {
    grads: &'a [f32],
    boxes: &'a [f32],
    indices: Vec<i64>,
    /// Rows and columns of a crop.
    crop: [usize; 2],
    /// Rows and columns of an image.
    image: [usize; 2],
    channels: usize,
}

impl<'a> Crops<'a> {
    /// Reads the gradients from input 0, the boxes from this input and their indices from the next
    /// one, of images with these dimensions.
    fn new(c: &ComputeContext<'a>, boxes: usize, image: &[i64]) -> Result<Crops<'a>, KernelError> {
        let ranks = [(0, "grads", 4), (boxes, "boxes", 2), (boxes + 1, "box_ind", 1)];
        for (at, what, expected) in ranks {
            let found = c.dims(at).len();
            if found != expected {
                return Err(GeometryError::Rank { what, expected, found }.into());
            }
        }
        let (grads, count) = (c.dims(0), c.dims(boxes)[0]);
        let sizes = [
            ("the second dimension of boxes", 4, c.dims(boxes)[1]),
            ("the size of box_ind", count, c.dims(boxes + 1)[0]),
            ("the number of grads", count, grads[0]),
            ("the channels of grads", image[3], grads[3]),
        ];
        for (what, expected, found) in sizes {
            if expected != found {
                return Err(GeometryError::SizeMismatch { what, expected, found }.into());
            }
        }
        let sides = [("the height of grads", grads[1]), ("the width of grads", grads[2])];
        let inner = [("the height of the image", image[1]), ("the width of the image", image[2])];
        for (what, found) in sides.into_iter().chain(inner) {
            if found < 1 {
                return Err(GeometryError::TooSmall { what, least: 1, found }.into());
            }
        }
        let (batch, indices) = (image[0], c.integers(boxes + 1)?);
        if let Some(found) = indices.iter().find(|&&at| at < 0 || at >= batch) {
            return Err(KernelError::new(
                Code::OUT_OF_RANGE,
                format!("box_ind must lie in [0, {batch}), found {found}"),
            ));
        }
        let pair = |dims: &[i64]| [dims[1] as usize, dims[2] as usize];
        Ok(Crops {
            grads: c.input::<f32>(0)?.data,
            boxes: c.input::<f32>(boxes)?.data,
            indices,
            crop: pair(grads),
            image: pair(image),
            channels: image[3] as usize,
        })
    }

    fn image_len(&self) -> usize {
        self.image[0] * self.image[1] * self.channels
    }

    fn crop_len(&self) -> usize {
        self.crop[0] * self.crop[1] * self.channels
    }

    /// Calls `f` for each pixel of a crop that was read from the image, with its row and column in
    /// the crop, its place in the image, and its gradient.
    fn each_pixel(&self, number: usize, mut f: impl FnMut([usize; 2], [f32; 2], &[f32])) {
        let &[top, left, bottom, right] = &self.boxes[number * 4..][..4] else { return };
        let grads = &self.grads[number * self.crop_len()..][..self.crop_len()];
        let line_len = self.crop[1] * self.channels;
        for (row, grads) in grads.chunks_exact(line_len.max(1)).enumerate() {
            let Some(y) = place(row, self.crop[0], [top, bottom], self.image[0]) else { continue };
            for (column, grad) in grads.chunks_exact(self.channels.max(1)).enumerate() {
                if let Some(x) = place(column, self.crop[1], [left, right], self.image[1]) {
                    f([row, column], [y, x], grad);
                }
            }
        }
    }
}

/// The two pixels around a place, and their weights.
fn around(place: f32) -> [(usize, f32); 2] {
    let weight = place - place.floor();
    [(place.floor() as usize, 1.0 - weight), (place.ceil() as usize, weight)]
}

struct GradImage<T> {
    nearest: bool,
    of: PhantomData<fn() -> T>,
}

impl<T: Number> Kernel for GradImage<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(GradImage { nearest: c.attr::<&str>("method")? == "nearest", of: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let size = c.integers(3)?;
        if c.dims(3) != [4] {
            let found = size.len();
            return Err(GeometryError::Length { what: "image_size", expected: 4, found }.into());
        }
        validate_dims(&size)?;
        byte_size(&size, 8)?;
        let crops = Crops::new(c, 1, &size)?;
        let y = c.output::<T>(0, &size)?.data;
        let image = crops.image_len();
        if y.is_empty() {
            return Ok(());
        }
        let of_images = by_image(&crops, size[0] as usize)?;
        let work = crops.grads.len() as f64 / size[0] as f64;
        let images = y.chunks_exact_mut(image).zip(of_images.iter());
        c.parallel_items(images, 10.0 * work + image as f64, |_, (y, numbers)| {
            let mut sums = growth::filled(image, T::Accumulator::ZERO)?;
            for &number in numbers {
                crops.each_pixel(number, |_, place, grad| {
                    self.spread::<T::Accumulator>(&mut sums, crops.image[1], place, grad);
                });
            }
            y.iter_mut().zip(&sums).for_each(|(y, &sum)| *y = T::narrow(sum));
            Ok(())
        })
    }
}

/// The numbers of the boxes of each image, in order.
fn by_image(crops: &Crops<'_>, images: usize) -> Result<Vec<Vec<usize>>, KernelError> {
    let mut all = growth::filled(images, Vec::new())?;
    for (number, &image) in crops.indices.iter().enumerate() {
        growth::push(&mut all[image as usize], number)?;
    }
    Ok(all)
}

impl<T> GradImage<T> {
    /// Adds the gradient of a pixel to the pixels of the image from which it was computed.
    fn spread<A: Number>(&self, sums: &mut [A], width: usize, [y, x]: [f32; 2], grad: &[f32]) {
        let mut add = |row: usize, column: usize, weights: [f32; 2]| {
            let sums = &mut sums[(row * width + column) * grad.len()..][..grad.len()];
            for (sum, &grad) in sums.iter_mut().zip(grad) {
                *sum = sum.add(A::from_f64((grad * weights[0] * weights[1]).into()));
            }
        };
        if self.nearest {
            return add(y.round() as usize, x.round() as usize, [1.0, 1.0]);
        }
        for (row, row_weight) in around(y) {
            for (column, column_weight) in around(x) {
                add(row, column, [row_weight, column_weight]);
            }
        }
    }
}

fn grad_boxes<T: Number>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    if c.dims(1).len() != 4 {
        let found = c.dims(1).len();
        return Err(GeometryError::Rank { what: "image", expected: 4, found }.into());
    }
    let crops = Crops::new(c, 2, c.dims(1))?;
    let images = c.input::<T>(1)?.data;
    let y = c.output::<f32>(0, &[crops.indices.len() as i64, 4])?.data;
    let cost = 12.0 * crops.crop_len() as f64 + 1.0;
    c.parallel_items(y.chunks_exact_mut(4), cost, |number, y| {
        let image = &images[crops.indices[number] as usize * crops.image_len()..];
        let mut ends = [0f64; 4];
        crops.each_pixel(number, |pixel, place, grad| {
            let slopes = slopes(image, [crops.image[1], crops.channels], place, grad);
            for axis in 0..2 {
                let shares = shares(pixel[axis], crops.crop[axis], crops.image[axis]);
                ends[axis] += slopes[axis] * shares[0];
                ends[axis + 2] += slopes[axis] * shares[1];
            }
        });
        y.iter_mut().zip(ends).for_each(|(y, end)| *y = end as f32);
        Ok(())
    })
}

/// What moving the place of a pixel down, and to the right, changes, times the gradient.
fn slopes<T: Number>(
    image: &[T],
    [width, channels]: [usize; 2],
    [y, x]: [f32; 2],
    grad: &[f32],
) -> [f64; 2] {
    let pixel = |row: f32, column: f32| {
        &image[(row as usize * width + column as usize) * channels..][..channels]
    };
    let (down, right) = (y - y.floor(), x - x.floor());
    let (above, below) = ([y.floor(), x.floor()], [y.ceil(), x.ceil()]);
    let corners = [
        pixel(above[0], above[1]),
        pixel(above[0], below[1]),
        pixel(below[0], above[1]),
        pixel(below[0], below[1]),
    ];
    let mut slopes = [0f64; 2];
    for (channel, &grad) in grad.iter().enumerate() {
        let [a, b, c, d] = corners.map(|corner| single(corner[channel]));
        let vertical = (1.0 - right) * (c - a) + right * (d - b);
        let horizontal = (1.0 - down) * (b - a) + down * (d - c);
        slopes[0] += f64::from(vertical * grad);
        slopes[1] += f64::from(horizontal * grad);
    }
    slopes
}

/// How far a pixel of a crop moves in the image when the first, or the last, end of the box moves
/// by its size.
fn shares(pixel: usize, crop: usize, image: usize) -> [f64; 2] {
    let end = (image - 1) as f32;
    if crop == 1 {
        return [f64::from(0.5 * end); 2];
    }
    let ratio = end / (crop - 1) as f32;
    let last = pixel as f32 * ratio;
    [f64::from(end - last), f64::from(last)]
}

register_kernel!("CropAndResizeGradImage" on "CPU": GradImage<T> for "T" in [f32, f64, f16],
    host_memory = &["image_size"], numerics = crate::resize::NUMERICS);
register_kernel!("CropAndResizeGradBoxes" on "CPU": fn grad_boxes<T>
    for "T" in [u8, u16, i8, i16, i32, i64, f16, f32, f64],
    numerics = Numerics::relative(1e-30, 1e-5).accumulation(DType::FLOAT));
