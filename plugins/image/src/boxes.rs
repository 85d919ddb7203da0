//! `NonMaxSuppressionV3`.

use half::f16;
use tenon_sdk::{
    DType, KernelError, author::ComputeContext, element::Float, geometry::GeometryError, growth,
    reg::Numerics, register_kernel,
};

/// A scalar of half or single precision.
fn threshold(c: &ComputeContext<'_>, input: usize, what: &'static str) -> Result<f32, KernelError> {
    let found = c.dims(input).len();
    if found != 0 {
        return Err(GeometryError::Rank { what, expected: 0, found }.into());
    }
    if c.slot(input)?.dtype == DType::HALF {
        return Ok(c.input::<f16>(input)?.data[0].to_f32());
    }
    Ok(c.input::<f32>(input)?.data[0])
}

/// The intersection of two boxes divided by their union, in the arithmetic of the type; 0 if one
/// has no area. Corners may be given in any order.
fn overlap<T: Float>(a: &[T], b: &[T]) -> T {
    let less = |x: T, y: T| if y < x { y } else { x };
    let greater = |x: T, y: T| if x < y { y } else { x };
    let sides = |of: &[T], at: usize| [less(of[at], of[at + 2]), greater(of[at], of[at + 2])];
    let area = |of: &[T]| {
        let ([top, bottom], [left, right]) = (sides(of, 0), sides(of, 1));
        bottom.sub(top).mul(right.sub(left))
    };
    let (first, second) = (area(a), area(b));
    if !(first > T::ZERO && second > T::ZERO) {
        return T::ZERO;
    }
    let common = |at: usize| {
        let ([low, high], [other_low, other_high]) = (sides(a, at), sides(b, at));
        greater(less(high, other_high).sub(greater(low, other_low)), T::ZERO)
    };
    let both = common(0).mul(common(1));
    T::from_f64(both.to_f64() / first.add(second).sub(both).to_f64())
}

fn suppress<T: Float>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let (boxes, scores) = (c.input::<T>(0)?, c.input::<T>(1)?);
    let rank = |what, expected, dims: &[i64]| match dims.len() {
        found if found != expected => Err(GeometryError::Rank { what, expected, found }),
        _ => Ok(()),
    };
    rank("boxes", 2, boxes.dims)?;
    rank("scores", 1, scores.dims)?;
    let size = |what, expected, found| match expected == found {
        false => Err(GeometryError::SizeMismatch { what, expected, found }),
        true => Ok(()),
    };
    size("the second dimension of boxes", 4, boxes.dims[1])?;
    size("the size of scores", boxes.dims[0], scores.dims[0])?;
    let most = c.integer(2, "max_output_size")?;
    if most < 0 {
        let what = "max_output_size";
        return Err(GeometryError::TooSmall { what, least: 0, found: most }.into());
    }
    let limit = threshold(c, 3, "iou_threshold")?;
    let least = threshold(c, 4, "score_threshold")?;
    if !(0.0..=1.0).contains(&limit) {
        return Err(KernelError::invalid_argument(format!(
            "iou_threshold must lie in [0, 1], found {limit}"
        )));
    }
    let score = |at: usize| scores.data[at].to_f64();
    let mut order =
        growth::collected((0..scores.data.len()).filter(|&at| score(at) > least.into()))?;
    order.sort_unstable_by(|&a, &b| score(b).total_cmp(&score(a)).then(a.cmp(&b)));
    let mut chosen: Vec<i32> = Vec::new();
    let corners = |at: usize| &boxes.data[at * 4..][..4];
    for at in order {
        if chosen.len() as i64 >= most {
            break;
        }
        c.watch().check()?;
        let covered =
            |&other: &i32| overlap(corners(at), corners(other as usize)).to_f64() > limit.into();
        if !chosen.iter().rev().any(covered) {
            growth::push(&mut chosen, at as i32)?;
        }
    }
    c.output::<i32>(0, &[chosen.len() as i64])?.data.copy_from_slice(&chosen);
    Ok(())
}

register_kernel!("NonMaxSuppressionV3" on "CPU": fn suppress<T> for "T" in [f16, f32],
    host_memory = &["max_output_size", "iou_threshold", "score_threshold"], numerics = Numerics::EXACT);
