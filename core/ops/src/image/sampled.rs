//! Images that are scaled and moved, windows over them, and boxes that are drawn at random.

use super::sizes;
use crate::shape::{input_of_rank, same_size};
use tenon_author::{ShapeContext, ShapeResult, register_op};
use tenon_framework::op::GradientRule;
use tenon_geometry::GeometryError;

const KERNEL: &str = "kernel_type: string = 'lanczos3'";
const ANTIALIAS: &str = "antialias: bool = true";

register_op!(
    "ScaleAndTranslate",
    inputs = &["images: T", "size: int32", "scale: float", "translation: float"],
    outputs = &["resized_images: float"],
    attrs = &[
        "T: {int8, uint8, int16, uint16, int32, int64, bfloat16, half, float, double}",
        KERNEL,
        ANTIALIAS,
    ],
    cases = &[
        "smaller; kernel_type in {'lanczos1', 'lanczos3', 'lanczos5', 'gaussian', 'box', 'triangle', 'keyscubic', 'mitchellcubic'}; \
         antialias in {false, true}; images: [n, 5, 6, c]; size: [2] values(3, 2); scale: [2] values(0.6, 0.5); translation: [2] values(0.25, -0.5)",
        "larger; images: [n, 3, 2, c]; size: [2] values(6, 7); scale: [2] values(2, 3.5); translation: [2] values(0, 1)",
    ],
    shape = scaled,
    summary = "Images whose pixels are weighed by a kernel around the places from which scaling and moving takes them.",
);

register_op!(
    "ScaleAndTranslateGrad",
    inputs = &["grads: T", "original_image: T", "scale: float", "translation: float"],
    outputs = &["output: T"],
    attrs = &["T: {float}", KERNEL, ANTIALIAS],
    cases = &[
        "smaller; antialias in {false, true}; grads: [n, 3, 2, c]; original_image: [n, 5, 6, c]; scale: [2] values(0.6, 0.5); translation: [2] values(0.25, -0.5)",
    ],
    shape = scaled_grad,
    summary = "The gradient of `ScaleAndTranslate` by the images.",
);

const RANGES: [&str; 4] = [
    "aspect_ratio_range: list(float) = [0.75, 1.33]",
    "area_range: list(float) = [0.05, 1.0]",
    "max_attempts: int = 100",
    "use_image_if_no_bounding_boxes: bool = false",
];
const T: &str = "T: {uint8, int8, int16, int32, int64}";
const SEED: &str = "seed: int = 0";
const SEED2: &str = "seed2: int = 0";
const BOX: &[&str] = &["begin: T", "size: T", "bboxes: float"];

register_op!(
    "SampleDistortedBoundingBox",
    inputs = &["image_size: T", "bounding_boxes: float"],
    outputs = BOX,
    attrs = &[
        T,
        SEED,
        SEED2,
        "min_object_covered: float = 0.1",
        RANGES[0],
        RANGES[1],
        RANGES[2],
        RANGES[3],
    ],
    stateful = true,
    cases = &[
        "boxes; seed = 7; image_size: [3] values(40, 60, 3); bounding_boxes: [1, n, 4] values(0.25); use_image_if_no_bounding_boxes = true"
    ],
    shape = sampled,
    gradient = GradientRule::None,
    summary = "A box of an image, drawn at random, that covers a part of one of the given boxes: its begin, its size, and its corners as fractions of the image.",
);

register_op!(
    "SampleDistortedBoundingBoxV2",
    inputs = &["image_size: T", "bounding_boxes: float", "min_object_covered: float"],
    outputs = BOX,
    attrs = &[T, SEED, SEED2, RANGES[0], RANGES[1], RANGES[2], RANGES[3]],
    stateful = true,
    cases = &[
        "boxes; seed = 7; image_size: [3] values(40, 60, 3); bounding_boxes: [1, n, 4] values(0.25); min_object_covered: [] values(0.1); use_image_if_no_bounding_boxes = true"
    ],
    shape = sampled,
    gradient = GradientRule::None,
    summary = "`SampleDistortedBoundingBox` with the part that must be covered as an input.",
);

register_op!(
    "StatelessSampleDistortedBoundingBox",
    inputs =
        &["image_size: T", "bounding_boxes: float", "min_object_covered: float", "seed: Tseed"],
    outputs = BOX,
    attrs = &[T, "Tseed: {int32, int64}", RANGES[0], RANGES[1], RANGES[2], RANGES[3]],
    cases = &[
        "boxes; image_size: [3] values(40, 60, 3); bounding_boxes: [1, n, 4] values(0.25); min_object_covered: [] values(0.1); seed: [2]; use_image_if_no_bounding_boxes = true"
    ],
    shape = sampled,
    summary = "`SampleDistortedBoundingBox` of a box that follows from the seed.",
);

macro_rules! glimpses {
    ($($op:literal, $summary:literal $(, $rule:expr)?;)*) => {$(
        register_op!(
            $op,
            inputs = &["input: float", "size: int32", "offsets: float"],
            outputs = &["glimpse: float"],
            attrs = &[
                "centered: bool = true",
                "normalized: bool = true",
                "uniform_noise: bool = true",
                "noise: string = 'uniform'",
            ],
            cases = &[
                "zeros; centered in {false, true}; normalized in {false, true}; uniform_noise = false; noise = 'zero'; \
                 input: [n, 5, 6, c]; size: [2] values(3, 4); offsets: [n, 2] uniform(-1, 1)"
            ],
            shape = glimpse,
            $(gradient = $rule,)?
            summary = $summary,
        );
    )*};
}

