//! Cold caches: between calls as much memory is read as does not fit the caches.
//!
//! What it is: after [`Eviction::run`] neither operands nor what a kernel packed are in a cache, nor is its code, so that
//! a call finds them where a network finds the weights of a layer that ran a while ago. What it is not: a flush of single
//! lines; translations of addresses and predictions of branches are lost along with the rest.

use crate::machine::{available_memory, caches};
use std::{hint::black_box, thread};

/// Bytes that are read where nothing is known of the caches.
const UNKNOWN: usize = 64 << 20;
/// Bytes that are read at most, by all threads together.
const MOST: usize = 1 << 30;
/// A read of each line brings it in.
const LINE: usize = 64;

/// Memory that is read between calls.
#[derive(Debug)]
pub struct Eviction {
    /// For each thread that computes: its own caches are filled by itself.
    parts: Vec<Vec<u8>>,
}

impl Eviction {
    /// Memory twice as large as the last cache, shared by this many threads, each of which has twice the cache before it
    /// at least.
    pub fn new(threads: u32) -> Eviction {
        let each = bytes_of(&caches(), threads, available_memory());
        // Written, so that there are pages behind it.
        let part = || (0..each).map(|at| at as u8).collect();
        Eviction { parts: (0..threads.max(1)).map(|_| part()).collect() }
    }

    /// Fills the caches with other things.
    pub fn run(&mut self) {
        let [own, others @ ..] = &self.parts[..] else { return };
        thread::scope(|scope| {
            for part in others {
                scope.spawn(move || read(part));
            }
            read(own);
        });
    }
}

fn read(part: &[u8]) {
    // Twice: a cache that does not always replace the oldest line keeps some the first time.
    for _ in 0..2 {
        let sum = part.iter().step_by(LINE).fold(0u8, |sum, byte| sum.wrapping_add(*byte));
        black_box(sum);
    }
}

/// Bytes for each thread, by caches from the smallest level up.
fn bytes_of(caches: &[(String, u64)], threads: u32, available: Option<u64>) -> usize {
    let twice = |cache: Option<&(String, u64)>| {
        cache.map_or(UNKNOWN, |(_, bytes)| (*bytes as usize).saturating_mul(2))
    };
    let threads = threads.max(1) as usize;
    let own = caches.len().checked_sub(2).map_or(0, |at| twice(caches.get(at)));
    let shared = twice(caches.last()) / threads;
    let most = available.map_or(MOST, |bytes| MOST.min((bytes / 4) as usize)) / threads;
    shared.max(own).min(most).max(LINE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_share_the_last_cache_and_have_the_others_alone() {
        let caches = [("L1", 48 << 10), ("L2", 1 << 20), ("L3", 32 << 20)];
        let caches = caches.map(|(name, bytes)| (name.to_owned(), bytes));
        assert_eq!(bytes_of(&caches, 1, None), 64 << 20);
        assert_eq!(bytes_of(&caches, 4, None), 16 << 20);
        assert_eq!(bytes_of(&caches, 128, None), 2 << 20);
        assert_eq!(bytes_of(&[], 1, None), UNKNOWN);
        assert_eq!(bytes_of(&caches, 1, Some(16 << 20)), 4 << 20, "a machine with little memory");
    }

    #[test]
    fn every_thread_reads_its_part() {
        let mut eviction = Eviction { parts: vec![vec![1; 4096]; 3] };
        eviction.run();
        assert_eq!(eviction.parts.len(), 3);
    }
}
