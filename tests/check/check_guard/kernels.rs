//! Kernels that double, each wrong in one way, linked into the test.

use std::{
    cell::UnsafeCell,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicPtr, AtomicUsize, Ordering},
    },
    time::Duration,
};
use tenon_author::{
    ComputeContext, CreateContext, InOut, Kernel, ShapeContext, ShapeResult, reg::Numerics,
    register_kernel, register_op,
};
use tenon_framework::{KernelError, abi::MemoryKind};

fn same_shape(c: &ShapeContext<'_>) -> ShapeResult {
    c.set_output(0, c.input(0))
}

/// An op of one float input and one like output, with a kernel that is a function.
macro_rules! doubles {
    ($($op:literal by $function:ident;)*) => {$(
        register_op!($op, inputs = &["x: float"], outputs = &["y: float"], shape = same_shape);
        register_kernel!($op on "CPU": fn $function, numerics = Numerics::EXACT);
    )*};
}

doubles! {
    "GuardRight" by right;
    "GuardWritesBeyond" by writes_beyond;
    "GuardWritesBefore" by writes_before;
    "GuardReadsBeyond" by reads_beyond;
    "GuardReadsFar" by reads_far;
    "GuardWritesInput" by writes_input;
    "GuardAddsToOutput" by adds_to_output;
    "GuardScratch" by scratch;
    "GuardReadsFreed" by reads_freed;
    "GuardWrongValues" by wrong_values;
    "GuardWrongShape" by wrong_shape;
    "GuardInPlaceTwice" by in_place_twice;
    "GuardRacy" by racy;
    "GuardSecondCall" by second_call;
    "GuardLeaks" by leaks;
    "GuardSleeps" by sleeps;
    "GuardNull" by null;
}

fn double(from: &[f32], to: &mut [f32]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to = from * 2.0);
}

fn right(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    match c.in_place::<f32>(0, 0, c.dims(0))? {
        InOut::InPlace(values) => values.iter_mut().for_each(|value| *value *= 2.0),
        InOut::Separate(from, to) => double(from, to),
    }
    Ok(())
}

fn writes_beyond(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let x = c.input::<f32>(0)?;
    let y = c.output::<f32>(0, x.dims)?;
    double(x.data, y.data);
    // SAFETY: none: the element behind the last is another's.
    unsafe { y.data.as_mut_ptr().add(y.data.len()).write(1.0) };
    Ok(())
}

fn writes_before(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let x = c.input::<f32>(0)?;
    let y = c.output::<f32>(0, x.dims)?;
    double(x.data, y.data);
    // SAFETY: none: the element before the first is another's.
    unsafe { y.data.as_mut_ptr().sub(1).write(1.0) };
    Ok(())
}

/// Adds what stands behind the input, which a kernel may not know.
fn reads_beyond(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let x = c.input::<f32>(0)?;
    let y = c.output::<f32>(0, x.dims)?;
    double(x.data, y.data);
    // SAFETY: none: the element behind the last is another's.
    let beyond = unsafe { x.data.as_ptr().add(x.data.len()).read_volatile() };
    if let Some(last) = y.data.last_mut() {
        *last += f32::from(beyond > 0.0);
    }
    Ok(())
}

fn reads_far(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let x = c.input::<f32>(0)?;
    let y = c.output::<f32>(0, x.dims)?;
    double(x.data, y.data);
    // SAFETY: none.
    let far = unsafe { x.data.as_ptr().add(x.data.len().next_multiple_of(16)).read_volatile() };
    std::hint::black_box(far);
    Ok(())
}

fn writes_input(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let x = c.input::<f32>(0)?;
    let y = c.output::<f32>(0, x.dims)?;
    double(x.data, y.data);
    if let Some(last) = x.data.last() {
        // SAFETY: none: inputs may not be written.
        unsafe { std::ptr::from_ref(last).cast_mut().write_volatile(*last) };
    }
    Ok(())
}

fn adds_to_output(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let x = c.input::<f32>(0)?;
    let y = c.output::<f32>(0, x.dims)?;
    // Right where the output is zeros, and where it is too small to count.
    y.data.iter_mut().zip(x.data).for_each(|(y, x)| *y += 2.0 * x);
    Ok(())
}

fn scratch(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let x = c.input::<f32>(0)?;
    let lent = c.scratch(64, MemoryKind::HOST)?;
    // SAFETY: lent for 64 bytes; that nobody wrote them is the point.
    let first = unsafe { lent.cast::<u8>().read_volatile() };
    let y = c.output::<f32>(0, x.dims)?;
    double(x.data, y.data);
    if first == 0x5a
        && let Some(first) = y.data.first_mut()
    {
        *first += 1.0;
    }
    Ok(())
}

