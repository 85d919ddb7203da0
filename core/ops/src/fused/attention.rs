//! Attention, and the softmax in it.

use crate::shape::{broadcast_dims, dims_of, input_of_rank_at_least};
use tenon_framework::{
    KernelError,
    author::{Dim, ShapeContext, ShapeHandle, ShapeResult},
    geometry::GeometryError,
    register_op,
};

register_op!(
    "_FusedSoftmaxScale",
    inputs = &["logits: T", "mask: num_mask * T"],
    outputs = &["softmax: T"],
    attrs = &["T: {half, bfloat16, float, double}", "num_mask: int >= 0", "scale: float = 1.0"],
    shape = softmax_scale,
    summary = "softmax(scale * logits + mask) over the last dimension. There is one mask or none; it broadcasts to the \
               logits.",
    cases = &[
        "plain; num_mask = 0; scale in {1.0, 0.125}; logits: [n, m]",
        "masked; scale = 0.125; logits: [b, 2, n, m]; mask: [b, 1, 1, m]",
    ],
);

register_op!(
    "_FusedAttention",
    inputs = &["q: T", "k: T", "v: T", "mask: num_mask * T"],
    outputs = &["output: T"],
    attrs = &["T: {half, bfloat16, float, double}", "num_mask: int >= 0", "scale: float = 1.0"],
    shape = attention,
    summary = "softmax(scale * q k^T + mask) v. q is [..., m, d], k [..., n, d], v [..., n, e], the output [..., m, e]; \
               the dimensions before the last two are equal in all three. There is one mask or none; it broadcasts \
               to [..., m, n].",
    cases = &[
        "plain; num_mask = 0; scale in {1.0, 0.125}; q: [b, 2, m, d]; k: [b, 2, n, d]; v: [b, 2, n, e]",
        "masked; scale = 0.25; q: [b, m, d]; k: [b, n, d]; v: [b, n, e]; mask: [b, 1, n]",
    ],
);

/// Checks that there is one mask at most, and that it broadcasts to these dimensions.
fn check_mask(c: &ShapeContext<'_>, first: usize, scores: &[Dim]) -> ShapeResult {
    let found = c.input_count() - first;
    if found > 1 {
        return Err(GeometryError::Length { what: "mask", expected: 1, found }.into());
    }
    if found == 0 || c.rank(c.input(first)).is_none() {
        return Ok(());
    }
    let mask = dims_of(c, c.input(first));
    let sizes = |shape: ShapeHandle| c.dims(shape).unwrap_or_default();
    let both = broadcast_dims(c, scores, &mask)?;
    let (joined, own) = (sizes(both), sizes(c.make_shape(scores)));
    // Broadcasting must not make the scores larger.
    let grows =
        joined.len() != own.len() || joined.iter().zip(&own).any(|(a, b)| a != b && *b >= 0);
    if grows {
        return Err(GeometryError::Incompatible { a: own, b: sizes(c.input(first)) }.into());
    }
    Ok(())
}

fn softmax_scale(c: &ShapeContext<'_>) -> ShapeResult {
    let logits = input_of_rank_at_least(c, 0, "logits", 1)?;
    if c.rank(logits).is_some() {
        check_mask(c, 1, &dims_of(c, logits))?;
    }
    c.set_output(0, logits)
}

fn attention(c: &ShapeContext<'_>) -> ShapeResult {
    let mut inputs: [Vec<Dim>; 3] = Default::default();
    for (at, name) in ["q", "k", "v"].into_iter().enumerate() {
        let input = input_of_rank_at_least(c, at, name, 2)?;
        if c.rank(input).is_none() {
            return c.set_output(0, c.unknown());
        }
        inputs[at] = dims_of(c, input);
    }
    let [q, k, v] = inputs;
    let rank = q.len();
    for (what, dims) in [("k", &k), ("v", &v)] {
        if dims.len() != rank {
            return Err(GeometryError::Rank { what, expected: rank, found: dims.len() }.into());
        }
    }
    let mut output = batch(c, &q, &k, &v)?;
    c.merge_dim(q[rank - 1], k[rank - 1])?;
    let keys = c.merge_dim(k[rank - 2], v[rank - 2])?;
    let mut scores = output.clone();
    scores.extend([q[rank - 2], keys]);
    check_mask(c, 3, &scores)?;
    output.extend([q[rank - 2], v[rank - 1]]);
    c.set_output(0, c.make_shape(&output))
}

/// The dimensions before the last two, which all three share.
fn batch(c: &ShapeContext<'_>, q: &[Dim], k: &[Dim], v: &[Dim]) -> Result<Vec<Dim>, KernelError> {
    let all = q.iter().zip(k).zip(v).take(q.len() - 2);
    all.map(|((&q, &k), &v)| c.merge_dim(c.merge_dim(q, k)?, v)).collect()
}
