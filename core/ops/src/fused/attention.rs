//! Attention, and the softmax in it.

use crate::shape::{broadcast_dims, dims_of, input_of_rank, input_of_rank_at_least};
use tenon_author::{Dim, ShapeContext, ShapeHandle, ShapeResult, register_op};
use tenon_framework::KernelError;
use tenon_geometry::GeometryError;

register_op!(
    "_FusedSoftmaxScale",
    inputs = &["logits: T", "mask: num_mask * T"],
    outputs = &["softmax: T"],
    attrs = &["T: {half, bfloat16, float, double}", "num_mask: int >= 0", "scale: float = 1.0"],
    shape = softmax_scale,
    summary = "softmax(scale * logits + mask) over the last dimension. There is one mask or none; logits and mask \
               broadcast to each other, to one dimension or more.",
    cases = &[
        "plain; num_mask = 0; scale in {1.0, 0.125}; logits: [n, m]",
        "masked; scale = 0.125; logits: [b, 2, n, m]; mask: [b, 1, 1, m]",
        "repeated; scale = 0.25; logits: [n, 1]; mask: [b, 1, m]",
    ],
);

register_op!(
    "_FusedAttention",
    inputs = &["q: T", "k: T", "v: T", "mask: num_mask * T", "keep: num_keep * bool"],
    outputs = &["output: T"],
    attrs = &[
        "T: {half, bfloat16, float, double}",
        "num_mask: int >= 0",
        "num_keep: int >= 0",
        "scale: float = 1.0",
        "dropped: float = 0.0",
        "zero_dropped: bool = false",
        "layout: {'HEADS_FIRST', 'HEADS_INSIDE'} = 'HEADS_FIRST'",
    ],
    shape = attention,
    summary = "softmax(scores) v, where scores = scale * q k^T + mask, and dropped where keep is false; with \
               zero_dropped the softmax is then made 0 there, so that a query that keeps no key gives 0. There is one \
               mask or none, and one keep or none; the scores [..., m, n] broadcast with them. Heads first: q is \
               [..., m, d], k [..., n, d], v [..., n, e], the output [..., m, e]; what stands before broadcasts as in \
               BatchMatMulV2. Heads inside: q is [b, m, h, d], k [b, n, h, d], v [b, n, h, e], the output \
               [b, m, h, e], the scores [b, h, m, n]; b and h are equal in all, as in Einsum.",
    cases = &[
        "plain; num_mask = 0; num_keep = 0; scale in {1.0, 0.125}; q: [b, 2, m, d]; k: [b, 2, n, d]; v: [b, 2, n, e]",
        "masked; num_keep = 0; scale = 0.25; q: [b, m, d]; k: [b, n, d]; v: [b, n, e]; mask: [b, 1, n]",
        "kept; num_mask = 0; scale = 0.5; dropped = -100.0; zero_dropped in {false, true}; \
         q: [b, 2, m, d]; k: [b, 2, n, d]; v: [b, 2, n, e]; keep: [b, 1, 1, n]",
        "repeated; num_keep = 0; scale = 0.5; q: [2, 1, m, d]; k: [3, n, d]; v: [n, e]; mask: [b, 1, 1, 1, n]",
        "inside; num_keep = 0; layout = 'HEADS_INSIDE'; scale = 0.25; q: [b, m, 3, d]; k: [b, n, 3, d]; \
         v: [b, n, 3, e]; mask: [1, 1, n]",
    ],
);

fn softmax_scale(c: &ShapeContext<'_>) -> ShapeResult {
    at_most_one("mask", c.input_count() - 1)?;
    // A mask can give a scalar a dimension.
    let logits = with_masks(c, c.input(0), 1)?;
    if c.rank(logits) == Some(0) {
        return Err(GeometryError::RankTooSmall { what: "logits", expected: 1, found: 0 }.into());
    }
    c.set_output(0, logits)
}

fn at_most_one(what: &'static str, found: usize) -> ShapeResult {
    match found {
        0 | 1 => Ok(()),
        found => Err(GeometryError::Length { what, expected: 1, found }.into()),
    }
}

