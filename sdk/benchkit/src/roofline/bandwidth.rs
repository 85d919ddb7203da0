//! Bandwidth of each level of memory.

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
        let rate = |pattern: Pattern| {
            let (count, moved) = pattern.of(set);
            let ns = best_ns(threads, || {
                let mut arrays = Arrays::new(pattern, count);
                move |rounds| (0..rounds).for_each(|_| arrays.pass(isa))
            });
            f64::from(threads.max(1)) * moved / ns
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

impl Pattern {
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

/// Numbers in the memory that kernels get; none where there is no memory.
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

    fn pass(&mut self, isa: Isa) {
        let pattern = self.pattern;
        let [a, b, c] = self.arrays.each_mut().map(Array::slice);
        match isa {
            Isa::Plain => pass(pattern, a, b, c),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Isa::of` found the features.
            Isa::Avx2 => unsafe { wide::pass_avx2(pattern, a, b, c) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Isa::Avx512 => unsafe { wide::pass_avx512(pattern, a, b, c) },
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
    #[cfg(target_arch = "x86_64")]
    fn of(features: &FeatureSet) -> Isa {
        match () {
            () if features.contains("avx512f") => Isa::Avx512,
            () if features.contains("avx2") => Isa::Avx2,
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
                let (count, moved) = pattern.of(24 << 10);
                let ns = best_ns(1, || {
                    let mut arrays = Arrays::new(pattern, count);
                    move |rounds| (0..rounds).for_each(|_| arrays.pass(isa))
                });
                let rate = moved / ns;
                assert!((0.1..5_000.0).contains(&rate), "{isa:?} {pattern:?}: {rate}");
            }
        }
    }

    #[test]
    fn a_pass_does_what_it_says() {
        for isa in [Isa::Plain, Isa::of(&FeatureSet::of_this_cpu())] {
            let first = |pattern: Pattern| {
                let mut arrays = Arrays::new(pattern, 128);
                arrays.pass(isa);
                arrays.arrays[0].slice().to_vec()
            };
            assert_eq!(first(Pattern::Read), [0.0; 128]);
            assert_eq!(first(Pattern::Write), [1.5; 128]);
            assert_eq!(first(Pattern::Copy), [1.0; 128]);
            assert_eq!(first(Pattern::Triad), [7.0; 128]);
        }
    }
}
