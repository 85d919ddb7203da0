//! Which boxes stay where several overlap, and boxes that are drawn. The kernels are plugins/image/src/boxes.rs and
//! plugins/image/src/draw.rs.

use crate::shape::{input_of_rank, same_size, unchanged};
use tenon_author::{Dim, ShapeContext, ShapeResult, register_op};
use tenon_framework::KernelError;
use tenon_geometry::GeometryError;

register_op!(
    "NonMaxSuppression",
    inputs = &["boxes: float", "scores: float", "max_output_size: int32"],
    outputs = &["selected_indices: int32"],
    attrs = &["iou_threshold: float = 0.5"],
    cases = &[
        "boxes; boxes: [n, 4] uniform(0, 1); scores: [n] uniform(0, 1); max_output_size: [] values(5)"
    ],
    shape = suppressed,
    summary = "The boxes of highest scores, without those that overlap a higher one too much.",
);

register_op!(
    "NonMaxSuppressionV2",
    inputs = &["boxes: T", "scores: T", "max_output_size: int32", "iou_threshold: T_threshold"],
    outputs = &["selected_indices: int32"],
    attrs = &["T: {half, float} = DT_FLOAT", "T_threshold: {half, float} = DT_FLOAT"],
    cases = &[
        "boxes; boxes: [n, 4] uniform(0, 1); scores: [n] uniform(0, 1); max_output_size: [] values(5); iou_threshold: [] values(0.5)"
    ],
    shape = suppressed,
    summary = "The boxes of highest scores, without those that overlap a higher one too much.",
);

register_op!(
    "NonMaxSuppressionV3",
    inputs = &[
        "boxes: T",
        "scores: T",
        "max_output_size: int32",
        "iou_threshold: T_threshold",
        "score_threshold: T_threshold",
    ],
    outputs = &["selected_indices: int32"],
    attrs = &["T: {half, float} = DT_FLOAT", "T_threshold: {half, float} = DT_FLOAT"],
    cases = &[
        "boxes; boxes: [n, 4] uniform(0, 1); scores: [n] uniform(0, 1); max_output_size: [] values(5); iou_threshold: [] values(0.5); score_threshold: [] values(0.1)",
    ],
    shape = suppressed,
    summary = "The boxes of highest scores, without those that overlap a higher one too much.",
);

register_op!(
    "NonMaxSuppressionV4",
    inputs = &[
        "boxes: T",
        "scores: T",
        "max_output_size: int32",
        "iou_threshold: T_threshold",
        "score_threshold: T_threshold"
    ],
    outputs = &["selected_indices: int32", "valid_outputs: int32"],
    attrs = &[
        "T: {half, float} = DT_FLOAT",
        "T_threshold: {half, float} = DT_FLOAT",
        "pad_to_max_output_size: bool = false"
    ],
    cases = &[
        "boxes; boxes: [n, 4] uniform(0, 1); scores: [n] uniform(0, 1); max_output_size: [] values(5); iou_threshold: [] values(0.5); score_threshold: [] values(0.1)"
    ],
    shape = suppressed_and_padded,
    summary = "The boxes of highest scores, without those that overlap a higher one too much, and how many there are.",
);

register_op!(
    "NonMaxSuppressionV5",
    inputs = &[
        "boxes: T",
        "scores: T",
        "max_output_size: int32",
        "iou_threshold: T",
        "score_threshold: T",
        "soft_nms_sigma: T"
    ],
    outputs = &["selected_indices: int32", "selected_scores: T", "valid_outputs: int32"],
    attrs = &["T: {half, float} = DT_FLOAT", "pad_to_max_output_size: bool = false"],
    cases = &[
        "boxes; boxes: [n, 4] uniform(0, 1); scores: [n] uniform(0, 1); max_output_size: [] values(5); iou_threshold: [] values(0.5); score_threshold: [] values(0.1); soft_nms_sigma: [] values(0.5)"
    ],
    shape = suppressed_softly,
    summary = "The boxes of highest scores, which an overlap with a higher one lowers, with these scores and their number.",
);

register_op!(
    "NonMaxSuppressionWithOverlaps",
    inputs = &[
        "overlaps: float",
        "scores: float",
        "max_output_size: int32",
        "overlap_threshold: float",
        "score_threshold: float"
    ],
    outputs = &["selected_indices: int32"],
    cases = &[
        "boxes; overlaps: [n, n] uniform(0, 1); scores: [n] uniform(0, 1); max_output_size: [] values(5); overlap_threshold: [] values(0.5); score_threshold: [] values(0.1)"
    ],
    shape = suppressed_by_overlaps,
    summary = "The boxes of highest scores, without those that overlap a higher one too much, as a matrix says.",
);

