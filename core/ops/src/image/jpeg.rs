//! Parts, shapes and qualities of JPEG files.

use super::decoded;
use crate::shape::{input_of_rank, scalar_output};
use tenon_author::{ShapeContext, ShapeResult, register_op};
use tenon_geometry::GeometryError;

register_op!(
    "DecodeAndCropJpeg",
    inputs = &["contents: string", "crop_window: int32"],
    outputs = &["image: uint8"],
    attrs = &[
        "channels: int = 0",
        "ratio: int = 1",
        "fancy_upscaling: bool = true",
        "try_recover_truncated: bool = false",
        "acceptable_fraction: float = 1.0",
        "dct_method: string = ''",
    ],
    shape = cropped,
    summary = "The pixels of a part of an encoded image: of a window with its first row, first column, height and width.",
);

register_op!(
    "ExtractJpegShape",
    inputs = &["contents: string"],
    outputs = &["image_shape: output_type"],
    attrs = &["output_type: {int32, int64} = DT_INT32"],
    shape = shape,
    summary = "Height, width and channels of an encoded image, whose pixels are not decoded.",
);

register_op!(
    "EncodeJpegVariableQuality",
    inputs = &["images: uint8", "quality: int32"],
    outputs = &["contents: string"],
    cases = &["small; n in 1..9; images: [n, 5, 3]; quality: [] integers(1..=100)"],
    shape = encoded,
    summary = "An image as a JPEG file of a quality from 0 to 100.",
);

fn cropped(c: &ShapeContext<'_>) -> ShapeResult {
    decoded(c)?;
    let window = input_of_rank(c, 1, "crop_window", 1)?;
    let what = "crop_window";
    if let Some(found) = c.value(c.dim(window, 0)).filter(|&found| found != 4) {
        let found = found as usize;
        return Err(GeometryError::Length { what, expected: 4, found }.into());
    }
    let size = match c.constant_integers(1).as_deref() {
        Some(&[.., height, width]) => [height, width],
        _ => return Ok(()),
    };
    if let Some(&found) = size.iter().find(|&&size| size < 1) {
        let what = "the size of crop_window";
        return Err(GeometryError::TooSmall { what, least: 1, found }.into());
    }
    let channels: i64 = c.attr("channels")?;
    let channels = if channels == 0 { -1 } else { channels };
    c.set_output(0, c.shape_of(&[size[0], size[1], channels]))
}

fn shape(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 0, "contents", 0)?;
    c.set_output(0, c.shape_of(&[3]))
}

fn encoded(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 0, "images", 3)?;
    input_of_rank(c, 1, "quality", 0)?;
    scalar_output(c)
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn windows_have_their_size() {
        check(
            "DecodeAndCropJpeg",
            &[],
            &[
                (&["[]", "= [1,2,3,4]"], "[3,4,?]"),
                (&["[]", "[4]"], "[?,?,?]"),
                (&["[]", "[3]"], "! crop_window must hold 4 values, got 3"),
                (&["[]", "= [1,2,0,4]"], "! the size of crop_window must be at least 1, got 0"),
            ],
        );
        check("ExtractJpegShape", &[], &[(&["[]"], "[3]")]);
        check("EncodeJpegVariableQuality", &[], &[(&["[n,5,3]", "[]"], "[]")]);
    }
}
