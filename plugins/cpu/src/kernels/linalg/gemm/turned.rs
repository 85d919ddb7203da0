//! Products of few rows by a large matrix, as a layer and its gradient by its inputs are: `C = A B` by
//! way of `C^T = B^T A^T`.
//!
//! The large matrix is then the left factor, which tiles read in place, by rows or by columns, and
//! only the small `A` is packed. Some rows of `C^T` are computed at a time, in the cache, and
//! transposed into the columns of `C`.

use super::{
    super::product::{Factor, Operand, Target},
    blocks::Product,
    ending::{After, Ending},
    isa::Isa,
    left::Left,
    scratch::{self, Side},
    spread,
};
use crate::{
    kernels::array::turn::turn_part,
    lane::Compute,
    panels::{as_narrow, as_wide},
    split::{Parts, for_units},
};
use tenon_sdk::{KernelError, author::ComputeContext};

/// Strips of rows that are computed, and then transposed, at a time.
const STRIPS: usize = 12;

/// Bytes of a matrix stored by rows up to which its columns are read in place: it stays in the
/// third-level cache.
const CACHED: usize = 4 << 20;
/// The most vectors of rows of `A` for which they are.
const MOST_VECTORS: usize = 2;

/// Whether a product is computed transposed. A matrix that is stored by columns would have to be
/// transposed to be packed: it is if packing `a` and transposing the product moves much less memory.
/// One that is stored by rows is packed as fast as it is read, so that only products of one or two
/// whole vectors of rows are faster.
fn is_worthwhile<T: 'static>(isa: &Isa<T>, a: &Operand<'_, T>, b: &Operand<'_, T>) -> bool {
    let (rows, depth, columns) = (a.rows, a.cols, b.cols);
    let turned = rows.saturating_mul(depth.saturating_add(columns));
    let is_large = turned <= depth.saturating_mul(columns) / 2;
    match b.strides {
        [1, step] if step > 1 => is_large,
        [step, 1] if step > 1 => {
            let is_whole = rows.is_multiple_of(isa.lanes) && rows <= MOST_VECTORS * isa.lanes;
            is_large && is_whole && depth * columns * size_of::<T>() <= CACHED
        }
        _ => false,
    }
}

/// Computes the product into `y`, row by row, and then what `all` says. Returns `false`, and
/// computes nothing, if the product is not faster transposed, or the type does not compute in itself.
///
/// Panics when sizes do not agree.
///
/// # Errors
/// Out of memory; the call was cancelled.
pub fn write<T: Compute<Wide: Factor>>(
    c: &ComputeContext<'_>,
    isa: &'static Isa<T::Wide>,
    [a, b]: [&Operand<'_, T>; 2],
    y: &mut [T],
    all: Option<&After<'_, T>>,
) -> Result<bool, KernelError> {
    let (Some(a), Some(b), Some(y)) = (a.itself(), b.itself(), as_wide(y)) else {
        return Ok(false);
    };
    if !is_worthwhile(isa, &a, &b) {
        return Ok(false);
    }
    let (rows, columns) = (a.rows, b.cols);
    assert!(a.cols == b.rows && y.len() == rows * columns, "sizes agree");
    let (right, left) = (spread::pack(c, isa, &a.transposed())?, b.transposed());
    let slab = STRIPS * isa.rows;
    let cost = slab as f64 * rows as f64 * (a.cols as f64 + 32.0) / isa.rate;
    let y = Parts::new(y);
    for_units(c, columns.div_ceil(slab), cost, |slabs| {
        for first in slabs.map(|at| at * slab) {
            let count = slab.min(columns - first);
            let left = left.rows_from(first, count);
            scratch::with(Side::Result, count * rows, |turned: &mut [T::Wide]| {
                // SAFETY: the target is the whole buffer.
                let target = unsafe { Target::new(turned.as_mut_ptr(), count, rows, [rows, 1]) };
                let product =
                    Product::new(&left as &dyn Left<T::Wide>, right, &target, Ending::NONE);
                // SAFETY: only this call uses the buffer.
                unsafe { product.run(0..product.strips(), 0..product.panels()) };
                // SAFETY: slabs are disjoint, and so are their columns.
                unsafe { turn_part(turned, [count, rows], (&y, first), columns) };
            });
            let Some(all) = all else { continue };
            for row in 0..rows {
                let at = row * columns + first;
                // SAFETY: slabs are disjoint, and so are their parts of each row.
                let part = unsafe { y.part(at..at + count) };
                all(at, as_narrow(part).expect("the type computes in itself"));
            }
        }
    })?;
    Ok(true)
}
