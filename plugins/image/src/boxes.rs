//! The ops of `NonMaxSuppression`: which boxes stay when others of higher scores overlap them.
//!
//! `combined` does so for the classes of a batch of images.

mod combined;

use half::f16;
use std::{cmp::Ordering, collections::BinaryHeap, marker::PhantomData};
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::Float,
    geometry::GeometryError,
    growth,
    reg::Numerics,
    register_kernel,
};

/// Checks the rank of an input.
pub fn rank(
    c: &ComputeContext<'_>,
    input: usize,
    what: &'static str,
    expected: usize,
) -> Result<(), GeometryError> {
    match c.dims(input).len() {
        found if found != expected => Err(GeometryError::Rank { what, expected, found }),
        _ => Ok(()),
    }
}

/// Checks a size.
pub fn size(what: &'static str, expected: i64, found: i64) -> Result<(), GeometryError> {
    match expected == found {
        false => Err(GeometryError::SizeMismatch { what, expected, found }),
        true => Ok(()),
    }
}

/// A scalar of half or single precision.
fn scalar(c: &ComputeContext<'_>, input: usize, what: &'static str) -> Result<f32, KernelError> {
    rank(c, input, what, 0)?;
    if c.slot(input)?.dtype == DType::HALF {
        return Ok(c.input::<f16>(input)?.data[0].to_f32());
    }
    Ok(c.input::<f32>(input)?.data[0])
}

/// The greatest number of boxes that stay.
fn most(c: &ComputeContext<'_>, input: usize, what: &'static str) -> Result<usize, KernelError> {
    let found = c.integer(input, what)?;
    let fits = usize::try_from(found);
    fits.map_err(|_| GeometryError::TooSmall { what, least: 0, found }.into())
}

/// Checks a share of two boxes.
pub fn check_share(found: f32) -> Result<f32, KernelError> {
    match (0.0..=1.0).contains(&found) {
        true => Ok(found),
        false => Err(KernelError::invalid_argument(format!(
            "iou_threshold must lie in [0, 1], found {found}"
        ))),
    }
}

/// The intersection of two boxes divided by their union, in single precision; 0 if one has no area. Corners may be given
/// in any order.
pub fn overlap<T: Float>(a: &[T], b: &[T]) -> T {
    let sides = |of: &[T], at: usize| {
        let (first, second) = (of[at].to_f64() as f32, of[at + 2].to_f64() as f32);
        if second < first { [second, first] } else { [first, second] }
    };
    let area = |of: &[T]| {
        let ([top, bottom], [left, right]) = (sides(of, 0), sides(of, 1));
        (bottom - top) * (right - left)
    };
    let (first, second) = (area(a), area(b));
    if !(first > 0.0 && second > 0.0) {
        return T::ZERO;
    }
    let common = |at: usize| {
        let ([low, high], [other_low, other_high]) = (sides(a, at), sides(b, at));
        (high.min(other_high) - low.max(other_low)).max(0.0)
    };
    let both = common(0) * common(1);
    T::from_f64((both / (first + second - both)).into())
}

/// A box that is not yet chosen.
#[derive(Clone, Copy)]
struct Candidate {
    at: usize,
    score: f64,
    /// How many of the chosen boxes have lowered the score.
    seen: usize,
}

impl Ord for Candidate {
    fn cmp(&self, other: &Candidate) -> Ordering {
        self.score.total_cmp(&other.score).then(other.at.cmp(&self.at))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Candidate) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Candidate) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Candidate {}

/// When a box goes.
struct Rule<T> {
    most: usize,
    /// An overlap beyond it removes the box.
    overlap: T,
    /// Boxes of this score or a lower one are left out.
    score: T,
    /// Where it is above 0, an overlap lowers the score instead, by a normal curve of this width.
    sigma: T,
}

/// Boxes that stay, with their scores.
#[derive(Default)]
struct Chosen {
    boxes: Vec<i32>,
    scores: Vec<f64>,
}

/// Chooses boxes in the order of their scores; `overlap` compares two. Numbers are rounded to `T` at each step.
fn choose<T: Float>(
    c: &ComputeContext<'_>,
    scores: &[T],
    rule: &Rule<T>,
    overlap: impl Fn(usize, usize) -> T,
) -> Result<Chosen, KernelError> {
    let (is_soft, mut chosen) = (rule.sigma > T::ZERO, Chosen::default());
    let scale = match is_soft {
        true => T::from_f64(-0.5 / rule.sigma.to_f64()),
        false => T::ZERO,
    };
    let all = scores.iter().enumerate().filter(|(_, score)| **score > rule.score);
    let all = all.map(|(at, score)| Candidate { at, score: score.to_f64(), seen: 0 });
    let mut left = BinaryHeap::from(growth::collected(all)?);
    while let Some(mut next) = left.pop().filter(|_| chosen.boxes.len() < rule.most) {
        c.watch().check()?;
        let (mut score, mut is_covered) = (T::from_f64(next.score), false);
        for &other in chosen.boxes[next.seen..].iter().rev() {
            let found = overlap(next.at, other as usize);
            if is_soft {
                let weight = scale.mul(found).mul(found).to_f64().exp();
                score = score.mul(T::from_f64(weight));
            } else if found > rule.overlap {
                is_covered = true;
            }
            if is_covered || score <= rule.score {
                break;
            }
        }
        next.seen = chosen.boxes.len();
        if is_covered {
            continue;
        }
        if score.to_f64() == next.score {
            growth::push(&mut chosen.boxes, next.at as i32)?;
            growth::push(&mut chosen.scores, next.score)?;
        } else if score > rule.score {
            left.push(Candidate { score: score.to_f64(), ..next });
        }
    }
    Ok(chosen)
}

