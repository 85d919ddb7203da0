//! `_FusedAttention`. The scores are never all in memory: a block of queries is multiplied by all
//! keys, its rows go through the softmax, and are multiplied by the values.

use super::{
    functions::Special,
    heads::{Heads, Layout, Place},
    mask::{Mask, at_most_one, prepare, select},
    softmax_scale::softmax_cost,
};
use crate::{
    kernels::{
        linalg::{
            matmul::{convert_down, widen},
            product::{Factor, Operand, cost_ns, dense_product},
        },
        nn::softmax::softmax_row,
    },
    lane::Compute,
    panels::{Panels, as_wide},
    split::for_rows,
};
use half::{bf16, f16};
use std::marker::PhantomData;
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::Number,
    reg::Numerics,
    register_kernel,
};

/// Number of scores in a block of queries, limited by the part of the second-level cache that keys
/// leave.
const SCORES: usize = 1 << 16;
/// With fewer queries per block, the keys would be packed too often.
const LEAST_ROWS: usize = 16;

/// Scaling and masking of scores before the softmax.
struct Scoring<'a, T: Compute> {
    scale: T::Wide,
    mask: Option<Mask<'a, T>>,
    keep: Option<Mask<'a, bool>>,
    dropped: T::Wide,
    zero_dropped: bool,
}

impl<T: Compute<Wide: Special>> Scoring<'_, T> {
    /// Turns a row of scores into weights.
    fn weigh(&self, row: usize, scores: &mut [T::Wide]) {
        prepare(scores, self.scale, self.mask.as_ref().map(|mask| mask.row(row)));
        let keep = self.keep.as_ref().map(|keep| keep.row(row));
        if let Some(keep) = keep {
            select(scores, keep, self.dropped);
        }
        softmax_row(scores);
        if let (Some(keep), true) = (keep, self.zero_dropped) {
            select(scores, keep, T::Wide::ZERO);
        }
    }
}

struct FusedAttention<T> {
    layout: Layout,
    scale: f32,
    dropped: f32,
    zero_dropped: bool,
    masks: usize,
    element: PhantomData<T>,
}

impl<T: Compute<Wide: Factor + Special>> Kernel for FusedAttention<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let masks: i64 = c.attr("num_mask")?;
        let keeps: i64 = c.attr("num_keep")?;
        at_most_one("keep", keeps as usize)?;
        Ok(FusedAttention {
            layout: match c.attr::<&str>("layout")? {
                "HEADS_INSIDE" => Layout::HeadsInside,
                _ => Layout::HeadsFirst,
            },
            scale: c.attr("scale")?,
            dropped: c.attr("dropped")?,
            zero_dropped: c.attr("zero_dropped")?,
            masks: usize::from(at_most_one("mask", masks as usize)?),
            element: PhantomData,
        })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let [q, k, v] = [c.input::<T>(0)?, c.input::<T>(1)?, c.input::<T>(2)?];
        let masks: Vec<&[i64]> = (3..c.input_count()).map(|at| c.dims(at)).collect();
        let heads = Heads::new(self.layout, [q.dims, k.dims, v.dims], &masks)?;
        let scores = heads.scores();
        let mask = (self.masks > 0).then(|| c.input::<T>(3)).transpose()?;
        let keep = 3 + self.masks;
        let keep = (keep < c.input_count()).then(|| c.input::<bool>(keep)).transpose()?;
        let scoring = Scoring {
            scale: <T::Wide as Number>::from_f64(self.scale.into()),
            mask: mask.map(|mask| Mask::over(mask.data, mask.dims, &scores)),
            keep: keep.map(|keep| Mask::over(keep.data, keep.dims, &scores)),
            dropped: <T::Wide as Number>::from_f64(self.dropped.into()),
            zero_dropped: self.zero_dropped,
        };
        let y = c.output::<T>(0, &heads.output())?.data;
        if y.is_empty() {
            return Ok(());
        }
        if let Some(y) = as_wide(y) {
            let [q, k, v] = [0, 1, 2].map(|at| c.input::<T::Wide>(at));
            return attend(c, &heads, [q?.data, k?.data, v?.data], &scoring, y);
        }
        let wide = c.scratch_slice::<T::Wide>(y.len())?;
        let inputs = [&*widen(c, q.data)?, &*widen(c, k.data)?, &*widen(c, v.data)?];
        attend(c, &heads, inputs, &scoring, wide)?;
        convert_down(wide, y);
        Ok(())
    }
}

