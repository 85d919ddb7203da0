//! Images: sizes, colours, boxes, and their encoded forms.

mod boxes;
mod grad;
mod jpeg;
mod sampled;

use crate::shape::{
    dims_of, input_of_rank, input_of_rank_at_least, same_size, scalar_output, unchanged,
    with_identity,
};
use tenon_author::{ShapeContext, ShapeResult, register_op};
use tenon_framework::{KernelError, op::GradientRule};
use tenon_geometry::{GeometryError, PixelGrid, check_colour, resized_dims};

const ANY_NUMBER: &str =
    "T: {int8, uint8, int16, uint16, int32, int64, half, float, double, bfloat16}";
const ALIGN: &str = "align_corners: bool = false";
const HALF: &str = "half_pixel_centers: bool = false";

register_op!(
    "ResizeBilinear",
    inputs = &["images: T", "size: int32"],
    outputs = &["resized_images: float"],
    attrs = &[
        "T: {int8, uint8, int16, uint16, int32, int64, bfloat16, half, float, double, bfloat16}",
        ALIGN,
        HALF,
    ],
    shape = resize,
    summary = "Images of another size, by bilinear interpolation.",
    bench = &["photo; images: [1, 480, 640, 3]; size: [2] values(224, 224)",],
);

register_op!(
    "ResizeNearestNeighbor",
    inputs = &["images: T", "size: int32"],
    outputs = &["resized_images: T"],
    attrs = &[ANY_NUMBER, ALIGN, HALF],
    shape = resize,
    summary = "Images of another size, by nearest neighbours.",
);

register_op!(
    "ResizeBicubic",
    inputs = &["images: T", "size: int32"],
    outputs = &["resized_images: float"],
    attrs = &[ANY_NUMBER, ALIGN, HALF],
    shape = resize,
    summary =
        "Images of another size, whose pixels are weighed from the sixteen around them by a cubic.",
);

register_op!(
    "CropAndResize",
    inputs = &["image: T", "boxes: float", "box_ind: int32", "crop_size: int32"],
    outputs = &["crops: float"],
    attrs = &[
        "T: {uint8, uint16, int8, int16, int32, int64, half, float, double}",
        "method: {'bilinear', 'nearest'} = 'bilinear'",
        "extrapolation_value: float = 0.0",
    ],
    cases = &[
        "crops; b in 1..4; image: [b, 5, 4, c]; boxes: [n, 4] uniform(0, 1); box_ind: [n] integers(0..b); crop_size: [2] values(3, 2)",
    ],
    shape = crop,
    summary = "Boxes of images, given as fractions of their size, resized to one size.",
);

const FLOATS: &str = "T: {half, bfloat16, float, double} = DT_FLOAT";

register_op!(
    "RGBToHSV",
    inputs = &["images: T"],
    outputs = &["output: T"],
    attrs = &[FLOATS],
    shape = colours,
    summary = "Hue, saturation and value of red, green and blue, all in [0, 1].",
);

register_op!(
    "HSVToRGB",
    inputs = &["images: T"],
    outputs = &["output: T"],
    attrs = &[FLOATS],
    shape = colours,
    gradient = GradientRule::None,
    summary = "Red, green and blue of hue, saturation and value, all in [0, 1].",
);

register_op!(
    "AdjustContrastv2",
    inputs = &["images: T", "contrast_factor: float"],
    outputs = &["output: T"],
    attrs = &["T: {half, float} = DT_FLOAT"],
    shape = contrast,
    summary =
        "Images whose pixels' distances from the mean of their channel are multiplied by a factor.",
);

register_op!(
    "DecodePng",
    inputs = &["contents: string"],
    outputs = &["image: dtype"],
    attrs = &["channels: int = 0", "dtype: {uint8, uint16} = DT_UINT8"],
    shape = decoded,
    summary = "The pixels of an encoded image.",
);

register_op!(
    "DecodeJpeg",
    inputs = &["contents: string"],
    outputs = &["image: uint8"],
    attrs = &[
        "channels: int = 0",
        "ratio: int = 1",
        "fancy_upscaling: bool = true",
        "try_recover_truncated: bool = false",
        "acceptable_fraction: float = 1.0",
        "dct_method: string = ''",
    ],
    shape = decoded,
    summary = "The pixels of an encoded image, or their means over squares of some pixels.",
);