/// The scores, broadcast with the inputs from `first` on.
fn with_masks(
    c: &ShapeContext<'_>,
    scores: ShapeHandle,
    first: usize,
) -> Result<ShapeHandle, KernelError> {
    (first..c.input_count()).try_fold(scores, |scores, at| {
        let mask = c.input(at);
        match (c.rank(scores), c.rank(mask)) {
            (Some(_), Some(_)) => broadcast_dims(c, &dims_of(c, scores), &dims_of(c, mask)),
            _ => Ok(c.unknown()),
        }
    })
}

fn attention(c: &ShapeContext<'_>) -> ShapeResult {
    at_most_one("mask", c.attr::<i64>("num_mask")? as usize)?;
    at_most_one("keep", c.attr::<i64>("num_keep")? as usize)?;
    match c.attr::<&str>("layout")? {
        "HEADS_INSIDE" => heads_inside(c),
        _ => heads_first(c),
    }
}

fn heads_first(c: &ShapeContext<'_>) -> ShapeResult {
    let mut lead: [Vec<Dim>; 3] = Default::default();
    let mut last: Vec<[Dim; 2]> = Vec::new();
    for (at, name) in ["q", "k", "v"].into_iter().enumerate() {
        let input = input_of_rank_at_least(c, at, name, 2)?;
        if c.rank(input).is_none() {
            return c.set_output(0, c.unknown());
        }
        lead[at] = dims_of(c, input);
        let split = lead[at].len() - 2;
        let own = lead[at].split_off(split);
        last.push([own[0], own[1]]);
    }
    let [[m, d], [n, e], [rows, cols]] = [last[0], last[1], last[2]];
    c.merge_dim(d, e)?;
    let mut scores = dims_of(c, broadcast_dims(c, &lead[0], &lead[1])?);
    scores.extend([m, n]);
    let scores = with_masks(c, c.make_shape(&scores), 3)?;
    if c.rank(scores).is_none() {
        return c.set_output(0, c.unknown());
    }
    let mut scores = dims_of(c, scores);
    let (keys, queries) = (scores.pop(), scores.pop());
    let (Some(keys), Some(queries)) = (keys, queries) else { return Ok(()) };
    c.merge_dim(keys, rows)?;
    let mut output = dims_of(c, broadcast_dims(c, &scores, &lead[2])?);
    output.extend([queries, cols]);
    c.set_output(0, c.make_shape(&output))
}

fn heads_inside(c: &ShapeContext<'_>) -> ShapeResult {
    let [q, k, v] =
        [input_of_rank(c, 0, "q", 4)?, input_of_rank(c, 1, "k", 4)?, input_of_rank(c, 2, "v", 4)?];
    let [batch, heads] = [0, 2].map(|at| c.merge_dim(c.dim(q, at), c.dim(k, at)));
    c.merge_dim(c.dim(q, 3), c.dim(k, 3))?;
    let scores = c.make_shape(&[batch?, heads?, c.dim(q, 1), c.dim(k, 1)]);
    let scores = of_rank_four(c, with_masks(c, scores, 3)?)?;
    let batch = c.merge_dim(c.dim(scores, 0), c.dim(v, 0))?;
    let heads = c.merge_dim(c.dim(scores, 1), c.dim(v, 2))?;
    c.merge_dim(c.dim(scores, 3), c.dim(v, 1))?;
    c.set_output(0, c.make_shape(&[batch, c.dim(scores, 2), heads, c.dim(v, 3)]))
}

/// Checks the rank of the scores: a mask must not add more dimensions than the second product
/// accepts.
fn of_rank_four(c: &ShapeContext<'_>, scores: ShapeHandle) -> Result<ShapeHandle, KernelError> {
    match c.rank(scores) {
        Some(4) => Ok(scores),
        None => Ok(c.unknown_of_rank(4)),
        Some(found) => Err(GeometryError::Rank { what: "the mask", expected: 4, found }.into()),
    }
}
