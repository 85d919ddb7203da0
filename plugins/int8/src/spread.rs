//! Distributes a product over the host's threads, and provides memory for a call.

use crate::{
    isa::Isa,
    pack::{LINE, Source},
    product::{Product, Right, RightSizes},
};
use std::{cmp::Ordering, marker::PhantomData, ops::Range, slice};
use tenon_sdk::{Code, KernelError, abi::MemoryKind, author::ComputeContext, pages::Line};

/// Work below this cost stays on the caller's thread, since the host would not share it.
const WORTH_ASKING_NS: f64 = 8_000.0;
/// Approximate bytes packed per nanosecond.
const PACKED_PER_NS: f64 = 2.0;

/// Lines with undefined contents.
fn lines_of<'a>(c: &ComputeContext<'a>, count: usize) -> Result<&'a mut [Line], KernelError> {
    if count == 0 {
        return Ok(&mut []);
    }
    let bytes = count.checked_mul(LINE).ok_or_else(too_large)?;
    let first = c.scratch(bytes, MemoryKind::HOST)?.cast::<Line>();
    // SAFETY: new host memory for `count` lines, aligned to 64 bytes, owned until the call
    // completes; any bytes are a valid line, and every byte is written before it is read.
    Ok(unsafe { slice::from_raw_parts_mut(first, count) })
}

/// The error of a size of scratch memory that overflows.
pub fn too_large() -> KernelError {
    KernelError::new(Code::RESOURCE_EXHAUSTED, "the size of scratch memory overflows")
}

/// A slice that several threads write in disjoint parts.
struct Parts<'a, T> {
    first: *mut T,
    len: usize,
    life: PhantomData<&'a mut [T]>,
}

// SAFETY: an unsafe function hands out the parts, whose callers guarantee that they are disjoint.
unsafe impl<T: Send> Sync for Parts<'_, T> {}

impl<'a, T> Parts<'a, T> {
    fn new(slice: &'a mut [T]) -> Parts<'a, T> {
        Parts { first: slice.as_mut_ptr(), len: slice.len(), life: PhantomData }
    }

    /// # Safety
    /// - No other part in use overlaps it.
    #[expect(clippy::mut_from_ref, reason = "the parts are disjoint by the caller's promise")]
    unsafe fn part(&self, range: Range<usize>) -> &mut [T] {
        assert!(range.start <= range.end && range.end <= self.len);
        // SAFETY: the range is inside the slice; the caller guarantees that no other part in use
        // overlaps it.
        unsafe { slice::from_raw_parts_mut(self.first.add(range.start), range.len()) }
    }
}

/// Computes `0..total` on the host's threads if that is worthwhile; `body` also receives the number
/// of its worker, below `workers`.
///
/// # Errors
/// `INTERNAL` when `body` panicked.
pub fn for_units(
    c: &ComputeContext<'_>,
    total: usize,
    cost_ns: f64,
    body: impl Fn(Range<usize>, usize) + Sync,
) -> Result<(), KernelError> {
    if total == 0 {
        return Ok(());
    }
    if total as f64 * cost_ns < WORTH_ASKING_NS {
        body(0..total, 0);
        return Ok(());
    }
    c.parallel_for_workers(total, cost_ns, body)
}

/// Packs a right matrix for the duration of the call.
///
/// # Errors
/// Out of memory.
pub fn pack_right<'a>(
    c: &ComputeContext<'a>,
    isa: &'static Isa,
    source: &Source<'_>,
) -> Result<Right<'a>, KernelError> {
    let (depth, columns) = (source.depth(), source.lines());
    let sizes = RightSizes::new(isa, depth, columns);
    let lines = sizes.panels.checked_mul(sizes.panel_lines).ok_or_else(too_large)?;
    let panels = lines_of(c, lines)?;
    let sums = c.scratch_slice::<i32>(sizes.panels * sizes.panel_columns)?;
    let (all_panels, all_sums) = (Parts::new(&mut *panels), Parts::new(&mut *sums));
    let cost_ns = (depth * isa.columns) as f64 / PACKED_PER_NS;
    for_units(c, sizes.panels, cost_ns, |range, _| {
        let lines = range.start * sizes.panel_lines..range.end * sizes.panel_lines;
        let columns = range.start * sizes.panel_columns..range.end * sizes.panel_columns;
        let first = columns.start;
        // SAFETY: ranges of one split are disjoint, and so are their panels.
        let (panels, sums) = unsafe { (all_panels.part(lines), all_sums.part(columns)) };
        sizes.each(panels, sums, |at, panel, sums| isa.pack_right(source, first + at, panel, sums));
    })?;
    Ok(Right::new(isa, [depth, columns], panels, sums))
}

/// Computes a product: split into panels of rows if there are more of them, else into panels of
/// columns.
///
/// # Errors
/// Out of memory.
pub fn compute(c: &ComputeContext<'_>, product: &Product<'_>) -> Result<(), KernelError> {
    let (rows, columns) = (product.row_panels(), product.column_panels());
    let by_rows = rows.cmp(&columns) != Ordering::Less;
    let (units, others) = if by_rows { (rows, columns) } else { (columns, rows) };
    let cost_ns = product.tile_ns() * others as f64;
    let bytes = product.scratch_bytes().next_multiple_of(LINE);
    let alone = units as f64 * cost_ns < WORTH_ASKING_NS;
    let workers = if alone { 1 } else { c.parallelism() };
    let bytes_of_all = bytes.checked_mul(workers).ok_or_else(too_large)?;
    let scratch = Parts::new(lines_of(c, bytes_of_all / LINE)?);
    for_units(c, units, cost_ns, |range, worker| {
        let (rows, columns) = if by_rows { (range, 0..columns) } else { (0..rows, range) };
        // SAFETY: blocks with the same worker number do not run at the same time; ranges of one
        // split are disjoint, and so are their results.
        unsafe {
            let lines = scratch.part(worker * bytes / LINE..(worker + 1) * bytes / LINE);
            product.run(rows, columns, Line::numbers_mut(lines));
        }
    })
}