/// `NonMaxSuppression` and its versions to the fifth.
struct Suppress<T> {
    /// The threshold that the first version has as an attribute.
    overlap: Option<f32>,
    pads: bool,
    of: PhantomData<fn() -> T>,
}

impl<T: Float> Kernel for Suppress<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let has = |name: &str| c.attrs().has(name);
        let overlap = has("iou_threshold").then(|| check_share(c.attr("iou_threshold")?));
        let pads = has("pad_to_max_output_size") && c.attr("pad_to_max_output_size")?;
        Ok(Suppress { overlap: overlap.transpose()?, pads, of: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        rank(c, 0, "boxes", 2)?;
        rank(c, 1, "scores", 1)?;
        let (boxes, scores) = (c.input::<T>(0)?, c.input::<T>(1)?);
        size("the second dimension of boxes", 4, boxes.dims[1])?;
        size("the size of scores", boxes.dims[0], scores.dims[0])?;
        let rule = self.rule(c)?;
        let corners = |at: usize| &boxes.data[at * 4..][..4];
        let mut chosen = choose(c, scores.data, &rule, |a, b| overlap(corners(a), corners(b)))?;
        let valid = chosen.boxes.len() as i32;
        if self.pads {
            growth::reserve(&mut chosen.boxes, rule.most - valid as usize)?;
            chosen.boxes.resize(rule.most, 0);
            growth::reserve(&mut chosen.scores, rule.most - valid as usize)?;
            chosen.scores.resize(rule.most, 0.0);
        }
        let dims = [chosen.boxes.len() as i64];
        c.output::<i32>(0, &dims)?.data.copy_from_slice(&chosen.boxes);
        let last = c.output_count() - 1;
        if last == 2 {
            let scores = c.output::<T>(1, &dims)?.data;
            scores.iter_mut().zip(&chosen.scores).for_each(|(y, &x)| *y = T::from_f64(x));
        }
        if last > 0 {
            c.output::<i32>(last, &[])?.data[0] = valid;
        }
        Ok(())
    }
}

impl<T: Float> Suppress<T> {
    fn rule(&self, c: &ComputeContext<'_>) -> Result<Rule<T>, KernelError> {
        let named = |at: usize, what| match c.input_count() > at {
            true => scalar(c, at, what).map(|found| T::from_f64(found.into())).map(Some),
            false => Ok(None),
        };
        let overlap = match self.overlap {
            Some(overlap) => overlap,
            None => check_share(scalar(c, 3, "iou_threshold")?)?,
        };
        Ok(Rule {
            most: most(c, 2, "max_output_size")?,
            overlap: T::from_f64(overlap.into()),
            score: named(4, "score_threshold")?.unwrap_or(T::LOWEST),
            sigma: named(5, "soft_nms_sigma")?.unwrap_or(T::ZERO),
        })
    }
}

/// `NonMaxSuppressionWithOverlaps`, which is given the overlap of each pair.
fn suppress_given(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    rank(c, 0, "overlaps", 2)?;
    rank(c, 1, "scores", 1)?;
    let (overlaps, scores) = (c.input::<f32>(0)?, c.input::<f32>(1)?);
    size("the second dimension of overlaps", overlaps.dims[0], overlaps.dims[1])?;
    size("the size of scores", overlaps.dims[0], scores.dims[0])?;
    let rule = Rule {
        most: most(c, 2, "max_output_size")?,
        overlap: scalar(c, 3, "overlap_threshold")?,
        score: scalar(c, 4, "score_threshold")?,
        sigma: 0.0,
    };
    let count = scores.data.len();
    let chosen = choose(c, scores.data, &rule, |a, b| overlaps.data[a * count + b])?.boxes;
    c.output::<i32>(0, &[chosen.len() as i64])?.data.copy_from_slice(&chosen);
    Ok(())
}

register_kernel!("NonMaxSuppression" on "CPU": Suppress<f32>,
    host_memory = &["max_output_size"], numerics = Numerics::EXACT);
register_kernel!("NonMaxSuppressionV2" on "CPU": Suppress<T> for "T" in [f16, f32],
    host_memory = &["max_output_size", "iou_threshold"], numerics = Numerics::EXACT);
register_kernel!("NonMaxSuppressionV3" on "CPU": Suppress<T> for "T" in [f16, f32],
    host_memory = &["max_output_size", "iou_threshold", "score_threshold"], numerics = Numerics::EXACT);
register_kernel!("NonMaxSuppressionV4" on "CPU": Suppress<T> for "T" in [f16, f32],
    host_memory = &["max_output_size", "iou_threshold", "score_threshold"], numerics = Numerics::EXACT);
register_kernel!("NonMaxSuppressionV5" on "CPU": Suppress<T> for "T" in [f16, f32],
    host_memory = &["max_output_size", "iou_threshold", "score_threshold", "soft_nms_sigma"],
    numerics = Numerics::ulps(8.0));
register_kernel!("NonMaxSuppressionWithOverlaps" on "CPU": fn suppress_given,
    host_memory = &["max_output_size", "overlap_threshold", "score_threshold"], numerics = Numerics::EXACT);