register_op!(
    "CombinedNonMaxSuppression",
    inputs = &[
        "boxes: float",
        "scores: float",
        "max_output_size_per_class: int32",
        "max_total_size: int32",
        "iou_threshold: float",
        "score_threshold: float"
    ],
    outputs = &[
        "nmsed_boxes: float",
        "nmsed_scores: float",
        "nmsed_classes: float",
        "valid_detections: int32"
    ],
    attrs = &["pad_per_class: bool = false", "clip_boxes: bool = true"],
    cases = &[
        "boxes; boxes: [b, n, 1, 4] uniform(0, 1); scores: [b, n, k] uniform(0, 1); max_output_size_per_class: [] values(3); max_total_size: [] values(4); iou_threshold: [] values(0.5); score_threshold: [] values(0.1)"
    ],
    shape = combined,
    summary = "The boxes of highest scores of each image and class, without those that overlap a higher one too much.",
);

register_op!(
    "DrawBoundingBoxes",
    inputs = &["images: T", "boxes: float"],
    outputs = &["output: T"],
    attrs = &["T: {float, half} = DT_FLOAT"],
    cases = &["boxes; images: [b, n, m, 3] uniform(0, 1); boxes: [b, k, 4] uniform(0, 1)"],
    shape = drawn,
    summary = "Images with the outlines of boxes, in colours of their own.",
);

register_op!(
    "DrawBoundingBoxesV2",
    inputs = &["images: T", "boxes: float", "colors: float"],
    outputs = &["output: T"],
    attrs = &["T: {float, half} = DT_FLOAT"],
    cases = &[
        "boxes; images: [b, n, m, 3] uniform(0, 1); boxes: [b, k, 4] uniform(0, 1); colors: [2, 4] uniform(0, 1)"
    ],
    shape = drawn,
    summary = "Images with the outlines of boxes, in the given colours.",
);

/// Checks boxes, scores and scalar inputs.
fn check(c: &ShapeContext<'_>, scalars: &[&'static str]) -> ShapeResult {
    let (boxes, scores) = (input_of_rank(c, 0, "boxes", 2)?, input_of_rank(c, 1, "scores", 1)?);
    same_size(c, "the size of scores", c.dim(boxes, 0), c.dim(scores, 0))?;
    same_size(c, "the second dimension of boxes", c.make_dim(Some(4)), c.dim(boxes, 1))?;
    for (at, what) in scalars.iter().enumerate() {
        input_of_rank(c, 2 + at, what, 0)?;
    }
    Ok(())
}

/// The names of scalar inputs, of which versions have the first ones.
const SCALARS: [&str; 4] =
    ["max_output_size", "iou_threshold", "score_threshold", "soft_nms_sigma"];

fn suppressed(c: &ShapeContext<'_>) -> ShapeResult {
    check(c, &SCALARS[..c.input_count() - 2])?;
    c.set_output(0, c.shape_of(&[-1]))
}

/// How many boxes there are in the result: the greatest number, where it is filled up.
fn count(c: &ShapeContext<'_>) -> Result<Dim, KernelError> {
    let pads: bool = c.attr("pad_to_max_output_size")?;
    let most = c.constant_integers(2).filter(|_| pads);
    match most.as_deref() {
        Some(&[found]) if found < 0 => {
            Err(GeometryError::TooSmall { what: "max_output_size", least: 0, found }.into())
        }
        Some(&[most]) => Ok(c.make_dim(Some(most))),
        _ => Ok(c.make_dim(None)),
    }
}

fn suppressed_and_padded(c: &ShapeContext<'_>) -> ShapeResult {
    check(c, &SCALARS[..3])?;
    c.set_output(0, c.make_shape(&[count(c)?]))?;
    c.set_output(1, c.scalar())
}

fn suppressed_softly(c: &ShapeContext<'_>) -> ShapeResult {
    check(c, &SCALARS)?;
    let boxes = c.make_shape(&[count(c)?]);
    c.set_output(0, boxes)?;
    c.set_output(1, boxes)?;
    c.set_output(2, c.scalar())
}

fn suppressed_by_overlaps(c: &ShapeContext<'_>) -> ShapeResult {
    let overlaps = input_of_rank(c, 0, "overlaps", 2)?;
    let scores = input_of_rank(c, 1, "scores", 1)?;
    let count = c.dim(overlaps, 0);
    same_size(c, "the size of scores", count, c.dim(scores, 0))?;
    same_size(c, "the second dimension of overlaps", count, c.dim(overlaps, 1))?;
    for (at, what) in [(2, "max_output_size"), (3, "overlap_threshold"), (4, "score_threshold")] {
        input_of_rank(c, at, what, 0)?;
    }
    c.set_output(0, c.shape_of(&[-1]))
}