register_op!(
    "EncodePng",
    inputs = &["image: T"],
    outputs = &["contents: string"],
    attrs = &["compression: int = -1", "T: {uint8, uint16} = DT_UINT8"],
    shape = encoded_many,
    summary = "Images as PNG files.",
);

register_op!(
    "EncodeJpeg",
    inputs = &["image: uint8"],
    outputs = &["contents: string"],
    attrs = &[
        "format: {'', 'grayscale', 'rgb'} = ''",
        "quality: int = 95",
        "progressive: bool = false",
        "optimize_size: bool = false",
        "chroma_downsampling: bool = true",
        "density_unit: {'in', 'cm'} = 'in'",
        "x_density: int = 300",
        "y_density: int = 300",
        "xmp_metadata: string = ''",
    ],
    shape = encoded,
    summary = "An image as a JPEG file.",
);

register_op!(
    "ResizeArea",
    inputs = &["images: T", "size: int32"],
    outputs = &["resized_images: float"],
    attrs = &[
        "T: {int8, uint8, int16, uint16, int32, int64, half, float, double, bfloat16}",
        "align_corners: bool = false"
    ],
    shape = area,
    summary = "Images of another size, whose pixels are the means of the parts that they cover.",
);

register_op!(
    "AdjustHue",
    inputs = &["images: T", "delta: float"],
    outputs = &["output: T"],
    attrs = &["T: {half, float} = DT_FLOAT"],
    cases = &["pixels; images: [n, m, 3] uniform(0, 1); delta: [] values(0.2)"],
    shape = adjusted,
    summary = "Images whose hues are turned by a part of their circle.",
);

register_op!(
    "AdjustSaturation",
    inputs = &["images: T", "scale: float"],
    outputs = &["output: T"],
    attrs = &["T: {half, float} = DT_FLOAT"],
    cases = &["pixels; images: [n, m, 3] uniform(0, 1); scale: [] values(0.7)"],
    shape = adjusted,
    summary = "Images whose saturation is multiplied.",
);

register_op!(
    "ImageProjectiveTransformV2",
    inputs = &["images: dtype", "transforms: float", "output_shape: int32"],
    outputs = &["transformed_images: dtype"],
    attrs = &[
        "dtype: {uint8, int32, int64, half, bfloat16, float, double}",
        "interpolation: string",
        "fill_mode: string = 'CONSTANT'"
    ],
    cases = &[
        "same; interpolation in {'NEAREST', 'BILINEAR'}; n in 1..9; m in 1..9; images: [b, n, m, c]; transforms: [1, 8] values(1, 0, 0, 0, 1, 0, 0, 0); output_shape: [2] values(n, m)",
        "turned; interpolation in {'NEAREST', 'BILINEAR'}; fill_mode in {'CONSTANT', 'REFLECT', 'WRAP', 'NEAREST'}; images: [2, 4, 5, 3] uniform(0, 9); transforms: [1, 8] values(0.8, -0.6, 1, 0.6, 0.8, -1, 0, 0); output_shape: [2] values(6, 7)",
    ],
    shape = projected,
    summary = "Images whose pixels are read from projected places; zero outside.",
);

register_op!(
    "ImageProjectiveTransformV3",
    inputs = &["images: dtype", "transforms: float", "output_shape: int32", "fill_value: float"],
    outputs = &["transformed_images: dtype"],
    attrs = &[
        "dtype: {uint8, int32, int64, half, bfloat16, float, double}",
        "interpolation: string",
        "fill_mode: string = 'CONSTANT'"
    ],
    cases = &[
        "same; interpolation in {'NEAREST', 'BILINEAR'}; n in 1..9; m in 1..9; fill_value: [] values(0.5); images: [b, n, m, c]; transforms: [1, 8] values(1, 0, 0, 0, 1, 0, 0, 0); output_shape: [2] values(n, m)",
        "turned; interpolation in {'NEAREST', 'BILINEAR'}; fill_mode in {'CONSTANT', 'REFLECT', 'WRAP', 'NEAREST'}; fill_value: [] values(0.5); images: [2, 4, 5, 3] uniform(0, 9); transforms: [1, 8] values(0.8, -0.6, 1, 0.6, 0.8, -1, 0, 0); output_shape: [2] values(6, 7)",
    ],
    shape = projected,
    summary =
        "Images whose pixels are read from projected places, with a value for what is outside.",
);

