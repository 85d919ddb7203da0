//! Kernels that remember what they must not, or what they must not share.

use crate::{twice_reference, wrong_op};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use tenon_sdk::{abi::Determinism, prelude::*};

fn twice(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    crate::map(c, |x| x + x)
}

/// Shared by all calls, as if there were only one.
static SCRATCH: [AtomicU32; 64] = [const { AtomicU32::new(0) }; 64];

fn racy(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let x = c.input::<f32>(0)?;
    let y = c.output::<f32>(0, x.dims)?;
    for (y, x) in y.data.chunks_mut(SCRATCH.len()).zip(x.data.chunks(SCRATCH.len())) {
        for (place, x) in SCRATCH.iter().zip(x) {
            place.store(x.to_bits(), Ordering::Relaxed);
        }
        std::thread::yield_now();
        for (y, place) in y.iter_mut().zip(&SCRATCH) {
            let x = f32::from_bits(place.load(Ordering::Relaxed));
            *y = x + x;
        }
    }
    Ok(())
}

wrong_op!(
    "WrongRacy",
    racy,
    twice,
    crate::twice_reference,
    "2x, by way of a buffer that all calls share."
);

static CALLS: AtomicUsize = AtomicUsize::new(0);

fn varies(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    // As a sum whose order depends on which thread is done first: right within any tolerance.
    let odd = CALLS.fetch_add(1, Ordering::Relaxed) % 2;
    crate::map(c, |x| {
        let y = x + x;
        if y.is_finite() && y != 0.0 { f32::from_bits(y.to_bits() ^ odd as u32) } else { y }
    })
}

register_op!(
    "WrongVaries",
    inputs = &["x: float"],
    outputs = &["y: float"],
    shape = crate::same,
    summary =
        "2x; the last bit is another one in every other call, though the same bits are promised."
);
crate::wrong_kernels!(
    "WrongVaries",
    varies,
    twice,
    crate::twice_reference,
    numerics = Numerics::ulps(2.0).determinism(Determinism::BITWISE)
);

static MANY_CALLS: AtomicUsize = AtomicUsize::new(0);

fn varies_rarely(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    // As a sum by threads, of which one is late now and then.
    let call = MANY_CALLS.fetch_add(1, Ordering::Relaxed) as u32;
    let odd = u32::from(call.wrapping_mul(0x9e37_79b9).rotate_left(13).is_multiple_of(12));
    crate::map(c, |x| {
        let y = x + x;
        if y.is_finite() && y != 0.0 { f32::from_bits(y.to_bits() ^ odd) } else { y }
    })
}

register_op!(
    "WrongRarely",
    inputs = &["x: float"],
    outputs = &["y: float"],
    shape = crate::same,
    summary =
        "2x; the last bit is another one in a call of twelve, though the same bits are promised."
);
crate::wrong_kernels!(
    "WrongRarely",
    varies_rarely,
    twice,
    crate::twice_reference,
    numerics = Numerics::ulps(2.0).determinism(Determinism::BITWISE)
);

register_op!(
    "WrongSecond",
    inputs = &["x: float"],
    outputs = &["y: float"],
    shape = crate::same,
    summary = "2x; a kernel that was called before adds 1."
);

struct Second {
    called: AtomicBool,
}

impl Kernel for Second {
    fn new(_: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Second { called: AtomicBool::new(false) })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let more = if self.called.swap(true, Ordering::Relaxed) { 1.0 } else { 0.0 };
        crate::map(c, |x| x + x + more)
    }
}

register_kernel!("WrongSecond" on "CPU": Second);
register_kernel!("WrongSecond" on "CPU": fn twice, label = "right");
register_kernel!("WrongSecond" on "CPU": fn twice_reference, label = "reference", on_request = true);
