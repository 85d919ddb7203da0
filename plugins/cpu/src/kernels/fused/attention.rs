//! `_FusedAttention` and `_FusedSoftmaxScale`. Scores are never written to memory as a whole: a block of queries is
//! multiplied with all keys, its rows go through the softmax, and are multiplied with the values.

use super::{
    functions::Special,
    mask::{Mask, prepare},
};
use crate::{
    kernels::{
        linalg::{
            matmul::{convert_down, convert_up, widen},
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
    geometry::GeometryError,
    reg::Numerics,
    register_kernel,
};

/// Scores of a block of queries: what the second-level cache holds besides keys.
const SCORES: usize = 1 << 16;
/// Fewer queries in a block would pack the keys too often.
const LEAST_ROWS: usize = 16;

struct FusedSoftmaxScale<T> {
    scale: f32,
    element: PhantomData<T>,
}

impl<T: Compute<Wide: Special>> Kernel for FusedSoftmaxScale<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(FusedSoftmaxScale { scale: c.attr("scale")?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let x = c.input::<T>(0)?;
        let Some(&cols) = x.dims.last() else {
            return Err(KernelError::invalid_argument(
                "logits must have at least 1 dimensions, got 0",
            ));
        };
        let mask = Mask::<T>::new(c, 1, x.dims)?;
        let scale = <T::Wide as Number>::from_f64(self.scale.into());
        let y = c.output::<T>(0, x.dims)?.data;
        let cols = cols as usize;
        let panels = Panels::<T::Wide>::new(c, y.len(), narrow_len::<T>(cols))?;
        let cost = (softmax_cost::<T>()) * cols as f64 + 10.0;
        for_rows(c, y, cols, cost, |first, y| {
            let mut panel = panels.take();
            for (at, y) in y.chunks_exact_mut(cols).enumerate() {
                let row = first + at;
                let x = &x.data[row * cols..][..cols];
                let mask = mask.as_ref().map(|mask| mask.row(row));
                softmax_of(x, scale, mask, &mut panel, y);
            }
        })
    }
}

/// Length of a row in the type of computation, where that is another one.
fn narrow_len<T: Compute>(cols: usize) -> usize {
    if as_wide::<T>(&mut []).is_some() { 0 } else { cols }
}

fn softmax_cost<T: Compute<Wide: Special>>() -> f64 {
    <T::Wide as crate::kernels::elementary::Elementary>::COST_NS + 0.7
}

/// One row; `wide` has room for it where it is computed in another type.
fn softmax_of<T: Compute<Wide: Special>>(
    x: &[T],
    scale: T::Wide,
    mask: Option<&[T]>,
    wide: &mut [T::Wide],
    y: &mut [T],
) {
    y.copy_from_slice(x);
    if let Some(y) = as_wide(y) {
        prepare(y, scale, mask);
        softmax_row(y);
        return;
    }
    convert_up(x, wide);
    prepare(wide, scale, mask);
    softmax_row(wide);
    convert_down(wide, y);
}

/// Sizes of an attention: `batch` times queries `[m, d]`, keys `[n, d]`, values `[n, e]`.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    batch: usize,
    m: usize,
    n: usize,
    d: usize,
    e: usize,
}

impl Sizes {
    /// Checks the dimensions of queries, keys and values.
    fn new(q: &[i64], k: &[i64], v: &[i64]) -> Result<Sizes, GeometryError> {
        for (what, dims) in [("q", q), ("k", k), ("v", v)] {
            if dims.len() < 2 {
                return Err(GeometryError::RankTooSmall { what, expected: 2, found: dims.len() });
            }
            if dims.len() != q.len() {
                return Err(GeometryError::Rank { what, expected: q.len(), found: dims.len() });
            }
        }
        let last = q.len() - 2;
        let incompatible = |a: &[i64], b: &[i64]| {
            Err(GeometryError::Incompatible { a: a.to_vec(), b: b.to_vec() })
        };
        if q[..last] != k[..last] || q[last + 1] != k[last + 1] {
            return incompatible(q, k);
        }
        if k[..last] != v[..last] || k[last] != v[last] {
            return incompatible(k, v);
        }
        let size = |dim: i64| dim as usize;
        // Of tensors that exist: where no dimension is 0, the product fits.
        let batch = q[..last].iter().fold(1usize, |all, &dim| all.saturating_mul(size(dim)));
        let [m, d] = [size(q[last]), size(q[last + 1])];
        Ok(Sizes { batch, m, d, n: size(k[last]), e: size(v[last + 1]) })
    }

    /// Queries of a block.
    fn rows(&self) -> usize {
        (SCORES / self.n.max(1)).max(LEAST_ROWS).min(self.m)
    }

    /// Queries `first..first + rows` of a batch; `scores` has room for them times all keys.
    fn block<T: Compute<Wide: Factor + Special>>(
        &self,
        [q, k, v]: [&[T::Wide]; 3],
        at: usize,
        first: usize,
        softmax: impl Fn(usize, &mut [T::Wide]),
        scores: &mut [T::Wide],
        y: &mut [T::Wide],
    ) {
        let Sizes { m, n, d, e, .. } = *self;
        let rows = y.len() / e;
        let scores = &mut scores[..rows * n];
        let q = Operand::dense(&q[(at * m + first) * d..][..rows * d], rows, d);
        let k = Operand::dense(&k[at * n * d..][..n * d], n, d);
        let v = Operand::dense(&v[at * n * e..][..n * e], n, e);
        dense_product(q, k.transposed(), scores);
        if n > 0 {
            for (row, scores) in scores.chunks_exact_mut(n).enumerate() {
                softmax(at * m + first + row, scores);
            }
        }
        dense_product(Operand::dense(&*scores, rows, n), v, y);
    }
}

struct FusedAttention<T> {
    scale: f32,
    element: PhantomData<T>,
}

impl<T: Compute<Wide: Factor + Special>> Kernel for FusedAttention<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(FusedAttention { scale: c.attr("scale")?, element: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let [q, k, v] = [c.input::<T>(0)?, c.input::<T>(1)?, c.input::<T>(2)?];
        let sizes = Sizes::new(q.dims, k.dims, v.dims)?;
        let last = q.dims.len() - 1;
        let mut dims = q.dims.to_vec();
        dims[last] = k.dims[last - 1];
        let mask = Mask::<T>::new(c, 3, &dims)?;
        dims[last] = v.dims[last];
        let y = c.output::<T>(0, &dims)?.data;
        if y.is_empty() {
            return Ok(());
        }
        let scale = <T::Wide as Number>::from_f64(self.scale.into());
        let softmax = |row: usize, scores: &mut [T::Wide]| {
            prepare(scores, scale, mask.as_ref().map(|mask| mask.row(row)));
            softmax_row(scores);
        };
        if let Some(y) = as_wide(y) {
            let inputs = [0, 1, 2].map(|at| c.input::<T::Wide>(at));
            let [q, k, v] = inputs;
            return attend::<T>(c, sizes, [q?.data, k?.data, v?.data], softmax, y);
        }
        let wide = c.scratch_slice::<T::Wide>(y.len())?;
        let inputs = [&*widen(c, q.data)?, &*widen(c, k.data)?, &*widen(c, v.data)?];
        attend::<T>(c, sizes, inputs, softmax, wide)?;
        convert_down(wide, y);
        Ok(())
    }
}

fn attend<T: Compute<Wide: Factor + Special>>(
    c: &ComputeContext<'_>,
    sizes: Sizes,
    inputs: [&[T::Wide]; 3],
    softmax: impl Fn(usize, &mut [T::Wide]) + Sync,
    y: &mut [T::Wide],
) -> Result<(), KernelError> {
    let Sizes { batch, m, n, d, e } = sizes;
    let rows = sizes.rows();
    let scores = rows.saturating_mul(n);
    let panels = Panels::<T::Wide>::new(c, batch.saturating_mul(m), scores)?;
    let cost =
        cost_ns::<T::Wide>(1, n, d) + cost_ns::<T::Wide>(1, e, n) + softmax_cost::<T>() * n as f64;
    for_rows(c, y, e, cost, |first, mut y| {
        let mut scores = panels.take();
        let mut row = first;
        while !y.is_empty() {
            // Not beyond the queries of this batch.
            let count = rows.min(m - row % m).min(y.len() / e);
            let (block, rest) = y.split_at_mut(count * e);
            sizes.block::<T>(inputs, row / m, row % m, &softmax, &mut scores, block);
            (row, y) = (row + count, rest);
        }
    })
}

macro_rules! attentions {
    ($($ty:ident, $accumulation:ident, $softmax:expr, $attention:expr;)*) => {$(
        register_kernel!("_FusedSoftmaxScale" on "CPU": FusedSoftmaxScale<T> for "T" in [$ty],
            numerics = Numerics::relative($softmax.0, $softmax.1).accumulation(DType::$accumulation));
        register_kernel!("_FusedAttention" on "CPU": FusedAttention<T> for "T" in [$ty],
            numerics = Numerics::relative($attention.0, $attention.1).accumulation(DType::$accumulation));
    )*};
}

// Of an attention relative to the sum of the absolute terms.
attentions! {
    f32, FLOAT, (1e-7, 1e-5), (1e-6, 2e-5);
    f64, DOUBLE, (1e-16, 1e-13), (1e-15, 1e-13);
    f16, FLOAT, (1e-5, 4e-3), (1e-3, 4e-3);
    bf16, FLOAT, (1e-4, 3.2e-2), (8e-3, 3.2e-2);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_close, values};

    fn exact(s: Sizes, q: &[f64], k: &[f64], v: &[f64], scale: f64) -> Vec<f64> {
        let mut y = Vec::new();
        for row in 0..s.batch * s.m {
            let at = row / s.m;
            let score = |j: usize| {
                let products = (0..s.d).map(|i| q[row * s.d + i] * k[(at * s.n + j) * s.d + i]);
                scale * products.sum::<f64>()
            };
            let scores: Vec<f64> = (0..s.n).map(score).collect();
            let max = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let powers: Vec<f64> = scores.iter().map(|x| (x - max).exp()).collect();
            let sum: f64 = powers.iter().sum();
            y.extend((0..s.e).map(|i| {
                (0..s.n).map(|j| powers[j] / sum * v[(at * s.n + j) * s.e + i]).sum::<f64>()
            }));
        }
        y
    }

    fn check(s: Sizes) {
        let q = values::<f64>(s.batch * s.m * s.d, 1);
        let k = values::<f64>(s.batch * s.n * s.d, 2);
        let v = values::<f64>(s.batch * s.n * s.e, 3);
        let expected = exact(s, &q, &k, &v, 0.25);
        let mut found = vec![9.0; expected.len()];
        let softmax = |_: usize, scores: &mut [f64]| {
            prepare::<f64>(scores, 0.25, None);
            softmax_row(scores);
        };
        let rows = s.m.div_ceil(2);
        let mut scores = vec![0.0; rows * s.n];
        for at in 0..s.batch {
            for first in (0..s.m).step_by(rows) {
                let last = (first + rows).min(s.m);
                let y = &mut found[(at * s.m + first) * s.e..(at * s.m + last) * s.e];
                s.block::<f64>([&q, &k, &v], at, first, softmax, &mut scores, y);
            }
        }
        assert_close(&found, &expected, 1e-13, 1e-13);
    }

    #[test]
    fn blocks_of_queries_agree_with_the_formula() {
        check(Sizes { batch: 2, m: 5, n: 7, d: 3, e: 4 });
        check(Sizes { batch: 1, m: 1, n: 1, d: 1, e: 1 });
        check(Sizes { batch: 1, m: 33, n: 70, d: 16, e: 24 });
        // No keys: nothing is summed.
        check(Sizes { batch: 1, m: 2, n: 0, d: 3, e: 2 });
    }

    #[test]
    fn rows_are_scaled_and_masked_before_the_softmax() {
        let (x, mask) = ([4.0f32, 8.0, 0.0], [0.0, f32::NEG_INFINITY, 1.0]);
        let mut y = [0.0; 3];
        softmax_of(&x, 0.25, Some(&mask), &mut [], &mut y);
        assert_eq!(y, [0.5, 0.0, 0.5]);
        let narrow = x.map(bf16::from_f32);
        let (mut y, mut wide) = ([bf16::ZERO; 3], [0.0; 3]);
        softmax_of(&narrow, 0.25, Some(&mask.map(bf16::from_f32)), &mut wide, &mut y);
        assert_eq!(y.map(|y| y.to_f32()), [0.5, 0.0, 0.5]);
    }

    #[test]
    fn sizes_that_do_not_agree_are_told() {
        let error = |q: &[i64], k: &[i64], v: &[i64]| Sizes::new(q, k, v).unwrap_err().to_string();
        assert_eq!(error(&[2, 3], &[2, 4, 3], &[4, 5]), "k must have 2 dimensions, got 3");
        assert!(error(&[2, 3], &[4, 4], &[4, 5]).contains("[2, 3]"));
        assert!(error(&[2, 3], &[4, 3], &[5, 5]).contains("[5, 5]"));
    }
}
