//! Bandwidth of each level of memory.
//!
//! Main memory is written by ordinary stores and by such as pass the caches by, a whole line at a time, and the better
//! one counts: an ordinary store reads a line before it writes it, which takes a third of a copy's time. The sets are in
//! the memory that kernels get, on large pages from their size on.

use super::together::best_ns;
use crate::{
    machine::{available_memory, caches},
    record::Level,
};
use std::{hint::black_box, slice, sync::Arc};
use tenon_framework::{
    DType,
    registry::FeatureSet,
    tensor::{Buffer, Memory},
};
use tenon_runtime::host::memory::HostMemory;

/// Of the free memory, what the probe of main memory takes at most.
const SHARE_OF_FREE: u64 = 4;
/// Main memory is looked at through sets this many times as large as the last cache.
const BEYOND_CACHE: u64 = 4;
/// No set is larger.
const LARGEST: u64 = 512 << 20;
/// Where the system names no caches.
const USUAL: [(&str, u64); 2] = [("L1", 32 << 10), ("L2", 1 << 20)];

/// Measures each level.
pub fn measure(features: &FeatureSet, threads: u32, progress: &mut dyn FnMut(f64)) -> Vec<Level> {
    let mut known = caches();
    if known.is_empty() {
        known = USUAL.map(|(name, bytes)| (name.to_owned(), bytes)).into();
    }
    let isa = Isa::of(features);
    let sets = sets(&known, threads, available_memory().unwrap_or(LARGEST));
    let total = sets.len() as f64;
    let measured = sets.into_iter().enumerate().map(|(at, (name, bytes, set))| {
        let with = |pattern: Pattern, store: Store| {
            let (count, moved) = pattern.of(set);
            let ns = best_ns(threads, || {
                let mut arrays = Arrays::new(pattern, count);
                move |rounds| (0..rounds).for_each(|_| arrays.pass(isa, store))
            });
            f64::from(threads.max(1)) * moved / ns
        };
        let rate = |pattern: Pattern| {
            let ordinary = with(pattern, Store::Ordinary);
            // Into a cache nobody streams.
            let streams = bytes.is_none() && pattern.writes() && isa.streams();
            if streams { ordinary.max(with(pattern, Store::Streaming)) } else { ordinary }
        };
        let [read, write, copy, triad] =
            [Pattern::Read, Pattern::Write, Pattern::Copy, Pattern::Triad].map(rate);
        progress((at + 1) as f64 / total);
        Level { name, bytes, read, write, copy, triad }
    });
    measured.collect()
}

/// Name, size and the set that one thread goes through, for each level and main memory.
fn sets(caches: &[(String, u64)], threads: u32, free: u64) -> Vec<(String, Option<u64>, u64)> {
    let mut sets = Vec::new();
    let mut below = 0;
    for (name, size) in caches {
        // Well beyond the level below, and not quite the whole level, of which others use a part too.
        let between = ((below as f64) * (*size as f64)).sqrt() as u64;
        sets.push((name.clone(), Some(*size), between.clamp(size / 16, size / 2)));
        below = *size;
    }
    let largest = LARGEST.min(free / SHARE_OF_FREE) / u64::from(threads.max(1));
    sets.push(("memory".to_owned(), None, (BEYOND_CACHE * below).min(largest)));
    sets
}

/// What a pass does.
#[derive(Debug, Clone, Copy)]
enum Pattern {
    Read,
    Write,
    Copy,
    Triad,
}

/// How a pass writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Store {
    Ordinary,
    /// Past the caches.
    Streaming,
}

impl Pattern {
    fn writes(self) -> bool {
        !matches!(self, Pattern::Read)
    }

    fn arrays(self) -> usize {
        match self {
            Pattern::Read | Pattern::Write => 1,
            Pattern::Copy => 2,
            Pattern::Triad => 3,
        }
    }

    /// Elements of each array and bytes moved by a pass, where all arrays together take `set` bytes.
    fn of(self, set: u64) -> (usize, f64) {
        // Whole lines.
        let count = (set as usize / self.arrays() / 64).max(1) * 8;
        (count, (self.arrays() * count * size_of::<f64>()) as f64)
    }
}

/// Numbers in the memory that kernels get; without a buffer if there is no memory.
struct Array {
    buffer: Option<Buffer>,
    count: usize,
}

impl Array {
    fn new(count: usize, value: f64) -> Array {
        let memory: Arc<dyn Memory> = HostMemory::shared().clone();
        let buffer = Buffer::allocate(&memory, DType::DOUBLE, count, count * size_of::<f64>()).ok();
        let mut array = Array { buffer, count };
        // Written once: what was never written is one page of zeros.
        array.slice().fill(value);
        array
    }

