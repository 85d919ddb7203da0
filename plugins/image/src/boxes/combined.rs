//! `CombinedNonMaxSuppression`.

use super::{Chosen, Rule, check_share, choose, overlap, rank, scalar, size};
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    geometry::{GeometryError, byte_size},
    growth,
    reg::Numerics,
    register_kernel,
};

struct Combined {
    /// Whether an image has no more places than its classes can fill.
    pads_by_class: bool,
    clips: bool,
}

/// The sizes of a call.
struct Sizes {
    images: usize,
    boxes: usize,
    /// How many boxes each of `boxes` has: one for all classes, or one for each.
    kinds: usize,
    classes: usize,
    /// Places of an image in the result.
    places: usize,
}

/// A box that stays.
struct Found {
    score: f64,
    class: usize,
    corners: [f32; 4],
}

impl Kernel for Combined {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Combined { pads_by_class: c.attr("pad_per_class")?, clips: c.attr("clip_boxes")? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (each, most) =
            (positive(c, 2, "max_output_size_per_class")?, positive(c, 3, "max_total_size")?);
        let rule = Rule {
            most: each,
            overlap: check_share(scalar(c, 4, "iou_threshold")?)?,
            score: scalar(c, 5, "score_threshold")?,
            sigma: 0.0,
        };
        let sizes = self.sizes(c, each, most)?;
        let (images, places) = (sizes.images as i64, sizes.places as i64);
        byte_size(&[images, places, 4], 4)?;
        let boxes = c.output::<f32>(0, &[images, places, 4])?.data;
        let scores = c.output::<f32>(1, &[images, places])?.data;
        let classes = c.output::<f32>(2, &[images, places])?.data;
        let valid = c.output::<i32>(3, &[images])?.data;
        boxes.fill(0.0);
        scores.fill(0.0);
        classes.fill(0.0);
        for (image, valid) in valid.iter_mut().enumerate() {
            let mut found = self.image(c, &sizes, &rule, image)?;
            // The sort is stable: of equal scores, the first class comes first.
            found.sort_by(|a, b| b.score.total_cmp(&a.score));
            found.truncate(sizes.places);
            *valid = found.len() as i32;
            for (at, found) in found.iter().enumerate() {
                let at = image * sizes.places + at;
                boxes[at * 4..][..4].copy_from_slice(&found.corners);
                (scores[at], classes[at]) = (found.score as f32, found.class as f32);
            }
        }
        Ok(())
    }
}

/// A number of boxes.
fn positive(
    c: &ComputeContext<'_>,
    input: usize,
    what: &'static str,
) -> Result<usize, KernelError> {
    let found = c.integer(input, what)?;
    let fits = usize::try_from(found).ok().filter(|&found| found > 0);
    fits.ok_or_else(|| GeometryError::TooSmall { what, least: 1, found }.into())
}

impl Combined {
    fn sizes(
        &self,
        c: &ComputeContext<'_>,
        each: usize,
        most: usize,
    ) -> Result<Sizes, KernelError> {
        rank(c, 0, "boxes", 4)?;
        rank(c, 1, "scores", 3)?;
        let (boxes, scores) = (c.dims(0), c.dims(1));
        size("the batch of scores", boxes[0], scores[0])?;
        size("the number of scores", boxes[1], scores[1])?;
        size("the last dimension of boxes", 4, boxes[3])?;
        if boxes[2] != 1 {
            size("the third dimension of boxes, unless it is 1", scores[2], boxes[2])?;
        }
        let classes = scores[2] as usize;
        let places = if self.pads_by_class { most.min(each.saturating_mul(classes)) } else { most };
        Ok(Sizes {
            images: boxes[0] as usize,
            boxes: boxes[1] as usize,
            kinds: boxes[2] as usize,
            classes,
            places,
        })
    }

    /// The boxes of an image that stay, class by class.
    fn image(
        &self,
        c: &ComputeContext<'_>,
        sizes: &Sizes,
        rule: &Rule<f32>,
        image: usize,
    ) -> Result<Vec<Found>, KernelError> {
        let &Sizes { boxes: count, kinds, classes, .. } = sizes;
        let boxes = &c.input::<f32>(0)?.data[image * count * kinds * 4..][..count * kinds * 4];
        let scores = &c.input::<f32>(1)?.data[image * count * classes..][..count * classes];
        let mut all = Vec::new();
        for class in 0..classes {
            let kind = if kinds > 1 { class } else { 0 };
            let corners = |at: usize| &boxes[(at * kinds + kind) * 4..][..4];
            let own = scores.iter().skip(class).step_by(classes).copied();
            let own = growth::collected(own)?;
            let Chosen { boxes, scores } =
                choose(c, &own, rule, |a, b| overlap(corners(a), corners(b)))?;
            for (at, score) in boxes.into_iter().zip(scores) {
                let mut at: [f32; 4] = std::array::from_fn(|side| corners(at as usize)[side]);
                if self.clips {
                    at = at.map(|side| side.clamp(0.0, 1.0));
                }
                growth::push(&mut all, Found { score, class, corners: at })?;
            }
        }
        Ok(all)
    }
}

register_kernel!("CombinedNonMaxSuppression" on "CPU": Combined,
    host_memory = &["max_output_size_per_class", "max_total_size", "iou_threshold", "score_threshold"],
    numerics = Numerics::EXACT);
