//! Splitting work over the host's threads, and memory that the parts write.

use std::{
    marker::PhantomData,
    ops::Range,
    slice,
    sync::{Mutex, PoisonError},
};
use tenon_sdk::{KernelError, author::ComputeContext};

/// Work below this stays on the caller's thread without asking the host, which would not share it.
const WORTH_ASKING_NS: f64 = 8_000.0;
/// Elements per unit of elementwise work: a few cache lines at least.
pub const BLOCK: usize = 1024;

/// Work on a range. It is a reference, because a copy of the splitting code for each loop would be
/// most of this library.
type Body<'a> = &'a (dyn Fn(Range<usize>) + Sync);

/// Whether work of `total` units is worth asking the host for threads.
#[inline(always)]
pub fn is_worth_asking(total: usize, cost_ns: f64) -> bool {
    total as f64 * cost_ns >= WORTH_ASKING_NS
}

/// Computes the units `0..total`, each of about `cost_ns` nanoseconds. Without units the body is
/// not called, so that it does not allocate for a unit, which may be huge.
#[inline]
pub fn for_units(
    c: &ComputeContext<'_>,
    total: usize,
    cost_ns: f64,
    body: impl Fn(Range<usize>) + Sync,
) -> Result<(), KernelError> {
    if total == 0 {
        return Ok(());
    }
    if !is_worth_asking(total, cost_ns) {
        body(0..total);
        return Ok(());
    }
    spread(c, total, cost_ns, 1, &body)
}

/// Computes `len` elements, each of about `cost_ns` nanoseconds, in blocks.
#[inline]
pub fn for_elements(
    c: &ComputeContext<'_>,
    len: usize,
    cost_ns: f64,
    body: impl Fn(Range<usize>) + Sync,
) -> Result<(), KernelError> {
    if !is_worth_asking(len, cost_ns) {
        body(0..len);
        return Ok(());
    }
    spread(c, len, cost_ns, BLOCK, &body)
}

/// Computes the elements of a slice, each of about `cost_ns` nanoseconds, in blocks. The body gets
/// the number of the first of some elements, and these elements.
#[inline]
pub fn for_parts<T: Send>(
    c: &ComputeContext<'_>,
    y: &mut [T],
    cost_ns: f64,
    body: impl Fn(usize, &mut [T]) + Sync,
) -> Result<(), KernelError> {
    let len = y.len();
    let y = Parts::new(y);
    for_elements(c, len, cost_ns, |range| {
        // SAFETY: ranges of one split are disjoint.
        body(range.start, unsafe { y.part(range) });
    })
}

/// As [`for_units`], with a body that may fail, for example for want of memory. The call returns
/// the error of one of the failed blocks.
pub fn try_units(
    c: &ComputeContext<'_>,
    total: usize,
    cost_ns: f64,
    body: impl Fn(Range<usize>) -> Result<(), KernelError> + Sync,
) -> Result<(), KernelError> {
    let failure = Mutex::new(None);
    for_units(c, total, cost_ns, |range| {
        if let Err(error) = body(range) {
            failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        }
    })?;
    failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

/// As [`for_rows`], with a body that may fail.
pub fn try_rows<T: Send>(
    c: &ComputeContext<'_>,
    y: &mut [T],
    row: usize,
    cost_ns: f64,
    body: impl Fn(usize, &mut [T]) -> Result<(), KernelError> + Sync,
) -> Result<(), KernelError> {
    let failure = Mutex::new(None);
    for_rows(c, y, row, cost_ns, |first, y| {
        if let Err(error) = body(first, y) {
            failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        }
    })?;
    failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

/// Computes the rows of a slice, each of `row` elements and about `cost_ns` nanoseconds. The body
/// gets the number of the first of some rows, and their elements.
#[inline]
pub fn for_rows<T: Send>(
    c: &ComputeContext<'_>,
    y: &mut [T],
    row: usize,
    cost_ns: f64,
    body: impl Fn(usize, &mut [T]) + Sync,
) -> Result<(), KernelError> {
    if y.is_empty() {
        return Ok(());
    }
    let rows = y.len() / row;
    let y = Parts::new(y);
    for_units(c, rows, cost_ns, |range| {
        // SAFETY: ranges of one split are disjoint, so their rows are.
        body(range.start, unsafe { y.part(range.start * row..range.end * row) });
    })
}

/// Computes `0..len`, cut at multiples of `block`.
#[cold]
#[inline(never)]
fn spread(
    c: &ComputeContext<'_>,
    len: usize,
    cost_ns: f64,
    block: usize,
    body: Body<'_>,
) -> Result<(), KernelError> {
    c.parallel_for(len.div_ceil(block), cost_ns * block as f64, |blocks| {
        body(blocks.start * block..(blocks.end * block).min(len));
    })
}

/// A slice whose disjoint parts are written by several threads.
pub struct Parts<'a, T> {
    first: *mut T,
    len: usize,
    life: PhantomData<&'a mut [T]>,
}

// SAFETY: parts are only returned by an unsafe function whose callers keep them disjoint.
unsafe impl<T: Send> Sync for Parts<'_, T> {}

impl<'a, T> Parts<'a, T> {
    /// Takes the slice.
    pub fn new(slice: &'a mut [T]) -> Parts<'a, T> {
        Parts { first: slice.as_mut_ptr(), len: slice.len(), life: PhantomData }
    }

    /// The elements in a range.
    ///
    /// # Safety
    /// No other part in use overlaps the range.
    #[expect(clippy::mut_from_ref, reason = "the parts are disjoint by the caller's promise")]
    pub unsafe fn part(&self, range: Range<usize>) -> &mut [T] {
        assert!(range.start <= range.end && range.end <= self.len);
        // SAFETY: the range is inside the slice; the caller guarantees that no other part in use
        // overlaps it.
        unsafe { slice::from_raw_parts_mut(self.first.add(range.start), range.len()) }
    }

    /// The first element.
    pub fn as_mut_ptr(&self) -> *mut T {
        self.first
    }
}