fn combined(c: &ShapeContext<'_>) -> ShapeResult {
    let (boxes, scores) = (input_of_rank(c, 0, "boxes", 4)?, input_of_rank(c, 1, "scores", 3)?);
    let scalars =
        ["max_output_size_per_class", "max_total_size", "iou_threshold", "score_threshold"];
    for (at, what) in scalars.into_iter().enumerate() {
        input_of_rank(c, 2 + at, what, 0)?;
    }
    let batch = same_size(c, "the batch of scores", c.dim(boxes, 0), c.dim(scores, 0))?;
    same_size(c, "the number of scores", c.dim(boxes, 1), c.dim(scores, 1))?;
    same_size(c, "the last dimension of boxes", c.make_dim(Some(4)), c.dim(boxes, 3))?;
    if c.value(c.dim(boxes, 2)).is_some_and(|kinds| kinds != 1) {
        let what = "the third dimension of boxes, unless it is 1";
        same_size(c, what, c.dim(scores, 2), c.dim(boxes, 2))?;
    }
    let places = c.make_dim(places(c, c.value(c.dim(scores, 2)))?);
    c.set_output(0, c.make_shape(&[batch, places, c.make_dim(Some(4))]))?;
    c.set_output(1, c.make_shape(&[batch, places]))?;
    c.set_output(2, c.make_shape(&[batch, places]))?;
    c.set_output(3, c.make_shape(&[batch]))
}

/// How many places an image has in the result of `CombinedNonMaxSuppression`.
fn places(c: &ShapeContext<'_>, classes: Option<i64>) -> Result<Option<i64>, KernelError> {
    let positive = |input, what| match c.constant_integers(input).as_deref() {
        Some(&[found]) if found < 1 => Err(GeometryError::TooSmall { what, least: 1, found }),
        Some(&[found]) => Ok(Some(found)),
        _ => Ok(None),
    };
    let each = positive(2, "max_output_size_per_class")?;
    let most = positive(3, "max_total_size")?;
    if !c.attr::<bool>("pad_per_class")? {
        return Ok(most);
    }
    let (Some(most), Some(each), Some(classes)) = (most, each, classes) else { return Ok(None) };
    Ok(Some(most.min(each.saturating_mul(classes))))
}

fn drawn(c: &ShapeContext<'_>) -> ShapeResult {
    let (images, boxes) = (input_of_rank(c, 0, "images", 4)?, input_of_rank(c, 1, "boxes", 3)?);
    same_size(c, "the batch of boxes", c.dim(images, 0), c.dim(boxes, 0))?;
    same_size(c, "the last dimension of boxes", c.make_dim(Some(4)), c.dim(boxes, 2))?;
    if c.input_count() > 2 {
        input_of_rank(c, 2, "colors", 2)?;
    }
    unchanged(c)
}

#[cfg(test)]
mod tests {
    use crate::testing::check;
    use tenon_framework::attr::AttrValue;

    #[test]
    fn how_many_boxes_stay_is_not_known() {
        check("NonMaxSuppressionV3", &[], &[(&["[n,4]", "[n]", "[]", "[]", "[]"], "[?]")]);
    }

    #[test]
    fn padded_results_have_the_greatest_number_of_boxes() {
        let pads = [("pad_to_max_output_size", AttrValue::Bool(true))];
        let inputs = ["[n,4]", "[n]", "= 7", "[]", "[]"];
        check("NonMaxSuppressionV4", &pads, &[(&inputs, "[7]; []")]);
        check("NonMaxSuppressionV4", &[], &[(&inputs, "[?]; []")]);
        let inputs = ["[n,4]", "[n]", "= 7", "[]", "[]", "[]"];
        check("NonMaxSuppressionV5", &pads, &[(&inputs, "[7]; [7]; []")]);
    }

    #[test]
    fn classes_share_boxes_or_have_their_own() {
        let rest = ["= 3", "= 9", "[]", "[]"];
        let case = |boxes: &'static str, scores: &'static str| {
            let mut inputs = vec![boxes, scores];
            inputs.extend(rest);
            inputs
        };
        let pads = [("pad_per_class", AttrValue::Bool(true))];
        let (inputs, other) = (case("[b,n,1,4]", "[b,n,2]"), case("[b,n,3,4]", "[b,n,2]"));
        let refused = "! the third dimension of boxes, unless it is 1 must be 2, got 3";
        let op = "CombinedNonMaxSuppression";
        check(op, &[], &[(&inputs, "[b,9,4]; [b,9]; [b,9]; [b]"), (&other, refused)]);
        check(op, &pads, &[(&inputs, "[b,6,4]; [b,6]; [b,6]; [b]")]);
    }

    #[test]
    fn drawing_keeps_the_shape() {
        check("DrawBoundingBoxes", &[], &[(&["[b,n,m,3]", "[b,k,4]"], "[b,n,m,3]")]);
    }
}