glimpses! {
    "ExtractGlimpse",
        "A window of each image around an offset, with noise where it is outside of the image.",
        GradientRule::None;
    "ExtractGlimpseV2",
        "`ExtractGlimpse` whose offsets are those of the middle of a window only if they are fractions from the middle of the image.";
}

fn glimpse(c: &ShapeContext<'_>) -> ShapeResult {
    let input = input_of_rank(c, 0, "input", 4)?;
    let size = input_of_rank(c, 1, "size", 1)?;
    same_size(c, "the size of size", c.make_dim(Some(2)), c.dim(size, 0))?;
    let offsets = input_of_rank(c, 2, "offsets", 2)?;
    let batch = same_size(c, "the rows of offsets", c.dim(input, 0), c.dim(offsets, 0))?;
    same_size(c, "the columns of offsets", c.make_dim(Some(2)), c.dim(offsets, 1))?;
    let sizes = c.constant_integers(1);
    if let Some(&found) = sizes.iter().flatten().find(|&&size| size < 0) {
        return Err(GeometryError::TooSmall { what: "size", least: 0, found }.into());
    }
    let known = |at: usize| c.make_dim(sizes.as_ref().and_then(|sizes| sizes.get(at).copied()));
    c.set_output(0, c.make_shape(&[batch, known(0), known(1), c.dim(input, 3)]))
}

fn check_pairs(c: &ShapeContext<'_>) -> ShapeResult {
    for (at, what, size) in
        [(2, "scale", "the size of scale"), (3, "translation", "the size of translation")]
    {
        let pair = input_of_rank(c, at, what, 1)?;
        same_size(c, size, c.make_dim(Some(2)), c.dim(pair, 0))?;
    }
    Ok(())
}

fn scaled(c: &ShapeContext<'_>) -> ShapeResult {
    let images = input_of_rank(c, 0, "images", 4)?;
    let size = sizes(c, 1, "size")?;
    check_pairs(c)?;
    let known = |at: usize| c.make_dim(Some(size[at]).filter(|&size| size > 0));
    c.set_output(0, c.make_shape(&[c.dim(images, 0), known(0), known(1), c.dim(images, 3)]))
}

fn scaled_grad(c: &ShapeContext<'_>) -> ShapeResult {
    let grads = input_of_rank(c, 0, "grads", 4)?;
    let image = input_of_rank(c, 1, "original_image", 4)?;
    check_pairs(c)?;
    same_size(c, "the batch of grads", c.dim(image, 0), c.dim(grads, 0))?;
    same_size(c, "the channels of grads", c.dim(image, 3), c.dim(grads, 3))?;
    c.set_output(0, image)
}

fn sampled(c: &ShapeContext<'_>) -> ShapeResult {
    let size = input_of_rank(c, 0, "image_size", 1)?;
    same_size(c, "the size of image_size", c.make_dim(Some(3)), c.dim(size, 0))?;
    let boxes = input_of_rank(c, 1, "bounding_boxes", 3)?;
    same_size(c, "the last dimension of bounding_boxes", c.make_dim(Some(4)), c.dim(boxes, 2))?;
    if c.input_count() > 2 {
        input_of_rank(c, 2, "min_object_covered", 0)?;
    }
    if c.input_count() > 3 {
        let seed = input_of_rank(c, 3, "seed", 1)?;
        same_size(c, "the size of seed", c.make_dim(Some(2)), c.dim(seed, 0))?;
    }
    c.set_output(0, c.shape_of(&[3]))?;
    c.set_output(1, c.shape_of(&[3]))?;
    c.set_output(2, c.shape_of(&[1, 1, 4]))
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn sizes_are_given() {
        check(
            "ScaleAndTranslate",
            &[],
            &[
                (&["[n,5,6,c]", "= [3,2]", "[2]", "[2]"], "[n,3,2,c]"),
                (&["?", "[2]", "[2]", "[3]"], "! the size of translation must be 2, got 3"),
            ],
        );
        let grads = ["[n,3,2,c]", "[n,5,6,c]", "[2]", "[2]"];
        check("ScaleAndTranslateGrad", &[], &[(&grads, "[n,5,6,c]")]);
    }

    #[test]
    fn glimpses_have_their_size() {
        let cases: [(&[&str], &str); 2] = [
            (&["[n,5,6,c]", "= [3,4]", "[n,2]"], "[n,3,4,c]"),
            (&["[2,5,6,c]", "[2]", "[3,2]"], "! the rows of offsets must be 2, got 3"),
        ];
        check("ExtractGlimpse", &[], &cases);
    }

    #[test]
    fn boxes_have_corners() {
        let one = "[3]; [3]; [1,1,4]";
        let boxes: [(&[&str], &str); 2] = [
            (&["[3]", "[1,n,4]"], one),
            (&["[3]", "[1,n,3]"], "! the last dimension of bounding_boxes must be 4, got 3"),
        ];
        check("SampleDistortedBoundingBox", &[], &boxes);
        let stateless = ["[3]", "?", "[]", "[2]"];
        check("StatelessSampleDistortedBoundingBox", &[], &[(&stateless, one)]);
    }
}
