//! How large outputs are stored.
//!
//! A cache line that is about to be overwritten is read first, and evicts another line. An output
//! larger than the caches need not pay for that: it is computed a block at a time in the
//! first-level cache, and copied from there with stores that do neither (`movntdq`, `vmovntdq`;
//! Intel's manual of instructions, volume 2). Where such stores are slow, the lines of the next
//! block are prefetched before a block is computed, so that its stores find them. The decision
//! `stores-past-the-caches` has the figures for the choice between the two on a CPU.

use crate::arch::{Level, level};
use std::sync::OnceLock;

/// The size from which outputs are not stored as usual.
const LARGE_BYTES: usize = 16 << 20;
/// The bytes of a block that is copied past the caches. The lines of a small block are on their way
/// to memory while the next one is computed; after a large one the CPU waits for them.
const PAST_BYTES: usize = 1024;
/// The most elements of a block that is copied past the caches.
const MOST: usize = 1024;
/// The bytes of a block whose lines are prefetched at once.
const AHEAD_BYTES: usize = 1024;
/// The least bytes of rows that are worth a copy, and the most that the second-level cache holds.
const LEAST_ROW: usize = 512;
const MOST_ROW: usize = 128 << 10;
/// From so many nanoseconds on, an element takes longer to compute than memory takes for it.
const COSTLY_NS: f64 = 0.3;
/// The elements that [`map_ahead`] computes between two requests for memory.
const PIECE: usize = 64;
/// The bytes of a cache line, which is written as a whole.
const LINE: usize = 64;

/// How an output is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stores {
    /// Ordinary stores.
    Usual,
    /// In blocks, whose lines are prefetched some time before.
    Ahead,
    /// Past the caches.
    Past,
}

/// How an output of `len` elements is stored.
#[inline(always)]
pub fn stores<T>(len: usize) -> Stores {
    if len < LARGE_BYTES / size_of::<T>() { Stores::Usual } else { of_large() }
}

/// As [`stores`], where each element takes `cost_ns` to compute: of a costly one the CPU reads the
/// line that it overwrites while it computes, but it does not compute while it copies a block.
#[inline(always)]
pub fn stores_of<T>(len: usize, cost_ns: f64) -> Stores {
    match stores::<T>(len) {
        Stores::Past if cost_ns >= COSTLY_NS => Stores::Usual,
        stores => stores,
    }
}

#[cold]
fn of_large() -> Stores {
    static OF_LARGE: OnceLock<Stores> = OnceLock::new();
    *OF_LARGE.get_or_init(|| match &vendor() {
        b"AuthenticAMD" => Stores::Past,
        b"GenuineIntel" => Stores::Ahead,
        // Not measured.
        _ => Stores::Usual,
    })
}

/// The vendor of the CPU (leaf 0 of `cpuid`).
#[cfg(target_arch = "x86_64")]
fn vendor() -> [u8; 12] {
    let leaf = std::arch::x86_64::__cpuid(0);
    let mut name = [0; 12];
    for (name, part) in name.chunks_exact_mut(4).zip([leaf.ebx, leaf.edx, leaf.ecx]) {
        name.copy_from_slice(&part.to_le_bytes());
    }
    name
}

#[cfg(not(target_arch = "x86_64"))]
fn vendor() -> [u8; 12] {
    [0; 12]
}

impl Stores {
    /// The number of elements that [`store`] has computed at a time, or all of them.
    #[inline(always)]
    fn block<T>(self) -> usize {
        match self {
            Stores::Ahead => elements::<T>(AHEAD_BYTES),
            _ => elements::<T>(PAST_BYTES),
        }
    }

    /// As for [`store_long`].
    #[inline(always)]
    pub fn long_block<T>(self) -> usize {
        match self {
            Stores::Ahead => elements::<T>(AHEAD_BYTES),
            _ => MOST,
        }
    }
}

/// The number of elements in some bytes, at least one.
const fn elements<T>(bytes: usize) -> usize {
    let len = bytes / size_of::<T>();
    if len == 0 { 1 } else { len }
}

/// Computes `y`, a part of an output: `block` gets the position of some of its elements and room
/// for them, which it fills.
#[inline(always)]
pub fn store<T: Copy>(y: &mut [T], stores: Stores, mut block: impl FnMut(usize, &mut [T])) {
    // Blocks that begin at a line are copied by whole lines.
    let head = if stores == Stores::Past { y.as_ptr().align_offset(LINE).min(y.len()) } else { 0 };
    let (first, rest) = y.split_at_mut(head);
    if head > 0 {
        block(0, first);
    }
    store_blocks(rest, stores, stores.block::<T>(), |at, y| block(head + at, y));
}

