//! `SampleDistortedBoundingBox`, `SampleDistortedBoundingBoxV2` and `StatelessSampleDistortedBoundingBox`: boxes of an image
//! that are drawn until one covers enough of an object.
//!
//! The order of the draws and the roundings are TensorFlow's, so that the same seeds give the same boxes.

use super::{stateful::stream_of, stateless::mixed};
use std::marker::PhantomData;
use tenon_philox::{Philox, Stream, Words};
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::Number,
    geometry::GeometryError,
    growth,
    reg::Numerics,
    register_kernel,
};

/// A box of pixels: the first row and column, and those after the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pixels {
    top: i64,
    left: i64,
    bottom: i64,
    right: i64,
}

impl Pixels {
    fn area(self) -> f32 {
        ((self.bottom - self.top) * (self.right - self.left)) as f32
    }

    /// The area of what is in both.
    fn common_area(self, other: Pixels) -> f32 {
        let both = Pixels {
            top: self.top.max(other.top),
            left: self.left.max(other.left),
            bottom: self.bottom.min(other.bottom),
            right: self.right.min(other.right),
        };
        if both.top > both.bottom || both.left > both.right { 0.0 } else { both.area() }
    }

    /// Whether it covers this part of one of the objects at least.
    fn covers(self, least: f32, objects: &[Pixels]) -> bool {
        // Objects of less than a pixel do not count.
        let mut objects = objects.iter().filter(|object| object.area() >= 1.0);
        self.area() >= 1.0
            && objects.any(|&object| self.common_area(object) / object.area() >= least)
    }
}

/// The integer next to a number; of two, the even one.
fn nearest(x: f32) -> i64 {
    x.round_ties_even() as i64
}

struct Sampler {
    aspects: [f32; 2],
    areas: [f32; 2],
    attempts: u64,
    takes_image: bool,
}

/// The two ends of a range in an attribute.
fn range(c: &CreateContext<'_>, name: &str, most: f32) -> Result<[f32; 2], KernelError> {
    let list: Vec<f32> = c.attr(name)?;
    match list[..] {
        [low, high] if [low, high].iter().all(|&end| end > 0.0 && end <= most) => Ok([low, high]),
        _ => Err(KernelError::invalid_argument(format!(
            "{name} must hold 2 numbers above 0 and up to {most}, found {list:?}"
        ))),
    }
}

impl Sampler {
    fn new(c: &CreateContext<'_>) -> Result<Sampler, KernelError> {
        let found: i64 = c.attr("max_attempts")?;
        let attempts = i32::try_from(found).ok().filter(|&attempts| attempts > 0);
        let attempts = attempts.ok_or_else(|| {
            KernelError::invalid_argument(format!(
                "max_attempts must lie in [1, {}], found {found}",
                i32::MAX
            ))
        })?;
        Ok(Sampler {
            aspects: range(c, "aspect_ratio_range", f32::INFINITY)?,
            areas: range(c, "area_range", 1.0)?,
            attempts: attempts.unsigned_abs().into(),
            takes_image: c.attr("use_image_if_no_bounding_boxes")?,
        })
    }

    /// The height and width of a box of an image with this quotient of width and height; none where the image is too
    /// small for it.
    fn size(&self, image: Pixels, aspect: f32, words: &mut Words) -> Option<[i64; 2]> {
        let (rows, columns) = (image.bottom, image.right);
        if rows <= 0 || columns <= 0 || self.areas[0] > self.areas[1] {
            return None;
        }
        let [least, most] = self.areas.map(|part| part * columns as f32 * rows as f32);
        let width_of = |height: i64| nearest(height as f32 * aspect);
        let mut tallest = nearest((most / aspect).sqrt());
        if width_of(tallest) > columns {
            // Just less than a half, so that the width is rounded down.
            let below_half = 0.5 - f64::from(1e-7f32);
            tallest = ((columns as f64 + below_half) / f64::from(aspect)) as i64;
            tallest -= i64::from(width_of(tallest) > columns);
        }
        let tallest = tallest.min(rows);
        let mut height = nearest((least / aspect).sqrt()).min(tallest);
        if height < tallest {
            height += i64::from(words.below((tallest - height + 1) as u32));
        }
        let area = |height: i64| width_of(height).saturating_mul(height) as f32;
        // Roundings may make the area too small or too large.
        height += i64::from(area(height) < least);
        height -= i64::from(area(height) > most);
        let width = width_of(height);
        let fits = (1..=rows).contains(&height) && (1..=columns).contains(&width);
        (fits && area(height) >= least && area(height) <= most).then_some([height, width])
    }

