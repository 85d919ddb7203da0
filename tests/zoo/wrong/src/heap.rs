//! Kernels that leave something behind in the process, over which another kernel dies.

use crate::wrong_op;
use std::{
    alloc::{Layout, alloc, dealloc},
    hint::black_box,
    sync::atomic::{AtomicBool, AtomicPtr, Ordering},
};
use tenon_sdk::prelude::*;

/// What a wrong kernel did to the process.
struct LeftBehind(AtomicBool);

impl LeftBehind {
    const fn nothing() -> LeftBehind {
        LeftBehind(AtomicBool::new(false))
    }

    fn leave(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Twice x, where no wrong kernel ran before in this process.
    fn stumble_over(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        if self.0.load(Ordering::Relaxed) {
            std::process::abort();
        }
        crate::map(c, |x| x + x)
    }
}

static HEAP: LeftBehind = LeftBehind::nothing();

/// Writes beyond a block of the heap.
fn write_beyond() {
    const BLOCK: Layout = Layout::new::<[u8; 20]>();
    // SAFETY: the layout is not empty; the block is given back with it.
    let block = unsafe { alloc(BLOCK) };
    if !block.is_null() {
        // SAFETY: there is none: the byte is one beyond the block, which is the point. The C library rounds such a
        // block up to 24 bytes, so that only a checked heap notices.
        unsafe { black_box(block).add(BLOCK.size()).write_volatile(1) };
        // SAFETY: it is the block of above.
        unsafe { dealloc(block, BLOCK) };
    }
}

fn overflows(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    write_beyond();
    HEAP.leave();
    crate::map(c, |x| x + x)
}

fn dies_of_the_heap(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    HEAP.stumble_over(c)
}

wrong_op!(
    "WrongHeap",
    overflows,
    dies_of_the_heap,
    crate::twice_reference,
    "2x; writes beyond a block of the heap, of which the right kernel dies in the same process."
);

static STATE: LeftBehind = LeftBehind::nothing();

fn leaves_a_trap(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    STATE.leave();
    crate::map(c, |x| x + x)
}

fn dies_of_the_trap(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    STATE.stumble_over(c)
}

wrong_op!(
    "WrongTrap",
    leaves_a_trap,
    dies_of_the_trap,
    crate::twice_reference,
    "2x; sets what the right kernel dies of in the same process, and nothing that a checked heap would notice."
);

static LATE: LeftBehind = LeftBehind::nothing();
/// Where the output of the right kernel's last call was.
static LAST: AtomicPtr<f32> = AtomicPtr::new(std::ptr::null_mut());

fn leaves_a_late_write(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    write_beyond();
    LATE.leave();
    crate::map(c, |x| x + x)
}

/// Twice x; where the wrong kernel ran before in this process, a buffer is written that was given back, as by a thread
/// that outlives a call of it.
fn runs_beside_a_late_write(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    crate::map(c, |x| x + x)?;
    let last = LAST.swap(c.output_slot(0)?.data.cast::<f32>(), Ordering::Relaxed);
    if LATE.0.load(Ordering::Relaxed) && !last.is_null() {
        // SAFETY: there is none: the buffer was given back, which is the point.
        unsafe { black_box(last).write_volatile(1.0) };
    }
    Ok(())
}

wrong_op!(
    "WrongLate",
    leaves_a_late_write,
    runs_beside_a_late_write,
    crate::twice_reference,
    "2x; writes beyond a block of the heap, and to a buffer that was given back, while the right kernel runs."
);
