//! `ImageProjectiveTransformV2` and V3: images of which each pixel is read from a projected place.

use crate::resize::{NUMERICS, single};
use half::{bf16, f16};
use std::marker::PhantomData;
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::Number,
    geometry::{GeometryError, byte_size},
    register_kernel,
};

/// What a place outside of the image is.
#[derive(Clone, Copy)]
enum Outside {
    Constant,
    Reflected,
    Wrapped,
    Nearest,
}

struct Project<T> {
    is_smooth: bool,
    outside: Outside,
    of: PhantomData<fn() -> T>,
}

impl Outside {
    /// The place inside of `count` pixels that stands for this one.
    fn place(self, place: f32, count: usize) -> f32 {
        let last = count as f32 - 1.0;
        if matches!(self, Outside::Constant) {
            return place;
        }
        let inside = match self {
            _ if count <= 1 => 0.0,
            Outside::Reflected => reflected(place, count as f32),
            Outside::Wrapped => wrapped(place, count as f32),
            _ => place,
        };
        // NaN is the first pixel.
        inside.max(0.0).min(last)
    }
}

/// The image, mirrored at its edges, again and again.
fn reflected(place: f32, count: f32) -> f32 {
    let double = 2.0 * count;
    if place < 0.0 {
        let place = if place < double { double * (-place / double).trunc() + place } else { place };
        return if place < -count { place + double } else { -place - 1.0 };
    }
    if place <= count - 1.0 {
        return place;
    }
    let place = place - double * (place / double).trunc();
    if place >= count { double - place - 1.0 } else { place }
}

/// The image again and again.
fn wrapped(place: f32, count: f32) -> f32 {
    let last = count - 1.0;
    if place < 0.0 {
        return place + count * ((-place / last).trunc() + 1.0);
    }
    if place > last { place - count * (place / last).trunc() } else { place }
}

/// An image that is read at places.
struct Image<'a, T> {
    pixels: &'a [T],
    size: [usize; 2],
    channels: usize,
    fill: T,
}

impl<T: Number> Image<'_, T> {
    /// A level; the filling outside of the image.
    fn level(&self, row: f32, column: f32, channel: usize) -> T {
        let is_inside = |at: f32, count: usize| at >= 0.0 && at < count as f32;
        if !is_inside(row, self.size[0]) || !is_inside(column, self.size[1]) {
            return self.fill;
        }
        let at = row as usize * self.size[1] + column as usize;
        self.pixels[at * self.channels + channel]
    }

    /// The level between four pixels.
    fn between(&self, row: f32, column: f32, channel: usize) -> T {
        let (top, left) = (row.floor(), column.floor());
        let (bottom, right) = (top + 1.0, left + 1.0);
        let mixed = |row: f32| {
            (right - column) * single(self.level(row, left, channel))
                + (column - left) * single(self.level(row, right, channel))
        };
        T::from_f64(((bottom - row) * mixed(top) + (row - top) * mixed(bottom)).into())
    }
}

/// The shape of the images, and the size of the results.
fn sizes(c: &ComputeContext<'_>) -> Result<([i64; 4], [i64; 2]), KernelError> {
    let &[batch, height, width, channels] = c.dims(0) else {
        let found = c.dims(0).len();
        return Err(GeometryError::Rank { what: "images", expected: 4, found }.into());
    };
    let &[transforms, 8] = c.dims(1) else {
        return Err(KernelError::invalid_argument(format!(
            "transforms: expected shape [{batch}, 8] or [1, 8], found {:?}",
            c.dims(1)
        )));
    };
    if transforms != 1 && transforms != batch {
        let what = "the number of transforms, unless it is 1";
        return Err(GeometryError::SizeMismatch { what, expected: batch, found: transforms }.into());
    }
    let &[rows, columns] = &c.integer_list(2, "output_shape")?[..] else {
        let (what, found) = ("output_shape", c.dims(2).iter().product::<i64>() as usize);
        return Err(GeometryError::Length { what, expected: 2, found }.into());
    };
    for found in [rows, columns] {
        if found < 1 {
            return Err(GeometryError::TooSmall { what: "output_shape", least: 1, found }.into());
        }
    }
    Ok(([batch, height, width, channels], [rows, columns]))
}