    /// A box that covers enough; the whole image where none was found.
    fn sample(
        &self,
        c: &ComputeContext<'_>,
        (image, objects): (Pixels, &[Pixels]),
        least: f32,
        stream: Philox,
    ) -> Result<Pixels, KernelError> {
        let (mut words, watch) = (Words::new(stream), c.watch());
        for attempt in 0..self.attempts {
            if attempt % 1024 == 0 {
                watch.check()?;
            }
            let [low, high] = self.aspects;
            let aspect = words.next_f32() * (high - low) + low;
            let Some([height, width]) = self.size(image, aspect, &mut words) else { continue };
            let mut first = |all: i64, size: i64| {
                if size < all { words.below((all - size) as u32).into() } else { 0i64 }
            };
            let (top, left) = (first(image.bottom, height), first(image.right, width));
            let found = Pixels { top, left, bottom: top + height, right: left + width };
            if found.covers(least, objects) {
                return Ok(found);
            }
        }
        Ok(image)
    }

    /// The objects in an image.
    fn objects(&self, c: &ComputeContext<'_>, image: Pixels) -> Result<Vec<Pixels>, KernelError> {
        let boxes = c.input::<f32>(1)?;
        if boxes.dims.len() != 3 || boxes.dims[2] != 4 {
            return Err(KernelError::invalid_argument(format!(
                "bounding_boxes must have shape [batch, boxes, 4], found shape {:?}",
                boxes.dims
            )));
        }
        if let Some(found) = boxes.data.iter().find(|end| !(0.0..=1.0).contains(*end)) {
            return Err(KernelError::invalid_argument(format!(
                "bounding_boxes must lie in [0, 1], found {found}"
            )));
        }
        if boxes.data.is_empty() {
            return match self.takes_image {
                true => growth::collected([image]),
                false => Err(KernelError::invalid_argument(
                    "bounding_boxes must hold a box unless use_image_if_no_bounding_boxes is set, found none",
                )),
            };
        }
        let (rows, columns) = (image.bottom as f32, image.right as f32);
        let pixels = |&[top, left, bottom, right]: &[f32; 4]| Pixels {
            top: (top * rows) as i64,
            left: (left * columns) as i64,
            bottom: (bottom * rows) as i64,
            right: (right * columns) as i64,
        };
        growth::collected(boxes.data.as_chunks::<4>().0.iter().map(pixels))
    }

    fn compute<T: Number>(
        &self,
        c: &ComputeContext<'_>,
        least: Option<f32>,
        stream: Philox,
    ) -> Result<(), KernelError> {
        let image = image::<T>(c)?;
        let least = match least {
            Some(least) => least,
            None => least_covered(c)?,
        };
        let objects = self.objects(c, image)?;
        let found = self.sample(c, (image, &objects), least, stream)?;
        let number = |x: i64| T::from_f64(x as f64);
        let begin = [number(found.top), number(found.left), T::ZERO];
        c.output::<T>(0, &[3])?.data.copy_from_slice(&begin);
        // All channels, as the slice op has it; of unsigned types the greatest number.
        let rest = T::ZERO.sub(T::ONE);
        let size = [number(found.bottom - found.top), number(found.right - found.left), rest];
        c.output::<T>(1, &[3])?.data.copy_from_slice(&size);
        let part = |at: i64, all: i64| at as f32 / all as f32;
        let (rows, columns) = (image.bottom, image.right);
        c.output::<f32>(2, &[1, 1, 4])?.data.copy_from_slice(&[
            part(found.top, rows),
            part(found.left, columns),
            part(found.bottom, rows),
            part(found.right, columns),
        ]);
        Ok(())
    }
}

