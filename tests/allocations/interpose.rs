//! `malloc` and its kin, counted per thread.
//!
//! The dynamic linker resolves a library's `malloc` to the first definition there is, and the executable comes
//! first: these functions serve all libraries of the process. They forward to glibc's own under their other
//! names. Counting touches nothing but two thread-local numbers, which need no allocation themselves. Large requests
//! may be refused, those of all threads: as a machine would that has no more.

use std::{
    cell::Cell,
    ffi::c_void,
    sync::atomic::{AtomicUsize, Ordering},
};

unsafe extern "C" {
    fn __libc_malloc(size: usize) -> *mut c_void;
    fn __libc_calloc(count: usize, size: usize) -> *mut c_void;
    fn __libc_realloc(data: *mut c_void, size: usize) -> *mut c_void;
    fn __libc_free(data: *mut c_void);
    fn __libc_memalign(align: usize, size: usize) -> *mut c_void;
}

/// `EINVAL` and `ENOMEM` of Linux, which `posix_memalign` returns.
const INVALID: i32 = 22;
const NO_MEMORY: i32 = 12;

/// From this size on a request is large.
pub const LARGE: usize = 64 << 10;

/// Number of the large request that is refused, and from which on all are; 0 is none. Numbers begin with 1.
static REFUSED: AtomicUsize = AtomicUsize::new(0);
static REFUSED_FROM: AtomicUsize = AtomicUsize::new(0);
/// Large requests since the last refusal was arranged.
static REQUESTS: AtomicUsize = AtomicUsize::new(0);

/// Which large requests are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    None,
    /// The one of this number.
    One(usize),
    /// All.
    All,
}

/// Refuses large requests while `body` runs; how many there were.
pub fn refusing<R>(which: Refused, body: impl FnOnce() -> R) -> (R, usize) {
    REQUESTS.store(0, Ordering::SeqCst);
    REFUSED.store(if let Refused::One(number) = which { number } else { 0 }, Ordering::SeqCst);
    REFUSED_FROM.store(usize::from(which == Refused::All), Ordering::SeqCst);
    let result = body();
    REFUSED.store(0, Ordering::SeqCst);
    REFUSED_FROM.store(0, Ordering::SeqCst);
    (result, REQUESTS.load(Ordering::SeqCst))
}

/// Whether a request of this size is to be refused.
fn refuses(size: usize) -> bool {
    if size < LARGE {
        return false;
    }
    let number = REQUESTS.fetch_add(1, Ordering::SeqCst) + 1;
    let from = REFUSED_FROM.load(Ordering::SeqCst);
    number == REFUSED.load(Ordering::SeqCst) || (from != 0 && number >= from)
}

/// How often memory was taken and given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    pub allocated: u64,
    pub freed: u64,
}

thread_local! {
    static ARMED: Cell<bool> = const { Cell::new(false) };
    static ALLOCATED: Cell<u64> = const { Cell::new(0) };
    static FREED: Cell<u64> = const { Cell::new(0) };
}

/// What this thread takes and gives back while `body` runs.
pub fn counted(body: impl FnOnce()) -> Counts {
    ALLOCATED.set(0);
    FREED.set(0);
    ARMED.set(true);
    body();
    ARMED.set(false);
    Counts { allocated: ALLOCATED.get(), freed: FREED.get() }
}

/// A thread that ends frees after its thread-locals are gone: those calls are not counted.
fn count(counter: &'static std::thread::LocalKey<Cell<u64>>) {
    if ARMED.try_with(Cell::get).unwrap_or(false) {
        let _ = counter.try_with(|count| count.set(count.get() + 1));
    }
}

/// As C's `malloc`.
///
/// # Safety
/// As C's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc(size: usize) -> *mut c_void {
    if refuses(size) {
        return std::ptr::null_mut();
    }
    count(&ALLOCATED);
    // SAFETY: the caller's promise, as in all that follow.
    unsafe { __libc_malloc(size) }
}

/// As C's `calloc`.
///
/// # Safety
/// As C's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn calloc(number: usize, size: usize) -> *mut c_void {
    if refuses(number.saturating_mul(size)) {
        return std::ptr::null_mut();
    }
    count(&ALLOCATED);
    // SAFETY: as in `malloc`.
    unsafe { __libc_calloc(number, size) }
}

/// As C's `realloc`.
///
/// # Safety
/// As C's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(data: *mut c_void, size: usize) -> *mut c_void {
    if refuses(size) {
        return std::ptr::null_mut();
    }
    count(&ALLOCATED);
    // SAFETY: as in `malloc`.
    unsafe { __libc_realloc(data, size) }
}

/// As C's `free`.
///
/// # Safety
/// As C's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(data: *mut c_void) {
    if !data.is_null() {
        count(&FREED);
    }
    // SAFETY: as in `malloc`.
    unsafe { __libc_free(data) }
}

/// As C's `memalign`.
///
/// # Safety
/// As C's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memalign(align: usize, size: usize) -> *mut c_void {
    if refuses(size) {
        return std::ptr::null_mut();
    }
    count(&ALLOCATED);
    // SAFETY: as in `malloc`.
    unsafe { __libc_memalign(align, size) }
}

/// As C's `aligned_alloc`.
///
/// # Safety
/// As C's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aligned_alloc(align: usize, size: usize) -> *mut c_void {
    if refuses(size) {
        return std::ptr::null_mut();
    }
    count(&ALLOCATED);
    // SAFETY: as in `malloc`.
    unsafe { __libc_memalign(align, size) }
}

/// As POSIX's `posix_memalign`.
///
/// # Safety
/// As POSIX's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_memalign(
    result: *mut *mut c_void,
    align: usize,
    size: usize,
) -> i32 {
    if !align.is_power_of_two() || !align.is_multiple_of(size_of::<*mut c_void>()) {
        return INVALID;
    }
    if refuses(size) {
        return NO_MEMORY;
    }
    count(&ALLOCATED);
    // SAFETY: as in `malloc`.
    let data = unsafe { __libc_memalign(align, size) };
    if data.is_null() {
        return NO_MEMORY;
    }
    // SAFETY: the caller gives a place for the result.
    unsafe { *result = data };
    0
}
