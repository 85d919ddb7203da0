//! Distributes a product over the host's threads, and provides memory for a call.

use super::{
    super::product::{Factor, Operand, Target},
    blocks::Product,
    ending::{After, Ending},
    isa::Isa,
    left::Left,
    matrices::{packs_by_panels, reads_in_place, with_tail},
    right::{self, Right, packed_len},
};
use crate::{
    lane::Compute,
    panels::uninitialised,
    split::{Parts, for_units},
};
use tenon_sdk::{Code, KernelError, author::ComputeContext};

/// Approximate bytes per nanosecond from memory that is packed, or multiplied by few rows.
const BYTES_PER_NS: f64 = 16.0;
/// Bytes of a right factor that are packed at a time.
const SLICE_BYTES: usize = 16 << 20;

/// Packs a right factor for the duration of the call.
///
/// # Errors
/// Out of memory; the call was cancelled.
pub fn pack<'a, T: Compute<Wide: Factor>>(
    c: &ComputeContext<'a>,
    isa: &'static Isa<T::Wide>,
    matrix: &Operand<'_, T>,
) -> Result<Right<'a, T::Wide>, KernelError> {
    let size = [matrix.rows, matrix.cols];
    let len = packed_len(isa, size).ok_or_else(|| {
        KernelError::new(Code::RESOURCE_EXHAUSTED, "the size of packed factors overflows")
    })?;
    let packed = uninitialised::<T::Wide>(c, len)?;
    let panel = matrix.rows * isa.columns;
    let cost = (panel * size_of::<T::Wide>()) as f64 / BYTES_PER_NS;
    let parts = Parts::new(&mut *packed);
    for_units(c, matrix.cols.div_ceil(isa.columns), cost, |panels| {
        // SAFETY: ranges of one split are disjoint, and so are their panels.
        let to = unsafe { parts.part(panels.start * panel..panels.end * panel) };
        right::pack(isa, matrix, panels, to);
    })?;
    Ok(Right::packed(isa, size, packed))
}

/// Computes a product: split into strips of rows if there are more of them than panels of columns,
/// else into panels.
///
/// # Errors
/// The call was cancelled.
pub fn compute<S: Factor>(
    c: &ComputeContext<'_>,
    product: &Product<'_, S>,
) -> Result<(), KernelError> {
    let (strips, panels) = (product.strips(), product.panels());
    if strips < panels {
        return for_units(c, panels, product.cost_ns() / panels as f64, |range| {
            // SAFETY: ranges of one split are disjoint, and so are their columns.
            unsafe { product.run(0..strips, range) }
        });
    }
    // No more parts than keep all threads busy, since each reads the whole right factor.
    let parts = (4 * c.parallelism()).max(strips.div_ceil(product.chunk())).min(strips);
    let first = |part: usize| part * strips / parts;
    for_units(c, parts, product.cost_ns() / parts as f64, |range| {
        // SAFETY: ranges of one split are disjoint, and so are their rows.
        unsafe { product.run(first(range.start)..first(range.end), 0..panels) }
    })
}

/// Multiplies matrices, packing the right one for the duration of the call, part by part, or
/// reading it in place.
///
/// # Errors
/// Out of memory; the call was cancelled.
pub fn multiply<T: Compute<Wide: Factor>>(
    c: &ComputeContext<'_>,
    isa: &'static Isa<T::Wide>,
    a: &dyn Left<T::Wide>,
    b: &Operand<'_, T>,
    to: &Target<T::Wide>,
    ending: Ending<'_, T::Wide>,
) -> Result<(), KernelError> {
    if let Some(b) = b.itself().filter(|b| reads_in_place(isa, a.rows(), b)) {
        return with_tail(isa, &b, |right| compute(c, &Product::new(a, right, to, ending)));
    }
    if let Some(b) = b.itself().filter(|b| packs_by_panels(isa, a.rows(), b)) {
        return compute(c, &Product::fresh(isa, a, &b, to, ending));
    }
    let panels = SLICE_BYTES / (b.rows * isa.columns * size_of::<T::Wide>()).max(1);
    let slice = panels.max(1) * isa.columns;
    for first in (0..b.cols).step_by(slice) {
        let b = b.columns_from(first, slice.min(b.cols - first));
        let right = pack(c, isa, &b)?;
        // SAFETY: columns of the target, which only this call uses.
        let to = unsafe { to.columns_from(first, b.cols) };
        let moved = ending.rest.map(|rest| move |at: usize, y: &mut [T::Wide]| rest(first + at, y));
        let rest = moved.as_ref().map(|rest| rest as &After<'_, T::Wide>);
        let ending = Ending { finish: ending.finish.from(first, first), rest, all: None };
        compute(c, &Product::new(a, right, &to, ending))?;
    }
    Ok(())
}