impl<T: Number> Kernel for Project<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let wrong = |name: &str, expected: &str, found: &str| {
            Err(KernelError::invalid_argument(format!(
                "{name}: expected {expected}, found '{found}'"
            )))
        };
        let is_smooth = match c.attr::<&str>("interpolation")? {
            "NEAREST" => false,
            "BILINEAR" => true,
            found => return wrong("interpolation", "'NEAREST' or 'BILINEAR'", found),
        };
        let outside = match c.attr::<&str>("fill_mode")? {
            "CONSTANT" => Outside::Constant,
            "REFLECT" => Outside::Reflected,
            "WRAP" => Outside::Wrapped,
            "NEAREST" => Outside::Nearest,
            found => {
                let expected = "'CONSTANT', 'REFLECT', 'WRAP' or 'NEAREST'";
                return wrong("fill_mode", expected, found);
            }
        };
        Ok(Project { is_smooth, outside, of: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let ([batch, height, width, channels], [rows, columns]) = sizes(c)?;
        let fill = match c.input_count() > 3 {
            true if !c.dims(3).is_empty() => {
                let found = c.dims(3).len();
                return Err(GeometryError::Rank { what: "fill_value", expected: 0, found }.into());
            }
            true => T::from_f64(c.input::<f32>(3)?.data[0].into()),
            false => T::ZERO,
        };
        let (x, transforms) = (c.input::<T>(0)?.data, c.input::<f32>(1)?.data);
        let dims = [batch, rows, columns, channels];
        byte_size(&dims, 8)?;
        let y = c.output::<T>(0, &dims)?.data;
        if y.is_empty() {
            return Ok(());
        }
        let size = [height as usize, width as usize];
        let (rows, channels) = (rows as usize, channels as usize);
        let (image, row) = (size[0] * size[1] * channels, columns as usize * channels);
        c.parallel_items(y.chunks_exact_mut(row), 10.0 * row as f64, |number, line| {
            let (number, at) = (number / rows, number % rows);
            let from = if transforms.len() > 8 { number * 8 } else { 0 };
            let pixels = &x[number * image..][..image];
            let image = Image { pixels, size, channels, fill };
            self.row(&image, &transforms[from..][..8], at as f32, line);
            Ok(())
        })
    }
}

impl<T: Number> Project<T> {
    fn row(&self, image: &Image<'_, T>, by: &[f32], row: f32, line: &mut [T]) {
        for (column, pixel) in line.chunks_exact_mut(image.channels).enumerate() {
            let column = column as f32;
            let depth = by[6] * column + by[7] * row + 1.0;
            if depth == 0.0 {
                // The place is infinitely far away.
                pixel.fill(image.fill);
                continue;
            }
            let x = (by[0] * column + by[1] * row + by[2]) / depth;
            let y = (by[3] * column + by[4] * row + by[5]) / depth;
            let x = self.outside.place(x, image.size[1]);
            let y = self.outside.place(y, image.size[0]);
            for (channel, level) in pixel.iter_mut().enumerate() {
                *level = match self.is_smooth {
                    true => image.between(y, x, channel),
                    false => image.level(y.round(), x.round(), channel),
                };
            }
        }
    }
}

register_kernel!("ImageProjectiveTransformV2" on "CPU":
    Project<T> for "dtype" in [u8, i32, i64, f16, bf16, f32, f64],
    host_memory = &["output_shape"], numerics = NUMERICS);
register_kernel!("ImageProjectiveTransformV3" on "CPU":
    Project<T> for "dtype" in [u8, i32, i64, f16, bf16, f32, f64],
    host_memory = &["output_shape", "fill_value"], numerics = NUMERICS);