/// The pixels of an image of the size in the first input.
fn image<T: Number>(c: &ComputeContext<'_>) -> Result<Pixels, KernelError> {
    let size = c.input::<T>(0)?;
    let (&[rows, columns, _], 1) = (size.data, size.dims.len()) else {
        return Err(KernelError::invalid_argument(format!(
            "image_size must be a vector of 3, found shape {:?}",
            size.dims
        )));
    };
    let [bottom, right] = [rows, columns].map(|size| size.to_f64() as i64);
    match [bottom, right].into_iter().find(|size| !(0..i64::from(i32::MAX)).contains(size)) {
        None => Ok(Pixels { top: 0, left: 0, bottom, right }),
        Some(axis) => {
            let (low, high) = (0, i32::MAX.into());
            Err(GeometryError::Axis { what: "image_size", low, high, axis }.into())
        }
    }
}

/// The part of an object that must be covered, in an input.
fn least_covered(c: &ComputeContext<'_>) -> Result<f32, KernelError> {
    let found = c.input::<f32>(2)?;
    match (found.data, found.dims) {
        (&[least], []) => check_least(least),
        _ => Err(KernelError::invalid_argument(format!(
            "min_object_covered must be a scalar, found shape {:?}",
            found.dims
        ))),
    }
}

fn check_least(least: f32) -> Result<f32, KernelError> {
    match least >= 0.0 {
        true => Ok(least),
        false => Err(KernelError::invalid_argument(format!(
            "min_object_covered must be at least 0, found {least}"
        ))),
    }
}

/// The ops whose boxes follow one another in a stream.
struct Stateful<T> {
    sampler: Sampler,
    stream: Stream,
    /// The part that must be covered, where it is an attribute.
    least: Option<f32>,
    of: PhantomData<fn(T)>,
}

impl<T: Number> Kernel for Stateful<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let least = match c.op() {
            "SampleDistortedBoundingBox" => Some(check_least(c.attr("min_object_covered")?)?),
            _ => None,
        };
        Ok(Stateful { sampler: Sampler::new(c)?, stream: stream_of(c)?, least, of: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let stream = self.stream.take(self.sampler.attempts);
        self.sampler.compute::<T>(c, self.least, stream)
    }
}

struct Stateless<T>(Sampler, PhantomData<fn(T)>);

impl<T: Number> Kernel for Stateless<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Stateless(Sampler::new(c)?, PhantomData))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        self.0.compute::<T>(c, None, mixed(c, 3)?)
    }
}

macro_rules! samplers {
    ($($op:literal: $kernel:ident, $host:expr;)*) => {$(
        register_kernel!($op on "CPU": $kernel<T> for "T" in [u8, i8, i16, i32, i64],
            host_memory = $host, numerics = Numerics::EXACT);
    )*};
}

samplers! {
    "SampleDistortedBoundingBox": Stateful, &["image_size", "bounding_boxes"];
    "SampleDistortedBoundingBoxV2": Stateful, &["image_size", "bounding_boxes", "min_object_covered"];
    "StatelessSampleDistortedBoundingBox": Stateless,
        &["image_size", "bounding_boxes", "min_object_covered", "seed"];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_are_inside_and_of_the_area_that_is_asked_for() {
        let image = Pixels { top: 0, left: 0, bottom: 40, right: 60 };
        let sampler =
            Sampler { aspects: [0.5, 2.0], areas: [0.1, 0.4], attempts: 1, takes_image: true };
        let mut words = Words::new(Philox::seeded(1, 2));
        for _ in 0..1000 {
            let aspect = 0.5 + words.next_f32() * 1.5;
            let Some([height, width]) = sampler.size(image, aspect, &mut words) else { continue };
            assert!(height <= 40 && width <= 60, "{height} x {width}");
            assert!((240..=960).contains(&(height * width)), "{height} x {width}");
        }
    }

    #[test]
    fn what_is_common_is_no_more_than_either() {
        let a = Pixels { top: 0, left: 0, bottom: 4, right: 4 };
        let b = Pixels { top: 2, left: 3, bottom: 6, right: 9 };
        assert_eq!(a.common_area(b), 2.0);
        assert!(a.covers(0.05, &[b]) && !a.covers(0.5, &[b]));
        let far = Pixels { top: 7, left: 7, bottom: 9, right: 9 };
        assert_eq!(a.common_area(far), 0.0);
    }
}
