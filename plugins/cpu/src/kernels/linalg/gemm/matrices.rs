//! Matrices as right factors of products: read in place, or packed for the product.

use super::{
    super::product::{Factor, Operand, Target},
    blocks::{FEW_STRIPS, Product},
    ending::Ending,
    isa::Isa,
    right::{self, Right, packed_len, tail_of},
    scratch::{self, Side},
};

/// The greatest number of strips of rows for which the right factor is packed a few panels at a
/// time. More strips than these repay a pass that packs all of it.
const MOST_STRIPS_BY_PANELS: usize = 16;
/// Bytes of the right factor that a product without threads packs at a time.
const SLICE_BYTES: usize = 2 << 20;
/// Most bytes of a right factor that is read in place regardless of the number of rows.
const SMALL_BYTES: usize = 32 << 10;
/// Most bytes of a panel that is packed as a whole, where there are few panels: a longer one would
/// be written to memory, and take more of it than the matrix.
const LONG_BYTES: usize = 256 << 10;
const FEW_PANELS: usize = 4;

/// Computes a product on the caller's thread, without memory of a call; a right factor that is
/// packed is processed part by part.
///
/// Panics if sizes do not match, or the results are not contiguous.
pub fn alone<S: Factor>(
    isa: &'static Isa<S>,
    a: &Operand<'_, S>,
    b: &Operand<'_, S>,
    c: &Target<S>,
) {
    let run = |product: &Product<'_, S>| {
        // SAFETY: only this call uses the target.
        unsafe { product.run(0..product.strips(), 0..product.panels()) }
    };
    if reads_in_place(isa, a.rows, b) {
        return with_tail(isa, b, |right| run(&Product::new(a, right, c, Ending::NONE)));
    }
    if packs_by_panels(isa, a.rows, b) {
        return run(&Product::fresh(isa, a, b, c, Ending::NONE));
    }
    let panels = SLICE_BYTES / (b.rows * isa.columns * size_of::<S>()).max(1);
    let slice = panels.max(1) * isa.columns;
    for first in (0..b.cols).step_by(slice) {
        let b = b.columns_from(first, slice.min(b.cols - first));
        let size = [b.rows, b.cols];
        // SAFETY: columns of the target, which only this call uses.
        let c = unsafe { c.columns_from(first, b.cols) };
        let len = packed_len(isa, size).expect("packed factors fit the address space");
        scratch::with(Side::Right, len, |packed| {
            let packed = &mut packed[..len];
            right::pack(isa, &b, 0..b.cols.div_ceil(isa.columns), packed);
            run(&Product::new(a, Right::packed(isa, size, packed), &c, Ending::NONE));
        });
    }
}

/// Whether a right factor is read in place.
pub fn reads_in_place<S: Factor>(isa: &Isa<S>, rows: usize, b: &Operand<'_, S>) -> bool {
    let few = rows <= FEW_STRIPS * isa.rows || b.rows * b.cols * size_of::<S>() <= SMALL_BYTES;
    few && (b.strides[1] == 1 || b.cols <= 1) && !is_long(isa, b)
}

/// Whether a right factor has few columns of many factors, some of which must be packed.
fn is_long<S: Factor>(isa: &Isa<S>, b: &Operand<'_, S>) -> bool {
    b.rows.saturating_mul(isa.columns * size_of::<S>()) > LONG_BYTES
        && b.cols.div_ceil(isa.columns) <= FEW_PANELS
        && (b.strides[1] != 1 || tail_of(isa, b.cols) > 0)
}

/// Whether a right factor is packed a few panels at a time: all rows are in one chunk, and its
/// panels are more than the strips of rows, so that threads share the panels, or long.
pub fn packs_by_panels<S: Factor>(isa: &Isa<S>, rows: usize, b: &Operand<'_, S>) -> bool {
    let strips = rows.div_ceil(isa.rows);
    let are_shared = strips < b.cols.div_ceil(isa.columns) && b.strides[1] == 1;
    strips <= MOST_STRIPS_BY_PANELS && (are_shared || is_long(isa, b))
}

/// Calls `body` with a right factor that is read in place, except for its last panel.
pub fn with_tail<S: Factor, R>(
    isa: &'static Isa<S>,
    b: &Operand<'_, S>,
    body: impl FnOnce(Right<'_, S>) -> R,
) -> R {
    if tail_of(isa, b.cols) == 0 {
        return body(Right::in_place(isa, b, &[]));
    }
    let len = b.rows * isa.columns;
    scratch::with(Side::Right, len, |tail| {
        let (tail, last) = (&mut tail[..len], b.cols / isa.columns);
        right::pack(isa, b, last..last + 1, tail);
        body(Right::in_place(isa, b, tail))
    })
}