    fn slice(&mut self) -> &mut [f64] {
        let Some(buffer) = &self.buffer else { return &mut [] };
        // SAFETY: the buffer is this value's alone, aligned, and as long as `count` numbers, of which every
        // pattern of bits is a value; the pool's memory has been written before, or is zero.
        unsafe { slice::from_raw_parts_mut(buffer.data().cast::<f64>(), self.count) }
    }
}

/// The arrays that a pattern goes through.
struct Arrays {
    pattern: Pattern,
    arrays: [Array; 3],
}

impl Arrays {
    fn new(pattern: Pattern, count: usize) -> Arrays {
        let used = |at: usize| if at < pattern.arrays() { count } else { 0 };
        Arrays { pattern, arrays: [0, 1, 2].map(|at| Array::new(used(at), at as f64)) }
    }

    fn pass(&mut self, isa: Isa, store: Store) {
        let pattern = self.pattern;
        let [a, b, c] = self.arrays.each_mut().map(Array::slice);
        match (isa, store) {
            (Isa::Plain, _) => pass(pattern, a, b, c),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Isa::of` found the features.
            (Isa::Avx2, Store::Ordinary) => unsafe { wide::pass_avx2(pattern, a, b, c) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            (Isa::Avx512, Store::Ordinary) => unsafe { wide::pass_avx512(pattern, a, b, c) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above; buffers begin at a line and are whole lines long.
            (Isa::Avx2, Store::Streaming) => unsafe { stream::pass_avx2(pattern, a, b, c) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            (Isa::Avx512, Store::Streaming) => unsafe { stream::pass_avx512(pattern, a, b, c) },
        }
    }
}

/// The widest vectors there are.
#[derive(Debug, Clone, Copy)]
enum Isa {
    Plain,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Isa {
    /// Whether it has stores past the caches.
    fn streams(self) -> bool {
        !matches!(self, Isa::Plain)
    }

    #[cfg(target_arch = "x86_64")]
    fn of(features: &FeatureSet) -> Isa {
        match () {
            () if features.contains("avx512f") => Isa::Avx512,
            () if features.contains("avx2") && features.contains("fma") => Isa::Avx2,
            () => Isa::Plain,
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn of(_features: &FeatureSet) -> Isa {
        Isa::Plain
    }
}

/// One pass, in a form that the compiler makes vectors of.
#[inline(always)]
fn pass(pattern: Pattern, a: &mut [f64], b: &mut [f64], c: &mut [f64]) {
    match pattern {
        Pattern::Read => {
            // Of integers, which may be added in any order.
            let mut sums = [0u64; 64];
            for chunk in black_box(a).chunks_exact(64) {
                for (sum, value) in sums.iter_mut().zip(chunk) {
                    *sum = sum.wrapping_add(value.to_bits());
                }
            }
            black_box(sums);
        }
        Pattern::Write => black_box(a).fill(black_box(1.5)),
        Pattern::Copy => black_box(a).copy_from_slice(black_box(b)),
        Pattern::Triad => {
            let factor = black_box(3.0);
            for ((a, b), c) in black_box(a).iter_mut().zip(&*black_box(b)).zip(&*black_box(c)) {
                *a = *b + factor * *c;
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod wide {
    use super::{Pattern, pass};

    #[target_feature(enable = "avx2")]
    pub(super) fn pass_avx2(pattern: Pattern, a: &mut [f64], b: &mut [f64], c: &mut [f64]) {
        pass(pattern, a, b, c);
    }

    #[target_feature(enable = "avx512f")]
    pub(super) fn pass_avx512(pattern: Pattern, a: &mut [f64], b: &mut [f64], c: &mut [f64]) {
        pass(pattern, a, b, c);
    }
}

/// The same with stores that pass the caches by, a line at a time. What they write is behind a fence at the end, which is
/// part of the pass.
#[cfg(target_arch = "x86_64")]
mod stream {
    use super::{Pattern, pass};
    use std::{arch::x86_64::*, hint::black_box};

    const LINE: usize = 8;

    /// Passes line by line: `store` has the numbers of a line and where they go.
    macro_rules! lines {
        ($pattern:expr, $a:expr, $b:expr, $c:expr, |$to:ident, $from:ident, $other:ident| $fill:expr, $copy:expr, $triad:expr) => {{
            let (a, b, c) = (black_box($a), black_box($b), black_box($c));
            match $pattern {
                Pattern::Read => return pass($pattern, a, b, c),
                Pattern::Write => {
                    for $to in a.chunks_exact_mut(LINE) {
                        $fill
                    }
                }
                Pattern::Copy => {
                    for ($to, $from) in a.chunks_exact_mut(LINE).zip(b.chunks_exact(LINE)) {
                        $copy
                    }
                }
                Pattern::Triad => {
                    let from = b.chunks_exact(LINE).zip(c.chunks_exact(LINE));
                    for ($to, ($from, $other)) in a.chunks_exact_mut(LINE).zip(from) {
                        $triad
                    }
                }
            }
            _mm_sfence();
        }};
    }

    /// # Safety
    /// The arrays begin at a line.
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn pass_avx2(pattern: Pattern, a: &mut [f64], b: &mut [f64], c: &mut [f64]) {
        let (value, factor) = (_mm256_set1_pd(black_box(1.5)), _mm256_set1_pd(black_box(3.0)));
        // SAFETY: every piece is a whole line, whose halves are aligned as the caller promises.
        unsafe {
            lines!(
                pattern,
                a,
                b,
                c,
                |to, from, other| for half in [0, 4] {
                    _mm256_stream_pd(to.as_mut_ptr().add(half), value);
                },
                for half in [0, 4] {
                    let read = _mm256_load_pd(from.as_ptr().add(half));
                    _mm256_stream_pd(to.as_mut_ptr().add(half), read);
                },
                for half in [0, 4] {
                    let (b, c) = (from.as_ptr().add(half), other.as_ptr().add(half));
                    let sum = _mm256_fmadd_pd(_mm256_load_pd(c), factor, _mm256_load_pd(b));
                    _mm256_stream_pd(to.as_mut_ptr().add(half), sum);
                }
            );
        }
    }

    /// # Safety
    /// The arrays begin at a line.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn pass_avx512(
        pattern: Pattern,
        a: &mut [f64],
        b: &mut [f64],
        c: &mut [f64],
    ) {
        let (value, factor) = (_mm512_set1_pd(black_box(1.5)), _mm512_set1_pd(black_box(3.0)));
        // SAFETY: every piece is a whole line, aligned as the caller promises.
        unsafe {
            lines!(
                pattern,
                a,
                b,
                c,
                |to, from, other| _mm512_stream_pd(to.as_mut_ptr(), value),
                _mm512_stream_pd(to.as_mut_ptr(), _mm512_load_pd(from.as_ptr())),
                {
                    let (b, c) = (_mm512_load_pd(from.as_ptr()), _mm512_load_pd(other.as_ptr()));
                    _mm512_stream_pd(to.as_mut_ptr(), _mm512_fmadd_pd(c, factor, b));
                }
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_level_is_looked_at_through_a_set_that_only_it_holds() {
        let caches = [("L1".to_owned(), 48 << 10), ("L2".to_owned(), 2 << 20)];
        let sets = sets(&caches, 2, 16 << 30);
        let names: Vec<&str> = sets.iter().map(|(name, ..)| name.as_str()).collect();
        assert_eq!(names, ["L1", "L2", "memory"]);
        assert!(sets[0].2 <= 24 << 10);
        assert!((48 << 10..=1 << 20).contains(&sets[1].2));
        assert_eq!((sets[2].1, sets[2].2), (None, 8 << 20));
        // A machine with little memory left.
        assert_eq!(super::sets(&caches, 2, 8 << 20)[2].2, 1 << 20);
    }

    #[test]
    fn every_pattern_has_a_rate_with_every_width() {
        let mut all = vec![Isa::Plain, Isa::of(&FeatureSet::of_this_cpu())];
        all.dedup_by_key(|isa| std::mem::discriminant(isa));
        for isa in all {
            for pattern in [Pattern::Read, Pattern::Write, Pattern::Copy, Pattern::Triad] {
                for store in [Store::Ordinary, Store::Streaming] {
                    let (count, moved) = pattern.of(24 << 10);
                    let ns = best_ns(1, || {
                        let mut arrays = Arrays::new(pattern, count);
                        move |rounds| (0..rounds).for_each(|_| arrays.pass(isa, store))
                    });
                    let rate = moved / ns;
                    assert!((0.01..5_000.0).contains(&rate), "{isa:?} {pattern:?}: {rate}");
                }
            }
        }
    }

    #[test]
    fn a_pass_does_what_it_says() {
        let isas = [Isa::Plain, Isa::of(&FeatureSet::of_this_cpu())];
        let stores = [Store::Ordinary, Store::Streaming];
        for (isa, store) in isas.into_iter().flat_map(|isa| stores.map(|store| (isa, store))) {
            let first = |pattern: Pattern| {
                let mut arrays = Arrays::new(pattern, 128);
                arrays.pass(isa, store);
                arrays.arrays[0].slice().to_vec()
            };
            assert_eq!(first(Pattern::Read), [0.0; 128]);
            assert_eq!(first(Pattern::Write), [1.5; 128]);
            assert_eq!(first(Pattern::Copy), [1.0; 128]);
            assert_eq!(first(Pattern::Triad), [7.0; 128]);
        }
    }
}