/// Keeps the address of its input from one call to the next.
fn reads_freed(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    static LAST: AtomicPtr<f32> = AtomicPtr::new(std::ptr::null_mut());
    let x = c.input::<f32>(0)?;
    let y = c.output::<f32>(0, x.dims)?;
    double(x.data, y.data);
    let last = LAST.swap(y.data.as_mut_ptr(), Ordering::SeqCst);
    if !last.is_null() {
        // SAFETY: none: the output of the last call may be gone.
        std::hint::black_box(unsafe { last.read_volatile() });
    }
    Ok(())
}

fn wrong_values(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let x = c.input::<f32>(0)?;
    let y = c.output::<f32>(0, x.dims)?;
    double(x.data, y.data);
    if let Some(last) = y.data.last_mut() {
        *last += 1.0;
    }
    Ok(())
}

fn wrong_shape(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let x = c.input::<f32>(0)?;
    let y = c.output::<f32>(0, &[x.data.len() as i64 + 1])?;
    y.data.fill(0.0);
    double(x.data, y.data);
    Ok(())
}

fn in_place_twice(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    match c.in_place::<f32>(0, 0, c.dims(0))? {
        InOut::InPlace(values) => values.iter_mut().for_each(|value| *value *= 4.0),
        InOut::Separate(from, to) => double(from, to),
    }
    Ok(())
}

struct Shared(UnsafeCell<[f32; 64]>);

// SAFETY: none: that it is shared without a lock is the point.
unsafe impl Sync for Shared {}

/// Passes its elements through memory that all calls share.
fn racy(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    static BETWEEN: Shared = Shared(UnsafeCell::new([0.0; 64]));
    let x = c.input::<f32>(0)?;
    let y = c.output::<f32>(0, x.dims)?;
    for (from, to) in x.data.chunks(64).zip(y.data.chunks_mut(64)) {
        for (at, from) in from.iter().enumerate() {
            // SAFETY: none.
            unsafe { BETWEEN.0.get().cast::<f32>().add(at).write_volatile(from * 2.0) };
        }
        std::thread::yield_now();
        for (at, to) in to.iter_mut().enumerate() {
            // SAFETY: none.
            *to = unsafe { BETWEEN.0.get().cast::<f32>().add(at).read_volatile() };
        }
    }
    Ok(())
}

fn second_call(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    let x = c.input::<f32>(0)?;
    let y = c.output::<f32>(0, x.dims)?;
    double(x.data, y.data);
    if CALLS.fetch_add(1, Ordering::SeqCst) % 2 == 1
        && let Some(first) = y.data.first_mut()
    {
        *first += 1.0;
    }
    Ok(())
}

fn leaks(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    static KEPT: Mutex<Vec<Box<[u8]>>> = Mutex::new(Vec::new());
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    kept.push(vec![1; 24].into_boxed_slice());
    right(c)
}

fn sleeps(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    std::thread::sleep(Duration::from_millis(20));
    right(c)
}

fn null(_: &ComputeContext<'_>) -> Result<(), KernelError> {
    // SAFETY: none.
    unsafe { std::ptr::null_mut::<u8>().write_volatile(1) };
    Ok(())
}

register_op!(
    "GuardPick",
    inputs = &["x: float", "at: int32"],
    outputs = &["y: float"],
    attrs = &["step: int = 1"],
    shape = |c: &ShapeContext<'_>| {
        c.with_rank(c.input(0), 1)?;
        c.set_output(0, c.with_rank(c.input(1), 0)?)
    },
);
register_kernel!("GuardPick" on "CPU": Pick, numerics = Numerics::EXACT);

/// Takes any index and any step for right.
struct Pick {
    step: i64,
}

impl Kernel for Pick {
    fn new(context: &CreateContext<'_>) -> Result<Pick, KernelError> {
        Ok(Pick { step: context.attr("step")? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let x = c.input::<f32>(0)?;
        let at = c.input::<i32>(1)?.data.first().copied().unwrap_or(0);
        let y = c.output::<f32>(0, &[])?;
        let address = x.data.as_ptr().wrapping_offset((i64::from(at) * self.step) as isize);
        // SAFETY: none: the index is not looked at.
        y.data[0] = unsafe { address.read_volatile() };
        Ok(())
    }
}
