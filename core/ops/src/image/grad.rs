//! Gradients of the ops that resize images and cut boxes out of them.

use super::{ALIGN, HALF, resize};
use crate::shape::{input_of_rank, same_size};
use tenon_author::{Dim, ShapeContext, ShapeResult, register_op};
use tenon_framework::{KernelError, op::GradientRule};
use tenon_geometry::{GeometryError, PixelGrid};

register_op!(
    "ResizeBilinearGrad",
    inputs = &["grads: float", "original_image: T"],
    outputs = &["output: T"],
    attrs = &["T: {float, bfloat16, half, double}", ALIGN, HALF],
    shape = like_the_image,
    gradient = GradientRule::None,
    summary = "The gradient of ResizeBilinear.",
);

register_op!(
    "ResizeNearestNeighborGrad",
    inputs = &["grads: T", "size: int32"],
    outputs = &["output: T"],
    attrs = &["T: {uint8, int8, int32, half, float, double, bfloat16}", ALIGN, HALF],
    shape = resize,
    summary = "The gradient of ResizeNearestNeighbor.",
);

register_op!(
    "ResizeBicubicGrad",
    inputs = &["grads: float", "original_image: T"],
    outputs = &["output: T"],
    attrs = &["T: {float, double}", ALIGN, HALF],
    cases = &[
        "larger; half_pixel_centers in {false, true}; grads: [n, 7, 5, c]; original_image: [n, 3, 4, c]",
        "corners; align_corners = true; grads: [n, 2, 3, c]; original_image: [n, 3, 4, c]",
    ],
    shape = like_the_image,
    summary = "The gradient of ResizeBicubic.",
);

register_op!(
    "CropAndResizeGradImage",
    inputs = &["grads: float", "boxes: float", "box_ind: int32", "image_size: int32"],
    outputs = &["output: T"],
    attrs = &["T: {float, half, double}", "method: {'bilinear', 'nearest'} = 'bilinear'",],
    cases = &[
        "crops; method in {'bilinear', 'nearest'}; b in 1..4; grads: [n, 3, 2, c]; boxes: [n, 4] uniform(0, 1); \
         box_ind: [n] integers(0..b); image_size: [4] values(b, 5, 4, c)",
    ],
    shape = crop_by_image,
    summary = "The gradient of CropAndResize by its images.",
);

register_op!(
    "CropAndResizeGradBoxes",
    inputs = &["grads: float", "image: T", "boxes: float", "box_ind: int32"],
    outputs = &["output: float"],
    attrs = &[
        "T: {uint8, uint16, int8, int16, int32, int64, half, float, double}",
        "method: {'bilinear'} = 'bilinear'",
    ],
    cases = &[
        "crops; b in 1..4; grads: [n, 3, 2, c]; image: [b, 5, 4, c]; boxes: [n, 4] uniform(0, 1); \
         box_ind: [n] integers(0..b)",
    ],
    shape = crop_by_boxes,
    summary = "The gradient of CropAndResize by the ends of its boxes.",
);

fn like_the_image(c: &ShapeContext<'_>) -> ShapeResult {
    PixelGrid::new(c.attr("align_corners")?, c.attr("half_pixel_centers")?)?;
    input_of_rank(c, 0, "grads", 4)?;
    c.set_output(0, input_of_rank(c, 1, "original_image", 4)?)
}

/// Checks that there is an index and a gradient for each box; the number of boxes.
fn boxes(c: &ShapeContext<'_>, boxes: usize) -> Result<Dim, KernelError> {
    let grads = input_of_rank(c, 0, "grads", 4)?;
    let indices = input_of_rank(c, boxes + 1, "box_ind", 1)?;
    let boxes = input_of_rank(c, boxes, "boxes", 2)?;
    same_size(c, "the second dimension of boxes", c.make_dim(Some(4)), c.dim(boxes, 1))?;
    let count = same_size(c, "the size of box_ind", c.dim(boxes, 0), c.dim(indices, 0))?;
    same_size(c, "the number of grads", count, c.dim(grads, 0))
}

fn crop_by_image(c: &ShapeContext<'_>) -> ShapeResult {
    boxes(c, 1)?;
    let size = input_of_rank(c, 3, "image_size", 1)?;
    if let Some(found) = c.value(c.dim(size, 0)).filter(|&found| found != 4) {
        let (what, found) = ("image_size", found as usize);
        return Err(GeometryError::Length { what, expected: 4, found }.into());
    }
    c.set_output(0, c.with_rank(c.constant_as_shape(3)?, 4)?)
}

fn crop_by_boxes(c: &ShapeContext<'_>) -> ShapeResult {
    let count = boxes(c, 2)?;
    let image = input_of_rank(c, 1, "image", 4)?;
    same_size(c, "the channels of grads", c.dim(image, 3), c.dim(c.input(0), 3))?;
    c.set_output(0, c.make_shape(&[count, c.make_dim(Some(4))]))
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn gradients_are_shaped_as_what_they_belong_to() {
        check("ResizeBicubicGrad", &[], &[(&["[n,9,9,c]", "[n,3,4,c]"], "[n,3,4,c]")]);
        check(
            "CropAndResizeGradImage",
            &[],
            &[
                (&["[n,2,3,c]", "[n,4]", "[n]", "= [2,8,9,3]"], "[2,8,9,3]"),
                (&["?", "?", "?", "[4]"], "[?,?,?,?]"),
                (&["?", "?", "?", "[3]"], "! image_size must hold 4 values, got 3"),
                (&["[5,2,3,1]", "[6,4]", "[6]", "[4]"], "! the number of grads must be 6, got 5"),
                (&["?", "[5,4]", "[6]", "[4]"], "! the size of box_ind must be 5, got 6"),
            ],
        );
        check(
            "CropAndResizeGradBoxes",
            &[],
            &[
                (&["[n,2,3,c]", "[b,8,9,c]", "[n,4]", "[n]"], "[n,4]"),
                (&["?", "?", "[5,3]", "?"], "! the second dimension of boxes must be 4, got 3"),
                (
                    &["[5,2,3,1]", "[2,8,9,3]", "[5,4]", "[5]"],
                    "! the channels of grads must be 3, got 1",
                ),
            ],
        );
    }
}