/// As [`store`], for a computation that has something to prepare for each block:
/// [`Stores::long_block`] elements at a time.
#[inline(always)]
pub fn store_long<T: Copy>(y: &mut [T], stores: Stores, block: impl FnMut(usize, &mut [T])) {
    store_blocks(y, stores, stores.long_block::<T>(), block);
}

#[inline(always)]
fn store_blocks<T: Copy>(
    y: &mut [T],
    stores: Stores,
    len: usize,
    mut block: impl FnMut(usize, &mut [T]),
) {
    let Some(&any) = y.first().filter(|_| stores != Stores::Usual) else {
        return block(0, y);
    };
    if stores == Stores::Ahead {
        for (at, y) in y.chunks_mut(len).enumerate() {
            ask_for(y, 2 * len);
            block(at * len, y);
        }
        return;
    }
    let mut buffer = Aligned([any; MOST]);
    for (at, y) in y.chunks_mut(len).enumerate() {
        block(at * len, &mut buffer.0[..y.len()]);
        copy(&buffer.0[..y.len()], y);
    }
    fence();
}

/// As [`store`], a row of `len` elements at a time: `row` gets its number and room for it. Lines
/// are not prefetched, since a row is read again before it is written, which evicts them from the
/// first-level cache.
#[inline(always)]
pub fn store_rows<T: Copy>(
    y: &mut [T],
    len: usize,
    stores: Stores,
    mut row: impl FnMut(usize, &mut [T]),
) {
    let past = stores == Stores::Past && (LEAST_ROW..=MOST_ROW).contains(&(len * size_of::<T>()));
    let mut buffer = y.first().filter(|_| past).map(|&any| vec![any; len]).unwrap_or_default();
    for (at, y) in y.chunks_exact_mut(len).enumerate() {
        if past {
            row(at, &mut buffer);
            copy(&buffer, y);
        } else {
            row(at, y);
        }
    }
    if past {
        fence();
    }
}

/// `y[i] = f(x[i])`, while elements that are read next are prefetched: those `ahead` elements
/// further on, which need not exist. A loop that has read `x` before lets the CPU's own prefetching
/// stop.
#[inline(always)]
pub fn map_ahead<T: Copy>(x: &[T], y: &mut [T], ahead: usize, f: impl Fn(T) -> T) {
    let (pieces, rest) = x.as_chunks::<PIECE>();
    let (y, y_rest) = y.as_chunks_mut::<PIECE>();
    for (x, y) in pieces.iter().zip(y) {
        ask_for(x, ahead);
        y.iter_mut().zip(x).for_each(|(y, &x)| *y = f(x));
    }
    y_rest.iter_mut().zip(rest).for_each(|(y, &x)| *y = f(x));
}

/// Prefetches as many cache lines as `y` has, `ahead` elements further on; they need not exist.
#[inline(always)]
fn ask_for<T>(y: &[T], ahead: usize) {
    #[cfg(target_arch = "x86_64")]
    for line in (0..size_of_val(y)).step_by(LINE) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let at = y.as_ptr().wrapping_add(ahead).wrapping_byte_add(line);
        // SAFETY: prefetched memory need not exist; every x86-64 CPU has the instruction.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (y, ahead);
}

/// A block that begins at a cache line.
#[repr(align(64))]
struct Aligned<T>([T; MOST]);

/// Copies elements, whole cache lines past the caches. [`fence`] must follow the last such copy.
#[inline(always)]
pub fn copy<T: Copy>(x: &[T], y: &mut [T]) {
    let head = y.as_ptr().align_offset(LINE).min(y.len());
    let per_line = (LINE / size_of::<T>()).max(1);
    let lines = (y.len() - head) / per_line * per_line;
    if !cfg!(target_arch = "x86_64") || lines == 0 || !LINE.is_multiple_of(size_of::<T>()) {
        return y.copy_from_slice(x);
    }
    y[..head].copy_from_slice(&x[..head]);
    copy_lines(&x[head..head + lines], &mut y[head..head + lines]);
    y[head + lines..].copy_from_slice(&x[head + lines..]);
}