/// Number of queries in a block.
fn block_rows(heads: &Heads) -> usize {
    (SCORES / heads.n.max(1)).max(LEAST_ROWS).min(heads.m)
}

fn attend<T: Compute<Wide: Factor + Special>>(
    c: &ComputeContext<'_>,
    heads: &Heads,
    inputs: [&[T::Wide]; 3],
    scoring: &Scoring<'_, T>,
    y: &mut [T::Wide],
) -> Result<(), KernelError> {
    let &Heads { m, n, d, e, inside, .. } = heads;
    let rows = block_rows(heads);
    let room = rows.saturating_mul(n.saturating_add(if inside > 1 { e } else { 0 }));
    let panels = Panels::<T::Wide>::new(c, y.len() / (e * inside), room)?;
    let cost =
        cost_ns::<T::Wide>(1, n, d) + cost_ns::<T::Wide>(1, e, n) + softmax_cost::<T>() * n as f64;
    for_rows(c, y, e * inside, cost * inside as f64, |first, mut y| {
        let mut panel = panels.take();
        let mut row = first;
        while !y.is_empty() {
            // At most the queries of this batch.
            let count = rows.min(m - row % m).min(y.len() / (e * inside));
            let (block, rest) = y.split_at_mut(count * e * inside);
            for head in 0..inside {
                let place = heads.place(row / m * inside + head, row % m, count);
                attend_block(heads, place, inputs, scoring, &mut panel, (head, &mut *block));
            }
            (row, y) = (row + count, rest);
        }
    })
}

/// Computes a block of queries of one head, number `head` of those whose results are side by side
/// in `y`.
fn attend_block<T: Compute<Wide: Factor + Special>>(
    heads: &Heads,
    place: Place,
    [q, k, v]: [&[T::Wide]; 3],
    scoring: &Scoring<'_, T>,
    panel: &mut [T::Wide],
    (head, y): (usize, &mut [T::Wide]),
) {
    let &Heads { n, e, inside, .. } = heads;
    let rows = place.rows;
    let operand = |data, at: usize| {
        let (rows, cols, stride) = place.matrices[at].size;
        Operand { data: part(data, place.matrices[at].at), rows, cols, strides: [stride, 1] }
    };
    let (scores, rest) = panel.split_at_mut(rows * n);
    dense_product(operand(q, 0), operand(k, 1).transposed(), scores);
    if n > 0 {
        for (row, scores) in scores.chunks_exact_mut(n).enumerate() {
            scoring.weigh(place.row + row, scores);
        }
    }
    let weights = Operand::dense(&*scores, rows, n);
    if inside == 1 {
        return dense_product(weights, operand(v, 2), y);
    }
    let product = &mut rest[..rows * e];
    dense_product(weights, operand(v, 2), product);
    for (y, product) in y.chunks_exact_mut(e * inside).zip(product.chunks_exact(e)) {
        y[head * e..][..e].copy_from_slice(product);
    }
}

/// The elements from an index on; empty if that is past the end, as for an empty tensor.
fn part<T>(data: &[T], at: usize) -> &[T] {
    data.get(at..).unwrap_or_default()
}

macro_rules! attentions {
    ($($ty:ident, $accumulation:ident, $absolute:expr, $relative:expr;)*) => {$(
        register_kernel!("_FusedAttention" on "CPU": FusedAttention<T> for "T" in [$ty],
            numerics = Numerics::relative($absolute, $relative).accumulation(DType::$accumulation));
    )*};
}