register_op!(
    "DecodeBmp",
    inputs = &["contents: string"],
    outputs = &["image: uint8"],
    attrs = &["channels: int = 0"],
    shape = decoded,
    summary = "The pixels of a BMP file.",
);

register_op!(
    "DecodeGif",
    inputs = &["contents: string"],
    outputs = &["image: uint8"],
    shape = frames,
    summary = "The frames of a GIF file.",
);

register_op!(
    "DecodeImage",
    inputs = &["contents: string"],
    outputs = &["image: dtype"],
    attrs = &[
        "channels: int = 0",
        "dtype: {uint8, uint16, float} = DT_UINT8",
        "expand_animations: bool = true"
    ],
    shape = any_decoded,
    summary = "The pixels of an encoded image of any known format, or its frames.",
);

/// The two sizes in a constant input; -1 if they are not known. A negative size is an error.
fn sizes(c: &ShapeContext<'_>, input: usize, what: &'static str) -> Result<Vec<i64>, KernelError> {
    let shape = input_of_rank(c, input, what, 1)?;
    if let Some(found) = c.value(c.dim(shape, 0)).filter(|&found| found != 2) {
        let found = found as usize;
        return Err(GeometryError::Length { what, expected: 2, found }.into());
    }
    let Some(sizes) = c.constant_integers(input) else { return Ok(vec![-1, -1]) };
    match sizes.iter().find(|&&size| size < 1) {
        Some(&found) => Err(GeometryError::TooSmall { what, least: 1, found }.into()),
        None => Ok(sizes),
    }
}

fn resize(c: &ShapeContext<'_>) -> ShapeResult {
    resized(c, PixelGrid::new(c.attr("align_corners")?, c.attr("half_pixel_centers")?)?)
}

/// Images of the size in a constant input. The shape does not depend on the grid, which is checked when it is made.
fn resized(c: &ShapeContext<'_>, _: PixelGrid) -> ShapeResult {
    let images = input_of_rank(c, 0, "images", 4)?;
    let size = sizes(c, 1, "size")?;
    let dims = resized_dims(&c.dims(images).unwrap_or_else(|| vec![-1; 4]), &size)?;
    let kept = |at| matches!(at, 0 | 3).then(|| c.dim(images, at));
    c.set_output(0, with_identity(c, &dims, kept))
}

fn crop(c: &ShapeContext<'_>) -> ShapeResult {
    let image = input_of_rank(c, 0, "image", 4)?;
    let (boxes, indices) = (input_of_rank(c, 1, "boxes", 2)?, input_of_rank(c, 2, "box_ind", 1)?);
    same_size(c, "the second dimension of boxes", c.make_dim(Some(4)), c.dim(boxes, 1))?;
    let count = same_size(c, "the size of box_ind", c.dim(boxes, 0), c.dim(indices, 0))?;
    let size = sizes(c, 3, "crop_size")?;
    let known = |at: usize| c.make_dim(Some(size[at]).filter(|&size| size > 0));
    c.set_output(0, c.make_shape(&[count, known(0), known(1), c.dim(image, 3)]))
}

fn colours(c: &ShapeContext<'_>) -> ShapeResult {
    let images = input_of_rank_at_least(c, 0, "images", 1)?;
    let last = c.rank(images).and_then(|rank| c.value(c.dim(images, rank - 1)));
    last.map_or(Ok(()), check_colour)?;
    unchanged(c)
}

fn contrast(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 1, "contrast_factor", 0)?;
    c.set_output(0, input_of_rank_at_least(c, 0, "images", 3)?)
}

fn adjusted(c: &ShapeContext<'_>) -> ShapeResult {
    c.set_output(0, input_of_rank_at_least(c, 0, "images", 3)?)
}

fn area(c: &ShapeContext<'_>) -> ShapeResult {
    resized(c, PixelGrid::new(c.attr("align_corners")?, false)?)
}

