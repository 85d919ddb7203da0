//! `DrawBoundingBoxes` and its second version, which is given the colours.

use half::f16;
use tenon_sdk::{
    KernelError, author::ComputeContext, element::Float, geometry::GeometryError, growth,
    reg::Numerics, register_kernel,
};

/// The colours of boxes without colours, again and again.
const COLOURS: [[f32; 4]; 10] = [
    [1.0, 1.0, 0.0, 1.0],
    [0.0, 0.0, 1.0, 1.0],
    [1.0, 0.0, 0.0, 1.0],
    [0.0, 1.0, 0.0, 1.0],
    [0.5, 0.0, 0.5, 1.0],
    [0.5, 0.5, 0.0, 1.0],
    [0.5, 0.0, 0.0, 1.0],
    [0.0, 0.0, 0.5, 1.0],
    [0.0, 1.0, 1.0, 1.0],
    [1.0, 0.0, 1.0, 1.0],
];

/// The colours that the node is given, or its own.
fn colours<T: Float>(c: &ComputeContext<'_>, channels: usize) -> Result<Vec<Vec<T>>, KernelError> {
    let given = if c.input_count() > 2 { Some(c.input::<f32>(2)?) } else { None };
    if let Some(given) = &given {
        let &[_, parts] = given.dims else {
            let found = given.dims.len();
            return Err(GeometryError::Rank { what: "colors", expected: 2, found }.into());
        };
        if parts < channels as i64 && !given.data.is_empty() {
            let (what, least) = ("the second dimension of colors", channels as i64);
            return Err(GeometryError::TooSmall { what, least, found: parts }.into());
        }
        if !given.data.is_empty() {
            let rows = given.data.chunks_exact(parts as usize);
            return growth::try_collected(rows.map(|row| colour(&row[..channels])));
        }
    }
    // Grey boxes are white.
    let white = [1.0];
    let own = COLOURS.iter().map(|own| if channels == 1 { &white[..] } else { &own[..channels] });
    growth::try_collected(own.map(colour))
}

fn colour<T: Float>(parts: &[f32]) -> Result<Vec<T>, KernelError> {
    growth::collected(parts.iter().map(|&part| T::from_f64(part.into())))
}

/// An image, as rows of pixels.
struct Canvas<'a, T> {
    pixels: &'a mut [T],
    height: i64,
    width: i64,
    channels: usize,
}

impl<T: Float> Canvas<'_, T> {
    fn dot(&mut self, row: i64, column: i64, colour: &[T]) {
        let at = (row * self.width + column) as usize * self.channels;
        self.pixels[at..][..self.channels].copy_from_slice(colour);
    }

    /// Draws the sides of a box that are inside the image.
    fn draw(&mut self, corners: &[f32], colour: &[T]) {
        let place = |at: usize, size: i64| (corners[at] * (size - 1) as f32) as i64;
        let (top, bottom) = (place(0, self.height), place(2, self.height));
        let (left, right) = (place(1, self.width), place(3, self.width));
        let is_outside = top >= self.height || bottom < 0 || left >= self.width || right < 0;
        if top > bottom || left > right || is_outside {
            return;
        }
        let rows = top.max(0)..=bottom.min(self.height - 1);
        let columns = left.max(0)..=right.min(self.width - 1);
        for row in [top, bottom].into_iter().filter(|row| rows.contains(row)) {
            columns.clone().for_each(|column| self.dot(row, column, colour));
        }
        for column in [left, right].into_iter().filter(|column| columns.contains(column)) {
            rows.clone().for_each(|row| self.dot(row, column, colour));
        }
    }
}

fn draw<T: Float>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let (images, boxes) = (c.input::<T>(0)?, c.input::<f32>(1)?);
    let &[batch, height, width, channels] = images.dims else {
        let found = images.dims.len();
        return Err(GeometryError::Rank { what: "images", expected: 4, found }.into());
    };
    let &[of_images, count, sides] = boxes.dims else {
        let found = boxes.dims.len();
        return Err(GeometryError::Rank { what: "boxes", expected: 3, found }.into());
    };
    for (what, expected, found) in
        [("the batch of boxes", batch, of_images), ("the last dimension of boxes", 4, sides)]
    {
        if expected != found {
            return Err(GeometryError::SizeMismatch { what, expected, found }.into());
        }
    }
    if ![1, 3, 4].contains(&channels) {
        return Err(KernelError::invalid_argument(format!(
            "images: expected 1, 3 or 4 channels, found {channels}"
        )));
    }
    let channels = channels as usize;
    let colours = colours::<T>(c, channels)?;
    let y = c.output::<T>(0, images.dims)?.data;
    y.copy_from_slice(images.data);
    let image = (height * width) as usize * channels;
    if image == 0 || colours.is_empty() {
        return Ok(());
    }
    let of_image = boxes.data.chunks_exact((count * 4).max(1) as usize);
    let images = y.chunks_exact_mut(image).zip(of_image);
    c.parallel_items(images, count as f64 * (height + width) as f64, |_, (pixels, boxes)| {
        let mut canvas = Canvas { pixels, height, width, channels };
        for (corners, colour) in boxes.chunks_exact(4).zip(colours.iter().cycle()) {
            canvas.draw(corners, colour);
        }
        Ok(())
    })
}

register_kernel!("DrawBoundingBoxes" on "CPU": fn draw<T> for "T" in [f16, f32],
    numerics = Numerics::EXACT);
register_kernel!("DrawBoundingBoxesV2" on "CPU": fn draw<T> for "T" in [f16, f32],
    numerics = Numerics::EXACT);