// Bounds relative to the sum of the absolute terms.
attentions! {
    f32, FLOAT, 1e-6, 2e-5;
    f64, DOUBLE, 1e-15, 1e-13;
    f16, FLOAT, 1e-3, 4e-3;
    bf16, FLOAT, 8e-3, 3.2e-2;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_close, values};

    /// Computes the formula; `at` gives the position of an element of queries, keys, values or
    /// results.
    fn exact(heads: &Heads, [q, k, v]: [&[f64]; 3], scale: f64) -> Vec<f64> {
        let &Heads { m, n, d, e, inside, .. } = heads;
        let scores = heads.scores();
        let count: i64 = scores[..scores.len() - 2].iter().product();
        let mut y = vec![f64::NAN; count as usize * m * e];
        for number in 0..count as usize {
            for row in 0..m {
                let [queries, keys, values] = heads.place(number, row, 1).matrices;
                let score = |j: usize| -> f64 {
                    let terms =
                        (0..d).map(|i| q[queries.at + i] * k[keys.at + j * keys.size.2 + i]);
                    scale * terms.sum::<f64>()
                };
                let powers: Vec<f64> = (0..n).map(|j| score(j).exp()).collect();
                let sum: f64 = powers.iter().sum();
                let at = (number / inside * m + row) * inside + number % inside;
                for (i, y) in y[at * e..][..e].iter_mut().enumerate() {
                    let terms =
                        (0..n).map(|j| powers[j] / sum * v[values.at + j * values.size.2 + i]);
                    *y = terms.sum();
                }
            }
        }
        y
    }

    fn check(layout: Layout, dims: [&[i64]; 3], masks: &[&[i64]]) {
        let len = |dims: &[i64]| dims.iter().product::<i64>() as usize;
        let [q, k, v] = [0, 1, 2].map(|at| values::<f64>(len(dims[at]), at as u64 + 1));
        let heads = Heads::new(layout, dims, masks).unwrap();
        let expected = exact(&heads, [&q, &k, &v], 0.25);
        let scoring = Scoring::<f64> {
            scale: 0.25,
            mask: None,
            keep: None,
            dropped: 0.0,
            zero_dropped: false,
        };
        let &Heads { m, n, e, inside, .. } = &heads;
        let rows = m.div_ceil(2);
        let mut panel = vec![0.0; rows * (n + e)];
        let mut found = vec![9.0; expected.len()];
        let blocks = found.chunks_exact_mut(m * e * inside).enumerate();
        for (outer, y) in blocks {
            for (at, y) in y.chunks_mut(rows * e * inside).enumerate() {
                for head in 0..inside {
                    let count = y.len() / (e * inside);
                    let place = heads.place(outer * inside + head, at * rows, count);
                    attend_block(
                        &heads,
                        place,
                        [&q, &k, &v],
                        &scoring,
                        &mut panel,
                        (head, &mut *y),
                    );
                }
            }
        }
        assert_close(&found, &expected, 1e-13, 1e-13);
    }

    #[test]
    fn blocks_of_queries_agree_with_the_formula() {
        check(Layout::HeadsFirst, [&[2, 5, 3], &[2, 7, 3], &[2, 7, 4]], &[]);
        check(Layout::HeadsFirst, [&[1, 1], &[1, 1], &[1, 1]], &[]);
        check(Layout::HeadsFirst, [&[33, 16], &[70, 16], &[70, 24]], &[]);
        // Without keys nothing is summed.
        check(Layout::HeadsFirst, [&[2, 3], &[0, 3], &[0, 2]], &[]);
        // Heads are shared, and masks are repeated.
        check(Layout::HeadsFirst, [&[2, 1, 5, 3], &[3, 7, 3], &[7, 4]], &[]);
        check(Layout::HeadsFirst, [&[1, 3], &[1, 3], &[7, 4]], &[&[2, 5, 7]]);
        check(Layout::HeadsInside, [&[2, 5, 3, 4], &[2, 7, 3, 4], &[2, 7, 3, 6]], &[]);
    }

    #[test]
    fn what_is_not_kept_counts_as_dropped() {
        let weights = |keep: [bool; 3], dropped, zero_dropped| {
            let scoring = Scoring::<f32> {
                scale: 0.5,
                mask: None,
                keep: Some(Mask::over(&keep, &[3], &[1, 3])),
                dropped,
                zero_dropped,
            };
            let mut scores = [2.0, f32::NAN, 2.0];
            scoring.weigh(0, &mut scores);
            scores
        };
        assert_eq!(weights([true, false, true], f32::NEG_INFINITY, false), [0.5, 0.0, 0.5]);
        assert_eq!(weights([true, false, true], -1e9, true), [0.5, 0.0, 0.5]);
        // For a query that keeps no key: equal weights, or none.
        assert_eq!(weights([false; 3], -1e9, false), [1.0 / 3.0; 3]);
        assert_eq!(weights([false; 3], -1e9, true), [0.0; 3]);
    }
}