fn projected(c: &ShapeContext<'_>) -> ShapeResult {
    let images = input_of_rank(c, 0, "images", 4)?;
    let transforms = input_of_rank(c, 1, "transforms", 2)?;
    same_size(c, "the second dimension of transforms", c.make_dim(Some(8)), c.dim(transforms, 1))?;
    let size = sizes(c, 2, "output_shape")?;
    let known = |at: usize| c.make_dim(Some(size[at]).filter(|&size| size > 0));
    c.set_output(0, c.make_shape(&[c.dim(images, 0), known(0), known(1), c.dim(images, 3)]))
}

fn frames(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 0, "contents", 0)?;
    c.set_output(0, c.shape_of(&[-1, -1, -1, 3]))
}

/// The frames of a moving image are one more dimension, unless only the first one is wanted.
fn any_decoded(c: &ShapeContext<'_>) -> ShapeResult {
    decoded(c)?;
    if c.attr("expand_animations")? {
        return c.set_output(0, c.unknown());
    }
    Ok(())
}

fn decoded(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 0, "contents", 0)?;
    let channels: i64 = c.attr("channels")?;
    if channels < 0 {
        return Err(GeometryError::TooSmall { what: "channels", least: 0, found: channels }.into());
    }
    c.set_output(0, c.shape_of(&[-1, -1, if channels == 0 { -1 } else { channels }]))
}

fn encoded(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 0, "image", 3)?;
    scalar_output(c)
}

/// The output has as many texts as there are images.
fn encoded_many(c: &ShapeContext<'_>) -> ShapeResult {
    let image = input_of_rank_at_least(c, 0, "image", 3)?;
    let Some(rank) = c.rank(image) else { return c.set_output(0, c.unknown()) };
    c.set_output(0, c.make_shape(&dims_of(c, image)[..rank - 3]))
}

#[cfg(test)]
mod tests {
    use crate::testing::check;
    use tenon_framework::attr::AttrValue;

    #[test]
    fn images_take_the_size_of_a_constant() {
        check(
            "ResizeBilinear",
            &[],
            &[
                (&["[n,3,4,c]", "= [5,6]"], "[n,5,6,c]"),
                (&["[n,3,4,c]", "[2]"], "[n,?,?,c]"),
                (&["?", "= [5,6]"], "[?,5,6,?]"),
                (&["[n,3,4]", "= [5,6]"], "! images must have 4 dimensions, got 3"),
                (&["[n,3,4,c]", "= [0,6]"], "! size must be at least 1, got 0"),
                (&["[n,3,4,c]", "[3]"], "! size must hold 2 values, got 3"),
            ],
        );
        let both = [
            ("align_corners", AttrValue::Bool(true)),
            ("half_pixel_centers", AttrValue::Bool(true)),
        ];
        let message = "! align_corners and half_pixel_centers exclude each other, got both";
        check("ResizeBicubic", &both, &[(&["?", "?"], message)]);
        check("ResizeBilinearGrad", &[], &[(&["[n,9,9,c]", "[n,3,4,c]"], "[n,3,4,c]")]);
    }

    #[test]
    fn each_box_gives_a_crop() {
        check(
            "CropAndResize",
            &[],
            &[
                (&["[1,8,8,c]", "[n,4]", "[n]", "= [2,3]"], "[n,2,3,c]"),
                (&["?", "?", "[5]", "?"], "[5,?,?,?]"),
                (&["?", "[5,3]", "[5]", "?"], "! the second dimension of boxes must be 4, got 3"),
                (&["?", "[5,4]", "[6]", "?"], "! the size of box_ind must be 5, got 6"),
            ],
        );
    }

    #[test]
    fn colours_have_three_parts() {
        check(
            "RGBToHSV",
            &[],
            &[
                (&["[n,3]"], "[n,3]"),
                (&["[n,4]"], "! the last dimension of images must be 3, got 4"),
            ],
        );
        check("AdjustContrastv2", &[], &[(&["[n,2,3,4]", "[]"], "[n,2,3,4]")]);
    }

    #[test]
    fn decoded_images_have_the_channels_asked_for() {
        check("DecodeJpeg", &[], &[(&["[]"], "[?,?,?]")]);
        check("DecodePng", &[("channels", AttrValue::Int(3))], &[(&["[]"], "[?,?,3]")]);
        check("EncodePng", &[], &[(&["[n,5,6,7,3]"], "[n,5]"), (&["?"], "?")]);
        check("EncodeJpeg", &[], &[(&["[6,7,3]"], "[]")]);
    }
}