/// Copies elements to whole cache lines.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn copy_lines<T: Copy>(x: &[T], y: &mut [T]) {
    assert_eq!(x.len(), y.len());
    let (x, y, bytes) = (x.as_ptr().cast(), y.as_mut_ptr().cast::<u8>(), size_of_val(y));
    assert!(y.addr().is_multiple_of(LINE) && bytes.is_multiple_of(LINE));
    // SAFETY: both slices have this many bytes, whole lines, and the second begins at a line; the
    // level says that the CPU has the instructions.
    unsafe {
        match level() {
            Level::Avx512 => x86::copy_by_64(x, y, bytes),
            Level::Avx2 => x86::copy_by_32(x, y, bytes),
            Level::Baseline => x86::copy_by_16(x, y, bytes),
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn copy_lines<T: Copy>(x: &[T], y: &mut [T]) {
    y.copy_from_slice(x);
}

/// Copies past the caches with vectors of each size.
#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m128i, __m256i, __m512i, _mm_loadu_si128, _mm_stream_si128, _mm256_loadu_si256,
        _mm256_stream_si256, _mm512_loadu_si512, _mm512_stream_si512,
    };

    macro_rules! copy_by {
        ($($name:ident: $vector:ty, $load:ident, $stream:ident $(, $feature:literal)?;)*) => {$(
            /// Copies whole cache lines.
            ///
            /// # Safety
            /// - `x` is valid for reads and `y` for writes of `bytes` bytes, whole cache lines; they
            ///   do not overlap.
            /// - `y` begins at a cache line.
            $(/// - The CPU has the instructions.
            #[target_feature(enable = $feature)])?
            pub unsafe fn $name(x: *const u8, y: *mut u8, bytes: usize) {
                for at in (0..bytes).step_by(size_of::<$vector>()) {
                    // SAFETY: the caller guarantees that the vectors are valid; they begin at
                    // multiples of their size from the beginning of a line.
                    unsafe { $stream(y.add(at).cast(), $load(x.add(at).cast())) };
                }
            }
        )*};
    }

    copy_by! {
        copy_by_16: __m128i, _mm_loadu_si128, _mm_stream_si128;
        copy_by_32: __m256i, _mm256_loadu_si256, _mm256_stream_si256, "avx";
        copy_by_64: __m512i, _mm512_loadu_si512, _mm512_stream_si512, "avx512f";
    }
}

/// Orders the stores past the caches before all stores that follow.
#[inline(always)]
pub fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 CPU has the instruction.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn a_cpu_says_who_made_it() {
        assert!(
            vendor().iter().all(u8::is_ascii_graphic) || vendor().contains(&b' '),
            "{:?}",
            vendor()
        );
    }

    #[test]
    fn every_element_is_computed_once_wherever_the_part_begins() {
        for (begin, len) in [(0, 5 * MOST), (1, 3 * MOST + 17), (13, MOST), (3, 100), (7, 0)] {
            for stores in [Stores::Usual, Stores::Ahead, Stores::Past] {
                let mut memory = vec![-1i32; begin + len + 1];
                store(&mut memory[begin..begin + len], stores, |at, y| {
                    y.iter_mut().zip(at as i32..).for_each(|(y, i)| *y = i);
                });
                let expected = (0..len as i32).collect::<Vec<_>>();
                assert_eq!(memory[begin..begin + len], expected, "{begin} {len} {stores:?}");
                assert_eq!(
                    (memory[begin + len], begin == 0 || memory[begin - 1] == -1),
                    (-1, true)
                );
            }
        }
    }

    #[test]
    fn rows_are_computed_once_whatever_their_length() {
        for len in [1, 100, 128, 1000, 70_000] {
            for stores in [Stores::Usual, Stores::Ahead, Stores::Past] {
                let mut y = vec![-1i32; 5 * len];
                store_rows(&mut y, len, stores, |at, y| {
                    y.iter_mut().zip((at * len) as i32..).for_each(|(y, i)| *y = i);
                });
                assert!(y.iter().zip(0..).all(|(&y, i)| y == i), "{len} {stores:?}");
            }
        }
    }

    #[test]
    fn elements_of_every_size_fill_whole_lines() {
        fn check<T: Copy + PartialEq + std::fmt::Debug>(values: [T; 2]) {
            let mut y = vec![values[0]; 3 * MOST + 5];
            for stores in [Stores::Ahead, Stores::Past] {
                y.fill(values[0]);
                store(&mut y, stores, |_, y| y.fill(values[1]));
                assert!(y.iter().all(|y| *y == values[1]), "{} {stores:?}", size_of::<T>());
            }
        }
        check([1u8, 2]);
        check([1u16, 2]);
        check([1.0f64, 2.0]);
        check([1u128, 2]);
    }
}
